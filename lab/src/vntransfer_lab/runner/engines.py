"""Engines: what computes the cells that the runner hands out."""

import os
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Literal, Protocol, Self, get_args

from vntransfer.errors import ArgumentError
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.checkpoints import FOLDER_NAME
from vntransfer_lab.runner.records import CellOutcome

EngineName = Literal["local", "dask"]


class Engine(Protocol):
    """Computes cells; a context manager that stops all of them when its block fails."""

    @property
    def jobs(self) -> int:
        """How many cells it computes at once, at present."""

    def __enter__(self) -> Self:
        """Make it ready."""

    def __exit__(self, kind: type[BaseException] | None, /, *exception: object) -> None:
        """Let it go."""

    def submit(self, cell: Cell) -> "Future[CellOutcome]":
        """Start a cell; `BrokenProcessPool` in its future: the cell's worker died."""

    def check(self) -> None:
        """Raise when no cell can be computed any more; asked every few seconds."""


def check_engine(engine: str, scheduler: str | None, jobs: int | None) -> None:
    """Raise if the choice of an engine is impossible.

    Examples
    --------
    >>> check_engine("local", "tcp://host:8786", None)
    Traceback (most recent call last):
    vntransfer.errors.ArgumentError: scheduler: only engine 'dask' has one; add engine='dask'
    """
    if engine not in get_args(EngineName):
        known = ", ".join(get_args(EngineName))
        raise ArgumentError(f"engine: expected one of {known}, got {engine!r}")
    if scheduler is not None and engine != "dask":
        raise ArgumentError("scheduler: only engine 'dask' has one; add engine='dask'")
    if jobs is not None and jobs < 1:
        raise ArgumentError(f"jobs: expected at least 1, got {jobs}")


def make_engine(
    engine: str, cells: Sequence[Cell], folder: Path, *, jobs: int | None, scheduler: str | None
) -> Engine:
    """Make an engine for some cells of a run folder; see `vntransfer_lab.run`."""
    checkpoints = folder.absolute() / FOLDER_NAME
    if engine == "dask":
        from vntransfer_lab.runner.cluster import Cluster

        return Cluster(cells, checkpoints, jobs=jobs, scheduler=scheduler)
    from vntransfer_lab.runner.workers import Pool

    return Pool(min(jobs or os.cpu_count() or 1, len(cells)), checkpoints)
