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
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from vntransfer.checks import Floats
from vntransfer.errors import ArgumentError
from vntransfer.moments import Moments
from vntransfer.random_features import RandomFeatures

RIDGES = tuple(10.0**power for power in range(-6, 3))
"""Ridges to choose from, relative to the mean diagonal entry of S_zz."""

MOST = 20
"""Parts, or groups of them, that are left out in turn to choose a ridge."""

BLOCK = 2048
"""Rows whose moments are taken at once: z of these fits into a processor's cache."""

JITTER = 1e-12
"""Added to every ridge, relative likewise: rounding of the sums must not make S_zz indefinite."""


def feature_moments(
    features: RandomFeatures, x: Floats, y: Floats | None = None, weights: Floats | None = None
) -> Moments:
    """Moments of [z, y] of rows x (n, p) with responses (n, m), in blocks: z is never held whole.

    Examples
    --------
    >>> features = RandomFeatures(np.zeros(1), np.ones(1), count=2, seed=0)
    >>> feature_moments(features, np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]]))
    <Moments of 2 samples in 4 columns>
    """
    q = len(features.center) + features.count
    scratch = np.empty((min(BLOCK, len(x)), q + (0 if y is None else y.shape[1])))
    total: Moments | None = None
    for at in range(0, len(x), BLOCK):
        some = slice(at, at + BLOCK)
        z = scratch[: len(x[some])]
        features.into(z[:, :q], x[some])
        if y is not None:
            z[:, q:] = y[some]
        w = np.ones(len(z)) if weights is None else weights[some]
        if not w.any():
            continue
        mean = z.mean(0) if weights is None else w @ z / w.sum()
        z -= mean
        if weights is not None:
            z *= np.sqrt(w)[:, None]
        # numpy takes the product of a matrix with itself by half the operations
        count, square_count = torch.as_tensor(w.sum()), torch.as_tensor(w @ w)
        scatter = torch.from_numpy(z.T @ z)
        new = Moments(count, square_count, torch.from_numpy(mean), scatter, numpy=True)
        total = new if total is None else total.merge(new)
    if total is None:
        raise ArgumentError("x: no row has a positive weight; give at least one")
    return total


class RidgeFit(NamedTuple):
    """Predictions are c + z B."""

    coefficients: Tensor  # B (q, m)
    intercept: Tensor  # c (m,)
    ridge: float  # λ


def fit_ridge(moments: Moments, responses: int, ridge: float) -> RidgeFit:
    """Solve for B and c by Cholesky; the last ``responses`` columns of the moments are y."""
    q = moments.n_features - responses
    if not float(moments.scatter[:q, :q].diagonal().mean()) > 0:
        return RidgeFit(moments.mean.new_zeros(q, responses), moments.mean[q:], ridge)
    B = torch.cholesky_solve(moments.scatter[:q, q:], _factor(moments, q, ridge))
    return RidgeFit(B, moments.mean[q:] - moments.mean[:q] @ B, ridge)


def _factor(moments: Moments, q: int, ridge: float) -> Tensor:
    """Cholesky factor of S_zz + (λ + jitter) t I."""
    inner = moments.scatter[:q, :q]
    penalty = (ridge + JITTER) * inner.diagonal().mean()
    factor, failed = torch.linalg.cholesky_ex(inner + penalty * torch.eye(q).to(inner))
    if int(failed) or (ridge == 0 and float(moments.count) <= q):
        raise ArgumentError(
            f"ridge: {ridge:g} with {float(moments.count):g} rows and {q} features leaves a "
            f"singular system; use a positive one, or 'auto'"
        )
    return factor


def leave_one_out(fit: RidgeFit, moments: Moments, z: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    """Predictions (n, m) of rows by fits without them: y - (y - c - zB)/(1 - h).

    The rows z (n, q) are among those of the moments with these weights w, and
    h = w [1/n + (z - μ)'(S_zz + λtI)⁻¹(z - μ)] is their leverage, t being that of all rows.
    """
    q = z.shape[1]
    centered = z - moments.mean[:q]
    leverage = torch.full_like(weights, 1 / float(moments.count))
    if float(moments.scatter[:q, :q].diagonal().mean()) > 0:
        half = torch.linalg.solve_triangular(
            _factor(moments, q, fit.ridge), centered.mT, upper=False
        )
        leverage += half.square().sum(0)
    gap = y - fit.intercept - z @ fit.coefficients
    return y - gap / (1 - weights * leverage).clamp_min(1e-6)[:, None]


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
    logarithms: a part on a large scale does not decide alone. With more than twenty parts, twenty
    groups are left out in turn: costs would grow with the square of their number.
    """
    own = [k for k, weight in enumerate(weights) if weight > 0]
    if len(own) < 2:
        return _cross_validated(parts[own[0]], responses)
    if len(own) > MOST:
        groups = [own[i::MOST] for i in range(MOST)]
        parts = [
            Moments.weighted([parts[k] for k in group], [weights[k] for k in group])
            for group in groups
        ]
        weights = [sum(weights[k] for k in group) for group in groups]
        own = list(range(MOST))
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
