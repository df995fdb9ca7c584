"""Divergences of many joint covariances at once, given by what the resamples change.

A joint covariance of [features, response] is kept as its feature block A (d, d), which no resample
of the responses changes, and batches of the border b (B, d) and the response's variance c (B,).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from vntransfer.divergences import DIVERGENCES
from vntransfer.integrands import scalar_integrand
from vntransfer.quadrature import nodes_for

SHARED = ("conditional_von_neumann", "jeffreys")
"""Divergences that the bordered kernel gives where both matrices share their feature block."""


@dataclass(frozen=True)
class Bordered:
    """Joint covariances [[A, b], [b', c]]: A (d, d) for all, b (B, d), c (B,); no ridge yet."""

    A: Tensor
    b: Tensor
    c: Tensor

    def matrices(self, ridge: float) -> Tensor:
        """All of them in full, (B, d + 1, d + 1), with the ridge on the diagonal."""
        B, d = self.b.shape
        full = self.A.new_empty(B, d + 1, d + 1)
        full[:, :d, :d], full[:, :d, d], full[:, d, :d] = self.A, self.b, self.b
        full[:, d, d] = self.c
        return full + ridge * torch.eye(d + 1, dtype=full.dtype)


def between(sigma: Tensor, rho: Tensor, divergence: str) -> Tensor:
    """Symmetrized divergence of matrices (B, n, n), response last: the mean of both directions.

    Examples
    --------
    >>> a = torch.diag(torch.tensor([1.0, 2.0], dtype=torch.float64))[None]
    >>> bool(between(a, 2 * a, "von_neumann") == between(2 * a, a, "von_neumann"))
    True
    """
    entry = DIVERGENCES[divergence]
    there = entry.function(sigma, rho)
    return there if entry.symmetric else (there + entry.function(rho, sigma)) / 2


def on_same_features(one: Bordered, other: Bordered, ridge: float, divergence: str) -> Tensor:
    """Divergence (B,) of two responses to the *same* features, ``one.A`` = ``other.A``.

    For the von Neumann family the feature blocks cancel and J has the form of
    `vntransfer.bordered`, here from moments instead of samples: with A = V diag(λ) V', β = V'b and
    τ = ε + t, Φ_xy = (c_xy - Σ β_x β_y/(λ + τ))/τ and κ = Σ β_δ²/(λ + τ). One decomposition of A
    serves the whole batch.

    Examples
    --------
    >>> A, c = torch.eye(2).double(), torch.ones(1).double()
    >>> one, other = (Bordered(A, torch.tensor([[v, 0.0]]).double(), c) for v in (0.5, -0.5))
    >>> round(float(on_same_features(one, other, 0.0001, "conditional_von_neumann")), 4)
    1.0985
    """
    if divergence not in SHARED:
        return between(one.matrices(ridge), other.matrices(ridge), divergence)
    values, V = torch.linalg.eigh(one.A)
    values = values.clamp_min(0)
    a, b = one.b @ V, other.b @ V
    high = values[-1] + torch.maximum(one.c, other.c) + ridge
    grid = nodes_for(ridge, high, ridge)
    inverse = 1 / (values.unsqueeze(-1) + grid.tau)  # (d, T)
    delta, mu = a - b, (a + b) / 2
    kappa = delta.square() @ inverse

    def phi(c: Tensor, products: Tensor) -> Tensor:
        return (c.unsqueeze(-1) - products @ inverse) / grid.tau

    terms = torch.stack(
        (
            kappa,
            phi((one.c - other.c) / 2, delta * mu),
            phi(one.c, a.square()).clamp_min(0),
            phi(other.c, b.square()).clamp_min(0),
        ),
        1,
    )
    return scalar_integrand(terms, grid.tau)[0] @ grid.weight
