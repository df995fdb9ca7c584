"""The statistic of one pair of domains, observed and under either null hypothesis."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from vntransfer.relate._basis import Basis, Fit, Matrix, fit
from vntransfer.relate._kernel import Bordered, between, on_same_features

Noise = Literal["wild", "own", "common"]
Statistic = Literal["aligned", "plain"]
_BLOCK = 250
"""Resamples per block: bounds the memory to a few copies of the pair's rows times this."""


@dataclass(frozen=True)
class Sample:
    """One domain's standardised rows, centred: X (n, d), y (n,), Φ (n, p), G = Φ'Φ, g = Φ'y."""

    X: Matrix
    y: Matrix
    Phi: Matrix
    G: Matrix
    g: Matrix

    @classmethod
    def of(cls, X: Matrix, y: Matrix, basis: Basis | None) -> "Sample":
        """Centre the rows, and their columns of the basis if there is one."""
        Phi = X if basis is None else basis.columns(X)
        X, y, Phi = X - X.mean(0), y - y.mean(), Phi - Phi.mean(0)
        return cls(X, y, Phi, Phi.T @ Phi, Phi.T @ y)

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Responses:
    """What B responses of one domain, y* (n, B), mean for its statistic: Φ'y* and y*'y*."""

    g: Matrix  # (p, B)
    yy: Matrix  # (B,)


@dataclass(frozen=True)
class RelationPair:
    """Two domains under the null hypothesis that one relation, fitted to both, holds in both.

    The statistic "aligned" compares, on each domain's *own* inputs, the covariance of
    [features, response] with the one that the common fit gives there, and averages the divergence
    over the rows of the two. Unlike the divergence between the two domains it is zero at the null
    hypothesis whatever the inputs are, so that any difference makes it larger.
    """

    samples: tuple[Sample, Sample]
    common: Fit
    noise: Noise
    statistic: Statistic
    divergence: str
    ridge: float

    @classmethod
    def of(
        cls,
        samples: tuple[Sample, Sample],
        basis: Basis,
        *,
        noise: Noise,
        statistic: Statistic,
        divergence: str,
        ridge: float,
    ) -> "RelationPair":
        """Fit the common relation."""
        G, g = (sum((getattr(s, k) for s in samples[1:]), getattr(samples[0], k)) for k in "Gg")
        yy = float(sum(s.y @ s.y for s in samples))
        common = fit(G, g, yy, sum(map(len, samples)), len(samples), basis)
        return cls(samples, common, noise, statistic, divergence, ridge)

    def observed(self) -> float:
        """Statistic of the domains as they are."""
        own = [Responses(s.g[:, None], np.array([s.y @ s.y])) for s in self.samples]
        return float(self._statistic(own)[0])

    def resampled(self, n_resamples: int, rng: np.random.Generator) -> Iterator[Matrix]:
        """Statistics of responses y* = fit + noise*, fitted again each time, block by block."""
        theta = self.common.P @ (self.samples[0].g + self.samples[1].g)
        residuals = [self._out_of_fold(s, theta) for s in self.samples]
        pooled = np.concatenate(residuals)
        for size in _sizes(n_resamples):
            drawn = []
            for s, own in zip(self.samples, residuals, strict=True):
                E = _noise(self.noise, own, pooled, size, rng)
                E -= E.mean(0)
                H, fitted = s.Phi.T @ E, s.G @ theta
                yy = theta @ fitted + 2 * (theta @ H) + np.einsum("nb,nb->b", E, E)
                drawn.append(Responses(fitted[:, None] + H, yy))
            yield self._statistic(drawn)

    def _out_of_fold(self, s: Sample, theta: Matrix) -> Matrix:
        """Residuals of each row from the fit without it: those within the fit are too small.

        Leaving a row out of a linear smoother multiplies its residual by 1/(1 - leverage).
        """
        leverage = ((s.Phi @ self.common.P) * s.Phi).sum(1) + 1 / len(s)
        return (s.y - s.Phi @ theta) / (1 - np.minimum(leverage, 0.95))

    def _statistic(self, responses: list[Responses]) -> Matrix:
        theta = self.common.P @ (responses[0].g + responses[1].g)  # (p, B)
        own = [_border(s, r.g, r.yy) for s, r in zip(self.samples, responses, strict=True)]
        if self.statistic == "plain":
            sigma, rho = (part.matrices(self.ridge) for part in own)
            return between(sigma, rho, self.divergence).numpy()
        spread = self._common_variance(responses, theta) if self.noise == "common" else None
        total = np.zeros(theta.shape[1])
        for s, part in zip(self.samples, own, strict=True):
            fitted = s.G @ theta
            expected = _border(s, fitted, np.einsum("pb,pb->b", theta, fitted))
            if spread is not None:
                expected = Bordered(part.A, expected.b, expected.c + torch.from_numpy(spread))
            else:
                expected = _with_own_noise(part, expected.b, self.ridge)
            value = on_same_features(part, expected, self.ridge, self.divergence)
            total += len(s) * value.numpy()
        return total / sum(map(len, self.samples))

    def _common_variance(self, responses: list[Responses], theta: Matrix) -> Matrix:
        """Variance of the noise if both domains have the same, (B,)."""
        error = np.zeros(theta.shape[1])
        for s, r in zip(self.samples, responses, strict=True):
            error += r.yy + np.einsum("pb,pb->b", theta, s.G @ theta - 2 * r.g)
        rows = sum(map(len, self.samples))
        return np.maximum(error, 0.0) / max(rows - self.common.freedom, 1.0)


