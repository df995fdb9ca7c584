"""Plans: what comes next, whole seeds first within a budget, nothing that would not end in time."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from vntransfer.cli import app
from vntransfer.errors import ArgumentError
from vntransfer_lab import run
from vntransfer_lab.runner.cell_times import Times, group
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.plan import Budget, RunPlan, remaining
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


def budget(seconds: float, preset: Preset, each: dict[str, float]) -> Budget:
    cells = expand(preset)
    return Budget(seconds, Times(probed={group(cell): each[cell.method] for cell in cells}))


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
        limit = budget(40, preset, each)
        plan = RunPlan(preset, expand(preset), store, budget=limit, clock=clock)
        done = work(plan, store, clock, each)
        left = plan.left_out()
    assert [cell.seed for cell in done] == [0, 0, 0, 0, 1, 1, 1]
    assert clock.now - 100 <= 40
    assert left.cells == 12 - len(done)
    assert left.seeds == {1: 1, 2: 4}
    assert left.methods == {"ridge": 3, "constant": 2}
    assert left.seconds == pytest.approx(32)
    assert not left.overlong
    assert [record.key for record in read_records(tmp_path)[1]] == [c.key for c in expand(preset)]


def test_the_same_command_goes_on_until_all_is_done(tmp_path: Path) -> None:
    preset, each = smoke(), {"constant": 1.0, "ridge": 10.0}
    numbers = []
    for _ in range(9):
        clock = Clock()
        with Store(tmp_path, write=True) as store:
            limit = budget(25, preset, each)
            plan = RunPlan(preset, expand(preset), store, budget=limit, clock=clock)
            numbers.append(len(work(plan, store, clock, each)))
    assert sum(numbers) == 12
    assert numbers[-1] == 0
    assert 0 not in numbers[: numbers.index(0)]


def test_cells_longer_than_the_budget_are_named_and_do_not_block(tmp_path: Path) -> None:
    preset, clock, each = smoke(), Clock(), {"constant": 1.0, "ridge": 1000.0}
    with Store(tmp_path, write=True) as store:
        limit = budget(100, preset, each)
        plan = RunPlan(preset, expand(preset), store, budget=limit, clock=clock)
        done = work(plan, store, clock, each)
        left = plan.left_out()
    assert {cell.method for cell in done} == {"constant"}
    assert len(done) == 6
    assert len(left.overlong) == left.cells == 6
    assert left.overlong["synthetic s1 ridge seed 0"] == 1000


def test_times_that_are_measured_meanwhile_take_the_place_of_estimates(tmp_path: Path) -> None:
    preset, clock = smoke(methods=["ridge"]), Clock()
    with Store(tmp_path, write=True) as store:
        limit = budget(10, preset, {"ridge": 1.0})
        plan = RunPlan(preset, expand(preset), store, budget=limit, clock=clock)
        done = work(plan, store, clock, {"ridge": 4.0})
    assert len(done) == 2  # the third would end after 12 s; the estimate had promised 6 cells


def test_trials_of_a_study_wait_for_each_other(tunable: Path, tmp_path: Path) -> None:
    preset = check(override(read_preset(tunable)[1], targets=["a"], seeds=1), "tunable")
    with Store(tmp_path, write=True) as store:
        plan = RunPlan(preset, expand(preset), store)
        assert plan.total == 17
        started = [plan.next() for _ in range(4)]
        assert [cell.method for cell in started if cell] == ["one", "two", "plain"]
        first = started[0]
        assert first is not None
        outcome = CellOutcome([(1, "error", 1.0), (1, "source_validation", 1.0)])
        store.finish(first.key, outcome)
        plan.tell(first, outcome)
        following = plan.next()
        assert following is not None
        assert (following.method, following.hyper != first.hyper) == ("one", True)
        assert plan.next() is None
        left = remaining(preset, expand(preset), store.outcome)
    assert sorted(n for _, n in left.values()) == [1, 7, 8]


def test_keys_of_presets_without_a_search_are_what_they_were() -> None:
    """Stores of earlier versions stay valid; the hash of the data may depend on the machine."""
    cells = [replace(cell, data_hash="") for cell in expand(check(read_preset("smoke")[1], "s"))]
    assert len({cell.key for cell in cells}) == len(cells) == 150
    assert (cells[0].key, cells[-1].key) == (
        "2948b58eaffb842a050c3c9d8242238f",
        "abd27712ac27232bb13eb6aa3c6a82c0",
    )


def vnt(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def test_run_says_how_long_before_it_starts_and_what_it_left_out(
    tunable: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    size = ("--methods", "one,plain", "--targets", "a", "--seeds", "1", "--jobs", "1")
    asked = vnt("run", tunable, *size, "--out", folder, "--estimate")
    assert asked.exit_code == 0
    assert "for 9 cells on 1 worker (times per data set, condition and method: 2 from short" in (
        asked.stdout
    )
    assert not folder.exists()
    long = ("--set", "size=1000000", "--set", "seconds=0.01")  # a cell seems to take hours
    nothing = vnt("run", tunable, *size, *long, "--out", folder, "--budget", "30s")
    assert nothing.exit_code == 0, nothing.stderr
    assert "for 9 cells on 1 worker" in nothing.stderr
    assert "budget of 30 s used: 9 cells were left out (seeds 0: 9; methods" in nothing.stdout
    assert "longer than the whole budget: none a one seed 0 (" in nothing.stdout
    rest = vnt("run", tunable, *size, "--out", folder, "--budget", "1h")
    assert (rest.exit_code, "9 cells are done" in rest.stdout) == (0, True)
    assert "left out" not in rest.stdout
    known = vnt("run", tunable, *size, "--seeds", "2", "--out", folder, "--estimate")
    assert "for 9 cells on 1 worker (times per data set, condition and method: 2 from finished" in (
        known.stdout
    )


def test_wrong_budgets_are_explained_before_anything_happens(tmp_path: Path) -> None:
    for text in ("2 hours", "", "h", "-3m", "0s"):
        with pytest.raises(ArgumentError, match="expected a duration such as 2h, 90m"):
            run("smoke", budget=text, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_list_gives_estimates_and_says_which_data_are_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {"smoke": "Everyday", "table3": "MNIST"}
    monkeypatch.setattr("vntransfer_lab.runner.preset.shipped", lambda: few)
    monkeypatch.setenv("VNT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    shown = vnt("list", "--estimate", "--jobs", "1")
    assert shown.exit_code == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert "for 150 cells on 1 worker" in lines[1]
    assert "no estimate: mnistP: train-images-idx3-ubyte.gz is absent" in lines[3]
