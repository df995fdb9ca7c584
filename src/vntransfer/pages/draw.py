"""Drawing of charts with axes as SVG.

What a reader can point at is written beside the shapes: a group of points has its name in
``data-n``, places in ``data-p``, and what to say of each in ``data-x`` and ``data-v``, separated by
``|``; a single shape has its sentence in ``data-t``; ``data-grid`` says where the cells of a heat
map are (left, top, side).
"""

from functools import singledispatch

import numpy as np

from vntransfer.display import rounded
from vntransfer.pages.charts import (
    MUTED,
    Axis,
    Bars,
    Chart,
    Heatmap,
    Histogram,
    Intervals,
    Lines,
    Panel,
    Scatter,
    Series,
)
from vntransfer.pages.layout import PanelFrame, colors, finite, frame
from vntransfer.pages.palette import LEVELS, SERIES
from vntransfer.pages.scales import number
from vntransfer.pages.svg import (
    LONGEST,
    coordinate,
    every,
    fitted,
    heading,
    joined,
    mark,
    name_below,
    path,
    room_below,
    tag,
    text,
    text_width,
    upright,
)

N_COLORS = len(SERIES["light"])
WIDE, NARROW, PANEL = 760.0, 320.0, 300.0
"""Widths of a panel alone on a desk and on a phone, and of one of several on either."""


SMALLEST, LARGEST = 2.5, 40.0
"""Sides of cells; a map alone on a desk has larger ones."""


def classes(place: int) -> str:
    """Classes of a series: its color and, when the colors are used up, its stroke."""
    if place < 0:
        return "muted"
    stroke = place // N_COLORS % 3
    return f"s{place % N_COLORS}" + (f" k{stroke}" if stroke else "")


def draw(panel: Panel, chart: Chart, width: float) -> tuple[str, float, float]:
    """SVG content, width and height of one of ``panels(chart)``; the whole chart gives the colors.

    A heat map may be narrower than ``width``.
    """
    return _draw(panel, colors(chart), width)


def fitting(panel: Panel, columns: int) -> list[float]:
    """Widths in which a page draws a panel: for a desk, then for a phone if that needs its own."""
    if columns == 1:
        return [WIDE, NARROW]
    return [1.5 * PANEL, NARROW] if columns == 2 or isinstance(panel, Heatmap) else [PANEL]


@singledispatch
def _draw(panel: Panel, places: dict[str, int], width: float) -> tuple[str, float, float]:
    raise TypeError(f"no chart: {type(panel).__name__}")


def _height(width: float) -> float:
    return 110 + width / 3


@_draw.register
def _(panel: Lines, places: dict[str, int], width: float) -> tuple[str, float, float]:
    box = frame(panel, width, _height(width), panel.x, panel.y)
    parts = [box.markup, *(_line(box, s, places[s.name], panel) for s in panel.series)]
    return "".join(parts), box.width, box.height


@_draw.register
def _(panel: Scatter, places: dict[str, int], width: float) -> tuple[str, float, float]:
    height = 150 + 0.42 * width
    box = frame(panel, width, height, panel.x, panel.y)
    parts = [box.markup]
    if panel.diagonal:
        low, high = max(box.x.low, box.y.low), min(box.x.high, box.y.high)
        if high > low:
            corners = [(box.x(low), box.y(low)), (box.x(high), box.y(high))]
            parts.append(tag("path", d=path(corners), class_="rule"))
    for s in panel.series:
        kept = _shown(box, s)
        shapes = "".join(mark(places[s.name], *box_point, 2.4) for _, box_point in kept)
        parts.append(_group(panel, s, places[s.name], kept, tag("path", d=shapes, class_="dots")))
    return "".join(parts), width, height


@_draw.register
def _(panel: Bars, places: dict[str, int], width: float) -> tuple[str, float, float]:
    box = frame(panel, width, _height(width), panel.x, panel.y)
    step = abs(box.x(1) - box.x(0))
    wide = 0.8 * step / max(1, len(panel.series))
    foot = box.y(box.y.low if box.y.log else max(box.y.low, min(0.0, box.y.high)))
    parts = [box.markup]
    for i, s in enumerate(panel.series):
        inner = []
        for k, (x, y) in _shown(box, s):
            left = x + wide * (i - len(panel.series) / 2)
            say = _sentence(panel, s, k)
            rect = tag(
                "rect", x=left + 0.5, y=min(y, foot), width=max(0.5, wide - 1),
                height=abs(foot - y), class_="bar", data_t=say,
            )  # fmt: skip
            inner.append(rect + _whisker(box, s, k, left + wide / 2))
        content = "".join(inner)
        parts.append(tag("g", content, class_=f"series {classes(places[s.name])}", data_n=s.name))
    return "".join(parts), box.width, box.height


