"""What runs, how far, how long still: live on a terminal, a few lines elsewhere."""

import math
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.text import Text

from vntransfer_lab.runner.plan import RunState

FEWEST_CELLS = 3
"""Cells that a run must finish before its rate is shown."""


def seconds_text(seconds: float) -> str:
    """Write a duration in two units at most.

    >>> [seconds_text(s) for s in (0.4, 8.26, 75, 5400, 200_000)]
    ['0.4 s', '8.3 s', '1 min 15 s', '1 h 30 min', '2 d 7 h']
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    for (name, size), (small, part) in pairwise(units):
        if whole >= size:
            rest = f" {whole % size // part} {small}" if whole % size // part else ""
            return f"{whole // size} {name}{rest}"
    return f"{whole} s"


class Display:
    """A progress bar and the running cells, on standard error.

    Where that is no terminal (a log, CI) it prints failures and every tenth of the way only. The
    time left follows from the cells that this run has finished, once they are `FEWEST_CELLS`.
    """

    def __init__(
        self, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console or Console(stderr=True)
        columns = ("{task.description}", BarColumn(), MofNCompleteColumn())
        self._progress = Progress(
            *(*columns, "elapsed", TimeElapsedColumn(), "{task.fields[left]}"),
            console=self._console,
            get_time=clock,
            speed_estimate_period=math.inf,  # cells can take hours
        )
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._failed = 0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def __call__(self, state: RunState) -> None:
        """Show how far the run is, and say at once what failed."""
        if not self._progress.tasks:
            begun: dict[str, Any] = {"completed": state.finished, "begun": state.finished}
            self._progress.add_task("cells", total=state.total, **begun, left="")
            if state.finished:
                self._console.print(f"{state.finished} of {state.total} cells were finished before")
        (task,), left = self._progress.tasks, ""
        before = int(task.completed)
        self._progress.update(task.id, completed=state.finished)
        if state.finished - task.fields["begun"] >= FEWEST_CELLS and task.time_remaining:
            left = f"about {seconds_text(task.time_remaining)} left"
        self._progress.update(task.id, left=left)
        if state.ended is not None:
            cell, outcome = state.ended
            if outcome.error:
                self._failed += 1
                self._progress.update(task.id, description=f"cells ({self._failed} failed)")
                reason = outcome.error.splitlines()[0]
                self._console.print(Text(f"failed: {cell.label}: {reason}", style="red"))
            tenths = [done * 10 // state.total for done in (before, state.finished)]
            if not self._console.is_terminal and tenths[0] < tenths[1]:
                said = (f"{state.finished} of {state.total} cells", left)
                self._console.print(", ".join(filter(None, said)))
        if self._console.is_terminal:
            lines = [
                Text(f"  {cell.label}", style="dim", overflow="ellipsis") for cell in state.running
            ]
            self._live.update(Group(self._progress, *lines))
