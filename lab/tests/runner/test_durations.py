"""Durations: read as they are written; the time left follows from finished cells alone."""

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lab_helpers.runs import cells
from vntransfer.errors import ArgumentError
from vntransfer_lab.runner.display import FEWEST_CELLS, Display, seconds_text
from vntransfer_lab.runner.plan import RunState
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.run import parse_seconds
from vntransfer_lab.runner.watch import RATE_CELLS, seconds_left


@given(st.integers(0, 9), st.integers(0, 59), st.integers(1, 59))
def test_durations_are_read_as_they_are_written(hours: int, minutes: int, seconds: int) -> None:
    assert parse_seconds(f"{hours}h{minutes}m{seconds}s") == 3600 * hours + 60 * minutes + seconds
    whole = float(60 * minutes + seconds)
    assert parse_seconds(seconds_text(whole)) == pytest.approx(whole, abs=0.5)


@pytest.mark.parametrize("text", ["", "2", "2x", "1h half", "h"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="budget: expected a duration"):
        parse_seconds(text)


@given(st.floats(0.01, 1e4), st.integers(1, 8), st.integers(FEWEST_CELLS, 200), st.integers(0, 99))
def test_equal_cells_end_when_the_rate_says(
    each: float, jobs: int, finished: int, unfinished: int
) -> None:
    ends = [1000 + each / jobs * (i + 1) for i in range(finished)]
    left = seconds_left(1000.0, ends, unfinished, ends[-1] + 0.25 * each / jobs)
    assert left == pytest.approx(max(0.0, unfinished - 0.25) * each / jobs, rel=1e-4, abs=1e-9)


def test_the_rate_is_that_of_the_latest_cells() -> None:
    slow = [100.0 * (i + 1) for i in range(10)]
    quick = [1000.0 + i + 1 for i in range(RATE_CELLS)]
    assert seconds_left(0.0, slow + quick, 7, 1050.0) == 7.0
    assert seconds_left(0.0, slow, 7, 1050.0) == 650.0


def test_no_time_is_left_before_a_few_cells_are_finished() -> None:
    for finished in range(FEWEST_CELLS):
        assert seconds_left(0.0, [1.0] * finished, 7, 2.0) is None
    assert seconds_left(0.0, [0.0] * FEWEST_CELLS, 7, 2.0) is None


@pytest.mark.parametrize("terminal", [False, True])
def test_the_display_shows_the_time_left_once_a_few_cells_are_finished(terminal: bool) -> None:
    now, out = [0.0], StringIO()
    console = Console(file=out, force_terminal=terminal, width=120)
    cell = cells("smoke", methods=["constant"], targets=["s1"], seeds=1)[0]
    with Display(console, lambda: now[0]) as display:
        display(RunState(10, 2))
        now[0] = 100.0  # until workers are there
        for done in range(1, 9):
            now[0] += 7.0
            display(RunState(10, 2 + done, [cell], (cell, CellOutcome(seconds=7.0))))
            if terminal:
                display._live.refresh()
            assert ("left" in out.getvalue()) == (done >= FEWEST_CELLS)
    assert "about 35 s left" in out.getvalue()  # three cells of this run in 21 s, five are left
    assert "0.0 s left" not in out.getvalue()
