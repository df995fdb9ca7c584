"""Layout of panels: ends of axes that they share, colors, frames with axes, ticks and titles."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vntransfer.pages import svg
from vntransfer.pages.charts import (
    Axis,
    Chart,
    Heatmap,
    Histogram,
    Intervals,
    Numbers,
    Panel,
    Panels,
)
from vntransfer.pages.scales import Scale, padded, tick_text


def panels(chart: Chart) -> list[Panel]:
    """Return the panels of a chart, with the same ends where they share them."""
    if not isinstance(chart, Panels):
        return [chart]
    found = list(chart.charts)
    if not chart.share or len(found) < 2:
        return found
    maps = [panel for panel in found if isinstance(panel, Heatmap)]
    if maps:
        ends = [panel.limits for panel in maps]
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        found = [replace(p, low=low, high=high) if isinstance(p, Heatmap) else p for p in found]
    for name in ("x", "y"):
        found = _with_common_ends(found, name)
    return found


def _with_common_ends(found: list[Panel], name: str) -> list[Panel]:
    known = [
        (panel, pair)
        for panel in found
        if hasattr(panel, name)
        and not getattr(panel, name).names
        and (pair := extent(panel, name)) is not None
    ]
    if not known:
        return found
    low, high = min(low for _, (low, _) in known), max(high for _, (_, high) in known)
    axes: list[Axis] = [getattr(panel, name) for panel, _ in known]
    wide_low, wide_high = padded(low, high, log=axes[0].log)
    low = wide_low if all(axis.low is None for axis in axes) else low
    high = wide_high if all(axis.high is None for axis in axes) else high
    changed = {id(panel): replace(getattr(panel, name), low=low, high=high) for panel, _ in known}
    return [
        replace(panel, **{name: changed[id(panel)]}) if id(panel) in changed else panel
        for panel in found
    ]


def finite(values: Numbers | None) -> NDArray[np.float64]:
    """Numbers as an array, None as NaN."""
    return np.array([] if values is None else list(values), dtype=np.float64)


def extent(panel: Panel, name: str) -> tuple[float, float] | None:
    """Smallest and largest number along an axis, its own ends included; None without any."""
    axis: Axis = getattr(panel, name)
    parts = [finite(part) for part in _along(panel, name)]
    known = np.concatenate([*parts, finite([axis.low, axis.high])])
    known = known[np.isfinite(known)]
    if axis.log:
        known = known[known > 0]
    if not len(known):
        return None
    low = float(known.min()) if axis.low is None else axis.low
    high = float(known.max()) if axis.high is None else axis.high
    return low, high


def _along(panel: Panel, name: str) -> Iterator[Numbers | None]:
    if isinstance(panel, Intervals):
        core = _core(panel)
        for ends in (panel.values, panel.low, panel.high):
            yield finite(ends)[core] if ends is not None else None
        yield from ([panel.reference], panel.others)
        return
    if isinstance(panel, Heatmap):
        return
    if isinstance(panel, Histogram) and name == "x":
        yield panel.edges
    for series in panel.series:
        yield getattr(series, name)
        if name == "y":
            yield from (series.low, series.high)
    if isinstance(panel, Histogram) and name == "y" and not panel.y.log:
        yield [0.0]


def _core(panel: Intervals) -> NDArray[np.bool_]:
    """Return which values set the ends of the axis: not the few that would squeeze the rest.

    Up to a quarter of the values lie beyond the axis if the gap to the others is more than twice
    as wide as all that the axis shows without them.
    """
    values = finite(panel.values)
    fixed = finite([panel.x.low, panel.x.high, panel.reference])
    lows, highs = (
        np.where(np.isfinite(own := finite(given)), own, values) if given is not None else values
        for given in (panel.low, panel.high)
    )
    core = np.isfinite(values)
    left = max(1, core.sum() // 4)
    for side, near in ((1, lows), (-1, highs)):
        order = sorted(np.flatnonzero(core), key=lambda i: -side * values[i])
        best, beyond = 2.0, order[:0]
        for n in range(1, min(left, len(order) - 2) + 1):
            rest = np.concatenate([lows[order[n:]], highs[order[n:]], fixed])
            gap = np.nanmin(side * near[order[:n]]) - np.nanmax(side * rest)
            shown = np.nanmax(rest) - np.nanmin(rest)
            if shown > 0 and gap / shown > best:
                best, beyond = gap / shown, order[:n]
        core[beyond] = False
        left -= len(beyond)
    return core


def colors(chart: Chart) -> dict[str, int]:
    """Name of a series -> its place in the palette, the same in all panels, in that order."""
    found: dict[str, int] = {}
    for panel in panels(chart):
        for series in getattr(panel, "series", ()):
            place = sum(i >= 0 for i in found.values()) if series.color is None else series.color
            found.setdefault(series.name, place)
    return dict(sorted(found.items(), key=lambda item: (item[1] < 0, item[1])))


_GAP = 6.0


@dataclass(frozen=True)
class PanelFrame:
    """The scales of a panel and the markup of its axes."""

    x: Scale
    y: Scale
    markup: str


def ends(panel: Panel, name: str) -> tuple[float, float]:
    """Return the ends of a scale: those of the axis, or those of the data, slightly widened."""
    axis: Axis = getattr(panel, name)
    if axis.names:
        return -0.5, len(axis.names) - 0.5
    low, high = extent(panel, name) or ((1.0, 10.0) if axis.log else (0.0, 1.0))
    wide_low, wide_high = padded(low, high, log=axis.log)
    low = wide_low if axis.low is None or low >= high else low
    return low, wide_high if axis.high is None or low >= high else high


def frame(panel: Panel, width: float, height: float, x: Axis, y: Axis) -> PanelFrame:
    """Lay out a panel with two axes."""
    y_low, y_high = ends(panel, "y") if not y.names else (len(y.names) - 0.5, -0.5)
    x_low, x_high = ends(panel, "x")
    top = 24.0 if panel.title else 10.0
    longest = min(svg.LONGEST, 0.36 * width)
    names = [svg.fitted(name, min(svg.LONGEST, 0.5 * width)) for name in y.names]
    labels: list[tuple[float, str]] = list(enumerate(names))
    if not (names or y.hidden):
        trial = Scale(y_low, y_high, 0, 1, y.log)
        places = trial.ticks(max(2, int((height - top - 38) // 36)))
        labels = [(tick, tick_text(tick, log=y.log)) for tick in places]
    widest = max((svg.text_width(label) for _, label in labels), default=0.0)
    left = widest + _GAP + 2 + (18 if y.label else 0)
    right = 12.0
    if not (x.names or x.hidden):  # the last number is centered on its tick
        last = Scale(x_low, x_high, 0, 1, x.log).ticks()[-1]
        right = max(right, svg.text_width(tick_text(last, log=x.log)) / 2 + 2)
    step = (width - left - right) / max(1, len(x.names))
    slanted, room = svg.room_below(x.names, step, longest)
    below = (4.0 if x.hidden else room) + (18 if x.label else 4)
    x_scale = Scale(x_low, x_high, left, width - right, x.log)
    y_scale = Scale(y_low, y_high, height - below, top, y.log)
    parts = [svg.heading(panel.title, left, width)]
    parts += _x_axis(x, x_scale, y_scale, slanted, height, longest)
    parts += _y_axis(y, y_scale, x_scale, labels)
    return PanelFrame(x_scale, y_scale, "".join(parts))


def _x_axis(
    axis: Axis, x: Scale, y: Scale, slanted: bool, height: float, longest: float
) -> list[str]:
    bottom, top = y.start, y.end
    line = f"M{x.start:.1f} {bottom:.1f}H{x.end:.1f}"
    name = svg.label(axis.label, (x.start + x.end) / 2, height - 4)
    if axis.hidden:
        return [name]
    parts = [svg.shape(line, "axis"), name]
    if axis.names:
        step = svg.every(len(axis.names), abs(x(1) - x(0)))
        for place, own in list(enumerate(axis.names))[::step]:
            parts.append(svg.name_below(own, x(place), bottom, slanted=slanted, longest=longest))
        return parts
    for tick, label in _readable_ticks(axis, x):
        at = x(tick)
        parts.append(svg.shape(f"M{at:.1f} {bottom:.1f}V{top:.1f}", "grid"))
        parts.append(svg.text(label, at, bottom + 16, text_anchor="middle"))
    return parts


def _readable_ticks(axis: Axis, x: Scale) -> list[tuple[float, str]]:
    """As many ticks with their labels as stand side by side, at most about eight."""
    found: list[tuple[float, str]] = []
    for n in range(8, 0, -1):
        places = [tick for tick in x.ticks(n) if not (axis.whole and tick % 1)]
        found = [(tick, tick_text(tick, log=axis.log)) for tick in places]
        gaps = [x(b) - x(a) for a, b in pairwise(places)]
        if max((svg.text_width(label) for _, label in found), default=0.0) + 12 <= min(
            gaps, default=1e9
        ):
            break
    return found


def _y_axis(axis: Axis, y: Scale, x: Scale, labels: list[tuple[float, str]]) -> list[str]:
    parts = [svg.upright(axis.label, (y.start + y.end) / 2)]
    for tick, label in labels:
        at = y(tick)
        parts.append(svg.shape(f"M{x.start:.1f} {at:.1f}H{x.end:.1f}", "grid"))
        parts.append(svg.text(label, x.start - _GAP, at + 4, text_anchor="end"))
    return parts
