"""Square tables as people look at them: numbers, and a heat map made of characters."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

SHADES = "·░▒▓█"
_LOW, _HIGH = (70, 130, 180), (230, 85, 40)


def numbers(title: str, names: Sequence[str], values: Any, *, digits: int = 3) -> Table:
    """Square table of numbers with names along both sides.

    Parameters
    ----------
    title
        Above the table.
    names
        Of rows and columns.
    values
        Matrix, indexable as values[i][j].
    digits
        Significant digits.
    """
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right")
    for i, name in enumerate(names):
        cells = ("-" if i == j else f"{float(values[i][j]):.{digits}g}" for j in range(len(names)))
        table.add_row(Text(name, style="bold"), *cells)
    return table


def heat_map(names: Sequence[str], values: Any) -> Text:
    """Square heat map, fuller and redder = larger; legible without color.

    Examples
    --------
    >>> print(heat_map(["a", "b"], [[0.0, 1.0], [1.0, 0.0]]))
      a  b
    a ·· ██
    b ██ ··
    """
    largest = max((float(v) for row in values for v in row), default=0.0) or 1.0
    width = max(len(name) for name in names)
    text = Text(" " * (width + 1) + " ".join(f"{name:<2.2}" for name in names).rstrip())
    for name, row in zip(names, values, strict=True):
        text.append(f"\n{name:<{width}} ")
        for j, value in enumerate(row):
            share = float(value) / largest
            color = ",".join(
                str(round(a + share * (b - a))) for a, b in zip(_LOW, _HIGH, strict=True)
            )
            text.append(SHADES[round(share * (len(SHADES) - 1))] * 2, style=f"rgb({color})")
            text.append(" " if j < len(names) - 1 else "")
    return text
