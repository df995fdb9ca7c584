"""Errors and warnings: every message names the argument, what was seen and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager


class VnError(Exception):
    """Base class of all errors that vntransfer raises on purpose."""


class ArgumentError(VnError, ValueError):
    """An argument has a wrong shape, type or value."""


class NotPositiveDefiniteError(VnError, ValueError):
    """A matrix that must be symmetric positive definite is not."""


class DomainError(VnError, ValueError):
    """The domains (sources, target, names) are inconsistent."""


class DataError(VnError, ValueError):
    """A data set or file is absent, damaged or not in the expected form."""


@contextmanager
def damage_named(where: object, what: str = "file") -> Iterator[None]:
    """Turn whatever the readers of others raise on a damaged file into an error that names it."""
    try:
        yield
    except VnError:
        raise
    except Exception as error:  # there is no list of what a damaged file can raise
        why = str(error) or type(error).__name__
        raise DataError(f"{where}: damaged {what} ({why}); fetch it again") from error


class PredictionError(DataError):
    """A prediction is not finite; ``row`` is its place among the rows given."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


class DivergedError(VnError, ArithmeticError):
    """Training has diverged to infinite values or NaN."""


class NumericalWarning(UserWarning):
    """A result was floored, jittered or is less accurate than usual, by the stated amount."""


class DataWarning(UserWarning):
    """A data set is partial or has an unknown hash, or a column is dropped or leaks."""
