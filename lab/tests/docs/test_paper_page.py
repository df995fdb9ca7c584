"""The pages that compare the paper's tables with ours agree with archives and presets."""

import re

import pytest

from lab_helpers.docs_code import ROOT, load_tool
from vntransfer_lab.runner.packed import read_packed

TOOL = load_tool("make_paper_page")
PAGE, APPENDIX = (file.read_text(encoding="utf-8") for file in (TOOL.PAGE, TOOL.APPENDIX))
CLAIMS = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")


def rows(page: str, start: str) -> list[list[str]]:
    """Cells of the rows whose first cell matches a pattern."""
    found = re.findall(rf"^\| (?:{start}) \|.*$", page, re.M)
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in found]


AT_A_GLANCE = {int(row[0]): row for row in rows(PAGE, r"\d+")}


@pytest.mark.parametrize("page", [PAGE, APPENDIX], ids=["page", "appendix"])
def test_tables_are_up_to_date(page: str) -> None:
    assert TOOL.fill(page) == page, "run make docs"


def test_every_table_is_shown() -> None:
    assert {place["name"] for place in TOOL.PLACE.finditer(PAGE + APPENDIX)} == set(TOOL.TABLES)


def test_claims_at_the_papers_settings_are_at_the_top() -> None:
    own = {
        int(row[0]): row[3]
        for row in rows(CLAIMS, r"\d+")
        if re.search(r"\((?!not run)[^,]*, the paper's\)", row[4])
    }
    assert {number: row[3] for number, row in AT_A_GLANCE.items()} == own
    first = PAGE.index("| claim |")
    assert PAGE[:first].count("\n") < 15, "a reader finds them within a minute"


def test_every_table_and_figure_of_the_paper_has_a_row() -> None:
    tables = re.findall(r"^\| \[([\d and]+), ", PAGE, re.M)
    assert sorted(int(n) for cell in tables for n in re.findall(r"\d", cell)) == list(range(1, 10))
    section = PAGE.partition("## Figures")[2]
    figures = [row[0].partition(":")[0] for row in rows(section, r"\d[^|]*:[^|]*")]
    assert {int(n) for cell in figures for n in re.findall(r"\d+", cell)} == set(range(1, 14))


def best_on(table: str, method: str) -> tuple[str, str]:
    """On how many targets a method is best: in the paper and here."""
    (row,) = rows(TOOL.TABLES[table](), method)
    return row[2], row[4]


@pytest.mark.parametrize("table", ["1", "2", "6"])
def test_how_often_mdd_is_best_is_said_at_the_top(table: str) -> None:
    paper, ours = best_on(f"table {table}", "mdd_paper")
    (row,) = re.findall(rf"^\| \[{table}[ ,].*$", PAGE, re.M)
    assert f"best on {ours}" in row
    assert f"the paper's on {paper.split()[0]}" in row


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


def gains(metric: str) -> tuple[dict[str, float], dict[str, float]]:
    """RSP's advantage over EWC on each stream: ours where neither diverges, and the paper's."""
    paper = TOOL.read_preset("table3")[1]["paper"]["values"]
    cells = read_packed(ROOT / "lab" / "results" / "table3-published")[1]
    ours, known = {}, {}
    for stream in TOOL.STREAMS:
        means = {}
        for method in ("rsp", "ewc"):
            own = [r for r in cells if (r.method, r.data) == (TOOL.PRINTED[method], stream)]
            last = [max(r.metrics[metric].items())[1] for r in own if metric in r.metrics]
            if len(last) == 5:
                means[method] = sum(last) / 5
        if len(means) == 2:
            ours[stream] = means["rsp"] - means["ewc"]
        known[stream] = paper[stream][stream]["rsp"][metric] - paper[stream][stream]["ewc"][metric]
    return ours, known


def written(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


@pytest.mark.parametrize(("claim", "metric"), [(42, "ra"), (43, "la")])
def test_gains_over_ewc_are_those_of_the_cells(claim: int, metric: str) -> None:
    ours, known = gains(metric)
    _, said, here, _ = AT_A_GLANCE[claim]
    printed = re.findall(r"(−?[\d.]+) \((\w+)\)", said)
    assert [value for value, _ in printed] == [written(known[stream]) for _, stream in printed]
    streams = [stream for _, stream in printed]
    assert streams[0] == "fashionP"
    assert "fashionP" not in ours
    assert here.startswith("EWC diverges; ")
    assert re.findall(r"−?\d+\.\d", here) == [written(ours[s]) for s in streams[1:]]


def test_forgetting_is_less_on_two_streams_of_three() -> None:
    ours, _ = gains("bt")
    assert sorted(ours) == ["mnistP", "mnistR", "notmnistP"]
    assert sum(value > 0 for value in ours.values()) == 2
    assert "less forgetting on two of three" in AT_A_GLANCE[42][2]


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


def test_the_fisher_information_of_the_text_fits_worse() -> None:
    paper = TOOL.read_preset("table3")[1]["paper"]["values"]
    gaps = [
        sum(final_ra("table3-published", "rsp_explicit", s)) / 5 - paper[s][s]["rsp"]["ra"]
        for s in TOOL.STREAMS
    ]
    first, *rest = (re.sub(r"(?<=[+−])0", "", f"{g:+.1f}".replace("-", "−")) for g in gaps)
    assert f"differences from the paper are {first}, {rest[0]}, {rest[1]} and {rest[2]}." in PAGE
    for stream in ("mnistP", "fashionP"):
        assert final_ra("table3-published", "ewc_explicit", stream) == []


@pytest.mark.parametrize("name", ["README.md", "docs/README.md", "docs/claims.md"])
def test_the_page_is_linked(name: str) -> None:
    assert "paper-and-us.md)" in (ROOT / name).read_text(encoding="utf-8")
