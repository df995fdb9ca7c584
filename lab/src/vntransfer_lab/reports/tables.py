"""Tables as values, and their four forms: terminal, markdown, latex, csv."""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from vntransfer.errors import ArgumentError
from vntransfer_lab.reports.statistics import Estimate


class Signed(float):
    """A number that shows its sign: a difference."""


class Probability(float):
    """A number from 0 to 1 of which the order of magnitude matters."""


@dataclass(frozen=True)
class IntervalValue:
    """Two ends of an interval."""

    low: float
    high: float


Value = str | int | float | Estimate | IntervalValue | None


@dataclass(frozen=True)
class ReportTable:
    """Title, header, rows and notes; a row has one value per column.

    Examples
    --------
    >>> table = ReportTable("Errors", ["method", "mae"], [["ridge", Estimate(0.5, 0.01, 5)]])
    >>> print(render([table], "markdown"))
    **Errors**
    <BLANKLINE>
    | method | mae |
    | --- | --- |
    | ridge | 0.5000 ± 0.0100 |
    """

    title: str
    header: list[str]
    rows: list[list[Value]]
    notes: list[str] = field(default_factory=list)


def decimals(value: float) -> int | None:
    """Return how many decimals show four digits; None for scientific notation."""
    if value == 0:
        return 3
    magnitude = math.floor(math.log10(abs(value)))
    return None if magnitude < -3 or magnitude > 5 else max(0, min(4, 3 - magnitude))


def text(value: Value) -> str:
    """How a value reads in a table.

    Examples
    --------
    >>> text(12.3456), text(Estimate(0.51234, 0.00234, 5)), text(None), text(1e-7)
    ('12.35', '0.5123 ± 0.0023', '', '1.00e-07')
    >>> text(Signed(0.51234)), text(IntervalValue(-1, 0.25)), text(Probability(1e-7))
    ('+0.5123', '-1 to +0.25', '< 0.0001')
    """
    if value is None:
        return ""
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, Signed):
        return f"{value:+.4g}"
    if isinstance(value, IntervalValue):
        return f"{value.low:+.4g} to {value.high:+.4g}"
    if isinstance(value, Probability):
        return "< 0.0001" if value < 1e-4 else f"{value:.4f}"
    mean, error = (value.mean, value.error) if isinstance(value, Estimate) else (value, None)
    places = decimals(mean)
    form = ".2e" if places is None else f".{places}f"
    return format(mean, form) + ("" if error is None else f" ± {format(error, form)}")


def render(tables: Sequence[ReportTable], form: str = "terminal") -> str:
    """All tables as one text.

    Parameters
    ----------
    tables
        The tables.
    form
        A key of `FORMATS`: terminal, markdown, latex or csv.
    """
    if form not in FORMATS:
        raise ArgumentError(f"format: expected one of {', '.join(FORMATS)}, got {form!r}")
    return "\n\n".join(FORMATS[form](table) for table in tables)


def _terminal(table: ReportTable) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=box.SIMPLE_HEAD)
    for i, name in enumerate(table.header):
        numbers = any(not isinstance(row[i], str | None) for row in table.rows)
        drawn.add_column(Text(name), justify="right" if numbers else "left", no_wrap=True)
    for row in table.rows:
        drawn.add_row(*(Text(text(value)) for value in row))
    # Wide enough that nothing is ever cut: the same text in a narrow window and in a file.
    console = Console(width=10_000, file=io.StringIO(), force_terminal=False)
    with console.capture() as capture:
        console.print(drawn)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    notes = [f"  {note}" for note in table.notes]
    return "\n".join([table.title, *filter(None, lines), *notes])


def _markdown(table: ReportTable) -> str:
    def line(values: Sequence[str]) -> str:
        return "| " + " | ".join(v.replace("|", r"\|") for v in values) + " |"

    rows = [line([text(value) for value in row]) for row in table.rows]
    head = [f"**{table.title}**", "", line(table.header), line(["---"] * len(table.header))]
    notes = [f"- {note}" for note in table.notes]
    return "\n".join(head + rows + ([""] if notes else []) + notes)


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "±": r"$\pm$",
        "√": r"$\surd$",
        "λ": r"$\lambda$",
        "−": "$-$",
        "≤": r"$\le$",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        **{c: f"\\{c}" for c in "&%$#_{}"},
    }
)


def _latex(table: ReportTable) -> str:
    def line(values: Sequence[str]) -> str:
        return "  " + " & ".join(v.translate(_LATEX) for v in values) + r" \\"

    rows = [line([text(value) for value in row]) for row in table.rows]
    notes = "".join(f"\n% {note}" for note in table.notes)
    return "\n".join(
        [
            r"\begin{table}",
            rf"  \caption{{{table.title.translate(_LATEX)}}}",
            rf"  \begin{{tabular}}{{{'l' * len(table.header)}}}",
            r"  \toprule",
            line(table.header),
            r"  \midrule",
            *rows,
            r"  \bottomrule",
            r"  \end{tabular}",
            rf"\end{{table}}{notes}",
        ]
    )


def _csv(table: ReportTable) -> str:
    """Full precision; an estimate and an interval take two columns."""
    endings = {Estimate: ("", " se"), IntervalValue: (" low", " high")}
    columns: list[tuple[str, ...]] = []
    for i in range(len(table.header)):
        kinds = {type(row[i]) for row in table.rows}
        columns.append(next((ends for kind, ends in endings.items() if kind in kinds), ("",)))
    header = [name + end for name, ends in zip(table.header, columns, strict=True) for end in ends]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for row in table.rows:
        cells: list[str | int | float | None] = []
        for value, ends in zip(row, columns, strict=True):
            if isinstance(value, Estimate):
                cells += [value.mean, value.error]
            elif isinstance(value, IntervalValue):
                cells += [value.low, value.high]
            else:
                cells += [value, None][: len(ends)]
        writer.writerow(cells)
    comments = "".join(f"# {line}\n" for line in [table.title, *table.notes])
    return comments + buffer.getvalue().rstrip("\n")


FORMATS: dict[str, Callable[[ReportTable], str]] = {
    "terminal": _terminal,
    "markdown": _markdown,
    "latex": _latex,
    "csv": _csv,
}
