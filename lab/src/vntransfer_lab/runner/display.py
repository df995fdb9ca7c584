"""What runs, how far, how long still: live on a terminal, a few lines elsewhere."""

from collections.abc import Iterable
from typing import Protocol, Self

from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.records import CellOutcome


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

    Where that is no terminal (a log, CI) it prints failures and every tenth of the way only.
    """

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("elapsed"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._task = self._progress.add_task("cells", total=None)
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
        self._progress.update(self._task, total=total, completed=finished)
        if finished:
            self._console.print(f"{finished} of {total} cells were finished before")

    def running(self, cells: Iterable[Cell]) -> None:
        """Show the cells that are being computed."""
        if self._console.is_terminal:
            from rich.console import Group
            from rich.text import Text

            lines = [Text(f"  {cell.label}", style="dim", overflow="ellipsis") for cell in cells]
            self._live.update(Group(self._progress, *lines))

    def end(self, cell: Cell, outcome: CellOutcome) -> None:
        """Advance, and say at once what failed."""
        from rich.text import Text

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
                self._console.print(f"{completed} of {total} cells")