@_draw.register
def _(panel: Histogram, places: dict[str, int], width: float) -> tuple[str, float, float]:
    box = frame(panel, width, _height(width), panel.x, panel.y)
    edges, foot, parts = finite(panel.edges), box.y(box.y.low), [box.markup]
    for s in panel.series:
        tops = [box.y(h) if box.y.shows(h) else foot for h in finite(s.y)]
        outline = [(box.x(edges[0]), foot)]
        for i, top in enumerate(tops):
            outline += [(box.x(edges[i]), top), (box.x(edges[i + 1]), top)]
        outline.append((box.x(edges[-1]), foot))
        shape = tag("path", d=path(outline), class_="step")
        parts.append(_group(panel, s, places[s.name], _shown(box, s), shape))
    return "".join(parts), box.width, box.height


@_draw.register
def _(panel: Intervals, places: dict[str, int], width: float) -> tuple[str, float, float]:
    rows = Axis(names=panel.names)
    height = 30.0 + (18 if panel.x.label else 0) + 14 + max(60.0, 19.0 * len(panel.names))
    box = frame(panel, width, height, panel.x, rows)
    parts = [box.markup]
    if panel.reference is not None and box.x.shows(panel.reference):
        at = box.x(panel.reference)
        parts.append(tag("path", d=f"M{at:.1f} {box.y.start:.1f}V{box.y.end:.1f}", class_="rule"))
    lows, highs = finite(panel.low), finite(panel.high)
    for i, (name, value) in enumerate(zip(panel.names, finite(panel.values), strict=True)):
        if not np.isfinite(value) or (box.x.log and value <= 0):
            continue
        beyond = not box.x.shows(value)
        x, y = box.x(min(max(value, box.x.low), box.x.high)), box.y(i)
        say, shape = number(float(value)), ""
        if len(lows) and len(highs) and np.isfinite([lows[i], highs[i]]).all():
            say += f" ({number(float(lows[i]))} to {number(float(highs[i]))})"
            start, end = (box.x(min(max(v, box.x.low), box.x.high)) for v in (lows[i], highs[i]))
            if not beyond:
                shape = tag("path", d=f"M{start:.1f} {y:.1f}H{end:.1f}", class_="whisker")
        if panel.others is not None and box.x.shows(other := float(finite(panel.others)[i])):
            shape += tag("path", d=mark(0, box.x(other), y, 4), class_="hollow")
            say += f"; {panel.others_name or 'others'}: {number(other)}"
        if beyond:  # an arrow at the end of the axis, and the value beside it
            side, anchor = (-1, "end") if value > box.x.high else (1, None)
            shape += tag("path", d=f"M{x:.1f} {y:.1f}l{8 * side} -5v10z", class_="mark")
            place = {"text_anchor": anchor, "class_": "beyond"}
            shape += text(rounded(float(value)), x + 12 * side, y + 4, **place)
        else:
            shape += tag("path", d=mark(0, x, y, 4), class_="mark")
        own = "s1" if name == panel.highlight else "s0"
        point = {"data_n": name, "data_p": f"{x:.0f},{y:.0f}", "data_v": say}
        parts.append(tag("g", shape, class_=f"series {own}", **point))
    return "".join(parts), box.width, box.height


_Shown = list[tuple[int, tuple[float, float]]]


def _shown(box: PanelFrame, s: Series) -> _Shown:
    """Return number and position of the points that have one."""
    pairs = zip(finite(s.x), finite(s.y), strict=True)
    return [
        (k, (box.x(float(x)), box.y(float(y))))
        for k, (x, y) in enumerate(pairs)
        if box.x.shows(x) and box.y.shows(y)
    ]


def value_text(s: Series, k: int) -> str:
    """Value of a point with its interval."""
    said = number(finite(s.y)[k])
    lows, highs = finite(s.low), finite(s.high)
    if len(lows) and len(highs) and np.isfinite([lows[k], highs[k]]).all() and lows[k] < highs[k]:
        said += f" ({number(lows[k])} to {number(highs[k])})"
    return said


