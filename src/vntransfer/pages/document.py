"""One page in one self-contained file."""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from pathlib import Path

from vntransfer.checks import one_of
from vntransfer.display import counted
from vntransfer.pages import palette
from vntransfer.pages.charts import Chart
from vntransfer.pages.figure import figure
from vntransfer.pages.table import NOTES, Value, html_table
from vntransfer.storage.files import atomic_write
from vntransfer.storage.places import GENERATOR, PAGES, check_file

LONG = 25
"""Rows from which on a table is folded, and scrolls in its own box."""


@dataclass
class Section:
    """A part of a page; made by `Page.section`."""

    title: str
    anchor: str
    parts: list[str] = field(default_factory=list)
    entries: list[tuple[str, str]] = field(default_factory=list)  # anchor, title

    def text(self, *paragraphs: str) -> "Section":
        """Add paragraphs."""
        self.parts += [f"<p>{_prose(paragraph)}</p>" for paragraph in paragraphs]
        return self

    def note(self, text: str, *, kind: str = "neutral", head: str | None = None) -> "Section":
        """Add a highlighted note.

        ``kind`` is one of `NOTES`: good, bad, neutral, warning. The remark begins with ``head``, by
        default with the words of its kind.
        """
        one_of("kind", kind, NOTES)
        word = NOTES[kind] if head is None else head
        first = f"<b>{escape(word)}</b> " if word else ""
        self.parts.append(f'<p class="note {kind}">{first}{_prose(text)}</p>')
        return self

    def facts(self, facts: Sequence[tuple[str, str, str]]) -> "Section":
        """Add key figures: name, value and an optional short text below."""
        items = [
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}"
            + (f"<small>{escape(more)}</small>" if more else "")
            + "</dd></div>"
            for name, value, more in facts
        ]
        self.parts.append(f'<dl class="facts">{"".join(items)}</dl>')
        return self

    def table(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[Value]],
        caption: str = "",
        notes: Sequence[str] = (),
        *,
        fold: bool | None = None,
    ) -> "Section":
        """Add a table that sorts by value when a heading is clicked, with notes below it.

        Rows have one value per column: texts, numbers, None for nothing, or `TableCell`. A reader
        unfolds it if ``fold``; None: if it has more than `LONG` rows.
        """
        anchor = f"{self.anchor}-{len(self.entries) + 1}"
        if caption:
            self.entries.append((anchor, caption))
        name = caption or "Table"
        long = " long" if len(rows) > LONG else ""
        listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
        content = (
            f'<div class="scroll{long}" tabindex="0" role="region" aria-label="{escape(name)}">'
            f"{html_table(header, rows, label=name, sorts=True)}</div>"
            + (f'<ul class="notes">{listed}</ul>' if listed else "")
        )
        if len(rows) > LONG if fold is None else fold:
            content = _folded(counted(len(rows), "row"), content)
        title = f"<h3>{escape(caption)}</h3>" if caption else ""
        self.parts.append(f'<div class="table" id="{anchor}">{title}{content}</div>')
        return self

    def figure(
        self, chart: Chart, title: str, caption: str = "", *, fold: bool = False
    ) -> "Section":
        """Add a chart with its title, a caption, buttons to save it, and its numbers.

        A reader unfolds it if ``fold``.
        """
        anchor = f"{self.anchor}-{len(self.entries) + 1}"
        self.entries.append((anchor, title))
        content = figure(chart, title, caption, anchor)
        self.parts.append(_folded(title, content) if fold else content)
        return self

    def html(self) -> str:
        """Return the markup of this part."""
        head = f'<section id="{self.anchor}" aria-labelledby="{self.anchor}-h">'
        title = f'<h2 id="{self.anchor}-h">{escape(self.title)}</h2>'
        return f"{head}{title}{''.join(self.parts)}</section>"


