"""A small table for notebooks: no scripts, no styles; every text is escaped."""

from collections.abc import Sequence
from html import escape

from vntransfer.pages.svg import tag

MOST = 20
"""Rows that are shown."""


def fragment(
    lead: Sequence[str], header: Sequence[str], rows: Sequence[Sequence[str]], total: int
) -> str:
    """Sentences and a table as a piece of HTML.

    Parameters
    ----------
    lead
        Sentences above the table, the answer first.
    header
        Names of the columns.
    rows
        Texts; at most `MOST` of them are shown.
    total
        How many rows there are in all.

    Examples
    --------
    >>> fragment(["A & B"], ["place"], [["<b>"]], 1)  # doctest: +ELLIPSIS
    '<div><p>A &amp; B</p><table>...<tbody><tr><th scope="row">&lt;b&gt;</th></tr></tbody>...'
    """
    shown = rows[:MOST]
    body = "".join(
        tag("tr", "".join(_cell(text, j) for j, text in enumerate(row))) for row in shown
    )
    head = "".join(tag("th", escape(name) or " ", scope="col") for name in header)
    parts = [tag("p", escape(text)) for text in lead if text]
    parts.append(tag("table", tag("thead", tag("tr", head)) + (tag("tbody", body) if body else "")))
    if total > len(shown):
        parts.append(tag("p", f"{len(shown)} of {total:,} rows"))
    return tag("div", "".join(parts))


def _cell(text: str, column: int) -> str:
    content = escape(text) or " "
    return tag("td", content) if column else tag("th", content, scope="row")
