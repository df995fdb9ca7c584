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

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "lab" / "tests"))

from lab_helpers.docs_code import blocks, run  # noqa: E402
from vntransfer.pages import (  # noqa: E402
    Axis,
    Bars,
    Chart,
    Heatmap,
    Lines,
    Panels,
    Scatter,
    Series,
)
from vntransfer.pages.picture import write_picture  # noqa: E402

PAGE = ROOT / "docs" / "gallery.md"
IMAGES = ROOT / "docs" / "img" / "gallery"
Names = dict[str, Any]


def pairwise(names: Names) -> Chart:
    """Heat map of all divergences."""
    places = list(names["places"])
    return Heatmap(places, places, names["D"].numpy(), label="divergence")


def triangle(names: Names) -> Chart:
    """Direct way over detour, by the place of the detour."""
    middle = names["middle"].ravel()
    series = [
        Series(name, middle, values.ravel(), marks=False) for name, values in names["ratio"].items()
    ]
    x = Axis("the third matrix, between .01 and 1", log=True)
    return Lines(series, x, Axis("direct way / detour"), rules=[1.0])


def loss(names: Names) -> Chart:
    """Draw the curve of the loss, and predictions before and after the bias."""
    curve, y, before = names["curve"], names["y"], names["prediction"]
    fall = Series("√J", range(1, 1 + len(curve)), curve, marks=False)
    found = {"before fit_bias": before, "after": names["loss"].correct(before)}
    dots = [Series(name, y[::4].numpy(), p[::4].numpy()) for name, p in found.items()]
    left = Lines([fall], Axis("step"), Axis("√J", log=True))
    return Panels([left, Scatter(dots, Axis("response"), Axis("prediction"), diagonal=True)], False)


def towns(names: Names) -> Chart:
    """Heat map of the towns in clustered order."""
    found = names["towns"]
    order = [name for name in found.order if name in found.labeled]
    at = [found.at(name) for name in order]
    return Heatmap(order, order, found.divergences[np.ix_(at, at)], label="divergence")


def saltby(names: Names) -> Chart:
    """Prices against predictions with their intervals, sorted by prediction."""
    found, truth = names["found"], names["truth"]
    order = np.argsort(found.value)
    rank = np.arange(len(order))
    ends = [
        Series("90 % interval", rank, own[order], dash="dotted", marks=False)
        for own in (found.low, found.high)
    ]
    value = Series("prediction", rank, found.value[order], marks=False)
    series = [value, Series("price", rank, truth[order], dash="none"), *ends]
    axes = Axis("houses of Saltby, by prediction", whole=True), Axis("price, thousands")
    return Lines(series, *axes)


def weights(names: Names) -> Chart:
    """Draw the error by sharpness, and the weights."""
    errors, found = names["errors"], names["weights"]
    sharpness = [f"{a:g}" for a in errors]
    left = Series("error", range(len(errors)), list(errors.values()), marks=False)
    bars = [
        Series(f"sharpness {a:g}", range(len(own)), list(own.values())) for a, own in found.items()
    ]
    sources = list(next(iter(found.values())))
    error = Axis("mean absolute error at s6", low=0)
    charts = [
        Bars(sources, bars, Axis("weight", low=0)),
        Bars(sharpness, [left], error, title="by sharpness"),
    ]
    return Panels(charts, share=False)


def mdd(names: Names) -> Chart:
    """Weights of the sources over the epochs."""
    epochs = [epoch["weights"] for epoch in names["mdd"].history_]
    series = [
        Series(source, range(1, 1 + len(epochs)), [own[source] for own in epochs], marks=False)
        for source in epochs[0]
    ]
    return Lines(series, Axis("epoch", whole=True), Axis("weight", low=0))


def continual(names: Names) -> Chart:
    """Accuracy on the first task after every task."""
    series = [
        Series(name, range(1, 1 + len(values)), values) for name, values in names["kept"].items()
    ]
    y = Axis("accuracy on the first task", low=0, high=1)
    return Lines(series, Axis("tasks learned", whole=True), y)


def stream(names: Names) -> Chart:
    """Divergence of the moments so far."""
    path = names["path"]
    rows = 100 * np.arange(2, 2 + len(path))
    series = [Series("divergence", rows, path, marks=False)]
    return Lines(series, Axis("rows seen"), Axis("conditional divergence", low=0))


DRAWN: dict[str, Callable[[Names], Chart]] = {
    one.__name__: one
    for one in (pairwise, triangle, loss, towns, saltby, weights, mdd, continual, stream)
}


def main() -> None:
    """Run the examples and write the pictures."""
    names: Names = {}
    os.chdir(tempfile.mkdtemp())  # nothing is left behind
    codes = [block for block in blocks(PAGE.read_text(encoding="utf-8")) if block.kind == "python"]
    IMAGES.mkdir(parents=True, exist_ok=True)
    for code, (name, chart) in zip(codes, DRAWN.items(), strict=True):
        run([code], names)
        write_picture(chart(names), name, IMAGES / f"{name}.svg", overwrite=True)
    print(f"wrote {len(DRAWN)} pictures to {IMAGES.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