def _border(s: Sample, g: Matrix, yy: Matrix) -> Bordered:
    """Joint covariances of a domain's features with responses given by Φ'y and y'y."""
    d, rows = s.X.shape[1], len(s) - 1
    A, b, c = s.G[:d, :d] / rows, g[:d].T / rows, yy / rows
    return Bordered(*(torch.from_numpy(np.ascontiguousarray(part)) for part in (A, b, c)))


def _with_own_noise(own: Bordered, b: torch.Tensor, ridge: float) -> Bordered:
    """Covariances with borders b that leave as much of the response unexplained as ``own``.

    The size of the noise is then no part of the comparison.
    """
    root = torch.linalg.cholesky(own.A + ridge * torch.eye(len(own.A), dtype=own.A.dtype))

    def explained(border: torch.Tensor) -> torch.Tensor:
        return torch.linalg.solve_triangular(root, border.mT, upper=False).square().sum(0)

    unexplained = (own.c - explained(own.b)).clamp_min(0)
    return Bordered(own.A, b, unexplained + explained(b))


def _noise(kind: Noise, own: Matrix, pooled: Matrix, size: int, rng: np.random.Generator) -> Matrix:
    """Noise (n, size) of one domain, from out-of-fold residuals."""
    shape = (len(own), size)
    if kind == "wild":
        return own[:, None] * (2.0 * rng.integers(0, 2, shape, dtype=np.int8) - 1.0)
    drawn = own if kind == "own" else pooled
    return (drawn - drawn.mean())[rng.integers(0, len(drawn), shape)]


def _sizes(n_resamples: int) -> Iterator[int]:
    for done in range(0, n_resamples, _BLOCK):
        yield min(_BLOCK, n_resamples - done)


def permuted(
    one: Matrix,
    two: Matrix,
    n_resamples: int,
    rng: np.random.Generator,
    *,
    divergence: str,
    ridge: float,
) -> tuple[float, Iterator[Matrix]]:
    """Divergence of rows [x, y] (n, d + 1) of two domains, and after exchanging them at random.

    The covariances of all exchanges come from one product of the 0/1 memberships (B, n) with the
    products of columns (n, D (D + 1)/2).
    """
    Z = np.vstack((one, two))
    Z = Z - Z.mean(0)
    D = Z.shape[1]
    rows, columns = np.triu_indices(D)
    Q = Z[:, rows] * Z[:, columns]
    sums, squares = Z.sum(0), Q.sum(0)

    def covariances(first: Matrix, second: Matrix, size: int) -> torch.Tensor:
        flat = (second - first[:, rows] * first[:, columns] / size) / (size - 1)
        full = np.empty((len(flat), D, D))
        full[:, rows, columns] = full[:, columns, rows] = flat
        return torch.from_numpy(full + ridge * np.eye(D))

    def statistic(members: Matrix) -> Matrix:
        first, second = members @ Z, members @ Q
        sigma = covariances(first, second, len(one))
        rho = covariances(sums - first, squares - second, len(two))
        return between(sigma, rho, divergence).numpy()

    own = np.repeat((1.0, 0.0), (len(one), len(two)))
    blocks = (
        statistic(rng.permuted(np.tile(own, (size, 1)), axis=1)) for size in _sizes(n_resamples)
    )
    return float(statistic(own[None])[0]), blocks


ENOUGH = 50
"""Resamples beyond the observed statistic after which a p-value is known well enough."""


def p_value(observed: float, blocks: Iterable[Matrix]) -> float:
    """Share of resamples that reach the observed statistic, which counts as one of them.

    Stops at the 50th that does, the l-th resample: then 50/l is a valid p-value as well (Besag and
    Clifford 1991), and pairs that are alike cost little.

    Examples
    --------
    >>> p_value(0.5, [np.arange(0.0, 1.0, 0.1)])   # 5 of 10 reach it, and itself
    0.5454545454545454
    """
    seen = reached = 0
    for block in blocks:
        hits = np.cumsum(block >= observed - 1e-12 * abs(observed))
        if reached + hits[-1] >= ENOUGH:
            return ENOUGH / (seen + int(np.searchsorted(hits, ENOUGH - reached)) + 1)
        seen, reached = seen + len(block), reached + int(hits[-1])
    return (1 + reached) / (1 + seen)


def two_sided(observed: float, blocks: Iterable[Matrix]) -> float:
    """P-value of a statistic for which unusually small values count as much as large ones."""
    drawn = np.concatenate(list(blocks))
    up, down = (p_value(sign * observed, [sign * drawn]) for sign in (1, -1))
    return min(1.0, 2 * min(up, down))


def holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Holm's step-down correction of p-values (m,).

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p)
    stepped = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    out = np.empty_like(p)
    out[order] = np.minimum(stepped, 1.0)
    return out
