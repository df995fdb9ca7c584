"""Distances between SPD matrices that satisfy the triangle inequality."""

from typing import Any

import torch
from torch import Tensor

from vntransfer.arrays import Array
from vntransfer.divergences._matrix import RelativeSpectrum, directions, pair
from vntransfer.linalg import log_of, once, safe_sqrt, spectrum


def jensen_von_neumann(sigma: Array, rho: Array) -> Array:
    """Square root of the quantum Jensen-Shannon divergence, √(½ D(σ‖μ) + ½ D(ρ‖μ)), μ = (σ+ρ)/2.

    For SPD matrices (..., n, n). Prefer it where a metric is needed: it is the closest relative of
    √J, with the same entropies, symmetrized over the midpoint. It is a metric on all positive
    semidefinite matrices (Virosztek 2021, Sra 2021).

    Examples
    --------
    >>> import numpy as np
    >>> round(float(jensen_von_neumann(np.diag([1.0, 2.0]), np.diag([2.0, 1.0]))), 4)
    0.4122
    """
    both = pair(sigma, rho)
    middle = (both.sigma + both.rho) / 2
    there, _ = directions(both.sigma, middle, both.eps)
    back, _ = directions(both.rho, middle, both.eps, ("rho", "sigma + rho"))
    return both.back(safe_sqrt((there + back) / 2))


def log_euclidean(sigma: Array, rho: Array) -> Array:
    """Log-Euclidean distance ‖log σ - log ρ‖_F of SPD matrices (..., n, n).

    Examples
    --------
    >>> import numpy as np
    >>> round(float(log_euclidean(np.diag([1.0, np.e]), np.eye(2))), 4)
    1.0
    """
    both = pair(sigma, rho)
    gap = log_of(both.sigma, "sigma", both.eps) - log_of(both.rho, "rho", both.eps)
    return both.back(safe_sqrt(gap.square().sum((-1, -2))))


class _AffineInvariant(torch.autograd.Function):
    """√ Σ log² μ over the relative eigenvalues; dμ = w'(dσ - μ dρ)w."""

    @staticmethod
    def forward(ctx: Any, sigma: Tensor, rho: Tensor, eps: float) -> Tensor:
        relative = RelativeSpectrum(sigma, rho, eps)
        distance = relative.sum(lambda _, log_mu: log_mu.square()).sqrt()
        halves = relative.above, relative.above_vectors, relative.below, relative.below_vectors
        ctx.save_for_backward(sigma, rho, distance, *halves)
        return distance

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        sigma, rho, distance, above, up_vectors, below, down_vectors = ctx.saved_tensors
        factor = half_slope(upstream[0], distance)

        def half(values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
            large = values.clamp_min(1.0)
            own, other = 2 * large.log() / large, -2 * large.log()
            return tuple(  # type: ignore[return-value]
                (vectors * weight.unsqueeze(-2)) @ vectors.mT for weight in (own, other)
            )

        with torch.no_grad():
            up_sigma, up_rho = half(above, up_vectors)
            down_rho, down_sigma = half(below, down_vectors)
            on_sigma, on_rho = factor * (up_sigma + down_sigma), factor * (up_rho + down_rho)
        return once(on_sigma, sigma, rho), once(on_rho, sigma, rho), None


def half_slope(upstream: Tensor, distance: Tensor) -> Tensor:
    """Slope ½/d of d = √(d²), zero at d = 0, times the upstream gradient, as a factor."""
    positive = distance > 0
    slope = torch.where(positive, 0.5 / torch.where(positive, distance, 1.0), 0.0)
    return (upstream * slope)[..., None, None]


def affine_invariant(sigma: Array, rho: Array) -> Array:
    """Affine-invariant Riemannian distance ‖log(ρ^-½ σ ρ^-½)‖_F of SPD matrices (..., n, n).

    Invariant under any common invertible linear map of the columns, including rescaling.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(affine_invariant(np.diag([1.0, np.e]), np.eye(2))), 4)
    1.0
    """
    both = pair(sigma, rho)
    return both.back(_AffineInvariant.apply(both.sigma, both.rho, both.eps))


class _BuresWasserstein(torch.autograd.Function):
    """min over orthogonal O of ‖σ^½ - ρ^½ O‖_F, with O from the singular vectors of ρ^½ σ^½.

    d²/dσ = I - T, T = σ^-½ (σ^½ ρ σ^½)^½ σ^-½ the optimal map from N(0, σ) to N(0, ρ); with the gap
    M = σ^½ - ρ^½ O it is the symmetric part of M σ^-½, and d²/dρ that of -M O' ρ^-½.
    """

    @staticmethod
    def forward(ctx: Any, sigma: Tensor, rho: Tensor, eps: float) -> Tensor:
        s, r = spectrum(sigma, "sigma", eps), spectrum(rho, "rho", eps)
        S, R = s.apply(s.values.sqrt()), r.apply(r.values.sqrt())
        P, _, Qt = torch.linalg.svd(R @ S)
        turn = P @ Qt
        gap = S - R @ turn
        equal = (sigma == rho).all((-1, -2))  # rounding would leave a distance, and a slope
        distance = torch.linalg.vector_norm(gap, dim=(-1, -2)).masked_fill(equal, 0.0)
        inverses = s.apply(s.values.rsqrt()), r.apply(r.values.rsqrt())
        ctx.save_for_backward(sigma, rho, gap, turn, *inverses, distance)
        return distance

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        sigma, rho, gap, turn, of_sigma, of_rho, distance = ctx.saved_tensors
        factor = half_slope(upstream[0], distance)
        with torch.no_grad():  # from the gap itself: I - T would cancel near equality
            slopes = gap @ of_sigma, -(gap @ turn.mT) @ of_rho
            on_sigma, on_rho = (factor * (slope + slope.mT) / 2 for slope in slopes)
        return once(on_sigma, sigma, rho), once(on_rho, sigma, rho), None


def bures_wasserstein(sigma: Array, rho: Array) -> Array:
    """Bures-Wasserstein distance √(tr σ + tr ρ - 2 tr (σ^½ ρ σ^½)^½) of SPD matrices (..., n, n).

    The optimal-transport distance of centered Gaussians. Computed as a norm of a difference, which
    keeps all digits near equality.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(bures_wasserstein(np.diag([1.0, 4.0]), np.eye(2))), 4)
    1.0
    """
    both = pair(sigma, rho)
    return both.back(_BuresWasserstein.apply(both.sigma, both.rho, both.eps))
