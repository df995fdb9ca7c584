"""Drawing of heat maps, their color scale, and trees."""

import math
from typing import Any

import numpy as np

from vntransfer.pages.charts import Dendrogram, Heatmap
from vntransfer.pages.palette import LEVELS
from vntransfer.pages.scales import number, tick_text
from vntransfer.pages.svg import (
    LONGEST,
    fitted,
    name_below,
    path,
    room_below,
    tag,
    text,
    text_width,
    upright,
)

_TREE = 56.0

MANY = 60
"""Rows or columns beyond which cells are drawn by color, without a number each to point at."""


def level(value: float, low: float, high: float) -> int:
    """Step of a color scale, 0 to 32."""
    share = (value - low) / (high - low)
    return round((LEVELS - 1) * min(1.0, max(0.0, share)))


def short(value: float, largest: float) -> str:
    """Value in a cell: as few letters as its neighbors allow."""
    digits = 2 if largest <= 1 else 1 if largest < 10 else 0
    shown = f"{abs(value):.{digits}f}"
    if digits == 2:
        shown = shown.removeprefix("0")
    return ("−" if value < 0 and float(shown or 0) else "") + shown


def cell_size(chart: Heatmap) -> float:
    """Side of a cell: smaller where there are many."""
    n = max(len(chart.columns), len(chart.rows), 1)
    return max(7.0, min(34.0, 28.0 if n <= 8 else 560.0 / n))


def draw_heatmap(chart: Heatmap) -> tuple[str, float, float]:
    """SVG content, width and height of a heat map."""
    chart = chart.ordered
    side = cell_size(chart)
    letters = min(11.0, max(6.0, side - 1))
    slanted, room = room_below(chart.columns, side + 2, letters)
    widest = max((text_width(name, letters) for name in chart.rows), default=0.0)
    left = min(widest, LONGEST) + 8 + (16 if chart.row_label else 0)
    top = (24.0 if chart.title else 8.0) + (_TREE if chart.tree else 0.0)
    grid_w, grid_h = side * len(chart.columns), side * len(chart.rows)
    title_w = text_width(chart.title, 13)
    wide = [max(text_width(t, 11) for t in (head, *texts)) + 14 for head, texts in chart.side]
    if wide:
        top = max(top, 24.0)
    width = max(left + grid_w + sum(wide) + 12, title_w + 12, 90.0)
    height = top + grid_h + room + (18 if chart.column_label else 2)
    parts = []
    if chart.title:
        parts.append(
            text(chart.title, max(2.0, min(left, width - title_w - 6)), 14, class_="title")
        )
    if chart.tree:
        parts.append(_branches(chart.tree, left, top - 3, side, _TREE - 8))
    parts += _cells(chart, left, top, side)
    parts += _names(chart, left, top, side, letters, slanted)
    at = left + grid_w
    for (heading, texts), room in zip(chart.side, wide, strict=True):
        at += room
        parts.append(text(heading, at, top - 6, class_="label", text_anchor="end"))
        parts += [
            text(own, at, top + side * (i + 0.5) + 4, text_anchor="end")
            for i, own in enumerate(texts)
        ]
    if chart.row_label:
        parts.append(upright(chart.row_label, top + grid_h / 2))
    if chart.column_label:
        x = left + grid_w / 2
        parts.append(text(chart.column_label, x, height - 4, class_="label", text_anchor="middle"))
    return "".join(parts), width, height


def _cells(chart: Heatmap, left: float, top: float, side: float) -> list[str]:
    low, high = chart.limits
    known = np.abs(chart.values[np.isfinite(chart.values)])
    largest = float(known.max()) if len(known) else 1.0
    written = chart.numbers and side >= 22 and largest < 1000
    if max(chart.values.shape, default=0) > MANY:
        return _cells_by_color(chart, left, top, side)
    rows = []
    gap = 1.0 if side >= 12 else 0.0
    for i, name in enumerate(chart.rows):
        shapes, inks = _empty(chart.values[i], left, top + side * i, side, gap), []
        for j, value in enumerate(chart.values[i]):
            x, y = left + side * j, top + side * i
            size = side - gap
            if not math.isfinite(value):
                continue
            own = f"q{level(float(value), low, high)}"
            shapes.append(
                tag("rect", x=x, y=y, width=size, height=size, class_=own, data_j=str(j),
                    data_v=number(float(value)))
            )  # fmt: skip
            ink = short(float(value), largest) if written else ""
            if ink := ink + (chart.mark if chart.marks is not None and chart.marks[i][j] else ""):
                inks.append(
                    text(ink, x + size / 2, y + size / 2 + 3.5, class_=own, text_anchor="middle",
                         font_size=None if side >= 12 else side)
                )  # fmt: skip
        rows.append(tag("g", "".join(shapes), class_="row", data_n=name) + "".join(inks))
    columns = "|".join(name.replace("|", "¦") for name in chart.columns)
    return [tag("g", "".join(rows), class_="map", data_columns=columns)]


