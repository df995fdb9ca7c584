"""Drawing of charts with axes as SVG.

What a reader can point at is written beside the shapes: a group of points has its name in
``data-n``, places in ``data-p``, and what to say of each in ``data-x`` and ``data-v``, separated by
``|``; ``data-grid`` says where the cells of a heat map are (left, top, side).
"""

from functools import singledispatch
from math import inf

import numpy as np

from vntransfer.display import rounded
from vntransfer.pages import svg
from vntransfer.pages.charts import (
    MUTED,
    Axis,
    Heatmap,
    Histogram,
    Intervals,
    Lines,
    Panel,
    Scatter,
    Series,
)
from vntransfer.pages.layout import PanelFrame, finite, frame
from vntransfer.pages.palette import LEVELS, SERIES
from vntransfer.pages.scales import number

N_COLORS = len(SERIES["light"])
WIDE, NARROW, PANEL = 760.0, 320.0, 300.0
"""Widths of a panel alone on a desk and on a phone, and of one of several on either."""

SMALLEST, LARGEST = 2.5, 40.0
"""Sides of cells; a map alone on a desk has larger ones."""

SIGN = 9.0
"""Side of cells below which a mark is a dot: its sign could not be read."""

BESIDE_TEXT = 22.0
"""Smallest side of cells that texts stand beside."""


def classes(place: int) -> str:
    """Classes of a series: its color and, when the colors are used up, its stroke."""
    if place < 0:
        return "muted"
    stroke = place // N_COLORS % 3
    return f"s{place % N_COLORS}" + (f" k{stroke}" if stroke else "")


@singledispatch
def draw(panel: Panel, places: dict[str, int], width: float) -> tuple[str, float, float]:
    """SVG content, width and height of one of ``panels(chart)``; `colors` gives the ``places``.

    A heat map may be narrower than ``width``.
    """
    raise TypeError(f"no chart: {type(panel).__name__}")


def fitting(panel: Panel, columns: int) -> list[float]:
    """Widths in which a page draws a panel: for a desk, then for a phone if that needs its own."""
    if columns == 1:
        return [WIDE, NARROW]
    return [1.5 * PANEL, NARROW] if columns == 2 or isinstance(panel, Heatmap) else [PANEL]


@draw.register
def _(panel: Lines, places: dict[str, int], width: float) -> tuple[str, float, float]:
    height = 110 + width / 3
    box = frame(panel, width, height, panel.x, panel.y)
    parts = [box.markup, *(_line(box, s, places[s.name], panel) for s in panel.series)]
    return "".join(parts), width, height


@draw.register
def _(panel: Scatter, places: dict[str, int], width: float) -> tuple[str, float, float]:
    height = 150 + 0.42 * width
    box = frame(panel, width, height, panel.x, panel.y)
    parts = [box.markup]
    if panel.diagonal:
        low, high = max(box.x.low, box.y.low), min(box.x.high, box.y.high)
        if high > low:
            corners = [(box.x(low), box.y(low)), (box.x(high), box.y(high))]
            parts.append(svg.shape(svg.path(corners), "rule"))
    for s in panel.series:
        kept = _shown(box, s)
        shapes = "".join(svg.mark(places[s.name], *box_point, 2.4) for _, box_point in kept)
        parts.append(_group(panel, s, places[s.name], kept, svg.shape(shapes, "dots")))
    return "".join(parts), width, height


@draw.register
def _(panel: Histogram, places: dict[str, int], width: float) -> tuple[str, float, float]:
    height = 110 + width / 3
    box = frame(panel, width, height, panel.x, panel.y)
    edges, foot, parts = finite(panel.edges), box.y(box.y.low), [box.markup]
    for s in panel.series:
        tops = [box.y(h) if box.y.shows(h) else foot for h in finite(s.y)]
        outline = [(box.x(edges[0]), foot)]
        for i, top in enumerate(tops):
            outline += [(box.x(edges[i]), top), (box.x(edges[i + 1]), top)]
        outline.append((box.x(edges[-1]), foot))
        shape = svg.shape(svg.path(outline), "step")
        parts.append(_group(panel, s, places[s.name], _shown(box, s), shape))
    return "".join(parts), width, height


