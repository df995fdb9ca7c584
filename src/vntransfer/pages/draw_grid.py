"""Drawing of heat maps and their color scale."""

import numpy as np

from vntransfer.pages.charts import Heatmap
from vntransfer.pages.palette import LEVELS
from vntransfer.pages.scales import number, tick_text
from vntransfer.pages.svg import (
    LONGEST,
    coordinate,
    every,
    fitted,
    heading,
    joined,
    name_below,
    room_below,
    tag,
    text,
    text_width,
    upright,
)

SMALLEST, LARGEST = 2.5, 40.0
"""Sides of cells."""


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


def draw_heatmap(chart: Heatmap, width: float) -> tuple[str, float, float]:
    """SVG content, width and height of a heat map that is about as wide as it may be."""
    longest = min(LONGEST, 0.3 * width)
    left = min(max(map(text_width, chart.rows), default=0.0), longest) + 8
    left += 16 if chart.row_label else 0
    wide = [max(map(text_width, (head, *texts))) + 14 for head, texts in chart.side]
    side = (width - left - sum(wide) - 12) / max(1, len(chart.columns))
    side = max(SMALLEST, min(LARGEST, side))
    slanted, room = room_below(chart.columns, side + 2, longest)
    top = 24.0 if chart.title or wide else 8.0
    grid_w, grid_h = side * len(chart.columns), side * len(chart.rows)
    width = max(left + grid_w + sum(wide) + 12, min(width, text_width(chart.title, 13) + 12), 90.0)
    height = top + grid_h + room + (18 if chart.column_label else 2)
    parts = [heading(chart.title, left, width)]
    parts += _cells(chart, left, top, side)
    step = every(len(chart.rows), side)
    for i, name in list(enumerate(chart.rows))[::step]:
        y = top + side * (i + 0.5) + 4
        parts.append(text(fitted(name, longest), left - 5, y, text_anchor="end"))
    for j, name in list(enumerate(chart.columns))[:: every(len(chart.columns), side)]:
        x = left + side * (j + 0.5)
        parts.append(name_below(name, x, top + grid_h, slanted=slanted, longest=longest))
    at = left + grid_w
    for (head, texts), own_room in zip(chart.side, wide, strict=True):
        at += own_room
        parts.append(text(head, at, top - 6, class_="label", text_anchor="end"))
        parts += [
            text(own, at, top + side * (i + 0.5) + 4, text_anchor="end")
            for i, own in list(enumerate(texts))[::step]
        ]
    if chart.row_label:
        parts.append(upright(chart.row_label, top + grid_h / 2))
    if chart.column_label:
        x = left + grid_w / 2
        parts.append(text(chart.column_label, x, height - 4, class_="label", text_anchor="middle"))
    return "".join(parts), width, height


def _cells(chart: Heatmap, left: float, top: float, side: float) -> list[str]:
    """One shape per color, numbers and marks, and the values for the script of a page."""
    low, high = chart.limits
    known = np.isfinite(chart.values)
    largest = float(np.abs(chart.values[known]).max(initial=0.0)) or 1.0
    marks = np.zeros(known.shape, dtype=bool) if chart.marks is None else np.asarray(chart.marks)
    written = chart.numbers and side >= (34 if marks.any() else 22) and 0.1 <= largest < 1000
    gap = 1.0 if side >= 12 else 0.0
    size, n = coordinate(side - gap), chart.values.shape
    area = {"width": side * n[1] - gap, "height": side * n[0] - gap}
    parts = [] if known.all() else [tag("rect", x=left, y=top, class_="empty", **area)]
    shapes: dict[int, list[str]] = {}
    inks = []
    for i, j in np.argwhere(known):
        own, x, y = level(float(chart.values[i, j]), low, high), left + side * j, top + side * i
        cell = f"M{coordinate(x)} {coordinate(y)}h{size}v{size}h-{size}"
        shapes.setdefault(own, []).append(cell)
        ink = short(float(chart.values[i, j]), largest) if written else ""
        if ink := ink + (chart.mark if marks[i, j] else ""):
            inks.append(
                text(ink, x + (side - gap) / 2, y + side / 2 + 3.5, class_=f"q{own} sign",
                     text_anchor="middle", font_size=None if side >= 12 else side)
            )  # fmt: skip
    parts += [tag("path", d="".join(own), class_=f"q{k}") for k, own in sorted(shapes.items())]
    values = [" ".join(number(float(v)) for v in row) for row in chart.values]
    return [
        tag(
            "g",
            "".join(parts + inks) or " ",
            data_grid=f"{left:.2f} {top:.2f} {side:.3f}",
            data_rows=joined(chart.rows),
            data_columns=joined(chart.columns),
            data_v="|".join(values),
        )
    ]


def color_bar(chart: Heatmap) -> tuple[str, float, float]:
    """SVG content, width and height of the scale of a heat map."""
    low, high = chart.limits
    known = chart.values[np.isfinite(chart.values)]
    beyond = len(known) and known.max() > high * (1 + 1e-9)
    ends = tick_text(low), ("≥ " if beyond else "") + tick_text(high)
    margin = max(map(text_width, ends)) + 6
    wide = 132.0
    parts = [text(ends[0], margin - 5, 11, text_anchor="end")]
    for i in range(LEVELS):
        x = margin + wide * i / LEVELS
        parts.append(tag("rect", x=x, y=2, width=wide / LEVELS + 0.4, height=10, class_=f"q{i}"))
    parts.append(text(ends[1], margin + wide + 5, 11))
    return "".join(parts), 2 * margin + wide, 14