def _cells_by_color(chart: Heatmap, left: float, top: float, side: float) -> list[str]:
    """One shape per color, and the marks: a tenth of what an element per cell takes."""
    low, high = chart.limits
    shapes: dict[int, list[str]] = {}
    for i, j in np.argwhere(np.isfinite(chart.values)):
        at = f"M{left + side * j:.0f} {top + side * i:.0f}h{side:g}v{side:g}h-{side:g}"
        shapes.setdefault(level(float(chart.values[i, j]), low, high), []).append(at)
    parts = [tag("path", d="".join(own), class_=f"q{k}") for k, own in sorted(shapes.items())]
    for i, j in np.argwhere(np.asarray(False if chart.marks is None else chart.marks)):
        own = f"q{level(float(chart.values[i, j]), low, high)}"
        x, y = left + side * (j + 0.5), top + side * (i + 0.8)
        parts.append(text(chart.mark, x, y, class_=own, text_anchor="middle", font_size=side))
    return parts


def _empty(values: Any, left: float, y: float, side: float, gap: float) -> list[str]:
    """One gray bar for each run of places without a value."""
    missing = [False, *(not math.isfinite(value) for value in values), False]
    turns = [j for j in range(len(missing) - 1) if missing[j] != missing[j + 1]]
    return [
        tag(
            "rect",
            x=left + side * a,
            y=y,
            width=side * (b - a) - gap,
            height=side - gap,
            class_="empty",
        )
        for a, b in zip(turns[::2], turns[1::2], strict=True)
    ]


def _names(
    chart: Heatmap, left: float, top: float, side: float, letters: float, slanted: bool
) -> list[str]:
    parts = []
    size = None if letters >= 11 else letters
    for i, name in enumerate(chart.rows):
        y = top + side * (i + 0.5) + letters / 3
        shown = fitted(name, LONGEST, letters)
        parts.append(text(shown, left - 5, y, text_anchor="end", font_size=size))
    foot = top + side * len(chart.rows)
    for j, name in enumerate(chart.columns):
        x = left + side * (j + 0.5)
        parts.append(name_below(name, x, foot, slanted=slanted, size=letters))
    return parts


def color_bar(chart: Heatmap) -> tuple[str, float, float]:
    """SVG content, width and height of the scale of a heat map."""
    low, high = chart.limits
    ends = tick_text(low), tick_text(high)
    margin = max(map(text_width, ends)) + 6
    wide = 132.0
    parts = [text(ends[0], margin - 5, 11, text_anchor="end")]
    for i in range(LEVELS):
        x = margin + wide * i / LEVELS
        parts.append(tag("rect", x=x, y=2, width=wide / LEVELS + 0.4, height=10, class_=f"q{i}"))
    parts.append(text(ends[1], margin + wide + 5, 11))
    return "".join(parts), 2 * margin + wide, 14


def _branches(tree: Dendrogram, left: float, foot: float, step: float, deep: float) -> str:
    """Draw the brackets of all merges, each with its height and how many leaves it joins."""
    high = max((float(row[2]) for row in tree.merges), default=1.0) or 1.0
    place = {leaf: left + step * (i + 0.5) for i, leaf in enumerate(tree.order)}
    at = [(place[i], foot, 1) for i in range(len(tree.names))]
    parts = []
    for a, b, height, *_ in tree.merges:
        (x1, y1, n1), (x2, y2, n2) = at[int(a)], at[int(b)]
        y = foot - deep * float(height) / high
        say = f"{n1} and {n2} joined at {number(float(height))}"
        shape = path([(x1, y1), (x1, y), (x2, y), (x2, y2)])
        parts.append(tag("path", d=shape, class_="branch", data_t=say))
        at.append(((x1 + x2) / 2, y, n1 + n2))
    return tag("g", "".join(parts), class_="tree")
