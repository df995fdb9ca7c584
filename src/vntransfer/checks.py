"""Checks of single options: a number, a whole number; the error names the option."""

from numbers import Integral
from typing import Any

import numpy as np

from vntransfer.errors import ArgumentError


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
