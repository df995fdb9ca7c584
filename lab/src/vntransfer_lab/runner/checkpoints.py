"""Checkpoints in the middle of cells: a folder of its own for every cell that is computed.

``DIR/checkpoints/KEY`` exists while a cell is computed or was interrupted; the runner removes it
when the outcome of the cell is stored.
"""

import json
import os
import shutil
import time
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from vntransfer import __version__
from vntransfer.errors import ArgumentError
from vntransfer.storage.files import atomic_write
from vntransfer.storage.pacing import Pace, Paced

FOLDER_NAME = "checkpoints"
SECONDS_VARIABLE = "VNT_CHECKPOINT_SECONDS"
SECONDS = 20.0
"""Time between two checkpoints of a cell: shorter cells write none."""


def checkpoint_seconds() -> float:
    """Read how often checkpoints are written."""
    said = os.environ.get(SECONDS_VARIABLE, str(SECONDS))
    with suppress(ValueError):
        if (seconds := float(said)) >= 0:
            return seconds
    raise ArgumentError(f"{SECONDS_VARIABLE}: expected seconds from 0 on, got {said!r}")


class CellCheckpoint:
    """Where a cell that is computed keeps its state, and how long it took so far.

    ``folder`` holds the checkpoints of all cells (None: the cell keeps nothing); ``place`` is the
    cell's own part of it, into which ``run(cell, place)`` of its kind writes states.
    """

    def __init__(self, folder: Path | None, key: str) -> None:
        self._start, self._earlier = time.perf_counter(), 0.0
        self.place: Paced | None = None
        if folder is not None:
            own = folder / key / f"vntransfer-{__version__}-torch-{version('torch')}"
            self._noted = own / "seconds.json"
            with suppress(OSError, ValueError, TypeError):  # the first time, or it is damaged
                self._earlier = float(json.loads(self._noted.read_text("utf-8")))
            self.place = Paced(own, Pace(checkpoint_seconds(), self._note))

    def seconds(self) -> float:
        """Return the time that the cell took so far, also before an interruption."""
        return self._earlier + time.perf_counter() - self._start

    def _note(self) -> None:
        with atomic_write(self._noted, "w") as file:
            json.dump(self.seconds(), file)


def drop(folder: Path, key: str) -> None:
    """Remove the checkpoints of a cell, if there are any."""
    shutil.rmtree(folder / key, ignore_errors=True)


@contextmanager
def tidy(folder: Path, wanted: Container[str]) -> Iterator[None]:
    """Remove stale checkpoints before the block, and the folder after it if it is empty.

    Stale are those of cells that are not ``wanted``: a killed run left them.
    """
    if folder.is_dir():
        for own in folder.iterdir():
            if own.name not in wanted:
                drop(folder, own.name)
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()
