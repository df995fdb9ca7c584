"""How well single columns predict the response of a source from the other sources.

With ŷ learned from one column c of all sources but v, and m_v the median of their responses,

    r(c) = median over v of  mean |y - ŷ| / mean |y - m_v|    on the rows of v.

ŷ is the better of a straight line and of linear interpolation between the training rows (means
where c repeats; means per category). The same is tried with the ranks of y, which are robust to
outliers, and the smaller r counts. A column computed from the response has r near 0; an honest
predictor with correlation .99 has about .1.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import Floats

Codes = NDArray[np.intp]

ROWS, PLACES, LEAST = 4000, 8, 10
"""Rows that are sampled, sources that are held out, and rows that a held-out source needs."""

ROUGH = 0.15
"""Mean step of the response's rank along a column, relative to random order, above which a column
is skipped."""

NEARLY, CLOSE = 0.01, 0.1
"""r(c) below which a column nearly determines the response, and predicts it closely."""


def sample(places: Codes, rows: int = ROWS) -> Codes:
    """Choose rows, evenly spaced in each place, the same number of each place if it has them."""
    own = [np.flatnonzero(places == k) for k in range(int(places.max()) + 1)]
    most = max(1, rows // len(own))
    picked = [r[np.linspace(0, len(r) - 1, min(len(r), most)).astype(np.intp)] for r in own]
    return np.concatenate(picked)


def held_out_ratio(
    column: Floats, y: Floats, places: Codes, *, category: bool = False, rough: float = ROUGH
) -> float:
    """Compute r(c) for one column (or codes of categories); NaN cells do not count.

    Infinite if the column is mostly empty, or the response too ``rough`` along it to be a function
    of it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> price, places = np.exp(rng.normal(size=300)), np.arange(300) % 3
    >>> held_out_ratio(1.08 * price, price, places) < 1e-9
    True
    >>> held_out_ratio(price + rng.normal(0, 0.5, 300), price, places) > 0.1
    True
    """
    from scipy.stats import rankdata  # only here: it is slow to import

    full = ~np.isnan(column)
    if full.sum() < max(2 * LEAST, 0.5 * len(y)):
        return np.inf
    column, y, places = column[full], y[full], places[full]
    ranks, order = rankdata(y), np.argsort(column, kind="stable")
    if np.abs(np.diff(ranks[order])).mean() > rough * len(y) / 3:
        return np.inf
    return min(_ratio(column, own, places, category) for own in (y, ranks))


def _ratio(column: Floats, y: Floats, places: Codes, category: bool) -> float:
    ratios = []
    for test in _folds(places):
        train = ~test
        gaps = np.abs(y[test] - np.median(y[train])).mean()
        if gaps > 0:
            found = [_interpolated(column[train], y[train], column[test])]
            if category:
                known = np.isin(column[test], column[train])
                found = [np.where(known, found[0], np.median(y[train]))]
            else:
                found.append(_line(column[train], y[train], column[test]))
            ratios.append(min(np.abs(y[test] - own).mean() for own in found) / gaps)
    return float(np.median(ratios)) if ratios else np.inf


def _folds(places: Codes) -> Iterator[NDArray[np.bool_]]:
    """Rows of each held-out source; every other row of a single source."""
    names, counts = np.unique(places, return_counts=True)
    if len(names) == 1:
        yield np.arange(len(places)) % 2 == 0
        return
    fit = names[counts >= LEAST]
    for name in fit[np.linspace(0, len(fit) - 1, min(len(fit), PLACES)).astype(np.intp)]:
        yield places == name


def _interpolated(c: Floats, y: Floats, at: Floats) -> Floats:
    knots, group = np.unique(c, return_inverse=True)
    return np.interp(at, knots, np.bincount(group, y) / np.bincount(group))


def _line(c: Floats, y: Floats, at: Floats) -> Floats:
    center, spread = c.mean(), c.std()
    if spread == 0:
        return np.full(len(at), y.mean())
    z = (c - center) / spread
    return np.asarray(y.mean() + (z * (y - y.mean())).mean() * (at - center) / spread)
