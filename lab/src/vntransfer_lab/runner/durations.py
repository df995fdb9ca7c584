"""Durations as people write and read them, and the time left of a run that is under way."""

import re
from collections.abc import Sequence
from itertools import pairwise

from vntransfer.errors import ArgumentError

FEWEST_CELLS = 3
"""Cells that a run must finish before its rate is shown."""

RATE_CELLS = 50
"""Cells that `vnt bench watch` measures the rate over: the latest ones."""

_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0}


def parse_seconds(text: str) -> float:
    """Seconds of a duration such as 2h, 90m, 45s or 1h30m."""
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(min|[dhms])", text)
    rest = re.sub(r"(\d+(?:\.\d+)?)\s*(min|[dhms])", "", text)
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if rest.strip() or not total > 0:
        raise ArgumentError(
            f"budget: expected a duration such as 2h, 90m, 45s or 1h30m, got {text!r}"
        )
    return total


def seconds_text(seconds: float) -> str:
    """Write a duration in two units at most.

    >>> [seconds_text(s) for s in (0.4, 8.26, 75, 5400, 200_000)]
    ['0.4 s', '8.3 s', '1 min 15 s', '1 h 30 min', '2 d 7 h']
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    for (name, size), (small, part) in pairwise(units):
        if whole >= size:
            rest = f" {whole % size // part} {small}" if whole % size // part else ""
            return f"{whole // size} {name}{rest}"
    return f"{whole} s"


def seconds_left(began: float, ends: Sequence[float], unfinished: int, now: float) -> float | None:
    """Time for the unfinished cells at the rate of the latest `RATE_CELLS` that a run finished.

    It began with the first of its cells at ``began`` and finished cells at ``ends``. None before
    `FEWEST_CELLS` are finished.
    """
    if len(ends) < FEWEST_CELLS:
        return None
    latest, start = ends[-RATE_CELLS:], began
    if len(latest) == RATE_CELLS:
        start, *latest = latest
    rate = len(latest) / (latest[-1] - start) if latest[-1] > start else None
    return None if rate is None else max(0.0, unfinished / rate - (now - latest[-1]))
