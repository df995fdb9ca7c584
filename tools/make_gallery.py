"""Draw the pictures of docs/gallery.md from the variables of its examples.

Run: python tools/make_gallery.py (a few seconds). Every example of the page is run, in order and in
one namespace; the picture below it is drawn from what it leaves there.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from lab_helpers.docs_code import blocks, run  # noqa: E402
from vntransfer.pages.palette import INK, SERIES  # noqa: E402

PAGE = ROOT / "docs" / "gallery.md"
IMAGES = ROOT / "docs" / "img" / "gallery"
COLORS = SERIES["light"]
STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK["light"],
    "font.size": 9,
    "svg.hashsalt": "vntransfer",  # the same picture every time
    "svg.fonttype": "none",
}
Names = dict[str, Any]


def pairwise(names: Names, figure: Figure) -> None:
    """Heat map of all divergences."""
    places, D = list(names["places"]), names["D"].numpy()
    axis = figure.subplots()
    axis.imshow(D, cmap="Blues")
    axis.set_xticks(range(len(places)), places)
    axis.set_yticks(range(len(places)), places)
    for i, row in enumerate(D):
        for j, value in enumerate(row):
            dark = value > D.max() / 2
            axis.text(j, i, f"{value:.1f}", ha="center", va="center", color="w" if dark else "k")
    axis.spines[:].set_visible(False)


def triangle(names: Names, figure: Figure) -> None:
    """Direct way over detour, by the place of the detour."""
    axis = figure.subplots()
    for color, (name, values) in zip(COLORS, names["ratio"].items(), strict=False):
        axis.semilogx(names["middle"].ravel(), values, color=color, label=name)
    axis.axhline(1, color="gray", linestyle=":")
    axis.set(xlabel="the third matrix, between .01 and 1", ylabel="direct way / detour")
    axis.legend(frameon=False)


def loss(names: Names, figure: Figure) -> None:
    """Draw the curve of the loss, and predictions before and after the bias."""
    left, right = figure.subplots(1, 2)
    left.semilogy(names["curve"], color=COLORS[0])
    left.set(xlabel="step", ylabel="√J")
    y, prediction = names["y"], names["prediction"]
    for p, color, name in (
        (prediction, COLORS[1], "before fit_bias"),
        (names["loss"].correct(prediction), COLORS[0], "after"),
    ):
        right.plot(y[::4], p[::4], ".", color=color, markersize=4, label=name)
    right.axline((3, 3), slope=1, color="gray", linewidth=0.8)
    right.set(xlabel="response", ylabel="prediction")
    right.legend(frameon=False, markerscale=2)


def towns(names: Names, figure: Figure) -> None:
    """Let the relation draw itself."""
    names["towns"].plot(axes=figure.subplots())


def saltby(names: Names, figure: Figure) -> None:
    """Prices against predictions with their intervals, sorted by prediction."""
    axis, found, truth = figure.subplots(), names["found"], names["truth"]
    order = np.argsort(found.value)
    rank = np.arange(len(order))
    axis.fill_between(rank, found.low[order], found.high[order], color=COLORS[5], alpha=0.3)
    axis.plot(rank, found.value[order], color=COLORS[0], label="prediction, 90 % interval")
    axis.plot(rank, truth[order], ".", color=COLORS[1], label="price")
    axis.set(xlabel="houses of Saltby, by prediction", ylabel="price, thousands")
    axis.legend(frameon=False)


def weights(names: Names, figure: Figure) -> None:
    """Draw the error by sharpness, and the weights."""
    left, right = figure.subplots(1, 2, width_ratios=(1, 2))
    sharpness = [f"{a:g}" for a in names["errors"]]
    left.bar(sharpness, list(names["errors"].values()), color=COLORS[: len(sharpness)])
    left.set(xlabel="sharpness", ylabel="mean absolute error at s6")
    for k, (a, found) in enumerate(names["weights"].items()):
        places = np.arange(len(found)) + 0.27 * (k - 1)
        right.bar(places, list(found.values()), 0.25, color=COLORS[k], label=f"sharpness {a:g}")
    right.set_xticks(range(len(found)), list(found))
    right.set(xlabel="source", ylabel="weight")
    right.legend(frameon=False)


def mdd(names: Names, figure: Figure) -> None:
    """Weights of the sources over the epochs."""
    axis, epochs = figure.subplots(), [e["weights"] for e in names["mdd"].history_]
    for color, source in zip(COLORS, epochs[0], strict=False):
        axis.plot([weights[source] for weights in epochs], color=color, label=source)
    axis.set(xlabel="epoch", ylabel="weight")
    axis.legend(frameon=False, ncols=5)


def continual(names: Names, figure: Figure) -> None:
    """Accuracy on the first task after every task."""
    axis = figure.subplots()
    for color, (name, values) in zip(COLORS, names["kept"].items(), strict=False):
        axis.plot(range(1, 1 + len(values)), values, "o-", color=color, label=name)
    axis.set(xlabel="tasks learned", ylabel="accuracy on the first task", ylim=(0, 1))
    axis.legend(frameon=False)


def stream(names: Names, figure: Figure) -> None:
    """Divergence of the moments so far."""
    axis: Axes = figure.subplots()
    axis.plot(100 * np.arange(2, 2 + len(names["path"])), names["path"], color=COLORS[0])
    axis.set(xlabel="rows seen", ylabel="conditional divergence", ylim=(0, None))


DRAWN: dict[str, tuple[Callable[[Names, Figure], None], tuple[float, float]]] = {
    "pairwise": (pairwise, (3.4, 3.2)),
    "triangle": (triangle, (5.6, 3)),
    "loss": (loss, (7, 3)),
    "towns": (towns, (5.6, 4)),
    "saltby": (saltby, (7, 3)),
    "weights": (weights, (7, 3)),
    "mdd": (mdd, (5.6, 3)),
    "continual": (continual, (5.6, 3)),
    "stream": (stream, (5.6, 3)),
}


def main() -> None:
    """Run the examples and write the pictures."""
    names: Names = {}
    os.chdir(tempfile.mkdtemp())  # nothing is left behind
    codes = [block for block in blocks(PAGE.read_text(encoding="utf-8")) if block.kind == "python"]
    IMAGES.mkdir(parents=True, exist_ok=True)
    for code, (name, (draw, size)) in zip(codes, DRAWN.items(), strict=True):
        run([code], names)
        with rc_context(STYLE):
            figure = Figure(figsize=size, layout="constrained")
            FigureCanvasSVG(figure)
            draw(names, figure)
            figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})
    print(f"wrote {len(DRAWN)} pictures to {IMAGES.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
