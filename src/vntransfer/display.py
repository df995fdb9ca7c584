"""Display of results: shortened names, rounded numbers, data frames on request."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from vntransfer.errors import ArgumentError

WIDTH = 119
"""Longest ``repr`` of a result."""

NAME = 24
"""Longest name within one."""


def short(name: object, length: int = NAME) -> str:
    r"""Show a name on one line, with an ellipsis for omitted letters."""
    text = "".join(c if c.isprintable() else " " for c in str(name)[: 4 * length])
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def listed(names: Iterable[object], most: int = 3, length: int = NAME) -> str:
    """Join names and count the omitted ones: "a, b and c", "a, b, c and 2 more"."""
    every = list(names)
    shown = [short(name, length) for name in every[:most]]
    if len(every) > most:
        return f"{', '.join(shown)} and {len(every) - most} more"
    return " and ".join([", ".join(shown[:-1]), *shown[-1:]]) if len(shown) > 1 else "".join(shown)


def counted(n: int, noun: str) -> str:
    """Count things: "1 place", "1,200 rows"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def rounded(value: float, digits: int = 3) -> str:
    """Round a number for display: "18.9", "0.5", "12,346", "1.2e-05", "unknown" for NaN."""
    if math.isnan(value):
        return "unknown"
    if value == 0 or not 1e-4 <= abs(value) < 1e9:
        return f"{value:.{digits}g}"
    text = f"{value:,.{_decimals(value, digits)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    """Round a share for people: "87 %"."""
    return f"{100 * share:.0f} %"


def plus_minus(value: float, spread: float) -> str:
    """Round a number and its standard error, which decides the digits: "18.9 ± 1.3"."""
    if not (abs(value) < 1e15 and 1e-4 <= spread < 1e9):  # beyond, digits would be invented
        return rounded(value)
    decimals = _decimals(spread, 2)
    return f"{value:,.{decimals}f} ± {spread:,.{decimals}f}"


def _decimals(value: float, digits: int) -> int:
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))


def one_line(text: str) -> str:
    r"""Put the ``repr`` of a result into angle brackets, on one line of bounded length."""
    return f"<{short(text, WIDTH - 2)}>"


def data_frame(name: str, columns: Mapping[str, Any], index: Any = None) -> Any:
    """Make a pandas data frame of columns; raise an error that names ``name`` without pandas."""
    try:
        import pandas
    except ImportError as error:
        raise ArgumentError(f"{name}: needs pandas: run `pip install pandas`") from error
    return pandas.DataFrame(dict(columns), index=index)
