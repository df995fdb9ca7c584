"""What runs now: a small file beside the store, for those who look from another terminal.

``running.json`` is there while a runner works; one that was killed leaves it behind. It is
replaced in one go, at most twice a second: quick cells do not wait for it.
"""

import json
import math
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from vntransfer_lab.runner.cells import Cell

NAME = "running.json"
BEAT_SECONDS = 5.0
"""Longest time between two signs of life of a runner."""

SHORTEST_SECONDS = 0.5
"""Shortest time between two of them."""


@dataclass(frozen=True)
class RunningCell:
    """A cell that is being computed, since ``began`` (seconds since 1970)."""

    label: str
    data: str
    method: str
    began: float


@dataclass(frozen=True)
class RunningCells:
    """What a runner said last.

    Parameters
    ----------
    pid
        Its process.
    engine, jobs
        What computes the cells, how many at once.
    cells
        Those that are being computed.
    beat
        When it gave a sign of life last.
    """

    pid: int
    engine: str
    jobs: int
    cells: list[RunningCell]
    beat: float


class Noticeboard:
    """The runner's side of the file; what cannot be written is left out: it is only a display."""

    def __init__(self, folder: Path, engine: str) -> None:
        self._path, self._engine = folder / NAME, engine
        self._began: dict[str, float] = {}
        self._shown: tuple[object, ...] | None = None
        self._written = -math.inf

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for path in (self._path, self._temporary):
            path.unlink(missing_ok=True)

    @property
    def _temporary(self) -> Path:
        return self._path.with_suffix(".tmp")

    def show(self, cells: Iterable[Cell], jobs: int) -> float:
        """Tell which cells are being computed, if it is time to.

        The same as before is a mere sign of life.

        Returns
        -------
        float
            Seconds after which it wants to be called again, whatever happens until then.
        """
        cells = list(cells)
        now = time.time()
        self._began = {cell.key: self._began.get(cell.key, now) for cell in cells}
        early = self._written + SHORTEST_SECONDS - time.monotonic()
        if early > 0:
            return early
        self._written = time.monotonic()
        shown = (*self._began, jobs)
        with suppress(OSError):
            if shown == self._shown:
                os.utime(self._path)
            else:
                self._write(cells, jobs)
                self._shown = shown
        return BEAT_SECONDS

    def _write(self, cells: Iterable[Cell], jobs: int) -> None:
        content = {
            "pid": os.getpid(),
            "engine": self._engine,
            "jobs": jobs,
            "cells": [
                asdict(RunningCell(cell.label, cell.data, cell.method, self._began[cell.key]))
                for cell in cells
            ],
        }
        self._temporary.write_text(json.dumps(content), "utf-8")
        self._temporary.replace(self._path)


def read_running(folder: Path) -> RunningCells | None:
    """Read what the last runner said, if it did not end in order.

    Examples
    --------
    >>> read_running(Path("absent")) is None
    True
    """
    path = folder / NAME
    try:
        told = json.loads(path.read_text("utf-8"))
        cells = [RunningCell(**own) for own in told["cells"]]
        pid, engine, jobs = (told[name] for name in ("pid", "engine", "jobs"))
        return RunningCells(pid, engine, jobs, cells, beat=path.stat().st_mtime)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