@draw.register
def _(panel: Intervals, places: dict[str, int], width: float) -> tuple[str, float, float]:
    rows = Axis(names=panel.names)
    height = 30.0 + (18 if panel.x.label else 0) + 14 + max(60.0, 19.0 * len(panel.names))
    box = frame(panel, width, height, panel.x, rows)
    parts = [box.markup]
    if panel.reference is not None and box.x.shows(panel.reference):
        at = box.x(panel.reference)
        parts.append(svg.shape(f"M{at:.1f} {box.y.start:.1f}V{box.y.end:.1f}", "rule"))
    for i, (name, value) in enumerate(zip(panel.names, finite(panel.values), strict=True)):
        if not np.isfinite(value) or (box.x.log and value <= 0):
            continue
        beyond = not box.x.shows(value)
        x, y = box.x.within(value), box.y(i)
        ends, shape = interval(panel, i), ""
        say = value_text(value, ends)
        if ends and not beyond:
            start, end = map(box.x.within, ends)
            shape = svg.shape(f"M{start:.1f} {y:.1f}H{end:.1f}", "whisker")
        if panel.others is not None and box.x.shows(other := float(finite(panel.others)[i])):
            shape += svg.shape(svg.mark(0, box.x(other), y, 4), "hollow")
            say += f"; {panel.others_name or 'others'}: {number(other)}"
        if beyond:  # an arrow at the end of the axis, and the value beside it
            side, anchor = (-1, "end") if value > box.x.high else (1, None)
            shape += svg.shape(f"M{x:.1f} {y:.1f}l{8 * side} -5v10z", "mark")
            place = {"text_anchor": anchor, "class_": "beyond"}
            shape += svg.text(rounded(float(value)), x + 12 * side, y + 4, **place)
        else:
            shape += svg.shape(svg.mark(0, x, y, 4), "mark")
        own = "s1" if name == panel.highlight else "s0"
        point = {"data_n": name, "data_p": f"{x:.0f},{y:.0f}", "data_v": say}
        parts.append(svg.tag("g", shape, class_=f"series {own}", **point))
    return "".join(parts), width, height


_Shown = list[tuple[int, tuple[float, float]]]


def _shown(box: PanelFrame, s: Series) -> _Shown:
    """Return number and position of the points that have one."""
    pairs = zip(finite(s.x), finite(s.y), strict=True)
    return [
        (k, (box.x(float(x)), box.y(float(y))))
        for k, (x, y) in enumerate(pairs)
        if box.x.shows(x) and box.y.shows(y)
    ]


def interval(own: Series | Intervals, k: int) -> tuple[float, float] | None:
    """Return the ends of the interval around a value; None if it has none."""
    if own.low is None or own.high is None:
        return None
    low, high = own.low[k], own.high[k]
    if low is None or high is None or not -inf < low < high < inf:
        return None
    return low, high


def value_text(value: float | None, ends: tuple[float, float] | None) -> str:
    """Value with its interval."""
    return number(value) + (f" ({number(ends[0])} to {number(ends[1])})" if ends else "")


def place_text(axis: Axis, value: float) -> str:
    """Name or number of a place on an axis."""
    if axis.names:
        return axis.names[min(max(0, round(value)), len(axis.names) - 1)]
    return number(value)


def _group(panel: Lines, s: Series, place: int, shown: _Shown, content: str) -> str:
    head = f"series{' thin' if s.thin else ''} {classes(place)}"
    xs, say = finite(s.x), dict[str, str]()
    if panel.x.hidden or not s.thin:
        say["data_p"] = " ".join(f"{x:.0f},{y:.0f}" for _, (x, y) in shown)
    if not (panel.x.hidden or s.thin):
        say["data_x"] = svg.joined(place_text(panel.x, xs[k]) for k, _ in shown)
        say["data_v"] = svg.joined(value_text(s.y[k], interval(s, k)) for k, _ in shown)
    return svg.tag("g", content, class_=head, data_n=s.name, **say)


def _line(box: PanelFrame, s: Series, place: int, panel: Lines) -> str:
    shown = _shown(box, s)
    parts = []
    if s.dash != "none":
        runs: list[list[tuple[float, float]]] = []
        for i, (k, point) in enumerate(shown):
            if i and k == shown[i - 1][0] + 1:
                runs[-1].append(point)
            else:
                runs.append([point])
        stroke = f"line {s.dash}".strip()
        parts.append(svg.shape("".join(map(svg.path, runs)), stroke))
    parts += [_whisker(box, s, k, x) for k, (x, _) in shown]
    if s.marks and place != MUTED:
        shapes = "".join(svg.mark(place, *point) for _, point in shown)
        parts.append(svg.shape(shapes, "mark"))
    return _group(panel, s, place, shown, "".join(parts))


def _whisker(box: PanelFrame, s: Series, k: int, x: float) -> str:
    if (ends := interval(s, k)) is None:
        return ""
    low, high = map(box.y.within, ends)
    return svg.shape(f"M{x:.1f} {low:.1f}V{high:.1f}", "whisker") if low != high else ""


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


