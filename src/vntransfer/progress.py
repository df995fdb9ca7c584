"""How far a long job is: jobs report, whoever listens is told."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Progress = Callable[[str, int, int | None], None]  # what, done so far, in all (if known)
_progress: ContextVar[Progress | None] = ContextVar("progress", default=None)


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
