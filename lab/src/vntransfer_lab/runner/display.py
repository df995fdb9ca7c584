"""What runs, how far, how long still: live on a terminal, a few lines elsewhere."""

import time
from collections import deque
from collections.abc import Callable
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.durations import RATE_CELLS, seconds_left, seconds_text
from vntransfer_lab.runner.plan import RunState
from vntransfer_lab.runner.records import CellOutcome


class Display:
    """A progress bar and the running cells, on standard error.

    Where that is no terminal (a log, CI) it prints failures and every tenth of the way only. The
    time left follows from the cells that this run has finished, once they are `FEWEST_CELLS`.
    """

    def __init__(
        self, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._began = clock()
        self._ends = deque[float](maxlen=RATE_CELLS)
        self._console = console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("elapsed"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
        )
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._task = self._progress.add_task("cells", total=None, left="")
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
        task = self._progress.tasks[0]
        if task.total is None:
            self._began = self._clock()
            if state.finished:
                self._console.print(f"{state.finished} of {state.total} cells were finished before")
        before = int(task.completed)
        self._progress.update(self._task, total=state.total, completed=state.finished)
        if state.ended is not None:
            self._end(*state.ended)
            tenths = [done * 10 // state.total for done in (before, state.finished)]
            if not self._console.is_terminal and tenths[0] < tenths[1]:
                said = (f"{state.finished} of {state.total} cells", self._left())
                self._console.print(", ".join(filter(None, said)))
        if self._console.is_terminal:
            lines = [
                Text(f"  {cell.label}", style="dim", overflow="ellipsis") for cell in state.running
            ]
            self._progress.update(self._task, left=self._left())
            self._live.update(Group(self._progress, *lines))

    def _end(self, cell: Cell, outcome: CellOutcome) -> None:
        now = self._clock()
        if not self._ends:  # the start of the workers tells nothing of the rate
            self._began = max(self._began, now - outcome.seconds)
        self._ends.append(now)
        if outcome.error:
            self._failed += 1
            self._progress.update(self._task, description=f"cells ({self._failed} failed)")
            reason = outcome.error.splitlines()[0]
            self._console.print(Text(f"failed: {cell.label}: {reason}", style="red"))

    def _left(self) -> str:
        """Write the time left; empty while too few cells are finished, or none is left."""
        task = self._progress.tasks[0]
        unfinished = int(task.remaining or 0)
        left = seconds_left(self._began, list(self._ends), unfinished, self._clock())
        return f"about {seconds_text(left)} left" if unfinished and left is not None else ""
