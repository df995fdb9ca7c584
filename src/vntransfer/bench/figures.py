"""Figures: matplotlib objects (no global state), saved as SVG and PNG, the same each time."""

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vntransfer.bench.report import Report, condition_text, load_report
from vntransfer.bench.statistics import estimate
from vntransfer.errors import ArgumentError
from vntransfer.io import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours: distinct also for the colour-blind, each with its own marker.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def grid(rows: int, columns: int, *, width: float = 3.4, height: float = 2.8) -> tuple[Any, Any]:
    """Figure and (rows, columns) array of axes with a light grid."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.flat:
        ax.grid(color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def curve(
    ax: "Axes",
    points: Mapping[float, Sequence[float]],
    index: int,
    label: str,
    *,
    shift: float = 0.0,
    line: str = "-",
) -> None:
    """Mean and standard error over seeds against x: ``points[x]`` holds one value per seed."""
    found = {x: estimate(values) for x, values in sorted(points.items())}
    ax.errorbar(
        [x + shift for x in found],
        [e.mean for e in found.values()],
        yerr=[e.error or 0.0 for e in found.values()],
        label=label,
        color=COLOURS[index % len(COLOURS)],
        marker=MARKERS[index % len(MARKERS)],
        markersize=4,
        linestyle=line,
        linewidth=1.2,
        capsize=2,
    )


def legend(figure: Any, axes: Any) -> None:
    """One legend for all panels, above them."""
    handles, labels = axes.flat[0].get_legend_handles_labels()
    columns = max(1, min(len(labels), int(figure.get_figwidth() // 2.2)))
    figure.legend(
        handles, labels, loc="outside upper center", ncols=columns, frameon=False, fontsize=8
    )


def standard(loaded: Report) -> Iterator[tuple[str, Any]]:
    """One panel per data set and condition: targets along x, one mark per method."""
    groups = list(loaded.chosen)
    figure, axes = grid(1, max(1, len(groups)), width=4.6, height=3.2)
    for ax, (data, condition) in zip(axes.flat, groups, strict=False):
        values = loaded.values(data, condition)
        targets = list(dict.fromkeys(t for method in values for t in values[method]))
        methods = [method for method in loaded.preset.methods if method in values]
        for index, method in enumerate(methods):
            points = {
                float(place): list(values[method][target].values())
                for place, target in enumerate(targets)
                if target in values[method]
            }
            shift = 0.12 * (index - (len(methods) - 1) / 2)
            curve(ax, points, index, method, shift=shift, line="none")
        ax.set_xticks(range(len(targets)), targets)
        ax.set_title(", ".join(filter(None, (data, condition_text(condition)))), fontsize=9)
        ax.set_ylabel(loaded.kind.metric)
        ax.set_ylim(bottom=0)
    legend(figure, axes)
    yield "values", figure


def draw(folder: str | Path, to: str | Path) -> list[Path]:
    """Draw the figures of a run folder into another folder, as SVG and PNG.

    Returns
    -------
    list of Path
        The files.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise ArgumentError(
            "figures: matplotlib is not installed; pip install 'vntransfer[plots]'"
        ) from None
    loaded = load_report(folder)
    files = []
    # A fixed salt and no date: the same bytes each time. Text stays text: smaller, searchable.
    with mpl.rc_context({"svg.hashsalt": "vntransfer", "svg.fonttype": "none"}):
        for name, figure in (loaded.kind.figures or standard)(loaded):
            for suffix, metadata in (("svg", {"Date": None}), ("png", {})):
                buffer = io.BytesIO()
                figure.savefig(buffer, format=suffix, dpi=110, metadata=metadata)
                path = Path(to) / f"{loaded.preset.name}-{name}.{suffix}"
                with atomic_write(path) as file:
                    file.write(buffer.getvalue())
                files.append(path)
    return files
