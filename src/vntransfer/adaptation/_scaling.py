"""Standardisation that keeps sparse rows sparse until they are used."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis

LIMIT = 6.0
"""Standardised inputs are clipped to ± this many standard deviations."""


@dataclass(frozen=True)
class Scaler:
    """Mean and standard deviation of every column; constant columns have a scale of one.

    Examples
    --------
    >>> scaler = Scaler.fit(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> scaler.transform(np.array([[3.0, 6.0]]))
    array([[1., 1.]], dtype=float32)
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def fit(cls, x: Any, weights: NDArray[np.float64] | None = None) -> Self:
        """Measure the columns of a dense or CSR matrix, of a dense one by weights of its rows."""
        if scipy.sparse.issparse(x):
            mean, variance = mean_variance_axis(x.astype(np.float64), axis=0)
        else:
            wide = np.asarray(x, dtype=np.float64)
            mean = np.average(wide, axis=0, weights=weights)
            variance = np.average(np.square(wide - mean), axis=0, weights=weights)
        scale = np.sqrt(variance)
        noise = 1e3 * np.finfo(np.float64).eps * np.abs(mean)  # a constant column's rounding
        return cls(mean, np.where(scale > noise, scale, 1.0))

    def transform(self, x: Any) -> NDArray[np.float32]:
        """Standardised dense rows, clipped."""
        if not scipy.sparse.issparse(x):
            out = np.clip((x - self.mean) / self.scale, -LIMIT, LIMIT)
            return np.asarray(out, dtype=np.float32)
        # in float32 unless a mean is so large beside its column's spread that digits would cancel
        exact = np.float32 if (np.abs(self.mean) < 1e3 * self.scale).all() else np.float64
        dense = x.astype(exact).toarray()
        dense -= self.mean.astype(exact)
        dense /= self.scale.astype(exact)
        return np.asarray(np.clip(dense, -LIMIT, LIMIT, out=dense), dtype=np.float32)
