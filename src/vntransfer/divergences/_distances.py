"""Distances between SPD matrices for which the triangle inequality does hold."""

from typing import Any

import torch
from torch import Tensor

from vntransfer._arrays import Array
from vntransfer.divergences._matrix import directions, pair, relative_eigenvalues
from vntransfer.linalg import Spectrum, once, safe_sqrt, spectrum, sym_logm


def jensen_von_neumann(sigma: Array, rho: Array) -> Array:
    """Square root of the quantum Jensen-Shannon divergence, √(½ D(σ‖μ) + ½ D(ρ‖μ)), μ = (σ+ρ)/2.

    The metric nearest in kind to √J: the same entropies, symmetrised over the midpoint. A metric
    on all positive semidefinite matrices (Virosztek 2021, Sra 2021).

    Parameters
    ----------
    sigma, rho
        SPD matrices (..., n, n).

    Examples
    --------
    >>> import numpy as np
    >>> round(float(jensen_von_neumann(np.diag([1.0, 2.0]), np.diag([2.0, 1.0]))), 4)
    0.4122
    """
    s, r, back = pair(sigma, rho)
    middle = (s + r) / 2
    value = (directions(s, middle)[0] + directions(r, middle)[0]) / 2
    return back(safe_sqrt(value))


def log_euclidean(sigma: Array, rho: Array) -> Array:
    """Log-Euclidean distance ‖log σ - log ρ‖_F.

    Parameters
    ----------
    sigma, rho
        SPD matrices (..., n, n).

    Examples
    --------
    >>> import numpy as np
    >>> round(float(log_euclidean(np.diag([1.0, np.e]), np.eye(2))), 4)
    1.0
    """
    s, r, back = pair(sigma, rho)
    gap = sym_logm(s, "sigma") - sym_logm(r, "rho")
    return back(safe_sqrt(gap.square().sum((-1, -2))))


def affine_invariant(sigma: Array, rho: Array) -> Array:
    """Affine-invariant Riemannian distance ‖log(ρ^-½ σ ρ^-½)‖_F.

    Invariant under any common invertible linear map of the columns, rescaling included.

    Parameters
    ----------
    sigma, rho
        SPD matrices (..., n, n).

    Examples
    --------
    >>> import numpy as np
    >>> round(float(affine_invariant(np.diag([1.0, np.e]), np.eye(2))), 4)
    1.0
    """
    s, r, back = pair(sigma, rho)
    value = relative_eigenvalues(s, r).log().square().sum(-1)
    return back(safe_sqrt(value).to(s.dtype))


class _BuresWasserstein(torch.autograd.Function):
    """min over orthogonal O of ‖σ^½ - ρ^½ O‖_F, with O from the singular vectors of ρ^½ σ^½.

    d²/dσ = I - T, T = σ^-½ (σ^½ ρ σ^½)^½ σ^-½ the optimal map from N(0, σ) to N(0, ρ).
    """

    @staticmethod
    def forward(ctx: Any, sigma: Tensor, rho: Tensor) -> Tensor:
        s, r = spectrum(sigma, "sigma"), spectrum(rho, "rho")
        S, R = s.apply(s.values.sqrt()), r.apply(r.values.sqrt())
        P, singular, Qt = torch.linalg.svd(R @ S)
        distance = torch.linalg.vector_norm(S - R @ P @ Qt, dim=(-1, -2))
        ctx.save_for_backward(s.values, s.vectors, r.values, r.vectors, P, singular, Qt, distance)
        return distance.to(sigma.dtype)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        *spectra, P, singular, Qt, distance = ctx.saved_tensors
        s, r = Spectrum(*spectra[:2]), Spectrum(*spectra[2:])
        positive = distance > 0
        factor = torch.where(positive, 0.5 / torch.where(positive, distance, 1.0), 0.0)
        factor = (upstream[0].double() * factor)[..., None, None]

        def one(own: Spectrum, basis: Tensor) -> Tensor:
            inverse = own.apply(own.values.rsqrt())
            middle = own.apply(own.values) - (basis * singular.unsqueeze(-2)) @ basis.mT
            return once((factor * (inverse @ middle @ inverse)).to(upstream[0].dtype))

        return one(s, Qt.mT), one(r, P)


def bures_wasserstein(sigma: Array, rho: Array) -> Array:
    """Bures-Wasserstein distance √(tr σ + tr ρ - 2 tr (σ^½ ρ σ^½)^½).

    The optimal-transport distance of centred Gaussians. Computed as a norm of a difference, which
    keeps all digits near equality.

    Parameters
    ----------
    sigma, rho
        SPD matrices (..., n, n).

    Examples
    --------
    >>> import numpy as np
    >>> round(float(bures_wasserstein(np.diag([1.0, 4.0]), np.eye(2))), 4)
    1.0
    """
    s, r, back = pair(sigma, rho)
    return back(_BuresWasserstein.apply(s, r))
