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
from vntransfer.pages.draw_grid import draw_heatmap
from vntransfer.pages.layout import colors, finite
from vntransfer.pages.palette import SERIES
from vntransfer.pages.panel_frame import PanelFrame, frame
from vntransfer.pages.scales import number
from vntransfer.pages.svg import joined, mark, path, tag, text

N_COLORS = len(SERIES["light"])
WIDE, NARROW, PANEL = 760.0, 320.0, 300.0
"""Widths of a panel alone on a desk and on a phone, and of one of several on either."""


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


def fitting(panel: Panel, *, alone: bool) -> list[float]:
    """Widths in which a page draws a panel: for a desk, then for a phone if that needs its own."""
    if alone:
        return [WIDE, NARROW]
    return [1.5 * PANEL, NARROW] if isinstance(panel, Heatmap) else [PANEL]


@singledispatch
def _draw(panel: Panel, places: dict[str, int], width: float) -> tuple[str, float, float]:
    raise TypeError(f"no chart: {type(panel).__name__}")


def _height(width: float) -> float:
    return 110 + width / 3


@_draw.register
def _(panel: Heatmap, places: dict[str, int], width: float) -> tuple[str, float, float]:
    return draw_heatmap(panel, width)


@_draw.register
def _(panel: Lines, places: dict[str, int], width: float) -> tuple[str, float, float]:
    box = frame(panel, width, _height(width), panel.x, panel.y)
    parts = [box.markup, *(_rule(box, value) for value in panel.rules)]
    parts += [_line(box, s, places[s.name], panel) for s in panel.series]
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
    parts += [_rule(box, value) for value in panel.rules]
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
        beyond = np.isfinite(value) and value > box.x.high
        if not (beyond or box.x.shows(value)):
            continue
        x, y = box.x(min(value, box.x.high)), box.y(i)
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
            shape += tag("path", d=f"M{x:.1f} {y:.1f}l-8 -5v10z", class_="mark")
            shape += text(rounded(float(value)), x - 12, y + 4, text_anchor="end", class_="beyond")
        else:
            shape += tag("path", d=mark(0, x, y, 4), class_="mark")
        own = "s1" if name == panel.highlight else "s0"
        point = {"data_n": name, "data_p": f"{x:.0f},{y:.0f}", "data_v": say}
        parts.append(tag("g", shape, class_=f"series {own}", **point))
    return "".join(parts), box.width, box.height


def _rule(box: PanelFrame, value: float) -> str:
    if not box.y.shows(value):
        return ""
    at = box.y(value)
    return tag("path", d=f"M{box.x.start:.1f} {at:.1f}H{box.x.end:.1f}", class_="rule")


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