def place_text(axis: Axis, value: float) -> str:
    """Name or number of a place on an axis."""
    if axis.names:
        return axis.names[min(max(0, round(value)), len(axis.names) - 1)]
    return number(value)


def _sentence(panel: Bars, s: Series, k: int) -> str:
    return f"{s.name}, {place_text(panel.x, finite(s.x)[k])}: {value_text(s, k)}"


def _group(
    panel: Lines | Scatter | Histogram, s: Series, place: int, shown: _Shown, content: str
) -> str:
    xs = finite(s.x)
    head = "series" + (" thin" if s.thin else "") + " " + classes(place)
    say: dict[str, str] = {}
    if not (s.thin or panel.x.hidden):
        say = {
            "data_p": " ".join(f"{x:.0f},{y:.0f}" for _, (x, y) in shown),
            "data_x": joined(place_text(panel.x, xs[k]) for k, _ in shown),
            "data_v": joined(value_text(s, k) for k, _ in shown),
        }
    elif panel.x.hidden:
        say = {"data_p": " ".join(f"{x:.0f},{y:.0f}" for _, (x, y) in shown)}
    return tag("g", content, class_=head, data_n=s.name, **say)


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
        parts.append(tag("path", d="".join(map(path, runs)), class_=stroke))
    parts += [_whisker(box, s, k, x) for k, (x, _) in shown]
    if s.marks and place != MUTED:
        shapes = "".join(mark(place, *point) for _, point in shown)
        parts.append(tag("path", d=shapes, class_="mark"))
    return _group(panel, s, place, shown, "".join(parts))


def _whisker(box: PanelFrame, s: Series, k: int, x: float) -> str:
    lows, highs = finite(s.low), finite(s.high)
    if not len(lows) or not len(highs) or not np.isfinite([lows[k], highs[k]]).all():
        return ""
    low, high = (min(max(float(v), box.y.low), box.y.high) for v in (lows[k], highs[k]))
    if high <= low:
        return ""
    return tag("path", d=f"M{x:.1f} {box.y(low):.1f}V{box.y(high):.1f}", class_="whisker")


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


@_draw.register
def _(chart: Heatmap, places: dict[str, int], width: float) -> tuple[str, float, float]:
    longest = min(LONGEST, 0.34 * width)
    left = min(max(map(text_width, chart.rows), default=0.0), longest) + 8
    left += 16 if chart.row_label else 0
    wide = [max(map(text_width, (head, *texts))) + 14 for head, texts in chart.side]
    side = (width - left - sum(wide) - 12) / max(1, len(chart.columns))
    side = max(SMALLEST, min(max(LARGEST, width / 12), side))
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
    hue = "d" if chart.diverging else "q"
    shapes: dict[int, list[str]] = {}
    inks = []
    for i, j in np.argwhere(known):
        own, x, y = level(float(chart.values[i, j]), low, high), left + side * j, top + side * i
        cell = f"M{coordinate(x)} {coordinate(y)}h{size}v{size}h-{size}"
        shapes.setdefault(own, []).append(cell)
        ink = short(float(chart.values[i, j]), largest) if written else ""
        if ink := ink + (chart.mark if marks[i, j] else ""):
            inks.append(
                text(ink, x + (side - gap) / 2, y + side / 2 + 3.5, class_=f"{hue}{own} sign",
                     text_anchor="middle", font_size=None if side >= 12 else side)
            )  # fmt: skip
    parts += [tag("path", d="".join(own), class_=f"{hue}{k}") for k, own in sorted(shapes.items())]
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
    ends = [rounded(end, 2).replace("-", "−") for end in (low, high)]
    ends[1] = f"≥ {ends[1]}" if beyond else ends[1]
    margin = max(map(text_width, ends)) + 6
    hue = "d" if chart.diverging else "q"
    wide = 132.0
    parts = [text(ends[0], margin - 5, 11, text_anchor="end")]
    for i in range(LEVELS):
        x = margin + wide * i / LEVELS
        parts.append(
            tag("rect", x=x, y=2, width=wide / LEVELS + 0.4, height=10, class_=f"{hue}{i}")
        )
    parts.append(text(ends[1], margin + wide + 5, 11))
    return "".join(parts), 2 * margin + wide, 14
