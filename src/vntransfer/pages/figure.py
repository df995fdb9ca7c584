"""A chart as a figure of a page: panels, legend, buttons, and the numbers in a table."""

import re
from html import escape
from math import ceil

from vntransfer.pages.alt_text import MOST_CELLS, MOST_ROWS, numbers, summary
from vntransfer.pages.charts import Chart, Heatmap, Histogram, Panel, Panels, Scatter, Series
from vntransfer.pages.draw import NARROW, classes, color_bar, draw, fitting
from vntransfer.pages.layout import colors, panels
from vntransfer.pages.svg import mark, shape, tag
from vntransfer.pages.table import html_table

COLUMNS = 3
"""Panels beside each other on a desk, at most; two where that leaves fewer gaps."""


def file_name(title: str) -> str:
    """Name of a file after a title."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "figure"


def figure(chart: Chart, title: str, caption: str, anchor: str) -> str:
    """HTML of a figure; ``anchor`` is its id in the page.

    What is wider than a phone is drawn twice, and the style of the page shows one of the two.
    """
    shown = panels(chart)
    row = chart.columns if isinstance(chart, Panels) and chart.columns else len(shown)
    columns = ceil(row / ceil(row / COLUMNS))
    alone, places, drawn = len(shown) == 1, colors(chart), []
    for i, panel in enumerate(shown):
        views = [draw(panel, places, width) for width in fitting(panel, columns)]
        if views[0][1] <= NARROW:
            views = views[:1]
        label = f"{title}. {summary(chart if alone else panel)}"
        svgs = [
            tag(
                "svg",
                content,
                class_=f"chart {name}" if len(views) > 1 else "chart",
                width=width,
                viewBox=f"0 0 {width:.0f} {height:.0f}",
                role="img",
                tabindex="0",
                aria_label=label,
                data_xlabel=_x_label(panel),
            )
            for name, (content, width, height) in zip(("desk", "phone"), views, strict=False)
        ]
        kind = "panel map" if isinstance(panel, Heatmap) else "panel"
        drawn.append(f'<div class="{kind}">{"".join(svgs)}</div>')
        if (i + 1) % row == 0:
            drawn.append('<div class="break"></div>')
    maps = any(isinstance(panel, Heatmap) for panel in shown)
    kind = "alone" if alone else "maps" if maps else "pairs" if columns == 2 else "threes"
    plot = f'<div class="plot {kind}">{"".join(drawn)}</div>'
    body = f'<div class="drawn">{_legend(places, shown)}{plot}</div>'
    note = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    save = "".join(
        f'<button type="button" data-as="{form}" aria-label="Save {escape(title)} as '
        f'{form.upper()}">{form.upper()}</button>'
        for form in ("svg", "png")
    )
    foot = f'<div class="foot"><div class="save">{save}</div>{_details(shown)}</div>'
    head = f'<figure id="{anchor}" data-file="{file_name(title)}">'
    return f"{head}<h3>{escape(title)}</h3>{note}{body}{foot}</figure>"


def _x_label(panel: Panel) -> str | None:
    axis = getattr(panel, "x", None)
    return axis.label or None if axis is not None and not axis.names else None


def common_scale(shown: list[Panel]) -> Heatmap | None:
    """One of the heat maps, if all have the same colors; otherwise the cells have the numbers."""
    maps = [panel for panel in shown if isinstance(panel, Heatmap)]
    scales = {(panel.limits, panel.label) for panel in maps}
    return maps[0] if len(scales) == 1 else None


def legend_entries(places: dict[str, int], shown: list[Panel]) -> list[tuple[str, str, int]]:
    """Name, swatch and its width of every series; none where there is a single one."""
    every = [s for panel in shown for s in getattr(panel, "series", ()) if not s.thin]
    known = {s.name: s for s in reversed(every)}  # as the first panel draws them
    names = [name for name in places if name in known]
    if len(names) < 2:
        return []
    solid, points = isinstance(shown[0], Histogram), isinstance(shown[0], Scatter)
    wide = 14 if solid else 24
    return [(name, _swatch(known[name], places[name], solid, points), wide) for name in names]


def _legend(places: dict[str, int], shown: list[Panel]) -> str:
    legend = ""
    if scale := common_scale(shown):
        content, width, height = color_bar(scale)
        box = f"0 0 {width:.0f} {height:.0f}"
        size = {"width": width, "height": height}
        bar = tag("svg", content, viewBox=box, aria_hidden="true", **size)
        name = f'<span class="name word">{escape(scale.label)}</span>' if scale.label else ""
        legend = f'<div class="legend">{name}{bar}</div>'
    entries = [
        f'<button type="button" aria-pressed="false" data-n="{escape(name)}">'
        + tag("svg", swatch, width=wide, height=12, viewBox=f"0 0 {wide} 12", aria_hidden="true")
        + f'<span class="word">{escape(name)}</span></button>'
        for name, swatch, wide in legend_entries(places, shown)
    ]
    if entries:
        legend += f'<div class="legend" role="group" aria-label="Series">{"".join(entries)}</div>'
    return legend


def _swatch(series: Series, place: int, solid: bool, points: bool) -> str:
    if solid:
        content = tag("rect", x=1, y=2, width=12, height=8, class_="bar")
    else:
        content = ""
        if series.dash != "none" and not points:
            content = shape("M1 6H23", f"line {series.dash}".strip())
        if series.marks and (place >= 0 or points):
            content += shape(mark(place, 12, 6), "mark")
    return tag("g", content, class_=classes(place))


def _details(shown: list[Panel]) -> str:
    tables = []
    for panel in shown:
        header, rows = numbers(panel)
        most = min(MOST_ROWS, max(1, MOST_CELLS // len(header)))
        more = len(rows) - most
        left = f"<p>{more} more rows are not shown.</p>" if more > 0 else ""
        name = f"<p><b>{escape(panel.title)}</b></p>" if panel.title else ""
        label = escape(f"Numbers: {panel.title}" if panel.title else "Numbers")
        tables.append(
            f'{name}<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
            f"{html_table(header, rows[:most])}</div>{left}"
        )
    return f"<details><summary>Numbers</summary>{''.join(tables)}</details>"
