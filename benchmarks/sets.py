"""Data sets of the benchmarks, by their names."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from vntransfer_lab.data import Domains
from vntransfer_lab.data.tabular import kmeans_domains
from vntransfer_lab.runner.datasets import load_data

Rows = tuple[Any, np.ndarray]


def domains(name: str) -> Domains:
    """Load a set of named domains, such as ``bike`` or ``bike:k=8``; a stream is refused."""
    loaded = load_data(name)
    if not isinstance(loaded, Domains):
        raise SystemExit(f"{name}: a stream of tasks; give a set of domains (vnt data list)")
    return loaded


def drawn(name: str, most: int, *draw: int, in_order: bool = False) -> dict[str, Rows]:
    """At most so many rows of each domain, at random: another ``draw`` gives others."""
    out = {}
    for place, (domain, (x, y)) in enumerate(domains(name).items()):
        rows = np.random.default_rng([place, *draw]).permutation(len(y))[:most]
        rows = np.sort(rows) if in_order else rows
        out[domain] = x[rows], np.asarray(y[rows], dtype=float)
    return out


TABLES = (
    "synthetic",
    "bike",
    "parkinsons",
    "pol",
    "protein",
    "pumadyn32nm",
    "yearpred-small",
    "cal_housing",
    "bank8FM",
    "puma8NH",
    "2dplanes",
)
"""Dense tables of development comparisons."""

MOST = 20_000
"""Rows of a table that are cut into domains."""

LEAST = 30
"""Rows of a domain at least."""


class Cut(NamedTuple):
    """A table, how it is cut ("k3": k-means, seed 3; "q3": quantiles), and one part, the target."""

    name: str
    how: str
    target: int

    def split(self, most: int) -> tuple[dict[str, Rows], Rows] | None:
        """Sources and the target, at most so many rows of each; None if the target has too few."""
        places = cut_table(self.name, self.how, most)
        own = places.pop(f"d{self.target}", None)
        return None if own is None else (places, own)


def cuts(partition: int, names: Sequence[str]) -> Iterator[Cut]:
    """List three targets of a k-means cut and both outer bins of a quantile cut of each table."""
    for name in names:
        yield from (Cut(name, f"k{partition}", target) for target in (0, 2, 4))
        yield from (Cut(name, f"q{partition}", target) for target in (0, 4))


def cut_table(name: str, how: str, most: int) -> dict[str, Rows]:
    """Cut a table by k-means on its columns into six domains, or at quintiles of one column."""
    parts = domains(name).values()
    x = np.vstack([x for x, _ in parts]).astype(float)
    y = np.concatenate([np.ravel(y) for _, y in parts]).astype(float)
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST])
    x, y, number = x[rows], y[rows], int(how[1:])
    if how[0] == "k":
        place = kmeans_domains(x, 6, seed=number)
    else:  # of the columns with the most different values, one
        varied = np.argsort([-len(np.unique(column)) for column in x.T], kind="stable")
        column = x[:, varied[number % min(4, len(varied))]]
        place = np.searchsorted(np.quantile(column, [0.2, 0.4, 0.6, 0.8]), column, side="right")
    out = {}
    for i in range(int(place.max()) + 1):
        own = np.random.default_rng(i).permutation(np.flatnonzero(place == i))[:most]
        if len(own) >= LEAST:
            out[f"d{i}"] = x[own], y[own]
    return out
