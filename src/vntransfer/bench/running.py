"""What runs now: a small file beside the store, for those who look from another terminal.

``running.json`` is there while a runner works; one that was killed leaves it behind. It is
replaced in one go but not forced to disk: it tells of the present, and costs a tenth of a
millisecond per cell.
"""

import json
import os
import platform
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from vntransfer.bench.cells import Cell

NAME = "running.json"
BEAT_SECONDS = 5.0
"""Longest time between two signs of life of a runner."""


@dataclass(frozen=True)
class RunningCell:
    """A cell that is being computed, since ``began`` (seconds since 1970)."""

    label: str
    data: str
    method: str
    began: float


@dataclass(frozen=True)
class Running:
    """What a runner said last.

    Parameters
    ----------
    pid, host
        Its process and machine.
    engine, jobs
        What computes the cells, how many at once.
    cells
        Those that are being computed.
    beat
        When it gave a sign of life last.
    """

    pid: int
    host: str
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for path in (self._path, self._temporary):
            path.unlink(missing_ok=True)

    @property
    def _temporary(self) -> Path:
        return self._path.with_suffix(".tmp")

    def show(self, cells: Iterable[Cell], jobs: int) -> None:
        """Tell which cells are being computed; the same as before is a mere sign of life."""
        cells = list(cells)
        now, before = time.time(), self._began
        told = [
            RunningCell(cell.label, cell.data, cell.method, before.get(cell.key, now))
            for cell in cells
        ]
        self._began = {cell.key: own.began for cell, own in zip(cells, told, strict=True)}
        shown = (*self._began, jobs)
        with suppress(OSError):
            if shown == self._shown:
                os.utime(self._path)
                return
            content = {
                "pid": os.getpid(),
                "host": platform.node(),
                "engine": self._engine,
                "jobs": jobs,
                "cells": [asdict(own) for own in told],
            }
            self._temporary.write_text(json.dumps(content), "utf-8")
            self._temporary.replace(self._path)
            self._shown = shown


def read_running(folder: Path) -> Running | None:
    """Read what the last runner said, if it did not end in order.

    Examples
    --------
    >>> read_running(Path("absent")) is None
    True
    """
    path = folder / NAME
    try:
        told = json.loads(path.read_text("utf-8"))
        cells = [RunningCell(**own) for own in told.pop("cells")]
        return Running(**told, cells=cells, beat=path.stat().st_mtime)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
