"""What runs, how far, how long still: live on a terminal, a few lines elsewhere."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, Self

from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.durations import RATE_CELLS, cell_rate, seconds_left, seconds_text
from vntransfer_lab.runner.records import CellOutcome

if TYPE_CHECKING:
    from rich.console import Console


class Watcher(Protocol):
    """What the runner tells whoever watches it."""

    def begin(self, total: int, finished: int) -> None:
        """Hear that ``finished`` of ``total`` cells were there already."""

    def running(self, cells: Iterable[Cell]) -> None:
        """Hear which cells are being computed."""

    def end(self, cell: Cell, outcome: CellOutcome) -> None:
        """Hear that a cell is done or failed."""


class Silent:
    """Watches without a word."""

    def begin(self, total: int, finished: int) -> None:
        """Say nothing."""

    def running(self, cells: Iterable[Cell]) -> None:
        """Say nothing."""

    def end(self, cell: Cell, outcome: CellOutcome) -> None:
        """Say nothing."""


class Display:
    """A progress bar and the running cells, on standard error.

    Where that is no terminal (a log, CI) it prints failures and every tenth of the way only. The
    time left follows from the cells that this run has finished; before `FEWEST_CELLS` of them are
    finished, it is not shown.

    Parameters
    ----------
    console
        Of rich; standard error by default.
    clock
        Tells the time in seconds.
    """

    def __init__(
        self, console: "Console | None" = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

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

    def begin(self, total: int, finished: int) -> None:
        """Show how many cells were there already."""
        self._began = self._clock()
        self._progress.update(self._task, total=total, completed=finished)
        if finished:
            self._console.print(f"{finished} of {total} cells were finished before")

    def running(self, cells: Iterable[Cell]) -> None:
        """Show the cells that are being computed."""
        if self._console.is_terminal:
            from rich.console import Group
            from rich.text import Text

            lines = [Text(f"  {cell.label}", style="dim", overflow="ellipsis") for cell in cells]
            self._progress.update(self._task, left=self._left())
            self._live.update(Group(self._progress, *lines))

    def end(self, cell: Cell, outcome: CellOutcome) -> None:
        """Advance, and say at once what failed."""
        from rich.text import Text

        now = self._clock()
        if not self._ends:  # the start of the workers tells nothing of the rate
            self._began = max(self._began, now - outcome.seconds)
        self._ends.append(now)
        self._progress.advance(self._task)
        if outcome.error:
            self._failed += 1
            self._progress.update(self._task, description=f"cells ({self._failed} failed)")
            reason = outcome.error.splitlines()[0]
            self._console.print(Text(f"failed: {cell.label}: {reason}", style="red"))
        task = self._progress.tasks[0]
        if not self._console.is_terminal and task.total:
            total, completed = int(task.total), int(task.completed)
            if completed * 10 // total > (completed - 1) * 10 // total:
                self._console.print(
                    ", ".join(filter(None, (f"{completed} of {total} cells", self._left())))
                )

    def _left(self) -> str:
        """Write the time left; empty while too few cells are finished, or none is left."""
        task = self._progress.tasks[0]
        rate = cell_rate(self._began, list(self._ends))
        if rate is None or task.total is None or task.finished:
            return ""
        waited = self._clock() - self._ends[-1]
        return f"about {seconds_text(seconds_left(rate, int(task.remaining or 0), waited))} left"
