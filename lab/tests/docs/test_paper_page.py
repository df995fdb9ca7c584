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


def final_ra(result: str, method: str, stream: str) -> list[float]:
    cells = read_packed(ROOT / "lab" / "results" / result)[1]
    own = [r for r in cells if (r.method, r.data) == (method, stream)]
    return [max(r.metrics["ra"].items())[1] for r in own if "ra" in r.metrics]


def test_numbers_are_those_of_the_cells() -> None:
    """One of each kind, by hand from the archived cells."""
    for table, result, row, method in (
        (TOOL.table_3(), "table3-published", "rsp", "rsp_published"),
        (TOOL.table_3_searched(), "table3-full", "covp", "covp"),
        (TOOL.table_8(), "groups-published", "mnistP | the paper's", "rsp_published_5_groups"),
    ):
        values = final_ra(result, method, "mnistP")
        assert len(values) == 5
        assert f"{sum(values) / 5:.1f} ±" in table.split(f"| {row} |")[1][:150]
    cells = read_packed(ROOT / "lab" / "results" / "yearpred-small")[1]
    years = [r.metrics["mae_raw"] for r in cells if r.method == "mdd_paper"]
    mean = sum(max(steps.items())[1] for steps in years) / len(years)
    row = TOOL.TABLES["table 6"]().split("| mdd_paper |")[1].split("\n")[0]
    assert f"| {mean:.3g} |" in row


def test_what_diverges_is_shown_and_not_averaged() -> None:
    assert len(final_ra("table3-published", "ewc_squared_mean", "fashionP")) == 3
    (row,) = (line for line in TOOL.table_3().splitlines() if line.startswith("| ewc |"))
    assert "diverged (2 of 5 seeds)" in row


def test_the_claim_of_the_page_holds_in_the_cells() -> None:
    """RSP is near the paper's numbers and the best of its five methods on two streams."""
    paper = TOOL.read_preset("table3")[1]["paper"]["values"]
    best, gaps = 0, []
    for stream in TOOL.STREAMS:
        found = {
            method: sum(values) / 5
            for method, name in TOOL.PRINTED.items()
            if len(values := final_ra("table3-published", name, stream)) == 5 and "," not in method
        }
        gaps.append(abs(found["rsp"] - paper[stream][stream]["rsp"]["ra"]))
        best += max(found, key=lambda method: found[method]) == "rsp"
    assert best == 2
    assert max(gaps) < 2.55
    assert "within 2.5 points" in PAGE


@pytest.mark.parametrize("name", ["README.md", "docs/README.md", "docs/claims.md"])
def test_the_page_is_linked(name: str) -> None:
    assert "paper-and-us.md)" in (ROOT / name).read_text(encoding="utf-8")
