"""Text alternatives of charts: a sentence for screen readers, and the numbers as a table."""

from functools import singledispatch

import numpy as np

from vntransfer.pages.charts import (
    Chart,
    Heatmap,
    Histogram,
    Intervals,
    Lines,
    Panel,
    Scatter,
)
from vntransfer.pages.draw import interval, place_text, value_text
from vntransfer.pages.layout import finite, panels
from vntransfer.pages.scales import number

MOST_ROWS, MOST_CELLS = 400, 12_000
"""Largest numbers of rows and cells in the table of a panel; the table counts the rest."""

Numbers = tuple[list[str], list[list[str]]]  # header, rows


def summary(chart: Chart) -> str:
    """Describe a chart in a few sentences."""
    said = [_summary(panel) for panel in panels(chart)]
    shown = said[:6] + ([f"And {len(said) - 6} more panels."] if len(said) > 6 else [])
    return " ".join(shown)


def _head(panel: Panel) -> str:
    return f"{panel.title}: " if panel.title else ""


def _range(values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    if not len(known):
        return "no values"
    return f"{number(float(known.min()))} to {number(float(known.max()))}"


_WORDS = {Lines: "lines", Scatter: "points", Histogram: "histograms"}


def _summary(panel: Panel) -> str:
    if isinstance(panel, Heatmap):
        return _map_summary(panel)
    if isinstance(panel, Intervals):
        return _interval_summary(panel)
    named = list(dict.fromkeys(s.name for s in panel.series))
    listed = ", ".join(named[:8]) + (f" and {len(named) - 8} more" if len(named) > 8 else "")
    values = np.concatenate([finite(s.y) for s in panel.series] or [finite([])])
    what = _WORDS[type(panel)]
    axes = f"{panel.y.label or 'values'} against {panel.x.label}" if panel.x.label else what
    return f"{_head(panel)}{what} of {listed}; {axes}, {_range(values)}."


def _map_summary(panel: Heatmap) -> str:
    shape = f"heat map of {len(panel.rows)} rows and {len(panel.columns)} columns"
    if not np.isfinite(panel.values).any():
        return f"{_head(panel)}{shape}, no values."
    i, j = divmod(int(np.nanargmax(panel.values)), len(panel.columns))
    most = f"largest: {panel.rows[i]}, {panel.columns[j]}"
    return f"{_head(panel)}{shape}, {_range(panel.values)}; {most}."


def _interval_summary(panel: Intervals) -> str:
    values = finite(panel.values)
    if not np.isfinite(values).any():
        return f"{_head(panel)}no values."
    low, high = (panel.names[int(i)] for i in (np.nanargmin(values), np.nanargmax(values)))
    what = f" of {panel.x.label}" if panel.x.label else ""
    return f"{_head(panel)}values{what}, {_range(values)}; smallest: {low}; largest: {high}."


@singledispatch
def numbers(panel: Panel) -> Numbers:
    """Header and rows of the numbers of a panel."""
    raise TypeError(f"no chart: {type(panel).__name__}")


@numbers.register
def _(panel: Heatmap) -> Numbers:
    beside = zip(*(texts for _, texts in panel.side), strict=True)
    more = list(beside) or [()] * len(panel.rows)
    rows = [
        [name, *(number(float(value)) for value in row), *own]
        for name, row, own in zip(panel.rows, panel.values, more, strict=True)
    ]
    return ["", *panel.columns, *(heading for heading, _ in panel.side)], rows


@numbers.register
def _(panel: Intervals) -> Numbers:
    lows, highs = finite(panel.low), finite(panel.high)
    rows = []
    for i, (name, value) in enumerate(zip(panel.names, finite(panel.values), strict=True)):
        ends = [number(float(v[i])) if len(v) else "" for v in (lows, highs)]
        others = [] if panel.others is None else [number(float(finite(panel.others)[i]))]
        rows.append([name, number(float(value)), *ends, *others])
    header = ["", panel.x.label or "value", "low", "high"]
    return header + ([] if panel.others is None else [panel.others_name or "others"]), rows


@numbers.register
def _(panel: Lines) -> Numbers:
    """One row per x, one column per series."""
    kept = [s for s in panel.series if not s.thin] or list(panel.series)
    table: dict[float, dict[int, str]] = {}
    for column, s in enumerate(kept):
        for k, x in enumerate(finite(s.x)):
            # names have whole places, around which marks may be shifted apart
            place = float(round(x)) if panel.x.names else float(x)
            table.setdefault(place, {})[column] = value_text(s.y[k], interval(s, k))
    rows = [
        [place_text(panel.x, x), *(table[x].get(column, "") for column in range(len(kept)))]
        for x in sorted(table)
    ]
    return [panel.x.label, *(s.name for s in kept)], rows


@numbers.register
def _(panel: Scatter) -> Numbers:
    rows = [
        [s.name, place_text(panel.x, x), number(y)]
        for s in panel.series
        for x, y in zip(finite(s.x), finite(s.y), strict=True)
    ]
    return ["", panel.x.label or "x", panel.y.label or "y"], rows
