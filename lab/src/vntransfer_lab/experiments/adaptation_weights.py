"""Weights of the sources in a run of ``adaptation``: collected, and measured.

A weight matrix H has one row per target and one column per source, NaN where a domain is not a
source of a target.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from vntransfer_lab.reports.report import Condition, Report
from vntransfer_lab.runner.records import Record

Array = NDArray[np.float64]
# target -> source -> one weight per epoch
Curves = dict[str, dict[str, Array]]

_PREFIX = "weight/"


@dataclass(frozen=True)
class Weights:
    """Weights of one method on one data set.

    Parameters
    ----------
    domains
        Names of the rows and columns of the matrices.
    final
        Seed -> weight matrix at the end of training.
    curves
        Seed -> weights of every epoch; empty unless the run recorded the history.
    """

    domains: list[str]
    final: dict[int, Array]
    curves: dict[int, Curves]

    @property
    def mean(self) -> Array:
        """Mean of the weight matrices over seeds."""
        return np.mean(list(self.final.values()), axis=0)


def collect(loaded: Report, data: str, condition: Condition) -> dict[str, Weights]:
    """Weights of all methods that learn them, in the order of the preset."""
    chosen = loaded.chosen[data, condition]
    targets = list(dict.fromkeys(target for _, target, _ in chosen))
    found: dict[str, Weights] = {}
    for method in loaded.preset.methods:
        cells = {(t, s): cell for (m, t, s), cell in chosen.items() if m == method}
        if not any(r.metrics.get("learned_weights", {}).get(step) for r, step in cells.values()):
            continue
        sources = {name.removeprefix(_PREFIX) for r, _ in cells.values() for name in _named(r)}
        domains = targets + sorted(sources - set(targets))
        weights = Weights(domains, {}, {})
        for (target, seed), (record, step) in cells.items():
            matrix = weights.final.setdefault(seed, np.full((len(domains), len(domains)), np.nan))
            for name in _named(record):
                source, steps = name.removeprefix(_PREFIX), record.metrics[name]
                matrix[domains.index(target), domains.index(source)] = steps[step]
                if len(steps) > 1:
                    curves = weights.curves.setdefault(seed, {}).setdefault(target, {})
                    curves[source] = np.array([steps[epoch] for epoch in sorted(steps)])
        found[method] = weights
    return found


def _named(record: Record) -> list[str]:
    return [name for name in record.metrics if name.startswith(_PREFIX)]


def rank_correlation(a: Sequence[float] | Array, b: Sequence[float] | Array) -> float:
    """Spearman's correlation; 0 where one side is constant and so says nothing.

    Examples
    --------
    >>> rank_correlation([1, 2, 3], [10, 20, 40]), rank_correlation([1, 1, 1], [1, 2, 3])
    (1.0, 0.0)
    """
    from scipy.stats import rankdata

    return _correlation(rankdata(a), rankdata(b))


def _correlation(a: Array, b: Array) -> float:
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return round(float(a @ b) / size, 12) if size > 0 else 0.0


def closeness(matrix: Array) -> float:
    """Correlate weights with closeness -|i - j|: Spearman's, per target, averaged over targets.

    Ties of the closeness (two neighbors at the same distance) keep it below 1: the weights of six
    domains in a row reach at most 0.974.

    Examples
    --------
    >>> i = np.arange(3.0)
    >>> fading = np.where(np.eye(3) == 1, np.nan, 5 - abs(i[:, None] - i) + 0.1 * i)
    >>> round(closeness(fading), 3)
    0.667
    """
    rows = []
    for i, row in enumerate(matrix):
        known = np.flatnonzero(np.isfinite(row))
        if len(known) > 1:
            rows.append(rank_correlation(row[known], -np.abs(known - i)))
    return float(np.mean(rows)) if rows else 0.0


def asymmetry(matrix: Array) -> float | None:
    """Mean |H - H'| over the pairs of domains that are each other's source; None without any.

    Examples
    --------
    >>> asymmetry(np.array([[np.nan, 0.75], [0.25, np.nan]]))
    0.5
    """
    gap = np.abs(matrix - matrix.T)
    known = gap[np.isfinite(gap)]
    return float(known.mean()) if len(known) else None


def agreement(matrices: Sequence[Array]) -> float | None:
    """Mean correlation of the weights of two runs; None with a single run."""
    flat = [matrix[np.isfinite(matrix)] for matrix in matrices]
    pairs = [_correlation(a, b) for a, b in combinations(flat, 2) if a.shape == b.shape]
    return float(np.mean(pairs)) if pairs else None


def changes(curves: Mapping[str, Mapping[str, Array]]) -> Array:
    """Half the sum of |w(epoch + 1) - w(epoch)| over sources, averaged over targets.

    It is the share of the weight that changes hands from one epoch to the next.

    Examples
    --------
    >>> changes({"t": {"a": np.array([1.0, 0.5, 0.5]), "b": np.array([0.0, 0.5, 0.5])}})
    array([0.5, 0. ])
    """
    steps = [np.abs(np.diff(list(by.values()), axis=1)).sum(0) / 2 for by in curves.values()]
    return np.asarray(np.mean(steps, axis=0))


def smooth(values: Array, window: int) -> Array:
    """Mean over a window around each value, cut at both ends: it does not lag behind.

    Examples
    --------
    >>> smooth(np.array([3.0, 0.0, 0.0, 4.0]), 3)
    array([1.5       , 1.        , 1.33333333, 2.        ])
    """
    half = window // 2
    return np.array([values[max(0, i - half) : i + half + 1].mean() for i in range(len(values))])
