"""Figures: the drawings of a report by matplotlib, as SVG and PNG, the same each time."""

import io
import re
from collections.abc import Callable
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vntransfer.errors import ArgumentError
from vntransfer.pages.charts import (
    Axis,
    Bars,
    Chart,
    Heatmap,
    Histogram,
    Intervals,
    Lines,
    Panel,
    Panels,
    Scatter,
    Series,
)
from vntransfer.pages.layout import colors, finite, panels
from vntransfer.storage.files import atomic_write
from vntransfer_lab.reports.drawings import standard
from vntransfer_lab.reports.report import EVERYTHING, View, load_report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colors: distinct also for the color-blind, each with its own marker.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GRAY = "#888888"
LINES = {"solid": "-", "dashed": "--", "dotted": ":", "none": "none"}
_CYCLE = ("solid", "dashed", "dotted")


def plot(chart: Chart) -> Any:
    """Matplotlib figure of a chart: panels in a grid, one legend or color scale.

    Examples
    --------
    >>> figure = plot(Lines([Series("a", [0, 1], [2, 3])], title="t"))
    >>> [ax.get_title() for ax in figure.axes]
    ['t']
    """
    from matplotlib.figure import Figure

    shown, places = panels(chart), colors(chart)
    most = chart.columns if isinstance(chart, Panels) and chart.columns else 0
    columns = max(1, min(most or (4 if shown and isinstance(shown[0], Heatmap) else 3), len(shown)))
    rows = max(1, -(-len(shown) // columns))
    width, height = np.max([_size(p, len(shown)) for p in shown] or [(4.0, 3.0)], axis=0)
    names = sum(len(name) for name in places)
    room = 0.25 * -(-names // max(1, int(width * columns * 11))) if len(places) > 1 else 0.0
    size = (float(width * columns), float(height * rows + room))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.flat:
        ax.grid(color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=7)
    for ax, panel in zip(axes.flat, shown, strict=False):
        ax.set_title(panel.title, fontsize=9)
        _plot(panel, ax, places)
    for ax in axes.flat[len(shown) :]:
        ax.set_visible(False)
    maps = [panel for panel in shown if isinstance(panel, Heatmap)]
    if maps and len({panel.limits for panel in maps}) == 1:
        image = axes.flat[0].images[0]
        figure.colorbar(image, ax=axes, shrink=0.7, label=maps[0].label)
    elif len(places) > 1:
        _legend(figure, axes.flat, places)
    return figure


def _size(panel: Panel, n: int) -> tuple[float, float]:
    if isinstance(panel, Heatmap):
        extra = 0.6 + 0.05 * max(map(len, [*panel.rows, *panel.columns]), default=0)
        side = 0.38 if max(len(panel.rows), len(panel.columns)) <= 12 else 0.2
        return (
            max(2.2, side * len(panel.columns) + extra),
            max(1.9, side * len(panel.rows) + extra),
        )
    if isinstance(panel, Intervals):
        return 3.4, 0.6 + 0.17 * len(panel.names)
    return (5.4, 3.4) if n == 1 else (3.1, 2.5)


def _legend(figure: Any, axes: Any, places: dict[str, int]) -> None:
    """One legend for all panels, above them, in the order of the palette."""
    found: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    kept = [name for name in places if name in found]
    widest = 0.5 + 0.075 * max(map(len, kept), default=0)  # inches, with its line
    columns = max(1, min(len(kept), int(figure.get_figwidth() / widest)))
    options = {"loc": "outside upper center", "ncols": columns, "frameon": False, "fontsize": 8}
    figure.legend([found[name] for name in kept], kept, **options)


def _axis(ax: "Axes", axis: Axis, which: str) -> None:
    put: dict[str, Callable[..., Any]] = {
        name: getattr(ax, f"set_{which}{name}") for name in ("label", "scale", "lim", "ticks")
    }
    put["label"](axis.label, fontsize=8)
    if axis.log:
        put["scale"]("log")
    if axis.low is not None or axis.high is not None:
        put["lim"](axis.low, axis.high)
    if axis.names:
        options = {"rotation": 30, "ha": "right"} if which == "x" and _crowded(axis) else {}
        put["ticks"](range(len(axis.names)), axis.names, **options)
    if axis.hidden:
        put["ticks"]([])


def _crowded(axis: Axis) -> bool:
    return sum(map(len, axis.names)) > 36


def _style(s: Series, place: int) -> dict[str, Any]:
    dash = s.dash or _CYCLE[max(0, place) // len(COLORS) % len(_CYCLE)]
    style: dict[str, Any] = {
        "color": COLORS[place % len(COLORS)] if place >= 0 else GRAY,
        "linestyle": LINES[dash if place >= 0 else "dotted"],
        "linewidth": 0.7 if s.thin else 1.3,
        "alpha": 0.5 if s.thin else 1.0,
    }
    if s.marks and place >= 0:
        style |= {"marker": MARKERS[place % len(MARKERS)], "markersize": 3.5}
    return style if s.thin else {**style, "label": s.name}


def _reach(s: Series) -> Any:
    """Distances of the ends of the intervals from y, as `errorbar` wants them."""
    if s.low is None or s.high is None:
        return None
    y = finite(s.y)
    return np.nan_to_num(np.array([y - finite(s.low), finite(s.high) - y]).clip(min=0))


@singledispatch
def _plot(panel: Panel, ax: "Axes", places: dict[str, int]) -> None:
    raise TypeError(f"no chart: {type(panel).__name__}")


@_plot.register(Lines)
def _(panel: Lines, ax: "Axes", places: dict[str, int]) -> None:
    for s in panel.series:
        style = _style(s, places[s.name])
        reach = _reach(s)
        if reach is None:
            ax.plot(finite(s.x), finite(s.y), **style)
        else:
            ax.errorbar(finite(s.x), finite(s.y), yerr=reach, capsize=2, **style)
    for value in panel.rules:
        ax.axhline(value, color=GRAY, linestyle=":", linewidth=1)
    _axis(ax, panel.x, "x")
    _axis(ax, panel.y, "y")


@_plot.register(Scatter)
def _(panel: Scatter, ax: "Axes", places: dict[str, int]) -> None:
    for s in panel.series:
        place = places[s.name] % len(COLORS)
        style: dict[str, Any] = {"color": COLORS[place], "marker": MARKERS[place]}
        ax.scatter(finite(s.x), finite(s.y), s=9, alpha=0.6, label=s.name, **style)
    _axis(ax, panel.x, "x")
    _axis(ax, panel.y, "y")
    if panel.diagonal:
        low = max(ax.get_xlim()[0], ax.get_ylim()[0])
        high = min(ax.get_xlim()[1], ax.get_ylim()[1])
        ax.plot([low, high], [low, high], color=GRAY, linestyle=":", linewidth=1)


@_plot.register(Bars)
def _(panel: Bars, ax: "Axes", places: dict[str, int]) -> None:
    width = 0.8 / max(1, len(panel.series))
    for i, s in enumerate(panel.series):
        at = finite(s.x) + width * (i - (len(panel.series) - 1) / 2)
        color = COLORS[places[s.name] % len(COLORS)]
        options: dict[str, Any] = {"color": color, "label": s.name}
        ax.bar(at, finite(s.y), width, yerr=_reach(s), error_kw={"linewidth": 0.8}, **options)
    for value in panel.rules:
        ax.axhline(value, color=GRAY, linestyle=":", linewidth=1)
    _axis(ax, panel.x, "x")
    _axis(ax, panel.y, "y")


@_plot.register(Histogram)
def _(panel: Histogram, ax: "Axes", places: dict[str, int]) -> None:
    for s in panel.series:
        color = COLORS[places[s.name] % len(COLORS)]
        ax.stairs(finite(s.y), finite(panel.edges), color=color, label=s.name, linewidth=1.3)
    _axis(ax, panel.x, "x")
    _axis(ax, panel.y, "y")


@_plot.register(Intervals)
def _(panel: Intervals, ax: "Axes", places: dict[str, int]) -> None:
    s = Series("", range(len(panel.names)), panel.values, panel.low, panel.high)
    reach = _reach(s)
    for i, value in enumerate(finite(panel.values)):
        if np.isfinite(value):
            color = COLORS[1] if panel.names[i] == panel.highlight else COLORS[0]
            error = None if reach is None else reach[:, i : i + 1]
            ax.errorbar(value, i, xerr=error, fmt="o", markersize=4, color=color)
    if panel.reference is not None:
        ax.axvline(panel.reference, color=GRAY, linestyle=":", linewidth=1)
    _axis(ax, panel.x, "x")
    ax.set_yticks(range(len(panel.names)), panel.names)
    ax.invert_yaxis()


@_plot.register(Heatmap)
def _(panel: Heatmap, ax: "Axes", places: dict[str, int]) -> None:
    panel = panel.ordered
    low, high = panel.limits
    ax.grid(visible=False)
    ax.set_facecolor("#eeeeee")
    ax.imshow(panel.values, cmap="Blues", vmin=low, vmax=high, aspect="auto")
    if panel.numbers and panel.values.size <= 400:
        small = np.nanmax(np.abs(panel.values), initial=0) <= 1
        for (i, j), value in np.ndenumerate(panel.values):
            if np.isfinite(value):
                color = "white" if value - low > 0.6 * (high - low) else "#333333"
                label = f"{value:.2f}".removeprefix("0") if small else f"{value:.3g}"
                ax.text(j, i, label, ha="center", va="center", fontsize=6, color=color)
    turned = {"rotation": 90} if max(map(len, panel.columns), default=0) > 4 else {}
    ax.set_xticks(range(len(panel.columns)), panel.columns, **turned)  # type: ignore[arg-type]
    ax.set_yticks(range(len(panel.rows)), panel.rows)
    ax.set_xlabel(panel.column_label, fontsize=8)
    ax.set_ylabel(panel.row_label, fontsize=8)


def draw(folder: str | Path, to: str | Path, view: View = EVERYTHING) -> list[Path]:
    """Draw the figures of a run folder into another folder, as SVG and PNG.

    Returns
    -------
    list of Path
        The files.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise ArgumentError("figures: matplotlib is not installed; pip install ./lab") from None
    loaded = load_report(folder, view)
    files: list[Path] = []
    # A fixed salt and no date: the same bytes each time. Text stays text: smaller, searchable.
    with mpl.rc_context({"svg.hashsalt": "vntransfer", "svg.fonttype": "none"}):
        for drawing in (loaded.kind.figures or standard)(loaded):
            figure, name = plot(drawing.chart), _file_name(drawing.name)
            while any(path.stem == f"{loaded.preset.name}-{name}" for path in files):
                name += "-"  # names that differ in other characters alone
            for suffix, metadata in (("svg", {"Date": None}), ("png", {})):
                buffer = io.BytesIO()
                figure.savefig(buffer, format=suffix, dpi=110, metadata=metadata)
                path = Path(to) / f"{loaded.preset.name}-{name}.{suffix}"
                with atomic_write(path) as file:
                    file.write(buffer.getvalue())
                files.append(path)
    return files


def _file_name(text: str) -> str:
    """Keep letters, digits, dots, dashes and underscores of a name of data or of a place.

    Examples
    --------
    >>> _file_name("weights-data/houses.csv:domain=town,response=price")
    'weights-data-houses.csv-domain-town-response-price'
    """
    return re.sub(r"[^\w.-]+", "-", text)
