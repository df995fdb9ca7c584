"""Plans: what comes next, whole seeds first within a budget, nothing after the time is up."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from vntransfer.cli import app
from vntransfer.errors import ArgumentError
from vntransfer_lab import RunOptions, report, run
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.plan import RunPlan
from vntransfer_lab.runner.preset import Preset, check, override, read_preset
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.store import Store, read_records

SIZE: dict[str, Any] = {"methods": ["constant", "ridge"], "targets": ["s1", "s2"], "seeds": 3}


def smoke(**changes: Any) -> Preset:
    settings = {"methods.ridge.grid": {}, "n_samples": 20}
    return check(override(read_preset("smoke")[1], **SIZE | changes, settings=settings), "smoke")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def work(plan: RunPlan, store: Store, clock: Clock, each: dict[str, float]) -> list[Cell]:
    done = []
    while (cell := plan.next()) is not None:
        clock.now += each[cell.method]
        outcome = CellOutcome([(1, "mae", 1.0)], each[cell.method])
        store.finish(cell.key, outcome)
        plan.tell(cell, outcome)
        done.append(cell)
    return done


def test_one_data_set_after_another_and_seed_by_seed(tmp_path: Path) -> None:
    preset = replace(smoke(), data=("synthetic", "other"))
    cells = [replace(cell, data=name) for cell in expand(smoke()) for name in preset.data]
    with Store(tmp_path, write=True) as store:
        plan = RunPlan(preset, cells, store)
        done = work(plan, store, Clock(), {"constant": 1, "ridge": 1})
    assert done == sorted(cells, key=lambda c: (preset.data.index(c.data), c.seed))
    assert [cell.seed for cell in done] != [cell.seed for cell in cells]
    assert (plan.total, plan.finished, plan.computed) == (len(cells), 0, len(cells))


def test_a_budget_runs_whole_seeds_first_and_tables_keep_their_order(tmp_path: Path) -> None:
    preset, clock, each = smoke(), Clock(), {"constant": 1.0, "ridge": 10.0}
    with Store(tmp_path, write=True) as store:
        plan = RunPlan(preset, expand(preset), store, budget=31, clock=clock)
        done = work(plan, store, clock, each)
    assert [cell.seed for cell in done] == [0, 0, 0, 0, 1, 1]
    assert plan.left == 12 - len(done)
    assert [record.key for record in read_records(tmp_path)[1]] == [c.key for c in expand(preset)]


@given(
    st.lists(st.floats(0, 9), min_size=12, max_size=12),
    st.floats(0.1, 60),
    st.integers(1, 4),
    st.floats(0, 100),
)
def test_a_budget_starts_cells_in_the_order_of_the_plan_until_time_is_up(
    times: list[float], seconds: float, jobs: int, delay: float
) -> None:
    preset = smoke()
    with TemporaryDirectory() as folder, Store(folder, write=True) as store:
        every = sorted(expand(preset), key=lambda cell: cell.seed)
        clock = Clock()
        plan = RunPlan(preset, every, store, budget=seconds, clock=clock)
        clock.now = begun = clock.now + delay  # until workers are there
        running: list[tuple[float, Cell]] = []
        started: list[tuple[float, Cell]] = []
        finished = 0
        while True:
            while len(running) < jobs and (cell := plan.next()) is not None:
                started.append((clock.now, cell))
                running.append((clock.now + times[len(started) - 1], cell))
            if not running:
                break
            running.sort(key=lambda own: own[0])
            clock.now, cell = running.pop(0)
            plan.tell(cell, CellOutcome([(1, "mae", 1.0)], 1.0))
            finished += 1
    assert [cell.key for _, cell in started] == [cell.key for cell in every[: len(started)]]
    assert all(moment - begun < seconds for moment, _ in started)
    assert 1 <= len(started) == finished == plan.computed == 12 - plan.left
    assert plan.left == 0 or clock.now - begun >= seconds


def test_a_command_that_is_repeated_comes_to_an_end(tmp_path: Path) -> None:
    preset, each = smoke(), {"constant": 1.0, "ridge": 1000.0}
    numbers = []
    for _ in range(14):
        clock = Clock()
        with Store(tmp_path, write=True) as store:
            plan = RunPlan(preset, expand(preset), store, budget=1.5, clock=clock)
            numbers.append(len(work(plan, store, clock, each)))
    assert sum(numbers) == 12
    assert numbers[-1] == 0
    assert 0 not in numbers[: numbers.index(0)]  # a cell that is longer than the budget is computed


def test_keys_of_presets_are_what_they_were() -> None:
    """Stores of earlier versions stay valid; the hash of the data may depend on the machine."""
    cells = [replace(cell, data_hash="") for cell in expand(check(read_preset("smoke")[1], "s"))]
    assert len({cell.key for cell in cells}) == len(cells) == 150
    assert (cells[0].key, cells[-1].key) == (
        "2948b58eaffb842a050c3c9d8242238f",
        "abd27712ac27232bb13eb6aa3c6a82c0",
    )


def vnt(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def test_a_run_starts_nothing_after_its_budget_and_says_what_it_left(
    tunable: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    size = ("--methods", "one,plain", "--targets", "a", "--seeds", "1", "--jobs", "1")
    slow = ("--set", "seconds=0.3")
    short = vnt("run", tunable, *size, *slow, "--out", folder, "--budget", "0.2s")
    assert short.exit_code == 0, short.stderr
    assert "--budget 0.2s: time is up, 8 cells were not started." in short.stdout
    assert "1 cells are done" in short.stdout
    rest = vnt("run", tunable, *size, *slow, "--out", folder, "--budget", "1h")
    assert (rest.exit_code, "9 cells are done" in rest.stdout) == (0, True)
    assert "not started" not in rest.stdout


def test_a_run_within_a_budget_computes_each_cell_once(tunable: Path, tmp_path: Path) -> None:
    size: dict[str, Any] = {"methods": ["one", "plain"], "targets": ["a"], "seeds": 1, "jobs": 2}
    settings = {"seconds": 0.1}
    computed, left = 0, 9
    while left:
        options = RunOptions(budget="0.15s")
        summary = run(tunable, **size, settings=settings, out=tmp_path / "run", options=options)
        assert summary.left is not None
        assert summary.left == left - summary.computed
        computed, left = computed + summary.computed, summary.left
    assert computed == 9
    run(tunable, **size, settings=settings, out=tmp_path / "other")
    assert report(tmp_path / "run") == report(tmp_path / "other")


def test_wrong_budgets_are_explained_before_anything_happens(tmp_path: Path) -> None:
    for text in ("2 hours", "", "h", "-3m", "0s"):
        with pytest.raises(ArgumentError, match="expected a duration such as 2h, 90m"):
            run("smoke", out=tmp_path / "run", options=RunOptions(budget=text))
    assert not (tmp_path / "run").exists()
