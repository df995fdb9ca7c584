"""Engines: what computes the cells that the runner hands out."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from vntransfer.checks import one_of, whole
from vntransfer.errors import ArgumentError
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.checkpoints import FOLDER_NAME
from vntransfer_lab.runner.records import CellOutcome

EngineName = Literal["local", "dask"]


class Engine(ABC):
    """Takes cells and gives outcomes; a context manager that ends all work when its block fails."""

    def __init__(self) -> None:
        self._running: dict[Future[CellOutcome], Cell] = {}

    @property
    @abstractmethod
    def jobs(self) -> int:
        """How many cells it computes at once, at present."""

    @property
    def running(self) -> list[Cell]:
        """Cells that were submitted and not yielded yet."""
        return list(self._running.values())

    def submit(self, cell: Cell) -> None:
        """Start a cell."""
        self._running[self._start(cell)] = cell

    def finished(self, seconds: float) -> Iterator[tuple[Cell, CellOutcome | BrokenProcessPool]]:
        """Wait for cells to end, but no longer than this; an error: the cell's worker died."""
        ended, _ = wait(self._running, timeout=seconds, return_when=FIRST_COMPLETED)
        if not ended:
            self._check()
        for future in ended:
            cell = self._running.pop(future)
            died = future.exception()
            yield cell, died if isinstance(died, BrokenProcessPool) else future.result()

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, kind: type[BaseException] | None, /, *exception: object) -> None:
        """Let the workers go, at once if the block failed."""

    @abstractmethod
    def _start(self, cell: Cell) -> "Future[CellOutcome]":
        """Hand a cell to a worker; `BrokenProcessPool` in the future: the worker died."""

    def _check(self) -> None:  # noqa: B027 - most engines have nothing to check
        """Raise when no cell can be computed any more; asked every few seconds."""


@dataclass(frozen=True)
class EngineOptions:
    """What cells are computed with; see `vntransfer_lab.run`.

    Examples
    --------
    >>> EngineOptions(scheduler="tcp://host:8786")
    Traceback (most recent call last):
    vntransfer.errors.ArgumentError: scheduler: only engine 'dask' has one; add engine='dask'
    """

    jobs: int | None = None
    engine: str = "local"
    scheduler: str | None = None

    def __post_init__(self) -> None:
        one_of("engine", self.engine, EngineName)
        if self.scheduler is not None and self.engine != "dask":
            raise ArgumentError("scheduler: only engine 'dask' has one; add engine='dask'")
        if self.jobs is not None:
            whole("jobs", self.jobs, minimum=1)

    def changed(self) -> dict[str, Any]:
        """Give the options of a command: those that are not the defaults."""
        engine = None if self.engine == "local" else self.engine
        return {"jobs": self.jobs, "engine": engine, "scheduler": self.scheduler}

    def make(self, cells: Sequence[Cell], folder: Path) -> Engine:
        """Make the engine for some cells of a run folder."""
        checkpoints = folder.absolute() / FOLDER_NAME
        if self.engine == "dask":
            from vntransfer_lab.runner.cluster import Cluster

            return Cluster(len(cells), checkpoints, jobs=self.jobs, scheduler=self.scheduler)
        from vntransfer_lab.runner.workers import Pool

        return Pool(self.jobs, len(cells), checkpoints)
