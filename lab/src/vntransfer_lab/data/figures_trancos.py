"""Figures of TRANCOS: derived diagrams; photographs only where they are asked for."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from vntransfer_lab.data.base import Domains
from vntransfer_lab.data.cameras import CameraTree
from vntransfer_lab.data.figures import color
from vntransfer_lab.data.pictures import area_resize

MAX_NAMES = 30
MEAN_OF = 60


def draw_trancos(loaded: Domains) -> Any:
    """Distances and dendrogram of the cameras, sizes, mean masks and densities of the domains."""
    tree: CameraTree = loaded.extras["cameras"]
    figure: Any = Figure(figsize=(8.4, 5.4), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1.25, 1))
    heat, branches, sizes = above.subplots(1, 3, width_ratios=(1.1, 1.1, 0.9))
    order = _draw_tree(branches, tree)
    image = heat.imshow(tree.distances[np.ix_(order, order)], cmap="viridis_r")
    heat.set_title("distance of the mean masks")
    ticks = range(len(order)) if len(order) <= MAX_NAMES else []
    heat.set_xticks(ticks, labels=[tree.names[i] for i in order] if ticks else [])
    heat.set_yticks(ticks, labels=[tree.names[i] for i in order] if ticks else [])
    heat.set(xlabel="camera", ylabel="camera")
    above.colorbar(image, ax=heat, shrink=0.8)
    names = list(loaded)
    counts = [len(y) for _, y in loaded.values()]
    sizes.barh(names, counts, color=[color(i) for i in range(len(names))])
    for i, ((_, y), count) in enumerate(zip(loaded.values(), counts, strict=True)):
        sizes.text(count, i, f" {count} ({y.mean():.0f})", va="center")
    sizes.invert_yaxis()
    sizes.set(title="pictures (mean vehicles)", xticks=[], xlim=(0, 1.5 * max(counts)))
    panels = below.subplots(2, len(names))
    for column, name in enumerate(names):
        masks, maps = loaded.extras["mask"][name], loaded.extras["density"][name]
        some = np.linspace(0, len(masks) - 1, min(len(masks), MEAN_OF)).astype(int)
        mean_mask = area_resize(np.mean(masks[some], axis=0), 60, 80)
        mean_map = area_resize(np.mean(maps[some], axis=0), 60, 80)
        panels[0, column].imshow(mean_mask, cmap="Greys", vmin=0, vmax=1)
        panels[1, column].imshow(mean_map, cmap="magma")
        panels[0, column].set_title(name, color=color(column), fontweight="bold")
        for panel in panels[:, column]:
            panel.set(xticks=[], yticks=[])
            panel.spines[:].set_visible(False)
    panels[0, 0].set_ylabel("mean mask")
    panels[1, 0].set_ylabel("mean density")
    return figure


def draw_samples(loaded: Domains) -> Figure:
    """Draw a photograph, its density and its mask per domain: to look at, not to publish."""
    figure = Figure(figsize=(1.8 * len(loaded), 4.2), layout="constrained")
    panels = figure.subplots(3, len(loaded), squeeze=False)
    for column, (name, (x, y)) in enumerate(loaded.items()):
        middle = int(np.argsort(y)[len(y) // 2])
        shown = (x[middle], loaded.extras["density"][name][middle])
        panels[0, column].imshow(shown[0])
        panels[1, column].imshow(shown[1], cmap="magma")
        panels[2, column].imshow(loaded.extras["mask"][name][middle], cmap="gray", vmin=0, vmax=1)
        panels[0, column].set_title(f"{name}: {y[middle]:.0f} vehicles")
    for panel in panels.ravel():
        panel.set(xticks=[], yticks=[])
    return figure


def _draw_tree(axes: Any, tree: CameraTree) -> list[int]:
    """Dendrogram whose leaves have the colors of their domains; returns the order of leaves."""
    from scipy.cluster.hierarchy import dendrogram

    drawn = dendrogram(tree.linkage, no_plot=True)
    for across, up in zip(drawn["icoord"], drawn["dcoord"], strict=True):
        axes.plot(across, up, color="#555555", lw=1.2)
    axes.set_ylim(bottom=0)
    order: list[int] = drawn["leaves"]
    places = 5 + 10 * np.arange(len(order))
    for place, camera in zip(places, order, strict=True):
        axes.scatter(place, 0, color=color(tree.domain[camera]), s=26, zorder=3, clip_on=False)
    if len(order) <= MAX_NAMES:
        axes.set_xticks(places, labels=[tree.names[i] for i in order])
    title = f"Ward's clustering, {tree.domain.max() + 1} domains"
    axes.set(title=title, xlabel="camera")
    return order
