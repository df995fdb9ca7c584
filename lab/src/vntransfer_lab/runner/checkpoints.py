"""Checkpoints in the middle of cells: a folder of its own for every cell that is computed.

``DIR/checkpoints/KEY`` exists while a cell is computed or was interrupted; the runner removes it
when the outcome of the cell is stored. Kinds of experiments that train for long ask `scratch`.
"""

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
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

_SPENT = "seconds.json"
_current: ContextVar[Paced | None] = ContextVar("scratch", default=None)


def scratch() -> Paced | None:
    """Give the place for checkpoints of the cell that is computed here and now, if there is one.

    What a cell finds there is from an earlier, interrupted computation of the same cell by the
    same versions of vntransfer and torch.

    Examples
    --------
    >>> scratch() is None
    True
    """
    return _current.get()


def checkpoint_seconds() -> float:
    """Read how often checkpoints are written.

    Examples
    --------
    >>> checkpoint_seconds()
    20.0
    """
    said = os.environ.get(SECONDS_VARIABLE, str(SECONDS))
    try:
        seconds = float(said)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise ArgumentError(f"{SECONDS_VARIABLE}: expected seconds from 0 on, got {said!r}")
    return seconds


@contextmanager
def keeping(folder: Path | None, key: str) -> Iterator[Callable[[], float]]:
    """Let `scratch` give a cell's place inside the block; without a folder there is none.

    Parameters
    ----------
    folder
        Folder of the checkpoints of all cells.
    key
        Of the cell.

    Yields
    ------
    callable
        Seconds that the cell took so far, those before an interruption included.
    """
    start = time.perf_counter()
    if folder is None:
        yield lambda: time.perf_counter() - start
        return
    own = folder / key / _versions()
    earlier = _spent_before(own)

    def spent() -> float:
        return earlier + time.perf_counter() - start

    def note() -> None:
        with atomic_write(own / _SPENT, "w") as file:
            json.dump(spent(), file)

    token = _current.set(Paced(own, Pace(checkpoint_seconds(), note)))
    try:
        yield spent
    finally:
        _current.reset(token)


@lru_cache(maxsize=1)
def _versions() -> str:
    return f"vntransfer-{__version__}-torch-{version('torch')}"


def _spent_before(own: Path) -> float:
    try:
        return float(json.loads((own / _SPENT).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return 0.0


def drop(folder: Path, key: str) -> None:
    """Remove the checkpoints of a cell, if there are any."""
    shutil.rmtree(folder / key, ignore_errors=True)


@contextmanager
def tidy(folder: Path, wanted: Container[str]) -> Iterator[None]:
    """Keep order among the checkpoints of all cells: nobody else writes there before and after.

    Parameters
    ----------
    folder
        Folder of the checkpoints of all cells; removed in the end if it is empty.
    wanted
        Keys of cells that may be computed; what a kill left of others is removed in the beginning.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = Path(place, "checkpoints")
    ...     Path(folder, "a").mkdir(parents=True)
    ...     with tidy(folder, ["b"]):
    ...         print(sorted(folder.iterdir()))
    ...     folder.exists()
    []
    False
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
