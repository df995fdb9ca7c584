"""Progress of a long job: one callback that is passed down."""

from collections.abc import Callable

from vntransfer.checks import instance

Progress = Callable[[str, int, int | None], None]
"""Called with what is done, how much of it so far, and how much there is (None: not known)."""


def reporter(progress: Progress | None) -> Progress:
    """Check a callback that was given; None: no callback."""
    if progress is None:
        return silent
    return instance("progress", progress, Callable, "a function or None")


def silent(what: str, done: int, total: int | None) -> None:
    """Ignore how far a job is: the default callback."""