@draw.register
def _(chart: Heatmap, places: dict[str, int], width: float) -> tuple[str, float, float]:
    longest = min(svg.LONGEST, 0.34 * width)
    left = min(max(map(svg.text_width, chart.rows), default=0.0), longest) + 8
    left += 16 if chart.row_label else 0
    wide = [max(map(svg.text_width, (head, *texts))) + 14 for head, texts in chart.side]
    side = (width - left - sum(wide) - 12) / max(1, len(chart.columns))
    smallest = BESIDE_TEXT if wide else SMALLEST  # wider than a phone: a page lets it scroll
    side = max(smallest, min(max(LARGEST, width / 12), side))
    slanted, room = svg.room_below(chart.columns, side + 2, longest)
    top = 24.0 if chart.title or wide else 8.0
    grid_w, grid_h = side * len(chart.columns), side * len(chart.rows)
    width = max(
        left + grid_w + sum(wide) + 12, min(width, svg.text_width(chart.title, 13) + 12), 90.0
    )
    height = top + grid_h + room + (18 if chart.column_label else 2)
    parts = [svg.heading(chart.title, left, width)]
    parts += _cells(chart, left, top, side)
    step = svg.every(len(chart.rows), side)
    for i, name in list(enumerate(chart.rows))[::step]:
        y = top + side * (i + 0.5) + 4
        parts.append(svg.text(svg.fitted(name, longest), left - 5, y, text_anchor="end"))
    for j, name in list(enumerate(chart.columns))[:: svg.every(len(chart.columns), side)]:
        x = left + side * (j + 0.5)
        parts.append(svg.name_below(name, x, top + grid_h, slanted=slanted, longest=longest))
    at = left + grid_w
    for (head, texts), own_room in zip(chart.side, wide, strict=True):
        at += own_room
        parts.append(svg.text(head, at, top - 6, class_="label", text_anchor="end"))
        parts += [
            svg.text(own, at, top + side * (i + 0.5) + 4, text_anchor="end")
            for i, own in list(enumerate(texts))[::step]
        ]
    parts.append(svg.upright(chart.row_label, top + grid_h / 2))
    parts.append(svg.label(chart.column_label, left + grid_w / 2, height - 4))
    return "".join(parts), width, height


def _cells(chart: Heatmap, left: float, top: float, side: float) -> list[str]:
    """One shape per color, numbers and marks, and the values for the script of a page."""
    low, high = chart.limits
    known = np.isfinite(chart.values)
    largest = float(np.abs(chart.values[known]).max(initial=0.0)) or 1.0
    marks = np.zeros(known.shape, dtype=bool) if chart.marks is None else np.asarray(chart.marks)
    written = chart.numbers and side >= (34 if marks.any() else 22) and 0.1 <= largest < 1000
    sizes = np.abs(chart.values[known & (chart.values != 0)])  # no map full of ".00"
    written = written and len(sizes) > 0 and float(short(float(np.median(sizes)), largest)) > 0
    gap = 1.0 if side >= 12 else 0.0
    size, n = svg.coordinate(side - gap), chart.values.shape
    area = {"width": side * n[1] - gap, "height": side * n[0] - gap}
    parts = [] if known.all() else [svg.tag("rect", x=left, y=top, class_="empty", **area)]
    hue = "d" if chart.diverging else "q"
    shapes: dict[int, list[str]] = {}
    inks = []
    for i, j in np.argwhere(known):
        own, x, y = level(float(chart.values[i, j]), low, high), left + side * j, top + side * i
        cell = f"M{svg.coordinate(x)} {svg.coordinate(y)}h{size}v{size}h-{size}"
        shapes.setdefault(own, []).append(cell)
        ink = short(float(chart.values[i, j]), largest) if written else ""
        if ink := ink + ((chart.mark if side >= SIGN else "•") if marks[i, j] else ""):
            inks.append(
                svg.text(ink, x + (side - gap) / 2, y + side / 2 + 3.5, class_=f"{hue}{own} sign",
                     text_anchor="middle", font_size=None if side >= 12 else side)
            )  # fmt: skip
    parts += [svg.shape("".join(own), f"{hue}{k}") for k, own in sorted(shapes.items())]
    values = [" ".join(number(float(v)) for v in row) for row in chart.values]
    return [
        svg.tag(
            "g",
            "".join(parts + inks) or " ",
            data_grid=f"{left:.2f} {top:.2f} {side:.3f}",
            data_rows=svg.joined(chart.rows),
            data_columns=svg.joined(chart.columns),
            data_v="|".join(values),
        )
    ]


def color_bar(chart: Heatmap) -> tuple[str, float, float]:
    """SVG content, width and height of the scale of a heat map."""
    low, high = chart.limits
    known = chart.values[np.isfinite(chart.values)]
    beyond = len(known) and known.max() > high * (1 + 1e-9)
    ends = [rounded(end, 2).replace("-", "−") for end in (low, high)]
    ends[1] = f"≥ {ends[1]}" if beyond else ends[1]
    margin = max(map(svg.text_width, ends)) + 6
    hue = "d" if chart.diverging else "q"
    wide = 132.0
    parts = [svg.text(ends[0], margin - 5, 11, text_anchor="end")]
    for i in range(LEVELS):
        x = margin + wide * i / LEVELS
        parts.append(
            svg.tag("rect", x=x, y=2, width=wide / LEVELS + 0.4, height=10, class_=f"{hue}{i}")
        )
    parts.append(svg.text(ends[1], margin + wide + 5, 11))
    return "".join(parts), 2 * margin + wide, 14
