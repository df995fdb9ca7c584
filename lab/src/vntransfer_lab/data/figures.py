"""Figures of domains, streams and tables; imported only to draw."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from vntransfer_lab.data.base import Domains, TaskStream
from vntransfer_lab.data.embedding import embed
from vntransfer_lab.data.regression import NOISE, NoiseMixture, mixture_noise
from vntransfer_lab.data.synthetic import N_DOMAINS, covariance_matrix

COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#998f00", "#000000")
GRAY = "#c9ced6"
MAX_PANELS = 8
MAX_TICKS = 7


def color(i: int) -> str:
    """Color of the i-th domain, distinct also for color-blind readers."""
    return COLORS[i % len(COLORS)]


def _scatter(
    axes: Any,
    points: NDArray[np.floating],
    group: NDArray[np.intp],
    names: list[str],
    below: float = 0.02,
) -> None:
    """Points by group, drawn in random order so that none hides the others; a legend."""
    order = np.random.default_rng(0).permutation(len(points))
    tints = np.array([color(g) for g in group])
    axes.scatter(*points[order].T, c=tints[order], s=5, alpha=0.75, linewidths=0, rasterized=True)
    for g, name in enumerate(names):
        axes.scatter([], [], c=color(g), s=14, label=name, linewidths=0)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -below),
        ncols=2 if max(map(len, names)) > 12 else 3,
        frameon=False,
        handletextpad=0.1,
        columnspacing=1.0,
    )


def _bins(y: NDArray[Any]) -> NDArray[np.floating]:
    """Bins of a response: one per value where there are few."""
    values = np.unique(y)
    if len(values) <= 12:
        gap = np.diff(values).min() if len(values) > 1 else 1.0
        return np.arange(values[0] - gap / 2, values[-1] + gap, gap)
    return np.linspace(values[0], values[-1], 31)


def draw_domains(loaded: Domains) -> Any:
    """t-SNE of the rows beside the responses of each domain before those of all."""
    names = list(loaded)
    responses = [y for _, y in loaded.values()]
    shown = names[:MAX_PANELS]
    figure: Any = Figure(figsize=(7.6, 3.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.15))
    axes = left.subplots()
    points, domain = embed(loaded.domains)
    axes.set(title=f"{loaded.name}: t-SNE of the features", xticks=[], yticks=[])
    _scatter(axes, points, domain, names)
    axes.spines[:].set_visible(False)
    columns = 1 if len(shown) <= 3 else 2
    grid = right.subplots(
        -(-len(shown) // columns), columns, sharex=True, sharey=True, squeeze=False
    )
    everything = np.concatenate(responses)
    bins = _bins(everything)
    for g, panel in enumerate(grid.T.ravel()):
        if g >= len(shown):
            panel.set_visible(False)
            continue
        panel.hist(everything, bins, density=True, color=GRAY)
        panel.hist(responses[g], bins, density=True, color=color(g), histtype="step", lw=1.3)
        panel.set_title(f"{names[g]} ({len(responses[g])})", loc="left", pad=2)
        panel.set_yticks([])
        panel.tick_params(labelbottom=g == len(shown) - 1 or g % len(grid) == len(grid) - 1)
        if len(bins) <= MAX_TICKS:
            panel.set_xticks((bins[:-1] + bins[1:]) / 2)
        if loaded.response_name == "year":  # as in the paper
            panel.set_yscale("log")
            panel.tick_params(which="both", left=False, labelleft=False)
    right.supxlabel(f"{loaded.response_name} (gray: all)", fontsize=8.5)
    return figure


def draw_synthetic(loaded: Domains, **covariance: float) -> Figure:
    """First two dimensions of the six domains, a block of one covariance, the responses."""
    figure = Figure(figsize=(8.4, 2.9), layout="constrained")
    first, second, third = figure.subplots(1, 3, width_ratios=(1.1, 1, 1.1))
    names = list(loaded)
    sample = [x[:300, :2] for x, _ in loaded.values()]
    group = np.repeat(np.arange(len(sample)), [len(x) for x in sample])
    first.set(title="first two dimensions", xlabel="x1", ylabel="x2")
    _scatter(first, np.concatenate(sample), group, names, below=0.22)
    middle = N_DOMAINS // 2
    low, high = 2 * middle - 4, 2 * middle + 2
    block = covariance_matrix(middle, **covariance)[low:high, low:high]
    second.imshow(block, cmap="Blues", vmin=0, vmax=1.2)
    for (row, column), value in np.ndenumerate(block):
        if value:
            tint = "white" if value > 0.7 else "black"
            text = f"{value:g}".removeprefix("0")
            second.text(column, row, text, ha="center", va="center", color=tint, fontsize=8)
    labels = [f"x{i + 1}" for i in range(low, high)]
    second.set(title=f"covariance of s{middle}, its block", xticks=range(6), yticks=range(6))
    second.set_xticklabels(labels)
    second.set_yticklabels(labels)
    second.spines[:].set_visible(False)
    spans = np.array([np.quantile(y, (0.05, 0.25, 0.5, 0.75, 0.95)) for _, y in loaded.values()]).T
    tints = [color(i) for i in range(len(names))]
    third.vlines(range(len(names)), spans[0], spans[4], colors=tints, lw=1)
    third.vlines(range(len(names)), spans[1], spans[3], colors=tints, lw=6)
    third.scatter(range(len(names)), spans[2], color="white", s=9, zorder=3)
    third.set_xticks(range(len(names)), labels=names)
    third.margins(x=0.1)
    third.set(title="response: median, 50 % and 90 % of it")
    return figure


def _strip(x: NDArray[Any], n_columns: int) -> NDArray[np.float64]:
    """Pictures (n, pixels) side by side with a gray rim each, (side + 2, n_columns (side + 2))."""
    side = round(x[0].size ** 0.5)
    cells = np.zeros((n_columns, side, side))
    cells[: len(x)] = x.reshape(-1, side, side)[:n_columns]
    rimmed = np.pad(cells, ((0, 0), (1, 1), (1, 1)), constant_values=0.4)
    return np.concatenate(list(rimmed), axis=1)


def draw_stream(stream: TaskStream, n_columns: int = 10, n_permuted: int = 5) -> Figure:
    """Test pictures of every task, one row per task, one column per class.

    Of permuted streams the pictures as they were come first and only some tasks follow.
    """
    maps = None if "angles" in stream.extras else stream.extras.get("maps")
    shown = stream[: n_permuted if maps else len(stream)]
    strips, names = [], []
    for t, task in enumerate(shown):
        _, first = np.unique(task.y_test, return_index=True)
        x = task.x_test[first[:n_columns]].reshape(len(first[:n_columns]), -1)
        if maps and not t:
            strips.append(_strip(x[:, np.argsort(maps[0])], n_columns))
            names.append("as they were")
        strips.append(_strip(x, n_columns))
        names.append(task.name.replace("_", " "))
    width = 0.5 * n_columns + 0.065 * max(map(len, names)) + 0.2
    figure = Figure(figsize=(width, 0.5 * len(strips) + 0.3), layout="constrained")
    axes = figure.subplots()
    axes.imshow(1 - np.concatenate(strips), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    height = len(strips[0])
    axes.set_yticks(height * (np.arange(len(strips)) + 0.5), labels=names)
    axes.tick_params(length=0)
    axes.set_xticks([])
    axes.spines[:].set_visible(False)
    axes.set_title(f"{stream.name}: test pictures of each task", loc="left")
    axes.set_anchor("E")  # room for the names
    return figure


def draw_table(loaded: Domains) -> Figure:
    """Response of a single table with and without the paper's noise, and that noise."""
    ((_, y),) = loaded.values()
    noise = NOISE[loaded.name]
    figure = Figure(figsize=(7.6, 2.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    noisy = y + mixture_noise(noise, len(y))
    bins = np.histogram_bin_edges(np.concatenate([y, noisy]), 60)
    left.hist(y, bins, color=GRAY, label="clean")
    left.hist(noisy, bins, color=color(5), histtype="step", lw=1.3, label="with noise, λ = 1")
    left.set(title=f"{loaded.name}: {len(y)} rows", xlabel=loaded.response_name, yticks=[])
    left.legend(frameon=False)
    grid = np.linspace(-6, 14, 400)
    right.plot(grid, mixture_density(noise, grid), color=color(5))
    right.set(title="label noise of the paper, λ = 1", xlabel="noise", yticks=[])
    right.set_ylim(bottom=0)
    return figure


def draw_fields(loaded: Domains) -> Figure:
    """Landmine: t-SNE by terrain, distances of the fields' means, share of mines."""
    terrain: dict[str, str] = loaded.extras["terrain"]
    kinds = list(dict.fromkeys(terrain.values()))
    kind = np.array([kinds.index(terrain[field]) for field in loaded])
    figure = Figure(figsize=(8.4, 2.9), layout="constrained")
    first, second, third = figure.subplots(1, 3, width_ratios=(1, 1.05, 1.2))
    points, field = embed(loaded.domains)
    first.set(title="t-SNE of the features", xticks=[], yticks=[])
    _scatter(first, points, kind[field], kinds)
    first.spines[:].set_visible(False)
    spread = np.concatenate([x for x, _ in loaded.values()]).std(axis=0)
    means = np.stack([x.mean(axis=0) for x, _ in loaded.values()]) / spread
    distances = np.linalg.norm(means[:, None] - means, axis=2)
    edge = len(loaded) + 0.5
    image = second.imshow(distances, cmap="viridis_r", extent=(0.5, edge, edge, 0.5))
    figure.colorbar(image, ax=second, shrink=0.7)
    second.set(title="distance of the fields' means", xlabel="field", ylabel="field")
    third.bar(
        np.arange(1, len(loaded) + 1),
        [y.mean() for _, y in loaded.values()],
        color=[color(k) for k in kind],
    )
    third.set(title="share of mines", xlabel="field")
    return figure


def mixture_density(mixture: NoiseMixture, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Density of a mixture of Gaussians whose spreads are standard deviations."""
    weights = np.array(mixture.weights) / np.sum(mixture.weights)
    means, deviations = np.array(mixture.means), np.array(mixture.spreads)
    bells = np.exp(-0.5 * ((at[:, None] - means) / deviations) ** 2)
    return np.asarray((bells / (deviations * np.sqrt(2 * np.pi))) @ weights)
