"""Inputs of networks: standardized columns, kept within a range."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import is_sparse

LIMIT = 6.0
"""Standardized inputs are clipped to ± this many standard deviations."""


@dataclass(frozen=True)
class Scaler:
    """Mean and standard deviation of every column; constant columns have a scale of one."""

    mean: NDArray[np.float64]  # (p,)
    scale: NDArray[np.float64]
    # range within which values are kept before they are scaled
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None

    @classmethod
    def fit(cls, x: Any, weights: NDArray[np.float64] | None = None, within: Any = None) -> Self:
        """Measure the columns of a dense or CSR matrix.

        ``weights`` are those of a dense matrix's rows. Values are kept within the range of the rows
        ``within``; dense columns are measured after that.
        """
        low, high = (None, None) if within is None else column_range(within)
        if is_sparse(x):
            from sklearn.utils.sparsefuncs import mean_variance_axis

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
        if not is_sparse(x):
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


def dense(x: Any) -> NDArray[np.float64]:
    """Rows as a dense array of doubles."""
    return np.asarray(x.toarray() if is_sparse(x) else x, dtype=np.float64)


def column_range(x: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lowest and highest value of each column of a dense or CSR matrix, (p,) each."""
    low, high = x.min(axis=0), x.max(axis=0)
    if is_sparse(x):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)


def kept_within(x: Any, low: NDArray[np.float64], high: NDArray[np.float64]) -> Any:
    """Values within the range of their column; zeros of sparse rows stay zeros."""
    if not is_sparse(x):
        return np.clip(x, low, high).astype(x.dtype, copy=False)
    x = x.copy()
    x.data = np.clip(x.data, low[x.indices], high[x.indices])
    return x
