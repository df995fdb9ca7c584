"""The page that compares the paper's tables with ours agrees with archives and presets."""

import pytest

from lab_helpers.docs_code import ROOT, load_tool
from vntransfer_lab.runner.packed import read_packed

TOOL = load_tool("make_paper_page")
PAGE = TOOL.PAGE.read_text(encoding="utf-8")


def test_tables_are_up_to_date() -> None:
    assert TOOL.fill(PAGE) == PAGE, "run make docs"


def test_every_table_is_shown() -> None:
    assert {place["name"] for place in TOOL.PLACE.finditer(PAGE)} == set(TOOL.TABLES)


def test_a_run_is_missing_exactly_where_it_is_not_archived() -> None:
    published = (ROOT / "lab" / "results" / "table3-published").exists()
    assert ("not run yet" in TOOL.table_3()) is not published


def test_numbers_are_those_of_the_cells() -> None:
    """One of each kind, by hand from the archived cells."""
    own = [r for r in read_packed(ROOT / "lab" / "results" / "table3")[1] if r.method == "covp"]
    values = [max(r.metrics["ra"].items())[1] for r in own if r.data == "mnistP"]
    assert len(values) == 5
    assert f"{sum(values) / 5:.1f} ±" in TOOL.table_3().split("mnistP | covp")[1].split("\n")[0]
    cells = read_packed(ROOT / "lab" / "results" / "yearpred-small")[1]
    years = [r.metrics["mae_raw"] for r in cells if r.method == "mdd_paper"]
    mean = sum(max(steps.items())[1] for steps in years) / len(years)
    row = TOOL.TABLES["table 6"]().split("| mdd_paper |")[1].split("\n")[0]
    assert f"{mean:.3f}" in row


@pytest.mark.parametrize("name", ["README.md", "docs/README.md", "docs/claims.md"])
def test_the_page_is_linked(name: str) -> None:
    assert "paper-and-us.md)" in (ROOT / name).read_text(encoding="utf-8")
