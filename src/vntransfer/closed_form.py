"""Ridge regression from moments, on columns and fixed random features: nothing is trained.

Let z be a row's standardized columns together with random features, y its m responses, and n, μ, S
the moments of [z, y] (`Moments`). Ridge regression with an intercept that is not penalized needs
nothing else:

    B = (S_zz + λ t I)⁻¹ S_zy,  c = μ_y - B'μ_z,  t = tr(S_zz)/q,

and the mean squared error of any (B, c) on other rows follows from *their* moments,

    E = [S_yy - B'S_zy - S_yz B + B'S_zz B]/n + r r',  r = μ_y - c - B'μ_z  (its diagonal).

So moments of domains, added and scaled, give the fit without a domain, its error there, the choice
of λ and the effect of weights by small linear solves, whatever the order and split of the rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.special
import torch
from numpy.typing import NDArray
from torch import Tensor

from vntransfer.errors import ArgumentError
from vntransfer.moments import Moments

Floats = NDArray[np.float64]

RIDGES = tuple(10.0**power for power in range(-6, 3))
"""Ridges to choose from, relative to the mean diagonal entry of S_zz."""

JITTER = 1e-12
"""Added to every ridge, relative likewise: rounding of the sums must not make S_zz indefinite."""


def normal_numbers(seed: int, count: int) -> Floats:
    """Independent N(0, 1) numbers that are the same on every machine and for every version.

    The counter-based generator Philox is specified bit by bit; its integers become uniform numbers
    and those normal ones by the inverse of the distribution function. (numpy's own normal numbers
    may change between its versions.)
    """
    raw = np.random.Philox(key=seed).random_raw(count)
    uniform = ((raw >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(scipy.special.ndtri(uniform))


@dataclass(frozen=True)
class RandomFeatures:
    """z = [s, relu(W s/√p + b)] with s = (x - center)/scale and W, b ~ N(0, 1) fixed by a seed.

    Examples
    --------
    >>> features = RandomFeatures(center=np.zeros(2), scale=np.ones(2), count=3, seed=0)
    >>> features(np.array([[1.0, 2.0]])).shape
    (1, 5)
    """

    center: Floats  # (p,)
    scale: Floats  # (p,)
    count: int  # of random ones
    seed: int

    def __post_init__(self) -> None:
        p = len(self.center)
        drawn = normal_numbers(self.seed, (p + 1) * self.count).reshape(p + 1, self.count)
        object.__setattr__(self, "_weights", drawn[:-1] / max(p, 1) ** 0.5)
        object.__setattr__(self, "_bias", drawn[-1])

    @classmethod
    def standardizing(
        cls, x: Floats, count: int, seed: int, weights: Floats | None = None
    ) -> "RandomFeatures":
        """Take center and scale from rows (n, p); constant columns keep their scale."""
        center = np.average(x, axis=0, weights=weights)
        scale = np.sqrt(np.average((x - center) ** 2, axis=0, weights=weights))
        scale[scale <= 1e-12 * np.abs(x).max(0, initial=0.0)] = 1.0
        return cls(center, scale, count, seed)

    def __call__(self, x: Floats) -> Floats:
        """Features (n, p + count) of rows (n, p)."""
        s = (x - self.center) / self.scale
        if not self.count:
            return np.asarray(s)
        hidden = s @ self._weights  # type: ignore[attr-defined]
        hidden += self._bias  # type: ignore[attr-defined]
        return np.hstack((s, np.maximum(hidden, 0.0, out=hidden)))

    def same(self, other: "RandomFeatures") -> bool:
        """Whether both give the same features, so that moments of them can be added."""
        return (
            (self.count, self.seed) == (other.count, other.seed)
            and np.array_equal(self.center, other.center)
            and np.array_equal(self.scale, other.scale)
        )


class RidgeFit(NamedTuple):
    """Predictions are c + z B."""

    coefficients: Tensor  # B (q, m)
    intercept: Tensor  # c (m,)
    ridge: float  # λ


def fit_ridge(moments: Moments, responses: int, ridge: float) -> RidgeFit:
    """Solve for B and c by Cholesky; the last ``responses`` columns of the moments are y."""
    q = moments.n_features - responses
    inner = moments.scatter[:q, :q]
    size = float(inner.diagonal().mean())
    if not size > 0:
        return RidgeFit(inner.new_zeros(q, responses), moments.mean[q:], ridge)
    penalty = (ridge + JITTER) * size
    factor, failed = torch.linalg.cholesky_ex(inner + penalty * torch.eye(q).to(inner))
    if int(failed) or (ridge == 0 and float(moments.count) <= q):
        raise ArgumentError(
            f"ridge: {ridge:g} with {float(moments.count):g} rows and {q} features leaves a "
            f"singular system; take a positive one, or 'auto'"
        )
    B = torch.cholesky_solve(moments.scatter[:q, q:], factor)
    return RidgeFit(B, moments.mean[q:] - moments.mean[:q] @ B, ridge)


def squared_error(fit: RidgeFit, moments: Moments) -> float:
    """Mean over responses of the mean squared error on the rows of some moments, exactly."""
    q = len(fit.coefficients)
    S, B = moments.scatter, fit.coefficients
    cross = (S[:q, q:] * B).sum(0)
    square = S[q:, q:].diagonal() - 2 * cross + ((S[:q, :q] @ B) * B).sum(0)
    bias = moments.mean[q:] - fit.intercept - moments.mean[:q] @ B
    return float((square.clamp_min(0) / moments.count + bias.square()).mean())


def without(parts: Sequence[Moments], weights: Sequence[float], left_out: int) -> Moments:
    """Weighted moments of all parts but one."""
    kept = [k for k in range(len(parts)) if k != left_out and weights[k] > 0]
    return Moments.weighted([parts[k] for k in kept], [weights[k] for k in kept])


def choose_ridge(parts: Sequence[Moments], responses: int, weights: Sequence[float]) -> float:
    """λ with the smallest error: of left-out parts in turn, or of generalized cross-validation.

    Errors of the parts enter relative to the variance of their responses, as the mean of their
    logarithms: a part on a large scale does not decide alone.
    """
    own = [k for k, weight in enumerate(weights) if weight > 0]
    if len(own) < 2:
        return _cross_validated(parts[own[0]], responses)
    total = np.zeros(len(RIDGES))
    for k in own:
        rest = without(parts, weights, k)
        errors = [squared_error(fit_ridge(rest, responses, ridge), parts[k]) for ridge in RIDGES]
        total += np.log(np.maximum(errors, np.finfo(float).tiny))
    return RIDGES[int(total.argmin())]


def _cross_validated(moments: Moments, responses: int) -> float:
    """λ with the smallest RSS/(1 - df/n)², df = 1 + Σ s/(s + λt) over eigenvalues s of S_zz."""
    q, n = moments.n_features - responses, float(moments.count)
    values = torch.linalg.eigvalsh(moments.scatter[:q, :q]).clamp_min(0)
    size = float(values.mean())
    if not size > 0:
        return RIDGES[-1]
    scores = []
    for ridge in RIDGES:
        freedom = 1 + float((values / (values + ridge * size)).sum())
        error = squared_error(fit_ridge(moments, responses, ridge), moments)
        scores.append(error / max(1 - freedom / n, 1e-6) ** 2)
    return RIDGES[int(np.argmin(scores))]
