"""Tables: ours, the paper's, the difference; the rule beside; the same text each time."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vntransfer.errors import ArgumentError
from vntransfer_lab.reports.drawings import draw
from vntransfer_lab.reports.report import load_report, report, value_table
from vntransfer_lab.reports.statistics import Estimate
from vntransfer_lab.reports.tables import (
    PROBABILITY,
    SIGNED,
    Number,
    NumberPair,
    ReportTable,
    Value,
    render,
    signed,
    text,
)
from vntransfer_lab.runner.cells import expand
from vntransfer_lab.runner.preset import check, override, read_preset
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.store import Store

Make = Callable[..., Path]
# method -> value for seed 0; each seed adds .1, each target after s1 adds 1
PAPER = {"mae": 4.0, "source_validation": 8.0}
LEVEL = {"constant": 3.0, "ridge": 2.0, "boosting": 1.0}


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def build(skip: int = 0, **changes: Any) -> Path:
        raw = override(read_preset("smoke")[1], **changes)
        raw["paper"] = {
            "source": "Table 9",
            "claim": "boosting is best",
            "values": {"synthetic": {"s1": {"ridge": 1.5, "constant": PAPER}}},
        }
        preset = check(raw, "smoke")
        cells = expand(preset)
        with Store(tmp_path / "run", write=True) as store:
            store.plan(preset, cells)
            for cell in cells[skip:]:
                alpha = cell.hyper.get("alpha", 0.1)
                value = LEVEL[cell.method] + 0.1 * cell.seed + (cell.target != "s1")
                rows = [
                    (1, "mae", value + alpha),
                    (1, "source_validation", 9.0),
                    (2, "mae", value + 0.01 * alpha),
                    (2, "source_validation", 5.0 if alpha == 10.0 else 6.0 + alpha),
                ]
                store.finish(cell.key, CellOutcome(rows))
        return tmp_path / "run"

    return build


def rows_of(folder: Path, number: int = 0) -> list[dict[str, str]]:
    blocks = report(folder, "csv").split("\n\n")
    lines = [line for line in blocks[number].splitlines() if not line.startswith("#")]
    return list(csv.DictReader(io.StringIO("\n".join(lines))))


def test_values_paper_and_difference_stand_together(make: Make) -> None:
    rows = rows_of(make(targets=["s1", "s2"], seeds=2))
    assert [(row["target"], row[""]) for row in rows] == [
        ("s1", "ours"),
        ("s1", "paper"),
        ("s1", "difference"),
        ("s2", "ours"),
        ("mean", "ours"),
    ]
    # alpha = 10 has the smallest validation error; step 2 is better than step 1
    assert float(rows[0]["ridge"]) == pytest.approx(2.05 + 0.1)
    assert float(rows[0]["ridge se"]) == pytest.approx(0.05)
    assert rows[1]["ridge"] == "1.5"
    assert float(rows[2]["ridge"]) == pytest.approx(0.65)
    assert rows[1]["boosting"] == ""
    assert float(rows[4]["ridge"]) == pytest.approx(2.65)


def test_other_metrics_have_their_own_table_and_paper_values(make: Make) -> None:
    loaded = load_report(make(targets=["s1"], seeds=2))
    table = value_table(loaded, "synthetic", "source_validation")
    assert [row[1:3] for row in table.rows[1:]] == [
        ["paper", 8.0],
        ["difference", Number(pytest.approx(-1.9), SIGNED)],
    ]
    assert text(table.rows[2][2]) == "-1.9"
    assert table.rows[1][3] is None
    assert table.notes[0].startswith("source_validation (lower is better)")


def test_the_rule_and_the_claim_stand_under_the_table(make: Make) -> None:
    shown = report(make(targets=["s1"], seeds=2))
    assert "selection: source_validation" in shown
    assert "paper: boosting is best" in shown
    assert "paper: Table 9" in shown
    assert "ORACLE" not in shown


def test_the_oracle_chooses_by_the_target_and_is_marked(make: Make) -> None:
    folder = make(targets=["s1"], seeds=2, settings={"selection": "oracle"})
    assert float(rows_of(folder)[0]["ridge"]) == pytest.approx(2.05 + 0.001)
    assert "ORACLE: chosen with the target's labels" in report(folder)


def test_comparison_counts_targets_and_missing_cells_are_stated(make: Make) -> None:
    folder = make(skip=1, targets=["s1", "s2", "s3"], seeds=2)
    rows = rows_of(folder, 1)
    assert [row["method"] for row in rows] == ["ridge", "boosting"]
    assert {(row["won/lost won"], row["won/lost lost"]) for row in rows} == {("3", "0")}
    assert {row["verdict"] for row in rows} == {"better"}
    assert float(rows[0]["95 % interval low"]) < float(rows[0]["difference"])
    assert float(rows[0]["95 % interval high"]) < 0
    assert 0 < float(rows[0]["p"]) <= float(rows[0]["p (Holm)"]) < 0.05
    shown = report(folder)
    assert "1 of 30 cells are not computed yet" in shown
    assert "FEWER SEEDS than planned: s1 constant 1\n" in shown


def test_conditions_become_rows_and_wins_are_counted(make: Make) -> None:
    folder = make(targets=["s1", "s2", "s3"], seeds=2, settings={"grid.n_samples": [50, 60]})
    targets = [row["target"] for row in rows_of(folder) if row[""] == "ours"]
    assert targets[1:4] == ["s2, n_samples=50", "s3, n_samples=50", "mean, n_samples=50"]
    assert rows_of(folder, 2)[0] == {
        "method": "ridge",
        "better": "2",
        "worse": "0",
        "no difference": "0",
        "too few runs": "0",
    }


@pytest.mark.parametrize("form", ["terminal", "markdown", "csv"])
def test_the_same_cells_give_the_same_text(make: Make, form: str) -> None:
    folder = make(targets=["s1", "s2"], seeds=2)
    assert report(folder, form) == report(folder, form)
    assert "seconds" not in report(folder, form)
    assert "seconds per cell" not in report(folder, form)


def test_times_only_when_asked_for(make: Make) -> None:
    assert "seconds per cell" in report(make(targets=["s1"], seeds=1), times=True)


def test_unknown_formats_are_named(make: Make) -> None:
    with pytest.raises(ArgumentError, match=r"format: expected one of terminal, .* got 'pdf'"):
        render([], "pdf")


def test_markdown_escapes_what_it_must() -> None:
    table = ReportTable("100 % of a_b", ["x|y", "a & b"], [["<1", 2.0]], ["note"])
    assert r"| x\|y | a & b |" in render([table], "markdown")


def test_csv_has_every_number_in_a_column_of_its_own() -> None:
    cells = [Number(0.25, ".1f", error=0.5, verdict="worse"), Number(1.5, won=3, lost=1)]
    shown = render([ReportTable("t", ["a", "b"], [["x", c] for c in cells])], "csv").splitlines()
    assert shown[1:] == ["a,b,b se,b verdict,b won,b lost", "x,0.25,0.5,worse,,", "x,1.5,,,3,1"]


def test_numbers_show_three_digits() -> None:
    shown = [text(value) for value in (0.0, 0.012345, 1.23456, 123.456, 12345.6, 1e7, -3e-5)]
    assert shown == ["0", "0.0123", "1.23", "123", "12346", "1.0e+07", "-3.0e-05"]


def test_values_read_as_people_write_them() -> None:
    shown: dict[str, Value] = {
        "": None,
        "18.9 ± 1.3": Estimate(18.912, 1.3456, 5),
        "0.512 ± 0.002": Estimate(0.51234, 0.00234, 5),
        "0.00 ± 0.11": Estimate(0.00234, 0.112, 5),
        "0.5123 ± 0.0003": Estimate(0.51234, 0.0003, 5),
        "0.512": Estimate(0.51234, 1e-9, 5),
        "+0.512": Number(0.51234, SIGNED),
        "< 0.0001": Number(1e-7, PROBABILITY),
        "0.035": Number(0.03456, PROBABILITY),
        "0.900 (3/1)": Number(0.9, ".3f", won=3, lost=1),
        "0.50 ± 0.12 [+]": Number(0.5, error=0.12, verdict="better"),
        "-1.00 to +0.25": NumberPair(-1, 0.25, " to ", signed(0.625)),
        "3 of 4": NumberPair(3, 4, " of "),
    }
    assert [text(value) for value in shown.values()] == list(shown)


def test_figures_are_files_that_stay_the_same(make: Make, tmp_path: Path) -> None:
    folder = make(targets=["s1", "s2"], seeds=2)
    first, second = draw(folder, tmp_path / "a"), draw(folder, tmp_path / "b")
    assert [path.name for path in first] == ["smoke-values.svg"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert load_report(folder).kind.name == "smoke"
