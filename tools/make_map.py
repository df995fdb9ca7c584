"""Draw docs/img/map.svg, the picture of the README: expected beside actual error, place by place.

Run: python tools/make_map.py (about two minutes; needs `vnt data fetch cal_housing`). Census blocks
of California belong to the nearest of seven cities. Each city is the target once: `adapt` states
the error to expect there before it sees a single price, then the prices of the city are compared.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer import adapt
from vntransfer.pages import Axis, Chart, Intervals, Panels, Scatter, Series
from vntransfer.pages.picture import write_picture
from vntransfer_lab.data import Domains, load

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "img" / "map.svg"
CITIES = {
    "Redding": (-122.39, 40.59),
    "Sacramento": (-121.49, 38.58),
    "San Francisco": (-122.42, 37.77),
    "Fresno": (-119.79, 36.74),
    "Bakersfield": (-119.02, 35.37),
    "Los Angeles": (-118.24, 34.05),
    "San Diego": (-117.16, 32.72),
}
"""Longitude and latitude, from north to south."""

ROWS, DOTS = 500, 150
"""Blocks of a city that are used, and shown on the map."""


def _housing() -> Domains:
    found = load("cal_housing")
    assert isinstance(found, Domains)
    return found


def blocks() -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Return features and prices (in thousands) of some blocks of each city, drawn at random."""
    x, y = _housing()["cal_housing"]
    east = np.cos(np.radians(37))  # a degree of longitude is shorter than one of latitude
    gaps = [((x[:, 0] - a) * east) ** 2 + (x[:, 1] - b) ** 2 for a, b in CITIES.values()]
    nearest, rng = np.argmin(gaps, 0), np.random.default_rng(0)
    rows = {
        name: rng.permutation(np.flatnonzero(nearest == k))[:ROWS] for k, name in enumerate(CITIES)
    }
    return {name: (x[own], y[own] / 1000) for name, own in rows.items()}


def errors(cities: dict[str, tuple[NDArray[Any], NDArray[Any]]]) -> list[tuple[float, ...]]:
    """Return expected error, its range over held-out cities and actual error, city by city."""
    names = _housing().feature_names[2:]  # without longitude and latitude
    x = np.concatenate([own[:, 2:] for own, _ in cities.values()])
    price = np.concatenate([own for _, own in cities.values()])
    city = np.repeat(list(cities), [len(own) for _, own in cities.values()])
    found: list[tuple[float, ...]] = []
    for target in cities:
        table = dict(zip(names, x.T, strict=True))
        table |= {"city": city, "price": np.where(city == target, np.nan, price)}
        model = adapt(table, domain="city", response="price", target=target)
        own = city == target
        value = model.predict({name: column[own] for name, column in table.items()}).value
        actual = float(np.abs(value - price[own]).mean())
        evidence = model.outcomes[target].evidence
        expected, low, high = evidence.expected()[0], *evidence.bounds()
        found.append((expected, low, high, actual))
        print(f"{target}: expected {expected:.0f} ({low:.0f} to {high:.0f}), actual {actual:.0f}")
    return found


def chart() -> Chart:
    """Return the map beside the errors."""
    cities = blocks()
    expected, low, high, actual = np.array(errors(cities)).T
    dots = [
        Series(name, x[:DOTS, 0].round(2), x[:DOTS, 1].round(2), color=k)
        for k, (name, (x, _)) in enumerate(cities.items())
    ]
    places = Scatter(dots, Axis("longitude"), Axis("latitude"), title="Seven places in California")
    beside = Intervals(
        list(cities),
        expected,
        low,
        high,
        Axis("mean absolute error, thousand dollars", low=0),
        title="Expected ● and actual ○ error",
        others=actual,
        others_name="actual",
    )
    return Panels([places, beside], share=False)


if __name__ == "__main__":
    title = "Expected and actual error of house prices in seven places of California"
    write_picture(chart(), title, PICTURE, overwrite=True)
    print(f"wrote {PICTURE.name}")
