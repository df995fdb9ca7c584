"""A small table for notebooks: no scripts, no styles; every text is escaped."""

from collections.abc import Sequence
from html import escape

from vntransfer.pages.table import html_table

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
    parts = [f"<p>{escape(text)}</p>" for text in lead if text]
    parts.append(html_table(header, shown))
    if total > len(shown):
        parts.append(f"<p>{len(shown)} of {total:,} rows</p>")
    return f"<div>{''.join(parts)}</div>"
