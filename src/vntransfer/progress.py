"""How far a long job is: one callback, given to the job and passed down."""

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""Called with what is done, how much of it so far, and how much there is (None: not known)."""


def silent(what: str, done: int, total: int | None) -> None:
    """Ignore how far a job is: the callback where nobody watches."""
