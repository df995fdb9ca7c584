"""HTML tables for pages, charts and notebooks."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import floor, isfinite, log10

from vntransfer.checks import one_of
from vntransfer.display import rounded
from vntransfer.errors import ArgumentError
from vntransfer.pages.scales import number

NOTES = {"good": "Better", "bad": "Worse", "neutral": "", "warning": "Note"}
"""Tones of notes and values, and the word that says the same as their color."""

MOST = 20
"""Rows that a notebook shows."""

_WRAPPED = 48  # letters from which on a text may break in a table
_FITS = 20  # letters of a row's name that a page never cuts


@dataclass(frozen=True)
class TableCell:
    """A table value whose text differs from its sort key."""

    text: str
    value: float | None = None  # what the column is sorted by; None sorts by the text
    tone: str = "neutral"  # one of `NOTES`: the color

    def __post_init__(self) -> None:
        one_of("tone", self.tone, NOTES)


Value = str | int | float | TableCell | None


def html_table(
    header: Sequence[str], rows: Sequence[Sequence[Value]], *, label: str = "", sorts: bool = False
) -> str:
    """Table whose first column names the rows; every text is escaped.

    ``label`` names it for screen readers. Where it ``sorts``, headings are buttons for the script
    and the style of a page; otherwise the table is plain.
    """
    for row in rows:
        if len(row) != len(header):
            raise ArgumentError(
                f"rows: {len(row)} values for {len(header)} columns in {list(row)!r:.80}"
            )
    cells = [[_cell(value) for value in row] for row in rows]
    texts = [all(row[j].value is None for row in cells) for j in range(len(header))]
    head = "".join(_heading(*both, sorts) for both in zip(header, texts, strict=True))
    body = "".join(
        f"<tr>{''.join(_data(cell, j, texts[j], sorts) for j, cell in enumerate(row))}</tr>"
        for row in cells
    )
    name = f' aria-label="{escape(label)}"' if label else ""
    return f"<table{name}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def aligned(values: Sequence[float | None], digits: int = 3) -> list[TableCell | None]:
    """Cells of a column of numbers with the same number of decimals, that of its middle value.

    Examples
    --------
    >>> [cell.text for cell in aligned([21.0, 28.46, 18.6])]
    ['21.0', '28.5', '18.6']
    """
    known = sorted(abs(v) for v in values if v is not None and isfinite(v) and v)
    if not known or known[-1] > 1e4 * known[0] or not 1e-3 <= known[len(known) // 2] < 1e6:
        texts = ["" if v is None else rounded(v, digits) for v in values]
    else:
        places = max(0, digits - 1 - floor(log10(known[len(known) // 2])))
        texts = ["" if v is None else f"{v:,.{places}f}" for v in values]
    cells = zip(texts, values, strict=True)
    return [None if v is None else TableCell(text, v) for text, v in cells]


def fragment(
    lead: Sequence[str], header: Sequence[str], rows: Sequence[Sequence[str]], total: int
) -> str:
    """Sentences and a table of at most `MOST` of ``total`` rows, for notebooks."""
    shown = rows[:MOST]
    parts = [f"<p>{escape(text)}</p>" for text in lead if text]
    parts.append(html_table(header, shown))
    if total > len(shown):
        parts.append(f"<p>{len(shown)} of {total:,} rows</p>")
    return f"<div>{''.join(parts)}</div>"


def _cell(value: Value) -> TableCell:
    if isinstance(value, TableCell):
        return value
    if value is None or isinstance(value, str):
        return TableCell(value or "")
    return TableCell(number(value), float(value))


def _heading(name: str, text: bool, sorts: bool) -> str:
    shown = escape(name) or "&nbsp;"
    if not sorts:
        return f'<th scope="col">{shown}</th>'
    kind = ' class="text"' if text else ""
    return f'<th scope="col" aria-sort="none"{kind}><button type="button">{shown}</button></th>'


def _data(cell: TableCell, column: int, text: bool, sorts: bool) -> str:
    shown, by, marks = escape(cell.text), cell.value, ""
    if sorts:
        names = [cell.tone] if cell.tone != "neutral" else []
        names += ["text"] if text and column else []
        names += ["wrap"] if len(cell.text) > _WRAPPED and column else []
        marks += f' class="{" ".join(names)}"' if names else ""
        marks += f' data-v="{by:.10g}"' if by is not None and by == by else ""
        marks += f' title="{shown}"' if len(cell.text) > _FITS and not column else ""
    return f"<td{marks}>{shown}</td>" if column else f'<th scope="row"{marks}>{shown}</th>'
