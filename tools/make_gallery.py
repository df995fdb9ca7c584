"""Draw the plots of docs/gallery.md from the variables of its examples.

Run: python tools/make_gallery.py (half a minute; needs the data sets that the page names). Every
example of the page is run, in order and in one namespace; the plot below it is drawn from the
variables that the example sets.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "lab" / "tests"))

from lab_helpers.docs_code import blocks, run  # noqa: E402
from vntransfer.pages import (  # noqa: E402
    Axis,
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
WIDTH = 340.0  # fits on a phone without being scaled down
Names = dict[str, Any]


def dots(values: Mapping[str, Sequence[float]], series: Sequence[str], label: str) -> Lines:
    """Return dots above names: name -> one value per series."""
    columns = zip(*values.values(), strict=True)
    named = zip(series, columns, strict=True)
    drawn = [Series(name, range(len(values)), list(column), dash="none") for name, column in named]
    return Lines(drawn, Axis(names=list(values)), Axis(label, low=0))


def prices(names: Names) -> Chart:
    """Predicted against actual prices."""
    blocks_there = [
        Series("block in San Diego", names["price"][names["new"]], names["found"].value)
    ]
    axes = Axis("actual price, thousand dollars"), Axis("predicted price")
    return Scatter(blocks_there, *axes, diagonal=True)


def alike(names: Names) -> Chart:
    """Heat map of the cities in clustered order."""
    found = names["cities_alike"]
    cities = found.order
    at = np.ix_(*2 * [[found.at(name) for name in cities]])
    differ = [[found.mark(a, b) == "≠" for b in cities] for a in cities]
    values = 1000 * found.statistics[at]
    return Heatmap(cities, cities, values, label="1000 × statistic", marks=differ)


def bikes(names: Names) -> Chart:
    """Draw the error of each method."""
    errors = {name: [value] for name, value in names["bike_errors"].items()}
    return dots(errors, ["summer"], "mean absolute error of log rentals")


def patients(names: Names) -> Chart:
    """Draw expected and actual errors, and those of a constant."""
    return dots(
        names["outcomes"], ["expected", "actual", "constant"], "mean absolute error, points"
    )


def labels(names: Names) -> Chart:
    """Error against the number of labeled rows."""
    errors = names["label_errors"]
    series = [Series("boosting", range(len(errors)), list(errors.values()))]
    count = Axis("labeled rows from the new group", names=[f"{n}" for n in errors])
    return Lines(series, count, Axis("mean absolute error, points", low=0))


def diabetes(names: Names) -> Chart:
    """Weights of the age groups, and the error by sharpness."""
    weights, errors = names["diabetes_weights"], names["diabetes_errors"]
    by_age = {age: [own[age] for own in weights.values()] for age in names["ages"]}
    left = dots(by_age, [f"sharpness {s:g}" for s in weights], "weight")
    by_sharpness = {f"sharpness {s:g}": [error] for s, error in errors.items()}
    right = dots(by_sharpness, ["60 and above"], "mean absolute error")
    return Panels([left, right], share=False, columns=1)


def proteins(names: Names) -> Chart:
    """Errors with and without a group's own rows."""
    return dots(
        names["protein_errors"], ["with its own rows", "without them"], "mean absolute error"
    )


def digits(names: Names) -> Chart:
    """Accuracy on the first task after every task."""
    series = [
        Series(name, range(1, 1 + len(values)), values) for name, values in names["kept"].items()
    ]
    y = Axis("accuracy on the first task", low=0, high=1)
    return Lines(series, Axis("tasks learned", whole=True), y)


def classes(names: Names) -> Chart:
    """Accuracy on all classes so far."""
    accuracy = {f"{n} digits": [value] for n, value in names["accuracy"].items()}
    return dots(accuracy, ["closed form"], "accuracy on all digits so far")


def saltby(names: Names) -> Chart:
    """Prices against predictions with their intervals, sorted by prediction."""
    found, truth = names["predicted"], names["truth"]
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


DRAWN: dict[str, Callable[[Names], Chart]] = {
    one.__name__: one
    for one in (
        *(prices, alike, bikes, patients, labels),
        *(diabetes, proteins, digits, classes, saltby),
    )
}


def main() -> None:
    """Run the examples and write the plots."""
    names: Names = {}
    os.chdir(tempfile.mkdtemp())  # nothing is left behind
    page = blocks(PAGE.read_text(encoding="utf-8"))
    IMAGES.mkdir(parents=True, exist_ok=True)
    drawn = iter(DRAWN.items())
    for code, printed in pairwise(page):
        if code.kind == "python":
            run([code, printed], names)
            name, chart = next(drawn)
            path = IMAGES / f"{name}.svg"
            write_picture(chart(names), name, path, width=WIDTH, overwrite=True)
            print(f"wrote {name}.svg")
    assert next(drawn, None) is None, "a plot without an example"


if __name__ == "__main__":
    main()
