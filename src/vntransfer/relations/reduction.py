"""Replace many columns by leading principal components, because costs grow with their square.

K places with D columns take up to 8 K D² bytes times a few hundred (blocks and resamples). Beyond
`PRODUCTS` the rows are therefore read twice: first for the moments of all places together, then as
components.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from vntransfer.errors import DataError
from vntransfer.relations._matrices import Totals
from vntransfer.relations.summaries import Reduction, Summaries

DIRECT, PRODUCTS = 50, 400_000
"""Columns, and K D² of more columns, up to which columns are used as they are."""

MOST_COLUMNS = 5000
"""Columns whose products fit into memory (200 MB)."""

COMPONENTS, SHARE = 50, 0.95
"""Components at most, and the share of the variance that is enough."""


def components(total: Totals, places: int) -> Reduction | None:
    """Choose components of the standardized columns: enough for `SHARE` of their variance.

    There are at most `COMPONENTS`, and half as many as a place has rows on average, so that the fit
    to a pair is not starved of rows. None: the columns can be used as they are.
    """
    from scipy.linalg import eigh

    covariance, mean = total.covariance(), total.mean
    variances = np.diagonal(covariance).copy()
    varies = variances > (1e-12 * np.abs(mean)) ** 2
    d = int(varies.sum())
    if places * (d + 1) ** 2 <= PRODUCTS:
        return None
    unit = np.sqrt(variances[varies])
    most = min(COMPONENTS, max(2, int(total.count) // (2 * places)))
    scaled = covariance[np.ix_(varies, varies)] / unit[:, None] / unit
    values, vectors = eigh(scaled, subset_by_index=[d - most, d - 1], overwrite_a=True)
    values, vectors = values[::-1], vectors[:, ::-1]
    shares = np.cumsum(np.maximum(values, 0)) / d
    k = min(int(np.searchsorted(shares, SHARE)) + 1, int((values > 1e-9 * values[0]).sum()))
    weights = np.zeros((len(mean), k))
    weights[varies] = vectors[:, :k] / unit[:, None]
    return Reduction(mean, weights, float(shares[k - 1]), int((~varies).sum()))


def summarized(n_features: int, fill: Callable[[Any], Summaries]) -> Summaries:
    """Summaries of rows that ``fill`` puts into what it is given, reduced if columns are many."""
    check_width(n_features)
    if n_features <= DIRECT:
        return fill(Summaries(n_features))
    first = fill(Summaries(n_features, features_only=True))
    assert first.total is not None
    reduction = components(first.total, len(first.domains))
    return fill(Summaries(reduction.kept if reduction else n_features, reduction=reduction))


def check_width(n_features: int) -> None:
    """Raise an error for more columns than fit into memory."""
    if n_features > MOST_COLUMNS:
        raise DataError(
            f"features: at most {MOST_COLUMNS:,} columns are possible, got {n_features:,} "
            f"(products of all pairs would take {8 * n_features**2 / 1e9:.1f} GB); choose some"
        )
