"""Tables as values, and their printers: terminal, Markdown and csv; `page` has that for HTML."""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from vntransfer.checks import one_of
from vntransfer_lab.reports.statistics import Estimate

SIGNED = "+.3g"
"""Form of a difference: it shows its sign."""

PROBABILITY = "p"
"""Form of a number from 0 to 1 of which the order of magnitude matters."""


class Verdict(str):
    """A word of `vntransfer_lab.reports.statistics.VERDICTS`, colored on a page."""

    __slots__ = ()


@dataclass(frozen=True)
class Number:
    """A number with what belongs to it; a printer says how it reads."""

    value: float
    form: str = ""  # `SIGNED`, `PROBABILITY` or any format of a number; "" shows what is known
    error: float | None = None
    unit: str = ""
    won: int | None = None
    lost: int | None = None
    verdict: str = ""  # against the baseline: a mark behind it, and its color on a page


_ENDINGS = {" to ": (" low", " high"), "/": (" won", " lost"), " of ": ("", " of")}


@dataclass(frozen=True)
class NumberPair:
    """Two numbers that are read together: ends of an interval, won and lost, some of all."""

    first: float
    second: float
    joint: Literal[" to ", "/", " of "]
    form: str = ""


Value = str | int | float | Estimate | Number | NumberPair | None


@dataclass(frozen=True)
class ReportTable:
    """Title, header, rows and notes; ``of`` names the report in front of the title."""

    title: str
    header: list[str]
    rows: list[list[Value]]
    notes: list[str] = field(default_factory=list)
    of: str = ""
    detail: bool = False  # a page shows it folded, below the others

    @property
    def full_title(self) -> str:
        """Title behind the name of the report."""
        return f"{self.of}: {self.title}" if self.of else self.title


def _decimals(value: float, digits: int) -> int:
    """Return how many decimals show some digits of a number."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def signed(error: float | None) -> str:
    """Form of a difference with this error: two digits of the error are known."""
    return f"+.{_decimals(error, 2)}f" if error else SIGNED


def _written(value: float, form: str) -> str:
    if form == PROBABILITY:
        return "< 0.0001" if value < 1e-4 else f"{value:.2g}"
    if form or isinstance(value, int):
        return format(value, form)
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.1e}"
    return f"{value:.{_decimals(value, 3)}f}"


def _with_error(value: float, error: float) -> str:
    """Show three digits, fewer if the error says less; four if it would vanish, or no error."""
    most = _decimals(value or error, 3)
    for places in (min(most, _decimals(error, 2)), most + 1):
        if round(error, places):
            return f"{value:.{places}f} ± {error:.{places}f}"
    return _written(value, "")


def text(value: Value) -> str:
    """How a value reads in a table: ``0.512 ± 0.023 [+]``, ``0.900 (3/1)``, ``3 of 4``."""
    if value is None:
        return ""
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, NumberPair):
        return value.joint.join(_written(end, value.form) for end in (value.first, value.second))
    if isinstance(value, Estimate):
        value = Number(value.mean, error=value.error)
    elif isinstance(value, float):
        value = Number(value)
    if value.error is None or value.form:
        shown = _written(value.value, value.form) + value.unit
        shown += "" if value.error is None else f" ± {_written(value.error, value.form)}"
    else:
        shown = _with_error(value.value, value.error) + value.unit
    shown += "" if value.won is None else f" ({value.won}/{value.lost})"
    return shown + {"better": " [+]", "worse": " [-]"}.get(value.verdict, "")


def parts(value: Value) -> dict[str, str | float | None]:
    """Numbers of a value at full precision by the ending of their column, such as "" and " se".

    The first number is the one to sort by.
    """
    if isinstance(value, Estimate):
        return {"": value.mean, " se": value.error}
    if isinstance(value, NumberPair):
        return dict(zip(_ENDINGS[value.joint], (value.first, value.second), strict=True))
    if isinstance(value, Number):
        more = {" se": value.error, " won": value.won, " lost": value.lost}
        known = {end: one for end, one in more.items() if one is not None}
        return {"": value.value, **known} | ({" verdict": value.verdict} if value.verdict else {})
    return {"": value}


def sort_key(value: Value) -> float | None:
    """Return what a value is sorted by; None of texts and empty places."""
    first = next(iter(parts(value).values()))
    return None if first is None or isinstance(first, str) else float(first)


def render(tables: Sequence[ReportTable], form: str = "terminal") -> str:
    """All tables as one text: terminal, markdown or csv."""
    printer = FORMATS[one_of("format", form, FORMATS)]
    return "\n\n".join(map(printer, tables))


def _terminal(table: ReportTable) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=box.SIMPLE_HEAD)
    for i, name in enumerate(table.header):
        numbers = any(sort_key(row[i]) is not None for row in table.rows)
        drawn.add_column(Text(name), justify="right" if numbers else "left", no_wrap=True)
    for row in table.rows:
        drawn.add_row(*(Text(text(value)) for value in row))
    # Wide enough that nothing is ever cut: the same text in a narrow window and in a file.
    console = Console(width=10_000, file=io.StringIO(), force_terminal=False)
    with console.capture() as capture:
        console.print(drawn)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    notes = [f"  {note}" for note in table.notes]
    return "\n".join([table.full_title, *filter(None, lines), *notes])


def _markdown(table: ReportTable) -> str:
    def line(values: Sequence[str]) -> str:
        return "| " + " | ".join(v.replace("|", r"\|") for v in values) + " |"

    rows = [line([text(value) for value in row]) for row in table.rows]
    head = [f"**{table.full_title}**", "", line(table.header), line(["---"] * len(table.header))]
    notes = [f"- {note}" for note in table.notes]
    return "\n".join(head + rows + ([""] if notes else []) + notes)


def _csv(table: ReportTable) -> str:
    """Full precision: every number has its own column."""
    endings = [
        list(dict.fromkeys(end for row in table.rows for end in parts(row[i]))) or [""]
        for i in range(len(table.header))
    ]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    named = zip(table.header, endings, strict=True)
    writer.writerow([name + end for name, ends in named for end in ends])
    for row in table.rows:
        cells = zip(map(parts, row), endings, strict=True)
        writer.writerow([cell.get(end) for cell, ends in cells for end in ends])
    comments = "".join(f"# {line}\n" for line in [table.full_title, *table.notes])
    return comments + buffer.getvalue().rstrip("\n")


FORMATS: dict[str, Callable[[ReportTable], str]] = {
    "terminal": _terminal,
    "markdown": _markdown,
    "csv": _csv,
}
