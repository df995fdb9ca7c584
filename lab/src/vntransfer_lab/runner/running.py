"""Who works in a run folder: a lock that the system frees when its process dies."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.store_file import make_folder

_LOCK = "lock"
_LOCK_SECONDS = 0.5  # whoever only looks whether it is held does so for a moment


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
    except FileNotFoundError:
        return False
    except OSError:
        return None
    return False
