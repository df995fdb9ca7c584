"""Who works in a run folder: a lock, and a note in the store for those who look from elsewhere."""

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.store import Store
from vntransfer_lab.runner.store_file import make_folder

BEAT_SECONDS = 5.0
"""Longest time between two signs of life of a runner."""

SHORTEST_SECONDS = 1.0
"""Shortest time between two of them: quick cells do not wait for the disk."""

_LOCK = "lock"
_LOCK_SECONDS = 0.5  # whoever only looks whether it is held does so for a moment


class RunningCell(NamedTuple):
    """A cell that is being computed, since ``began`` (seconds since 1970)."""

    label: str
    data: str
    method: str
    began: float


class RunningCells(NamedTuple):
    """What a runner said last: its process, engine, cells at once, cells, and when that was."""

    pid: int
    engine: str
    jobs: int
    cells: list[RunningCell]
    beat: float


class Notice:
    """Tells others through the store which cells are being computed."""

    def __init__(self, store: Store, engine: str) -> None:
        self._store, self._engine = store, engine
        self._began: dict[str, float] = {}
        self._shown: tuple[object, ...] = ()
        self._beat = 0.0

    def show(self, cells: Iterable[Cell], jobs: int) -> float:
        """Note the cells, if they are others than before or it is time for a sign of life.

        Returns the seconds after which it wants to be called again, whatever happens until then.
        """
        cells, now = list(cells), time.time()
        self._began = {cell.key: self._began.get(cell.key, now) for cell in cells}
        shown = (*self._began, jobs)
        due = SHORTEST_SECONDS if shown != self._shown else BEAT_SECONDS
        if now - self._beat >= due:
            own = [(cell.label, cell.data, cell.method, self._began[cell.key]) for cell in cells]
            self._store.note_running(json.dumps([os.getpid(), self._engine, jobs, own, now]))
            self._shown, self._beat, due = shown, now, BEAT_SECONDS
        return self._beat + due - now


def read_running(store: Store) -> RunningCells | None:
    """Read what the last runner noted; None if it ended in order."""
    text = store.running()
    if not text:
        return None
    pid, engine, jobs, cells, beat = store.decode(text)
    return RunningCells(pid, engine, jobs, [RunningCell(*own) for own in cells], beat)


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the system releases it when this process dies in any way."""
    from filelock import FileLock, Timeout

    make_folder(folder)
    lock = FileLock(folder / _LOCK)
    try:
        lock.acquire(timeout=_LOCK_SECONDS)
    except Timeout:
        raise StoreError(
            f"{folder}: another run works in this folder; wait for it or choose another --out"
        ) from None
    except OSError as error:
        raise StoreError(
            f"{folder}: cannot be locked ({error.strerror}); choose another --out"
        ) from None
    try:
        yield
    finally:
        lock.release()


def is_held(folder: Path) -> bool | None:
    """Whether a runner holds the lock; None where that cannot be found out."""
    try:
        with open(folder / _LOCK, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False
