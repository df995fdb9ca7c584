"""The statistic of one pair of domains, observed and under the null hypothesis.

A joint covariance of [features, response] is kept as its feature block A (d, d), which no resample
of the responses changes, and batches of the border b (B, d) and the response's variance c (B,).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.quadrature import nodes_for
from vntransfer.relations._matrices import WITHOUT_TORCH, between
from vntransfer.relations._smoother import Basis, Matrix, Penalty, choose_penalty, penalized

_BLOCK = 250
"""Resamples per block: bounds the memory to a few copies of the pair's rows times this."""


@dataclass(frozen=True)
class Bordered:
    """Joint covariances [[A, b], [b', c]]: A (d, d) for all, b (B, d), c (B,); no ridge yet."""

    A: Matrix
    b: Matrix
    c: Matrix

    def matrices(self, ridge: float) -> Matrix:
        """All of them in full, (B, d + 1, d + 1), with the ridge on the diagonal."""
        B, d = self.b.shape
        full = np.empty((B, d + 1, d + 1))
        full[:, :d, :d], full[:, :d, d], full[:, d, :d] = self.A, self.b, self.b
        full[:, d, d] = self.c
        return full + ridge * np.eye(d + 1)


def on_same_features(one: Bordered, other: Bordered, ridge: float, divergence: str) -> Matrix:
    """Divergence (B,) of two responses to the *same* features, ``one.A`` = ``other.A``.

    For the von Neumann family the feature blocks cancel and J has the form of
    `vntransfer.bordered`, here from moments instead of samples: with A = V diag(λ) V', β = V'b and
    τ = ε + t, Φ_xy = (c_xy - Σ β_x β_y/(λ + τ))/τ and κ = Σ β_δ²/(λ + τ). One decomposition of A
    serves the whole batch.
    """
    if divergence not in WITHOUT_TORCH:
        return between(one.matrices(ridge), other.matrices(ridge), divergence)
    values, V = np.linalg.eigh(one.A)
    values = np.maximum(values, 0.0)
    a, b = one.b @ V, other.b @ V
    high = float(values[-1] + max(one.c.max(), other.c.max()) + ridge)
    tau, _, weight = map(np.array, nodes_for(ridge, high, ridge))
    inverse = 1 / (values[:, None] + tau)  # (d, T)
    delta, mu = a - b, (a + b) / 2

    def phi(c: Matrix, products: Matrix) -> Matrix:
        return (c[:, None] - products @ inverse) / tau

    kappa, T = delta**2 @ inverse, phi((one.c - other.c) / 2, delta * mu)
    P, Q = (1 / (1 + np.maximum(phi(c, x**2), 0.0)) for c, x in ((one.c, a), (other.c, b)))
    return np.asarray((kappa * (P + Q) / (2 * tau) + 2 * T**2 * P * Q) @ weight)


@dataclass(frozen=True)
class Sample:
    """One domain's standardized rows, centered: X (n, d), y (n,), Φ (n, p), G = Φ'Φ, g = Φ'y."""

    X: Matrix
    y: Matrix
    Phi: Matrix
    G: Matrix
    g: Matrix

    @classmethod
    def of(cls, X: Matrix, y: Matrix, basis: Basis) -> "Sample":
        """Center the rows and their columns of the basis."""
        Phi = basis.columns(X)
        X, y, Phi = X - X.mean(0), y - y.mean(), Phi - Phi.mean(0)
        return cls(X, y, Phi, Phi.T @ Phi, Phi.T @ y)

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Responses:
    """Contribution of B responses y* (n, B) of one domain to the statistic of a pair."""

    own: Matrix  # X'y* (d, B): the border of the domain's own covariance
    refit: Matrix  # M Φ'y* (2d, B): its share in the borders that fitting both again gives
    yy: Matrix  # y*'y* (B,)


