"""How far a long job is: one callback, given to the job and passed down."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Progress = Callable[[str, int, int | None], None]
"""Called with what is done, how much of it so far, and how much there is (None: not known)."""

_progress: ContextVar[Progress | None] = ContextVar("progress", default=None)


def silent(what: str, done: int, total: int | None) -> None:
    """Ignore how far a job is: the callback where nobody watches."""


@contextmanager
def reporting(progress: Progress | None) -> Iterator[None]:
    """Let `report` call ``progress`` inside the block, however deep.

    Examples
    --------
    >>> with reporting(print):
    ...     report("a.csv", 5, 10)
    a.csv 5 10
    """
    token = _progress.set(progress)
    try:
        yield
    finally:
        _progress.reset(token)


def report(what: str, done: int, total: int | None) -> None:
    """Tell whoever listens how far a long job is."""
    if (progress := _progress.get()) is not None:
        progress(what, done, total)
