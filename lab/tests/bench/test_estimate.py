"""Estimates: from short steps to the whole, finished cells first, ranges that can be trusted."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab_helpers.runs import cells
from vntransfer_lab.runner.cell_times import (
    LEAST,
    LONG,
    ProbeError,
    Steps,
    Times,
    combine,
    group,
    probe,
)
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.remaining_time import forecast


@given(st.lists(st.floats(0.1, 9), min_size=2, max_size=2), st.integers(20, 500))
def test_short_runs_give_the_time_of_a_linear_whole(costs: list[float], steps: int) -> None:
    factors = combine([[1, 2], [1, 10]], [1, steps])
    short = [costs[0] + costs[1] * n for n in (2, 10)]
    total = sum(f * t for f, t in zip(factors, short, strict=True))
    assert total == pytest.approx(costs[0] + costs[1] * steps)


def linear(per_step: float, start: float) -> Any:
    """A machine on which a fit takes a start and so long for every step."""

    def compute(cell: Cell) -> CellOutcome:
        steps = cell.hyper["epochs"] * cell.hyper.get("steps", 25)
        return CellOutcome(seconds=start + per_step * steps)

    return compute


@pytest.mark.parametrize("method", ["source_only", "darn", "dann", "oracle", "source_only_5"])
def test_adaptation_is_extrapolated_from_its_steps(method: str) -> None:
    cell = cells("adaptation", methods=[method], seeds=1, settings={"data": "synthetic"})[0]
    short = load_kind("adaptation").probe(cell)  # type: ignore[misc]
    assert len({c.key for c, _ in short}) == 2
    # 600 rows of 64 each are fewer than the least number of 25 steps in each of 20 epochs
    assert probe(cell, linear(0.01, 0.7)) == pytest.approx(0.7 + 0.01 * 500)


def test_the_automatic_choice_is_made_up_of_what_it_tries() -> None:
    cell = cells("adaptation", methods=["auto"], seeds=1, settings={"data": "synthetic"})[0]
    seconds = {"boosting": 0.2, "ridge": 0.01, "mdd": 3.0}
    asked = [c.method for c, _ in load_kind("adaptation").probe(cell)]  # type: ignore[misc]
    assert asked == ["mdd", "mdd", "boosting", "ridge"]
    found = probe(cell, lambda c: CellOutcome(seconds=seconds[c.method]))
    assert found == pytest.approx(3.0 + 6 * 3 * 0.21)  # five virtual targets and the true one


def test_continual_streams_are_extrapolated_from_tasks_and_samples() -> None:
    cell = cells("demo-stream", methods=["ewc"], seeds=1)[0]

    def compute(c: Cell) -> CellOutcome:
        n_tasks, n_train, n_test = (c.settings[k] for k in ("n_tasks", "n_train", "n_test"))
        trained = n_tasks * n_train * (c.hyper["epochs"] or c.settings["epochs"])
        scored = n_tasks * (n_tasks + 1) / 2 * n_test
        return CellOutcome(seconds=0.2 * n_tasks + 0.001 * trained + 1e-5 * scored)

    assert probe(cell, compute) == pytest.approx(1.0 + 2.0 + 0.075)
    lists = {"strength": [1.0, 10.0], "lr": [0.01, 0.03]}
    searched = replace(cell, hyper=cell.hyper | lists, selection="short_stream")
    assert probe(searched, compute) == pytest.approx(3.075)
    trials = load_kind("continual").first(searched)
    assert len(trials) == 4
    assert len({group(trial) for trial in trials}) == 1
    per_candidate = 0.2 * 5 + 0.001 * 5 * 300 + 1e-5 * 15 * 1000
    assert probe(trials[0], compute) == pytest.approx(per_candidate)
    assert {c.selection for c, _ in load_kind("continual").probe(searched)} == {"fixed"}  # type: ignore[misc]


def test_short_steps_are_real_cells() -> None:
    from vntransfer_lab.runner.workers import compute

    for preset, method in (("demo-synthetic", "darn"), ("demo-stream", "covp")):
        for own in cells(preset, methods=[method], seeds=1)[:1]:
            for short, _ in load_kind(own.experiment).probe(own):  # type: ignore[misc]
                assert not compute(short).error


def test_a_failing_step_is_no_estimate() -> None:
    cell = cells("smoke", methods=["constant"])[0]
    with pytest.raises(ProbeError, match="no memory"):
        probe(cell, lambda c: CellOutcome(error="no memory"))
    times = Times()
    times.measure({group(cell): cell}, lambda c: CellOutcome(error="no memory"))
    found = forecast(times, {group(cell): (cell, 6)}, 1)
    assert found.text(1) == (
        "estimate: unknown for 6 cells on 1 worker (times per data set, condition and method: "
        "1 from nothing: no memory)"
    )


def test_finished_cells_go_before_short_steps_and_two_conditions_stand_for_many() -> None:
    settings = {"grid.n_samples": [10, 20, 30, 40, 50]}
    every = cells("smoke", methods=["ridge"], targets=["s1"], seeds=1, settings=settings)
    firsts = {group(cell): cell for cell in every}
    asked: list[int] = []

    def compute(cell: Cell) -> CellOutcome:
        asked.append(cell.settings["n_samples"])
        return CellOutcome(seconds=float(cell.settings["n_samples"]))

    times = Times()
    times.measure(firsts, compute)
    assert set(asked) == {10, 50}
    assert [times.seconds(cell) for cell in firsts.values()] == [10, 30, 30, 30, 50]
    times.add(every[0], 3.0)
    assert times.seconds(every[0]) == 3
    left = {name: (cell, 10) for name, cell in firsts.items()}
    found = forecast(times, left, 2)
    assert (found.cells, found.finished, found.probed, found.unknown) == (50, 1, 4, 0)


def test_a_quick_look_derives_most_times_from_other_data_sets() -> None:
    one = cells("smoke", methods=["constant"], targets=["s1"], seeds=1)[0]
    speed = {"constant": 1.0, "ridge": 7.0, "boosting": 20.0}
    size = {"a": 1.0, "b": 3.0, "c": 10.0}
    every = [replace(one, data=data, method=method) for data in size for method in speed]
    firsts = {group(cell): cell for cell in every}
    asked: list[tuple[str, str]] = []
    told: list[tuple[int, int]] = []

    def compute(cell: Cell) -> CellOutcome:
        asked.append((cell.data, cell.method))
        return CellOutcome(seconds=size[cell.data] * speed[cell.method])

    times = Times()
    times.measure(firsts, compute, lambda d, n, cell: told.append((d, n)), limit=60.0)
    assert dict.fromkeys(asked) == dict.fromkeys(
        [("a", "constant"), ("a", "ridge"), ("a", "boosting"), ("b", "ridge"), ("c", "ridge")]
    )
    assert told == [(i, 5) for i in range(5)]
    for cell in every:
        assert times.seconds(cell) == pytest.approx(size[cell.data] * speed[cell.method])
    found = forecast(times, {name: (cell, 1) for name, cell in firsts.items()}, 1)
    assert (found.probed, found.derived, found.unknown) == (5, 4, 0)
    assert "5 from short steps measured now, 4 from those of other data sets" in found.text(1)
    assert times.find(replace(one, data="c", method="other")) == (70.0, "guessed")
    assert Times().find(one) == (None, "unknown")
    Times().measure({}, compute, limit=60.0)


@pytest.mark.parametrize(("each", "timed"), [(1.0, LEAST), (10.0, 1)])
def test_a_look_without_time_guesses_from_a_few_methods(
    each: float, timed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = cells("smoke", methods=["constant"], targets=["s1"], seeds=1)[0]
    every = [replace(one, method=f"m{i}") for i in range(6)]
    firsts = {group(cell): cell for cell in every}
    clock = [0.0]
    monkeypatch.setattr("vntransfer_lab.runner.cell_times.time.monotonic", lambda: clock[0])

    def compute(cell: Cell) -> CellOutcome:
        clock[0] += each
        return CellOutcome(seconds=2.0)

    times = Times()
    times.measure(firsts, compute, limit=2.0)
    assert len(times.probed) == timed
    found = forecast(times, {name: (cell, 10) for name, cell in firsts.items()}, 1)
    assert (found.probed, found.guessed, found.unknown) == (timed, 6 - timed, 0)
    assert f"{timed} from short steps measured now, {6 - timed} from those of" in found.text(1)
    assert found.low < 0.6 * 120 < 1.7 * 120 < found.high


def test_a_look_begins_with_methods_that_train() -> None:
    methods = ["constant", "ridge", "source_only", "boosting", "darn"]
    every = cells("adaptation", methods=methods, seeds=1, settings={"data": "synthetic"})
    asked: list[str] = []

    def compute(cell: Cell) -> CellOutcome:
        asked.append(cell.method)
        return CellOutcome(seconds=1.0)

    Times().measure({group(cell): cell for cell in every}, compute, limit=60.0)
    assert list(dict.fromkeys(asked)) == ["source_only", "darn", "constant", "ridge", "boosting"]


def test_short_steps_that_presets_share_are_timed_once() -> None:
    fixed = cells("streams", methods=["ewc"], settings={"data": "digitsP"}, seeds=1)[0]
    (trial, *_) = load_kind("continual").first(
        cells("mnistP", methods=["ewc"], settings={"data": "digitsP"}, seeds=1)[0]
    )
    asked: list[str] = []

    def compute(cell: Cell) -> CellOutcome:
        asked.append(cell.key)
        return CellOutcome(seconds=1.0)

    steps = Steps()
    probe(fixed, compute, steps)
    assert len(asked) == 4  # the first one twice
    probe(trial, compute, steps)
    assert len(asked) == 4


@pytest.mark.parametrize(("first", "slow"), [("data", 10.0), ("method", 2.0)])
def test_first_steps_are_timed_twice_for_they_read_data_and_import(first: str, slow: float) -> None:
    one = cells("smoke", methods=["constant"], targets=["s1"], seeds=1)[0]
    seen: set[str] = set()

    def compute(cell: Cell) -> CellOutcome:
        name = getattr(cell, first)
        known, _ = name in seen, seen.add(name)
        return CellOutcome(seconds=0.1 if known else slow)

    steps = Steps()
    for data, method in (("a", "constant"), ("a", "ridge"), ("b", "ridge"), ("b", "boosting")):
        assert steps.time(replace(one, data=data, method=method), compute) == 0.1
    assert Steps().time(one, lambda cell: CellOutcome(seconds=LONG)) == LONG


def test_a_run_is_never_shorter_than_its_longest_cell() -> None:
    one, two = cells("smoke", methods=["constant", "ridge"], targets=["s1"], seeds=1)[:2]
    times = Times(probed={group(one): 100.0, group(two): 1.0})
    left = {group(one): (one, 1), group(two): (two, 3)}
    found = forecast(times, left, 8)
    total = 103
    assert found.low >= 0.5 * total
    assert found.low < total < found.high * 2
    assert forecast(times, {}, 2).text(2) == "nothing is left to compute"