@dataclass(frozen=True)
class RelationPair:
    """Two domains under the null hypothesis that one relation, fitted to both, holds in both.

    The statistic compares, on each domain's *own* inputs, the covariance of [features, response]
    with the one that the common fit gives there, and averages the divergence over the rows of the
    two. Unlike the divergence between the two domains it is zero at the null hypothesis whatever
    the inputs are, so that any difference makes it larger.
    """

    samples: tuple[Sample, Sample]
    P: Matrix  # (p, p): from Φ'y of both domains to the common fit θ
    M: Matrix  # (2d, p): from Φ'y to X'Φθ in each of the two domains
    divergence: str
    ridge: float

    @classmethod
    def of(
        cls,
        one: Sample,
        two: Sample,
        basis: Basis,
        *,
        divergence: str,
        ridge: float,
        penalty: Penalty | None = None,
    ) -> "RelationPair":
        """Fit the common relation, with a penalty of its own unless one is given."""
        G, n = one.G + two.G, len(one) + len(two)
        if penalty is None:
            yy = float(one.y @ one.y + two.y @ two.y)
            penalty = choose_penalty(G, one.g + two.g, yy, n, 2, basis)
        P = np.linalg.inv(penalized(G, n, 2, basis, penalty))
        P = (P + P.T) / 2
        M = np.vstack([s.G[: basis.n_features] for s in (one, two)]) @ P
        return cls((one, two), P, M, divergence, ridge)

    def observed(self) -> float:
        """Statistic of the domains as they are."""
        return float(self._statistic([self._of(s.g, s.y @ s.y) for s in self.samples])[0])

    def _of(self, g: Matrix, yy: Any) -> Responses:
        d = len(self.M) // 2
        return Responses(g[:d, None], (self.M @ g)[:, None], np.array([yy]))

    def resampled(self, n_resamples: int, rng: np.random.Generator) -> Iterator[Matrix]:
        """Statistics of responses y* = fit + noise*, fitted again each time, block by block.

        The noise of a row is its own residual from the fit without it, with a random sign: noise
        may differ in size between domains and along the inputs, and neither is tested. Everything
        but y*'y* is linear in the noise: one product of a few rows with it.
        """
        theta = self.P @ (self.samples[0].g + self.samples[1].g)
        d = len(self.M) // 2
        fitted = [self._of(s.G @ theta, theta @ s.G @ theta) for s in self.samples]
        # float32: an error of 1e-6 in a resample is nothing, and it is twice as fast
        residuals = [self._out_of_fold(s, theta).astype(np.float32) for s in self.samples]
        maps = [
            np.vstack((s.X.T, self.M @ s.Phi.T, (s.Phi @ theta)[None])).astype(np.float32)
            for s in self.samples
        ]
        for done in range(0, n_resamples, _BLOCK):
            size = min(_BLOCK, n_resamples - done)
            drawn = []
            for own, mean, rows in zip(residuals, fitted, maps, strict=True):
                E = _signed(own, size, rng)
                E -= E.mean(0)
                R = (rows @ E).astype(np.float64)
                yy = mean.yy + 2 * R[-1] + np.einsum("nb,nb->b", E, E)
                drawn.append(Responses(mean.own + R[:d], mean.refit + R[d:-1], yy))
            yield self._statistic(drawn)

    def _out_of_fold(self, s: Sample, theta: Matrix) -> Matrix:
        """Residuals of each row from the fit without it: those within the fit are too small.

        Leaving a row out of a linear smoother multiplies its residual by 1/(1 - leverage).
        """
        leverage = ((s.Phi @ self.P) * s.Phi).sum(1) + 1 / len(s)
        return (s.y - s.Phi @ theta) / (1 - np.minimum(leverage, 0.95))

    def _statistic(self, responses: list[Responses]) -> Matrix:
        refit = np.split(responses[0].refit + responses[1].refit, 2)
        total = np.zeros(refit[0].shape[1])
        for s, r, common in zip(self.samples, responses, refit, strict=True):
            total += _misfit(s, r.own.T, r.yy, common.T, self.divergence, self.ridge)
        return total / sum(map(len, self.samples))


def _misfit(s: Sample, b: Matrix, c: Matrix, common: Matrix, divergence: str, ridge: float) -> Any:
    """Rows times the divergence (B,) of responses of a domain, X'y (B, d) and y'y, and of fits."""
    d, rows = common.shape[1], len(s) - 1
    parts = s.G[:d, :d] / rows, b / rows, c / rows, common / rows
    own = Bordered(*parts[:3])
    expected = _with_own_noise(own, parts[3], ridge)
    return len(s) * on_same_features(own, expected, ridge, divergence)


def common_penalty(samples: Sequence[Sample], basis: Basis) -> Penalty:
    """Choose one penalty for all pairs: that of a pair with the mean moments of the samples."""
    share = 2 / len(samples)
    G, g, yy = (
        share * sum(parts)
        for parts in zip(*((s.G, s.g, float(s.y @ s.y)) for s in samples), strict=True)
    )
    return choose_penalty(G, g, yy, round(share * sum(map(len, samples))), 2, basis)


def all_statistics(
    samples: Sequence[Sample], basis: Basis, penalty: Penalty, *, divergence: str, ridge: float
) -> Matrix:
    """Statistics (K, K) of all pairs, as `RelationPair.observed` gives them, in few large steps."""
    K, d = len(samples), basis.n_features
    common = np.zeros((K, K, d))  # X'Φθ of the fit to both, in the first of the two
    for i, one in enumerate(samples):
        for start in range(i + 1, K, 20):  # bounds the memory
            others = samples[start : start + 20]
            G = [penalized(one.G + s.G, len(one) + len(s), 2, basis, penalty) for s in others]
            theta = np.linalg.solve(np.stack(G), np.stack([one.g + s.g for s in others])[..., None])
            common[i, start : start + 20] = theta[..., 0] @ one.G[:, :d]
            for j, s in enumerate(others, start):
                common[j, i] = s.G[:d] @ theta[j - start, :, 0]
    total = np.zeros((K, K))
    for i, one in enumerate(samples):
        others = np.arange(K) != i
        b, c = np.tile(one.g[:d], (K - 1, 1)), np.full(K - 1, one.y @ one.y)
        total[i, others] = _misfit(one, b, c, common[i, others], divergence, ridge)
    rows = np.array([len(s) for s in samples])
    return (total + total.T) / np.add.outer(rows, rows)


def _with_own_noise(own: Bordered, b: Matrix, ridge: float) -> Bordered:
    """Covariances with borders b that leave as much of the response unexplained as ``own``.

    The size of the noise is then no part of the comparison.
    """
    root = np.linalg.cholesky(own.A + ridge * np.eye(len(own.A)))

    def explained(border: Matrix) -> Matrix:
        return np.asarray((np.linalg.solve(root, border.T) ** 2).sum(0))

    unexplained = np.maximum(own.c - explained(own.b), 0.0)
    return Bordered(own.A, b, unexplained + explained(b))


def _signed(residuals: NDArray[np.float32], size: int, rng: np.random.Generator) -> Any:
    """Residuals (n, size) with random signs."""
    n = len(residuals)
    bits = np.frombuffer(rng.bytes(-(-n * size // 8)), dtype=np.uint8)
    signs = np.unpackbits(bits)[: n * size].reshape(n, size)
    half = residuals[:, None]
    return signs * (2 * half) - half


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
