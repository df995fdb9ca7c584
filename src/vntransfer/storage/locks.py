"""One process at a time saves into a folder."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vntransfer.errors import DataError
from vntransfer.storage.files import make_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PATIENCE = 300.0
"""Seconds to wait for another process; saving a model takes far less."""


@contextmanager
def locked(folder: Path, *, shared: bool = False) -> Iterator[bool]:
    """Create a folder if needed and keep other savers out of it; readers share a lock.

    The system frees the lock of a killed process. Yields False where folders cannot be locked: on
    Windows and on some network drives.
    """
    until = time.monotonic() + PATIENCE
    while True:
        if not shared:
            make_folder(folder)
        try:
            handle = os.open(folder, os.O_RDONLY)
        except OSError:  # a reader finds no folder; Windows does not open folders
            yield False
            return
        try:
            if (found := _take(handle, folder, shared)) is not None:
                yield found
                return
        finally:
            os.close(handle)
        if time.monotonic() > until:
            raise DataError(
                f"{folder}: another process has been saving to it for {PATIENCE:.0f} s; wait for "
                f"it or stop it, then try again"
            )
        time.sleep(0.01)


def _take(handle: int, folder: Path, shared: bool) -> bool | None:
    """Lock a folder: True if it is locked now, None to wait, False if it cannot be locked."""
    try:
        fcntl.flock(handle, fcntl.LOCK_NB | (fcntl.LOCK_SH if shared else fcntl.LOCK_EX))
        # after a failed save, the locked folder may be gone
        return os.path.samestat(os.fstat(handle), os.stat(folder)) or None
    except (BlockingIOError, FileNotFoundError):
        return None
    except OSError:  # a file system without locks
        return False
