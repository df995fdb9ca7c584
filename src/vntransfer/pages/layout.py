"""Shared properties of the panels of a chart: ends of axes, colors, palette positions."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.pages.charts import (
    Axis,
    Bars,
    Chart,
    Heatmap,
    Histogram,
    Intervals,
    Lines,
    Numbers,
    Panel,
    Panels,
)
from vntransfer.pages.scales import padded


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
    return [
        _with_ends(panel, name, low, high) if any(panel is own for own, _ in known) else panel
        for panel in found
    ]


def _with_ends(panel: Panel, name: str, low: float, high: float) -> Panel:
    changes: dict[str, Any] = {name: replace(getattr(panel, name), low=low, high=high)}
    return replace(panel, **changes)


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
        yield from (panel.values, panel.low, panel.high, [panel.reference], panel.others)
        return
    if isinstance(panel, Heatmap):
        return
    if isinstance(panel, Histogram) and name == "x":
        yield panel.edges
    if isinstance(panel, Lines | Bars) and name == "y":
        yield list(panel.rules)
    for series in panel.series:
        yield getattr(series, name)
        if name == "y":
            yield from (series.low, series.high)
    if isinstance(panel, Bars | Histogram) and name == "y" and not panel.y.log:
        yield [0.0]


def colors(chart: Chart) -> dict[str, int]:
    """Name of a series -> its place in the palette, the same in all panels, in that order."""
    found: dict[str, int] = {}
    for panel in panels(chart):
        for series in getattr(panel, "series", ()):
            place = sum(i >= 0 for i in found.values()) if series.color is None else series.color
            found.setdefault(series.name, place)
    return dict(sorted(found.items(), key=lambda item: (item[1] < 0, item[1])))
