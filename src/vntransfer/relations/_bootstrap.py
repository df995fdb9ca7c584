"""Bootstrap intervals of all divergences at once, from moments of blocks of rows."""

from collections.abc import Sequence

import numpy as np

from vntransfer.relations._matrices import divergences
from vntransfer.relations._smoother import Matrix
from vntransfer.relations.summaries import MomentBlocks


def resampled_covariances(
    blocks: MomentBlocks, unit: Matrix, n_resamples: int, rng: np.random.Generator
) -> Matrix:
    """Covariances (B, D, D), in units of the columns, of blocks drawn with replacement."""
    count, mean, scatter = blocks.stacked()
    m = len(count)
    W = rng.multinomial(m, np.full(m, 1 / m), size=n_resamples).astype(np.float64)
    mean = (mean - np.average(mean, axis=0, weights=count)) / unit
    outer = mean[:, :, None] * mean[:, None, :]
    second = scatter / unit[:, None] / unit + count[:, None, None] * outer
    n, first = W @ count, W @ (count[:, None] * mean)
    D = len(unit)
    sums = (W @ second.reshape(m, -1)).reshape(-1, D, D)
    spread = sums - first[:, :, None] * first[:, None, :] / n[:, None, None]
    return spread / np.maximum(n - 1, 1)[:, None, None]


def bootstrap(
    domains: Sequence[MomentBlocks],
    unit: Matrix,
    divergence: str,
    *,
    ridge: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> Matrix:
    """Divergences (B, K, K) of domains whose blocks are drawn with replacement."""
    D = len(unit)
    drawn = np.empty((n_resamples, len(domains), D, D))
    for k, own in enumerate(domains):
        drawn[:, k] = resampled_covariances(own, unit, n_resamples, rng) + ridge * np.eye(D)
    return np.stack([divergences(stack, divergence) for stack in drawn])


def interval(observed: Matrix, resampled: Matrix, level: float) -> tuple[Matrix, Matrix]:
    """Lower and upper ends from resamples (B, ...) of observed values (...).

    Divergences of samples exceed the true one on average, and those of resamples exceed the
    observed one by about as much again: percentiles less twice that bias, not below zero.
    """
    tail = (1 - level) / 2
    low, high = np.quantile(resampled, (tail, 1 - tail), axis=0)
    bias = resampled.mean(0) - observed
    return np.maximum(low - 2 * bias, 0.0), np.maximum(high - 2 * bias, 0.0)
