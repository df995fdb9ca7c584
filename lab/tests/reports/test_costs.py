"""Costs: steps are counted where they are made, and results do not know of them."""

from pathlib import Path
from typing import Any

import pytest

from lab_helpers.runs import cells, changed, done
from vntransfer.step_times import StepTimes
from vntransfer_lab import export, pack, report, results, run
from vntransfer_lab.reports.costs import cost_table, step_seconds
from vntransfer_lab.reports.report import load_report
from vntransfer_lab.runner.cells import expand
from vntransfer_lab.runner.packed import CELLS_NAME
from vntransfer_lab.runner.preset import check, override, read_preset
from vntransfer_lab.runner.records import CellOutcome, Cost
from vntransfer_lab.runner.store import Store, read_records
from vntransfer_lab.runner.workers import compute

SMALL = {"n_train": 50, "n_test": 50}


def test_the_first_step_of_a_loop_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 20.0, 21.0, 30.0, 32.0, 40.0])
    monkeypatch.setattr("vntransfer.step_times.process_time", lambda: next(clock))
    times = StepTimes()
    for _ in range(3):
        with times.step():
            pass
    with pytest.raises(ZeroDivisionError), times.step():  # was begun, but not made
        1 / 0  # noqa: B018
    assert times == StepTimes(made=3, timed=2, seconds=3.0)
    assert times + times == StepTimes(made=6, timed=4, seconds=6.0)


@pytest.mark.parametrize(
    ("preset", "method", "settings", "timed"),
    [
        ("demo-synthetic", "darn", {"rows": 30, "common.epochs": 2}, 50 - 1),
        ("demo-synthetic", "ridge", {"rows": 30}, 0),
        ("demo-stream", "ewc", {"n_tasks": 2, "n_train": 7, "n_test": 5}, 14 - 2),
        ("robustness", "mse", {**SMALL, "data": ["2dplanes"], "batch_size": 20, "epochs": 2}, 3),
    ],
)
def test_every_kind_counts_its_steps(
    preset: str, method: str, settings: dict[str, Any], timed: int
) -> None:
    found = done(cells(preset, methods=[method], seeds=1, settings=settings)[0])
    assert found.cost is not None
    assert found.cost.steps == timed
    assert (found.cost.step_seconds is not None) == (timed > 0)


def test_a_failed_cell_has_no_cost(troubled: Path) -> None:
    (cell, *_) = expand(check(override(read_preset(troubled)[1], methods=["raises"]), "troubled"))
    assert compute(cell).cost is None


ROWS = [(5, "ra", 50.0), (5, "la", 60.0), (5, "bt", -10.0)]
COSTS = {"sgd": Cost(99, 0.5, 3_000_000), "ewc": Cost(99, 1.0, None), "covp": None}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with known costs."""
    preset = changed("demo-stream", methods=list(COSTS))
    with Store(tmp_path / "run", write=True) as store:
        for cell in store.plan(preset, expand(preset)):
            store.finish(cell.key, CellOutcome(ROWS, 2.0, cost=COSTS[cell.method]))
    return tmp_path / "run"


def costs(folder: Path) -> list[Cost | None]:
    return [record.cost for record in read_records(folder).records]


def test_costs_come_back_and_stay_out_of_results(folder: Path, tmp_path: Path) -> None:
    found = load_report(folder)
    assert [record.cost for record in found.records] == [COSTS[r.method] for r in found.records]
    assert list(step_seconds(found)["ewc"].values()) == [1, 1]
    export(folder, tmp_path / "rows.csv")
    header = (tmp_path / "rows.csv").read_text().splitlines()[0]
    for names in (header.split(","), results(folder).columns):
        assert not {"cost", "steps", "step_seconds", "memory"} & set(names)
    assert "per step" not in report(folder)


def test_a_cell_that_is_computed_again_has_its_last_cost(folder: Path) -> None:
    key = load_report(folder).records[0].key
    with Store(folder, write=True) as store:
        store.finish(key, CellOutcome(ROWS, 2.0, cost=Cost(7, 0.1, 5)))
        assert store.records()[0].cost == Cost(7, 0.1, 5)
        store.finish(key, CellOutcome(error="E: x"))
        assert store.records()[0].cost is None


def test_the_table_compares_steps_with_plain_training(folder: Path) -> None:
    found = load_report(folder)
    table = cost_table(found)
    place = table.header.index("steps relative to sgd")
    assert [row[place] for row in table.rows] == pytest.approx([1.0, 2.0, None])


def test_packed_results_carry_costs(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "packed")
    assert costs(tmp_path / "packed") == costs(folder)
    assert report(tmp_path / "packed", times=True) == report(folder, times=True)
    pack(tmp_path / "packed", tmp_path / "again")
    for name in (CELLS_NAME, "run.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "packed" / name).read_bytes()


def test_workers_send_costs_along(tmp_path: Path) -> None:
    settings = {"rows": 30, "common.epochs": 1}
    size: dict[str, Any] = {"methods": ["source_only"], "targets": ["s1", "s2"], "seeds": 1}
    run("demo-synthetic", **size, settings=settings, jobs=1, out=tmp_path)
    assert [cost.steps for cost in costs(tmp_path) if cost] == [24, 24]
