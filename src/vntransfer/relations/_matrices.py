"""Moments of rows, and divergences of their covariances: with numpy alone for the default ones.

Importing torch takes longer than comparing the places of a small table.
"""

from typing import NamedTuple, Self

import numpy as np

from vntransfer.checks import one_of
from vntransfer.errors import ArgumentError
from vntransfer.relations._smoother import Matrix

WITHOUT_TORCH = ("conditional_von_neumann", "jeffreys")
"""Divergences for which torch is not imported."""


class Totals(NamedTuple):
    """Number, mean (D,) and scatter (D, D) of rows."""

    count: float
    mean: Matrix
    scatter: Matrix

    @classmethod
    def of(cls, rows: Matrix) -> Self:
        """Totals of rows (n, D)."""
        centered = rows - (mean := rows.mean(0))
        return cls(len(rows), mean, centered.T @ centered)

    def merge(self, other: Self) -> Self:
        """Totals of the rows of both."""
        count, gap = self.count + other.count, other.mean - self.mean
        mean = self.mean + other.count / count * gap
        between = self.count * other.count / count * np.outer(gap, gap)
        return type(self)(count, mean, self.scatter + other.scatter + between)

    def covariance(self) -> Matrix:
        """Unbiased covariance."""
        found = self.scatter / max(self.count - 1, 1)
        if not np.isfinite(found).all():
            raise ArgumentError("x: variances overflow float64; rescale the columns")
        return found


def check_divergence(name: str) -> str:
    """Raise unless a divergence is known."""
    if name in WITHOUT_TORCH:
        return name
    from vntransfer.divergences import DIVERGENCES

    return str(one_of("divergence", name, DIVERGENCES))


def of_features(divergence: str) -> str:
    """Name the divergence of the features alone that belongs to one of the whole."""
    base = divergence.removeprefix("conditional_")
    return "jeffreys" if base == "von_neumann" else base


def between(sigma: Matrix, rho: Matrix, divergence: str) -> Matrix:
    """Symmetrized divergence of matrices (B, n, n), response last: the mean of both directions."""
    from vntransfer.divergences import DIVERGENCES

    entry = DIVERGENCES[divergence]
    there = entry.function(sigma, rho)
    return there if entry.symmetric else (there + entry.function(rho, sigma)) / 2


def divergences(stack: Matrix, divergence: str) -> Matrix:
    """Divergences (K, K) of matrices (K, n, n), response last; mean of both directions."""
    if divergence in WITHOUT_TORCH:
        table, features = _jeffreys(stack), _jeffreys(stack[:, :-1, :-1])
        if table is not None and features is not None:
            joint = divergence == "jeffreys"
            return table if joint else np.maximum(table - features, 0.0)
    from vntransfer.divergences import pairwise  # names a matrix that is not positive definite

    table = pairwise(stack, divergence=divergence)
    return np.asarray((table + table.T) / 2)


def _jeffreys(stack: Matrix) -> Matrix | None:
    """J_ij = ½⟨S_i - S_j, log S_i - log S_j⟩; None if a matrix is not positive definite."""
    values, V = np.linalg.eigh(stack)
    floor = np.finfo(float).eps * values.shape[1] * values[:, -1]
    if not (values[:, 0] > np.maximum(floor, np.finfo(float).tiny)).all():
        return None
    logs = ((V * np.log(values)[:, None]) @ V.swapaxes(1, 2)).reshape(len(stack), -1)
    flat = stack.reshape(len(stack), -1)
    rows = [((flat - S) * (logs - L)).sum(1) for S, L in zip(flat, logs, strict=True)]
    return np.maximum(np.stack(rows) / 2, 0.0)