class Page:
    """One self-contained page.

    Parameters
    ----------
    title
        Its heading.
    lead
        One or two sentences below.
    footer
        Name -> text in the footer, such as command and settings.

    Examples
    --------
    >>> from vntransfer.pages import Heatmap
    >>> page = Page("Weights", lead="Two sources", footer={"command": "vnt relate table.csv"})
    >>> part = page.section("Result")
    >>> _ = part.table(["source", "weight"], [["a", 0.75], ["b", 0.25]], "Weights")
    >>> _ = part.figure(Heatmap(["t"], ["a", "b"], [[0.75, 0.25]]), "Map")
    >>> page.html().count("<table")
    2
    """

    def __init__(self, title: str, lead: str = "", footer: dict[str, str] | None = None) -> None:
        self.title = title
        self.lead = lead
        self.footer = dict(footer or {})
        self.sections: list[Section] = []

    def section(self, title: str) -> Section:
        """Begin a part of the page."""
        self.sections.append(Section(title, f"part-{len(self.sections) + 1}"))
        return self.sections[-1]

    def html(self) -> str:
        """Return the whole page as text."""
        style, script = self._style(), resource("page.js")
        policy = (
            "default-src 'none'; "
            f"style-src 'sha256-{_digest(style)}'; script-src 'sha256-{_digest(script)}'; "
            "img-src data: blob:; base-uri 'none'; form-action 'none'"
        )
        title = escape(self.title)
        lead = f'<p class="lead">{_prose(self.lead)}</p>' if self.lead else ""
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta name="generator" content="{GENERATOR}">'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<meta name="color-scheme" content="light dark"><title>{title}</title>'
            f"<style>{style}</style></head><body>"
            '<a class="skip" href="#main">Skip to content</a><div class="frame">'
            f"<header><h1>{title}</h1>{lead}"
            '<button type="button" class="theme" aria-label="Switch between light and dark" '
            'hidden>Dark</button></header><div class="columns">'
            f'{self._contents()}<main id="main">'
            f"{''.join(section.html() for section in self.sections)}</main></div>"
            f'{self._foot()}</div><div id="tip" role="status" aria-live="polite" hidden></div>'
            f"<script>{script}</script></body></html>\n"
        )

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the page atomically and return its path.

        An existing file is replaced if it is a page of vntransfer, or with ``overwrite``.
        """
        check_file("path", path, PAGES, overwrite=overwrite)
        text = self.html()
        with atomic_write(path, "w") as file:
            file.write(text)
        return Path(path)

    def _contents(self) -> str:
        items = []
        for section in self.sections:
            inner = "".join(
                f'<li><a href="#{anchor}">{escape(title)}</a></li>'
                for anchor, title in section.entries
            )
            nested = f"<ul>{inner}</ul>" if len(section.entries) > 1 else ""
            items.append(
                f'<li><a href="#{section.anchor}">{escape(section.title)}</a>{nested}</li>'
            )
        return f'<nav aria-label="Contents"><h2>Contents</h2><ul>{"".join(items)}</ul></nav>'

    def _foot(self) -> str:
        if not self.footer:
            return ""
        items = "".join(
            f"<dt>{escape(name)}</dt><dd><code>{escape(text)}</code></dd>"
            for name, text in self.footer.items()
        )
        return f"<footer><dl>{items}</dl></footer>"

    def _style(self) -> str:
        light, dark = (
            palette.declarations(palette.variables(theme)) for theme in ("light", "dark")
        )
        return (
            f":root{{color-scheme:light;{light}}}"
            "@media (prefers-color-scheme:dark){:root:not([data-theme=light])"
            f"{{color-scheme:dark;{dark}}}}}"
            f":root[data-theme=dark]{{color-scheme:dark;{dark}}}"
            f"{resource('page.css')}{resource('chart.css')}{palette.classes()}"
        )


def resource(name: str) -> str:
    """Text of a file beside this module."""
    return (resources.files("vntransfer.pages") / name).read_text("utf-8")


def _prose(text: str) -> str:
    """Escape a text and keep numbers together with "%" and "±" where lines break."""
    return re.sub(r" (?=%)| (?=± )|(?<=±) ", "\N{NO-BREAK SPACE}", escape(text))


def _folded(what: str, content: str) -> str:
    return f'<details class="fold"><summary>Show {escape(what)}</summary>{content}</details>'


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
