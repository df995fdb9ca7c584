"""Figures of the experiment ``adaptation``: what weights the sources get."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from vntransfer.bench.experiments.adaptation_report import group_label, summary
from vntransfer.bench.experiments.adaptation_weights import (
    Array,
    Curves,
    Weights,
    changes,
    collect,
    smooth,
)
from vntransfer.bench.figures import COLOURS, curve, grid, legend, standard
from vntransfer.bench.report import Group, Report, condition_text
from vntransfer.bench.statistics import Estimate, estimate

WINDOW = 5
"""Epochs of the moving average."""

PICTURED = {
    "amazon": "computer_video_games",
    "amazon7i": "computer_video_games",
    "amazon4": "electronics",
}
"""The target whose weights are drawn as bars (the paper shows the first)."""


def figures(loaded: Report) -> Iterator[tuple[str, Any]]:
    """Errors per target; weights as maps, bars and, where a run has its history, over epochs."""
    if len(loaded.chosen) > 1:
        yield "errors", error_panels(summary(loaded), loaded.preset.baseline)
    else:
        yield from standard(loaded)
    for data, condition in loaded.chosen:
        weights = collect(loaded, data, condition)
        name = "-".join(filter(None, (data, condition_text(condition).replace(", ", "-"))))
        if not weights:
            continue
        first = next(iter(weights.values()))
        maps = {method: w.mean for method, w in weights.items()}
        yield f"weights-{name}", heat_maps(maps, first.domains)
        if (target := PICTURED.get(data)) in first.domains:
            yield f"weights-{name}-{target}", weight_bars(weights, str(target))
        seeds = {method: w.curves for method, w in weights.items() if w.curves}
        for method, curves in seeds.items():
            yield f"epochs-{name}-{method}", epoch_curves(curves[min(curves)], method)
        if seeds:
            yield f"changes-{name}", change_curves(seeds)


def error_panels(means: Mapping[str, Mapping[Group, Estimate]], baseline: str) -> Any:
    """Mean error per method, one panel per data set; a dotted line at the baseline's.

    Parameters
    ----------
    means
        Method -> data set -> mean error and its standard error.
    baseline
        Method with the line; empty for none.
    """
    groups = list(dict.fromkeys(group for by_group in means.values() for group in by_group))
    methods = list(means)
    columns = min(3, len(groups))
    rows = -(-len(groups) // columns)
    figure, axes = grid(rows, columns, width=3.2, height=0.6 + 0.17 * len(methods))
    for ax, group in zip(axes.flat, groups, strict=False):
        for place, method in enumerate(methods):
            if group in means[method]:
                found = means[method][group]
                colour = COLOURS[1] if method == baseline else COLOURS[0]
                error = found.error or 0.0
                ax.errorbar(found.mean, place, xerr=error, fmt="o", markersize=4, color=colour)
        if group in means.get(baseline, {}):
            ax.axvline(means[baseline][group].mean, color="#888888", linestyle=":", linewidth=1)
        ax.set_yticks(range(len(methods)), [])
        ax.invert_yaxis()
        ax.set_title(group_label(group), fontsize=9)
        ax.tick_params(axis="x", labelsize=7)
    for ax in axes.flat[len(groups) :]:
        ax.set_visible(False)
    for ax in axes[:, 0]:
        ax.set_yticks(range(len(methods)), methods, fontsize=7)
    for ax in axes.flat[max(0, len(groups) - columns) : len(groups)]:
        ax.set_xlabel("mean absolute error / std of the sources' y", fontsize=8)
    return figure


def heat_maps(maps: Mapping[str, Array], domains: Sequence[str]) -> Any:
    """Weight matrices side by side: rows are targets, columns sources, one colour scale.

    Parameters
    ----------
    maps
        Method -> matrix (targets, sources), NaN where there is no weight.
    domains
        Names of rows and columns.
    """
    rows = -(-len(maps) // 4)
    columns = -(-len(maps) // rows)
    size = max(2.4, 0.38 * len(domains) + 0.6)
    figure, axes = grid(rows, columns, width=size, height=size)
    largest = max(float(np.nanmax(matrix)) for matrix in maps.values())
    image = None
    for ax, (method, matrix) in zip(axes.flat, maps.items(), strict=False):
        ax.grid(visible=False)
        image = ax.imshow(matrix, cmap="Blues", vmin=0, vmax=largest)
        ax.set_facecolor("#eeeeee")
        for (i, j), value in np.ndenumerate(matrix):
            if np.isfinite(value):
                colour = "white" if value > 0.6 * largest else "#333333"
                label = f"{value:.2f}".removeprefix("0")
                ax.text(j, i, label, ha="center", va="center", fontsize=6, color=colour)
        ax.set_xticks(range(len(domains)), [])
        ax.set_yticks(range(len(domains)), [])
        ax.set_title(method, fontsize=9)
    for ax in axes.flat[len(maps) :]:
        ax.set_visible(False)
    for ax in axes[:, 0]:
        ax.set_yticks(range(len(domains)), domains, fontsize=7)
        ax.set_ylabel("target", fontsize=8)
    for ax in axes.flat[max(0, len(maps) - columns) : len(maps)]:  # nothing is drawn below these
        ax.set_xticks(range(len(domains)), domains, fontsize=7, rotation=_rotation(domains))
        ax.set_xlabel("source", fontsize=8)
    figure.colorbar(image, ax=axes, shrink=0.7, label="weight")
    return figure


def _rotation(names: Sequence[str]) -> int:
    return 90 if max(map(len, names)) > 4 else 0


def epoch_curves(curves: Curves, method: str, *, window: int = WINDOW) -> Any:
    """Weights over epochs, one panel per target: thin as they are, thick as a moving average.

    Parameters
    ----------
    curves
        Target -> source -> weights per epoch.
    method
        Stands above every panel.
    window
        Epochs of the moving average.
    """
    columns = min(3, len(curves))
    figure, axes = grid(-(-len(curves) // columns), columns, width=3.0, height=2.2)
    names = sorted({source for by_source in curves.values() for source in by_source})
    for ax, (target, by_source) in zip(axes.flat, curves.items(), strict=False):
        for source, values in sorted(by_source.items()):
            colour = COLOURS[names.index(source) % len(COLOURS)]
            epochs = range(1, len(values) + 1)
            ax.plot(epochs, values, color=colour, linewidth=0.7, alpha=0.5)
            ax.plot(epochs, smooth(values, window), color=colour, linewidth=1.6)
        ax.set_title(f"{method}, target {target}", fontsize=9)
        ax.set_ylim(0, None)
        ax.tick_params(labelsize=7)
        ax.set_xlabel("epoch", fontsize=8)
    for ax in axes.flat[len(curves) :]:
        ax.set_visible(False)
    for ax in axes[:, 0]:
        ax.set_ylabel("weight", fontsize=8)
    # No panel shows all domains: each one's target is missing there.
    for i, source in enumerate(names):
        axes.flat[0].plot([], [], color=COLOURS[i % len(COLOURS)], label=source)
    legend(figure, axes)
    return figure


def change_curves(curves: Mapping[str, Mapping[int, Curves]]) -> Any:
    """Share of the weight that changes hands from one epoch to the next, one line per method.

    Parameters
    ----------
    curves
        Method -> seed -> target -> source -> weights per epoch.
    """
    figure, axes = grid(1, 1, width=5.2, height=3.2)
    ax = axes[0, 0]
    for index, (method, by_seed) in enumerate(curves.items()):
        steps = [changes(found) for found in by_seed.values()]
        points = {
            epoch + 2.0: list(values) for epoch, values in enumerate(zip(*steps, strict=True))
        }
        curve(ax, points, index, method)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("epoch")
    ax.set_ylabel("½ Σ |w(epoch) − w(epoch − 1)|")
    legend(figure, axes)
    return figure


def weight_bars(weights: Mapping[str, Weights], target: str) -> Any:
    """Weights of all sources for one target, one bar per method and standard errors over seeds."""
    figure, axes = grid(1, 1, width=6.4, height=3.2)
    ax = axes[0, 0]
    first = next(iter(weights.values()))
    row = first.domains.index(target)
    sources = [name for name in first.domains if name != target]
    width = 0.8 / len(weights)
    for index, (method, found) in enumerate(weights.items()):
        columns = [found.domains.index(source) for source in sources]
        values = [
            [h[row, j] for h in found.final.values() if np.isfinite(h[row, j])] for j in columns
        ]
        places = np.arange(len(sources)) + width * (index - (len(weights) - 1) / 2)
        known = [estimate(v) for v in values]
        ax.bar(
            places,
            [e.mean for e in known],
            width,
            yerr=[e.error or 0.0 for e in known],
            label=method,
            color=COLOURS[index % len(COLOURS)],
            error_kw={"linewidth": 0.8},
        )
    ax.axhline(1 / len(sources), color="#888888", linestyle=":", linewidth=1)
    ax.set_xticks(
        range(len(sources)), sources, fontsize=8, rotation=20 if _rotation(sources) else 0
    )
    ax.set_title(f"weights for target {target} (dotted: equal weights)", fontsize=9)
    ax.set_ylabel("weight")
    legend(figure, axes)
    return figure
