"""The statistic of one pair of domains, observed and under either null hypothesis."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from vntransfer.relations._resampled_divergences import Bordered, between, on_same_features
from vntransfer.relations._smoother import Basis, Fit, Matrix, fit

Noise = Literal["wild", "own", "common"]
_BLOCK = 250
"""Resamples per block: bounds the memory to a few copies of the pair's rows times this."""


@dataclass(frozen=True)
class Sample:
    """One domain's standardized rows, centered: X (n, d), y (n,), Φ (n, p), G = Φ'Φ, g = Φ'y."""

    X: Matrix
    y: Matrix
    Phi: Matrix
    G: Matrix
    g: Matrix

    @classmethod
    def of(cls, X: Matrix, y: Matrix, basis: Basis | None) -> "Sample":
        """Center the rows, and their columns of the basis if there is one."""
        Phi = X if basis is None else basis.columns(X)
        X, y, Phi = X - X.mean(0), y - y.mean(), Phi - Phi.mean(0)
        return cls(X, y, Phi, Phi.T @ Phi, Phi.T @ y)

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Responses:
    """What B responses of one domain, y* (n, B), mean for the statistic of a pair.

    Parameters
    ----------
    own
        X'y* (d, B): the border of the domain's own covariance.
    refit
        M Φ'y* (2d, B): its share in the borders that fitting both domains again gives.
    yy
        y*'y* (B,).
    g
        Φ'y* (p, B); of noise that is not common it is not needed, (0, B).
    """

    own: Matrix
    refit: Matrix
    yy: Matrix
    g: Matrix


@dataclass(frozen=True)
class RelationPair:
    """Two domains under the null hypothesis that one relation, fitted to both, holds in both.

    The statistic compares, on each domain's *own* inputs, the covariance of [features, response]
    with the one that the common fit gives there, and averages the divergence over the rows of the
    two. Unlike the divergence between the two domains it is zero at the null hypothesis whatever
    the inputs are, so that any difference makes it larger.
    """

    samples: tuple[Sample, Sample]
    common: Fit
    M: Matrix  # (2d, p): from Φ'y to X'Φθ in each of the two domains
    noise: Noise
    divergence: str
    ridge: float

    @classmethod
    def of(
        cls,
        samples: tuple[Sample, Sample],
        basis: Basis,
        *,
        noise: Noise,
        divergence: str,
        ridge: float,
    ) -> "RelationPair":
        """Fit the common relation."""
        G, g = (sum((getattr(s, k) for s in samples[1:]), getattr(samples[0], k)) for k in "Gg")
        yy = float(sum(s.y @ s.y for s in samples))
        common = fit(G, g, yy, sum(map(len, samples)), len(samples), basis)
        M = np.vstack([s.G[: basis.n_features] for s in samples]) @ common.P
        return cls(samples, common, M, noise, divergence, ridge)

    def observed(self) -> float:
        """Statistic of the domains as they are."""
        return float(self._statistic([self._of(s.g, s.y @ s.y) for s in self.samples])[0])

    def _of(self, g: Matrix, yy: Any) -> Responses:
        """One response, given by Φ'y and y'y."""
        d = len(self.M) // 2
        return Responses(g[:d, None], (self.M @ g)[:, None], np.array([yy]), g[:, None])

    def resampled(self, n_resamples: int, rng: np.random.Generator) -> Iterator[Matrix]:
        """Statistics of responses y* = fit + noise*, fitted again each time, block by block.

        Everything is linear in the noise but y*'y*: one product of a few rows with the noise.
        """
        theta = self.common.P @ (self.samples[0].g + self.samples[1].g)
        residuals = [self._out_of_fold(s, theta) for s in self.samples]
        pooled, d = np.concatenate(residuals), len(self.M) // 2
        fitted = [self._of(s.G @ theta, theta @ s.G @ theta) for s in self.samples]
        # float32: an error of 1e-6 in a resample is nothing, and it is twice as fast
        maps = [
            np.vstack((s.X.T, self.M @ s.Phi.T, (s.Phi @ theta)[None])).astype(np.float32)
            for s in self.samples
        ]
        for size in _sizes(n_resamples):
            drawn = []
            for s, own, mean, rows in zip(self.samples, residuals, fitted, maps, strict=True):
                E = _noise(self.noise, own, pooled, size, rng)
                E -= E.mean(0)
                R = (rows @ E).astype(np.float64)
                yy = mean.yy + 2 * R[-1] + np.einsum("nb,nb->b", E, E)
                g = mean.g + s.Phi.T @ E if self.noise == "common" else np.zeros((0, size))
                drawn.append(Responses(mean.own + R[:d], mean.refit + R[d:-1], yy, g))
            yield self._statistic(drawn)

    def _out_of_fold(self, s: Sample, theta: Matrix) -> Matrix:
        """Residuals of each row from the fit without it: those within the fit are too small.

        Leaving a row out of a linear smoother multiplies its residual by 1/(1 - leverage).
        """
        leverage = ((s.Phi @ self.common.P) * s.Phi).sum(1) + 1 / len(s)
        return (s.y - s.Phi @ theta) / (1 - np.minimum(leverage, 0.95))

    def _statistic(self, responses: list[Responses]) -> Matrix:
        own = [_border(s, r.own, r.yy) for s, r in zip(self.samples, responses, strict=True)]
        refit = np.split(responses[0].refit + responses[1].refit, 2)
        variances = self._common_noise(responses) if self.noise == "common" else (None, None)
        total = np.zeros(refit[0].shape[1])
        for s, part, b, c in zip(self.samples, own, refit, variances, strict=True):
            expected = _border(s, b, part.c.numpy() if c is None else c)
            if c is None:
                expected = _with_own_noise(part, expected.b, self.ridge)
            value = on_same_features(part, expected, self.ridge, self.divergence)
            total += len(s) * value.numpy()
        return total / sum(map(len, self.samples))

    def _common_noise(self, responses: list[Responses]) -> list[Matrix]:
        """Give y'y (B,) of each domain for the common fit, noise of the same size in both."""
        g = responses[0].g + responses[1].g
        theta = self.common.P @ g
        fitted = [np.einsum("pb,pb->b", theta, s.G @ theta) for s in self.samples]
        error = sum(r.yy for r in responses) + sum(fitted) - 2 * (theta * g).sum(0)
        freedom = max(sum(map(len, self.samples)) - self.common.freedom, 1.0)
        noise = np.maximum(error, 0.0) / freedom
        return [f + (len(s) - 1) * noise for f, s in zip(fitted, self.samples, strict=True)]


