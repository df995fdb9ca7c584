"""Charts as data; `vntransfer.pages.draw` draws them as SVG.

A chart is one panel or `Panels` of several. Numbers that are None or NaN are omitted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import one_of
from vntransfer.errors import ArgumentError

MUTED = -1
"""Color of reference series."""

DASHES = ("solid", "dashed", "dotted")
"""Strokes of a series; "none" shows its marks alone."""

Numbers = Sequence[float | None] | NDArray[Any]


@dataclass(frozen=True)
class Axis:
    """An axis; its ends come from the data unless they are given."""

    label: str = ""  # what it measures, with its unit
    log: bool = False  # values that are not positive are omitted
    low: float | None = None
    high: float | None = None
    names: Sequence[str] = ()  # of the places 0, 1, 2, ... of an axis without numbers
    hidden: bool = False  # without ticks: the numbers mean nothing
    whole: bool = False  # ticks at whole numbers only: epochs, tasks and other counts


@dataclass(frozen=True)
class Series:
    """A named series of points, optionally with the ends of their intervals.

    Examples
    --------
    >>> Series("a", [1, 2], [0.5, 0.7]).y
    [0.5, 0.7]
    >>> Series("a", [1, 2], [0.5])
    Traceback (most recent call last):
    vntransfer.errors.ArgumentError: series 'a': y has 1 values for 2 of x; give one each
    """

    name: str  # in the legend and beside every value
    x: Numbers
    y: Numbers
    low: Numbers | None = None  # ends of an interval around y
    high: Numbers | None = None
    dash: str = ""  # one of `DASHES`, or "none"; by default solid until the colors are used up
    marks: bool = True
    color: int | None = None  # place in the palette or `MUTED`; by default that of its name
    thin: bool = False  # drawn thinner and paler, and absent from the legend

    def __post_init__(self) -> None:
        for name in ("y", "low", "high"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.x):
                raise ArgumentError(
                    f"series {self.name!r}: {name} has {len(values)} values for {len(self.x)} of "
                    "x; give one each"
                )
        if self.dash:
            one_of(f"series {self.name!r}: dash", self.dash, ("none", *DASHES))


@dataclass(frozen=True)
class Lines:
    """Values along an axis, with error bars if intervals are given."""

    series: Sequence[Series]
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    title: str = ""


@dataclass(frozen=True)
class Scatter(Lines):
    """Points in a plane; ``diagonal`` draws the line x = y."""

    diagonal: bool = False


@dataclass(frozen=True)
class Histogram(Lines):
    """Heights between edges; the x of a series are the middles of the bins (see `histogram`)."""

    edges: Numbers = field(kw_only=True)


@dataclass(frozen=True)
class Intervals:
    """One row per name, from top to bottom: a dot with its interval, and a reference line."""

    names: Sequence[str]
    values: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    x: Axis = field(default_factory=Axis)
    title: str = ""
    reference: float | None = None  # a dotted line
    highlight: str = ""  # name of the row that the others are compared with
    others: Numbers | None = None  # values of someone else, one per row, as hollow marks
    others_name: str = ""  # whose they are


@dataclass(frozen=True)
class Heatmap:
    """A matrix shown in colors; None or NaN leaves a cell empty.

    Colors that end at -a and a have one hue for each sign.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: Any
    title: str = ""
    row_label: str = ""
    column_label: str = ""
    label: str = ""  # what the colors measure
    low: float | None = None  # ends of the colors; by default 0 (or the smallest value) to the
    high: float | None = None  # largest; values beyond have the colors of the ends
    numbers: bool = True  # whether to write the values into the map
    marks: Any = None  # where to write the mark: truth values of the same shape
    mark: str = "≠"
    side: Sequence[tuple[str, Sequence[str]]] = ()  # columns of text beside the map, with headings

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64)
        if values.size == 0:
            values = values.reshape(len(self.rows), len(self.columns))
        if values.shape != (len(self.rows), len(self.columns)):
            raise ArgumentError(
                f"values: shape {values.shape} for {len(self.rows)} rows and "
                f"{len(self.columns)} columns"
            )
        for heading, texts in self.side:
            if len(texts) != len(self.rows):
                raise ArgumentError(
                    f"side: {heading!r} has {len(texts)} texts for {len(self.rows)} rows"
                )
        object.__setattr__(self, "values", values)

    @property
    def limits(self) -> tuple[float, float]:
        """Ends of the colors."""
        known = self.values[np.isfinite(self.values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        low = min(0.0, low) if self.low is None else self.low
        high = high if self.high is None else self.high
        return low, high if high > low else low + 1.0

    @property
    def diverging(self) -> bool:
        """Whether zero is in the middle of the colors."""
        low, high = self.limits
        return low == -high


Panel = Lines | Intervals | Heatmap


@dataclass(frozen=True)
class Panels:
    """Several charts with one legend, side by side as far as they fit."""

    charts: Sequence[Panel]
    share: bool = True  # give axes (and colors of heat maps) the same ends in all panels
    columns: int | None = None  # at most so many beside each other


Chart = Panel | Panels


def histogram(
    groups: dict[str, NDArray[Any]], *, bins: int | Numbers = 30, **options: Any
) -> Histogram:
    """Histogram of samples with common bins (their number, or edges), as shares of each group."""
    every = np.concatenate(list(groups.values()))
    edges = np.histogram_bin_edges(every, bins)  # type: ignore[arg-type]
    middles = (edges[:-1] + edges[1:]) / 2
    series = [
        Series(name, middles, np.histogram(sample, edges)[0] / max(1, len(sample)), marks=False)
        for name, sample in groups.items()
    ]
    return Histogram(series, edges=edges, **options)
