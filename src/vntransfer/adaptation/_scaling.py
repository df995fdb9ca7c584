"""Standardization that keeps sparse rows sparse until they are used."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis

LIMIT = 6.0
"""Standardized inputs are clipped to ± this many standard deviations."""


@dataclass(frozen=True)
class Scaler:
    """Mean and standard deviation of every column; constant columns have a scale of one.

    Parameters
    ----------
    mean, scale
        Of each column, (p,).
    low, high
        Range (p,) within which values are kept before they are scaled; None: as they are.

    Examples
    --------
    >>> scaler = Scaler.fit(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> scaler.transform(np.array([[3.0, 6.0]]))
    array([[1., 1.]], dtype=float32)
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None

    @classmethod
    def fit(cls, x: Any, weights: NDArray[np.float64] | None = None, within: Any = None) -> Self:
        """Measure the columns of a dense or CSR matrix.

        Parameters
        ----------
        x
            Rows (n, p).
        weights
            Of the rows of a dense matrix, (n,).
        within
            Rows whose range is that of all values; those of ``x`` that are dense are measured
            after they were brought there.
        """
        low, high = (None, None) if within is None else column_range(within)
        if scipy.sparse.issparse(x):
            mean, variance = mean_variance_axis(x.astype(np.float64), axis=0)
        else:
            wide = np.asarray(x, dtype=np.float64)
            if low is not None:
                wide = np.clip(wide, low, high)
            mean = np.average(wide, axis=0, weights=weights)
            variance = np.average(np.square(wide - mean), axis=0, weights=weights)
        scale = np.sqrt(variance)
        noise = 1e3 * np.finfo(np.float64).eps * np.abs(mean)  # a constant column's rounding
        return cls(mean, np.where(scale > noise, scale, 1.0), low, high)

    def transform(self, x: Any) -> NDArray[np.float32]:
        """Standardized dense rows, clipped."""
        if not scipy.sparse.issparse(x):
            kept = x if self.low is None else np.clip(x, self.low, self.high)
            out = np.clip((kept - self.mean) / self.scale, -LIMIT, LIMIT)
            return np.asarray(out, dtype=np.float32)
        # in float32 unless a mean is so large beside its column's spread that digits would cancel
        exact = np.float32 if (np.abs(self.mean) < 1e3 * self.scale).all() else np.float64
        dense = x.astype(exact).toarray()
        if self.low is not None:
            np.clip(dense, self.low, self.high, out=dense)
        dense -= self.mean.astype(exact)
        dense /= self.scale.astype(exact)
        return np.asarray(np.clip(dense, -LIMIT, LIMIT, out=dense), dtype=np.float32)

    def outside(self, x: Any) -> float:
        """Share of the values that are cut: by their range, or else far from the mean."""
        if self.low is None or self.high is None:
            return float((np.abs(self.transform(x)) >= LIMIT).mean())
        cut = x - kept_within(x, self.low, self.high)
        return float((cut != 0).sum() / max(1, np.prod(cut.shape)))


def column_range(x: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lowest and highest value of each column of a dense or CSR matrix, (p,) each.

    Examples
    --------
    >>> column_range(scipy.sparse.csr_matrix([[0.0, 2.0], [3.0, 1.0]]))
    (array([0., 1.]), array([3., 2.]))
    """
    low, high = x.min(axis=0), x.max(axis=0)
    if scipy.sparse.issparse(x):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)


def kept_within(x: Any, low: NDArray[np.float64], high: NDArray[np.float64]) -> Any:
    """Values within the range of their column; zeros of sparse rows stay zeros.

    Examples
    --------
    >>> kept_within(np.array([[5.0, -1.0]]), np.array([0.0, 0.0]), np.array([3.0, 1.0]))
    array([[3., 0.]])
    """
    if not scipy.sparse.issparse(x):
        return np.clip(x, low, high).astype(x.dtype, copy=False)
    x = x.copy()
    x.data = np.clip(x.data, low[x.indices], high[x.indices])
    return x


def stacked(parts: Sequence[Any]) -> Any:
    """Rows of several matrices, CSR if they are sparse."""
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")
    return np.vstack(parts)
