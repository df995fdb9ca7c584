"""Checks of single options: a number, a choice, names; the error names the option."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import ArgumentError, PredictionError

Floats = NDArray[np.float64]
"""Numbers as they are computed with."""

Names = str | float | Sequence[str | float]
"""One name, or several; numbers are names as well."""

LARGEST = 1e100
"""Largest magnitude of a value that models accept: sums of squares and their products overflow long
before the numbers do."""

HUGE = f"above {LARGEST:g} sums and products overflow; rescale it (another unit) or remove the row"
"""End of the error message for such a value."""


def first_huge(values: Any, largest: float = LARGEST) -> tuple[int, ...] | None:
    """Find the first value beyond ``largest`` of an array or a CSR matrix; NaN is passed over.

    Examples
    --------
    >>> first_huge([[1.0, 2.0], [3.0, 1e200]])
    (1, 1)
    """
    stored = np.asarray(getattr(values, "data", values) if hasattr(values, "indptr") else values)
    if np.isnan(stored).all():
        return None
    if max(float(np.nanmax(stored)), -float(np.nanmin(stored))) <= largest:
        return None
    at = int((np.abs(stored.astype(np.float64)) > largest).ravel().argmax())
    if hasattr(values, "indptr"):
        row = int(np.searchsorted(values.indptr, at, side="right")) - 1
        return row, int(values.indices[at])
    return tuple(map(int, np.unravel_index(at, stored.shape)))


def finite_predictions(predicted: Any, owner: str) -> Any:
    """Give predictions (n, ...) of a model, or raise if one of them is not finite."""
    if predicted.dtype.kind == "f" and not (good := np.isfinite(predicted)).all():
        row = int((~good.reshape(len(good), -1).all(1)).argmax())
        raise PredictionError(
            f"X: the prediction of row {row} is {np.ravel(predicted[row])[0]}, not a finite "
            f"number; compare the units of its values with those of the rows that {owner} was "
            f"fitted to",
            row,
        )
    return predicted


def is_sparse(x: Any) -> bool:
    """Whether rows are a sparse matrix or array of scipy, which is not imported for plain arrays.

    Examples
    --------
    >>> is_sparse(np.eye(2))
    False
    """
    if isinstance(x, np.ndarray):
        return False
    import scipy.sparse

    return bool(scipy.sparse.issparse(x))


def number(name: str, value: Any, *, minimum: float = 0.0, exclusive: bool = False) -> float:
    """Check that an option is a finite number, at least (or above) ``minimum``.

    Examples
    --------
    >>> number("ridge", 1e-3)
    0.001
    """
    asked = f"{'above' if exclusive else 'of at least'} {minimum:g}"
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ArgumentError(f"{name}: expected a number {asked}, got {value!r}")
    out = float(value)
    if not np.isfinite(out) or out < minimum or (exclusive and out == minimum):
        raise ArgumentError(f"{name}: expected a finite number {asked}, got {out!r}")
    return out


def whole(name: str, value: Any, *, minimum: int = 0, maximum: int | None = None) -> int:
    """Check that an option is a whole number, numpy's included, from ``minimum`` on.

    Examples
    --------
    >>> whole("memory", np.int64(10))
    10
    """
    good = isinstance(value, Integral) and not isinstance(value, bool)
    if not good or value < minimum or (maximum is not None and value > maximum):
        asked = f"{minimum} on" if maximum is None else f"{minimum} to {maximum}"
        raise ArgumentError(f"{name}: expected a whole number from {asked}, got {value!r}")
    return int(value)


def fraction(name: str, value: Any) -> float:
    """Check that an option is a number from 0 to 1.

    Examples
    --------
    >>> fraction("momentum", 0.9)
    0.9
    """
    found = number(name, value)
    if found > 1:
        raise ArgumentError(f"{name}: expected a number from 0 to 1, got {value!r}")
    return found


def instance(name: str, value: Any, kinds: Any, expected: str) -> Any:
    """Check that an option is of some type; ``expected`` describes the type for the message.

    Examples
    --------
    >>> instance("domain", "town", str, "the name of a column")
    'town'
    """
    if isinstance(value, kinds):
        return value
    raise ArgumentError(f"{name}: expected {expected}, got {value!r:.80}")


def texts(name: str, value: Any, expected: str) -> list[str]:
    """Check that an option is a list of strings, in any kind of sequence.

    Examples
    --------
    >>> texts("drop", ("size", "rooms"), "a list of columns")
    ['size', 'rooms']
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ArgumentError(f"{name}: expected {expected}, got {value!r:.80}")
    return [instance(name, one, str, expected) for one in value]


def one_of(name: str, value: Any, allowed: Any, *, error: type[Exception] = ArgumentError) -> Any:
    """Check that an option is one of the values allowed: names, or the values of a Literal.

    Examples
    --------
    >>> one_of("update", "proximal", ("proximal", "explicit"))
    'proximal'
    >>> one_of("method", "rige", {"ridge": 1, "boosting": 2})
    Traceback (most recent call last):
    vntransfer.errors.ArgumentError: method: expected one of ridge, boosting, got 'rige'; did you mean 'ridge'?
    >>> one_of("decimal", ";", (".", ","))
    Traceback (most recent call last):
    vntransfer.errors.ArgumentError: decimal: expected one of '.', ',', got ';'
    """  # noqa: E501
    known = list(get_args(allowed) or allowed)
    if value in known:
        return value
    # signs such as a comma are quoted: among the commas of a list they would be lost
    listed = ", ".join(str(one) if str(one).isidentifier() else repr(one) for one in known)
    raise error(f"{name}: expected one of {listed}, got {value!r:.80}{meant(value, known)}")


def meant(value: Any, known: Iterable[Any]) -> str:
    """Suggest the closest known value, to end an error message; empty if none is close.

    Examples
    --------
    >>> meant("pirce", ["price", "rooms"]), meant("q", ["price"])
    ("; did you mean 'price'?", '')
    """
    close = get_close_matches(str(value), [str(one) for one in known], 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def names(option: str, value: Any) -> list[str]:
    """Check that an option is a name, or several; numbers are written as cells of a table are.

    Examples
    --------
    >>> names("target", "Saltby"), names("target", ["Saltby", 3.0, "Saltby"])
    (['Saltby'], ['Saltby', '3'])
    """
    several = not isinstance(value, str | bytes) and isinstance(value, Iterable)
    if several and isinstance(value, np.ndarray) and value.ndim == 0:
        several, value = False, value.item()
    found = [_name(option, one) for one in (value if several else [value])]
    if not found:
        raise ArgumentError(f"{option}: empty; give at least one name")
    return list(dict.fromkeys(found))


def _name(option: str, value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, str | Integral):
        return str(value)
    if isinstance(value, float | np.floating):
        return repr(float(value)).removesuffix(".0")
    raise ArgumentError(f"{option}: expected a name or a list of names, got {value!r:.80}")