def _border(s: Sample, b: Matrix, yy: Matrix) -> Bordered:
    """Joint covariances of a domain's features with responses given by X'y (d, B) and y'y (B,)."""
    d, rows = len(b), len(s) - 1
    parts = s.G[:d, :d] / rows, b.T / rows, yy / rows
    return Bordered(*(torch.from_numpy(np.ascontiguousarray(part)) for part in parts))


def _with_own_noise(own: Bordered, b: torch.Tensor, ridge: float) -> Bordered:
    """Covariances with borders b that leave as much of the response unexplained as ``own``.

    The size of the noise is then no part of the comparison.
    """
    root = torch.linalg.cholesky(own.A + ridge * torch.eye(len(own.A), dtype=own.A.dtype))

    def explained(border: torch.Tensor) -> torch.Tensor:
        return torch.linalg.solve_triangular(root, border.mT, upper=False).square().sum(0)

    unexplained = (own.c - explained(own.b)).clamp_min(0)
    return Bordered(own.A, b, unexplained + explained(b))


def _noise(
    kind: Noise, own: Matrix, pooled: Matrix, size: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Noise (n, size) of one domain, from out-of-fold residuals."""
    if kind == "wild":
        bits = np.frombuffer(rng.bytes(-(-len(own) * size // 8)), dtype=np.uint8)
        signs = np.unpackbits(bits)[: len(own) * size].reshape(len(own), size)
        half = own.astype(np.float32)[:, None]
        return signs * (2 * half) - half
    drawn = own if kind == "own" else pooled
    centered = (drawn - drawn.mean()).astype(np.float32)
    return centered[rng.integers(0, len(drawn), (len(own), size))]


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
