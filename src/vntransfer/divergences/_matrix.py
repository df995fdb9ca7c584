"""Von Neumann and LogDet divergences between symmetric positive definite (SPD) matrices.

The functions take SPD matrices (..., n, n), give (...), and never add a ridge. They work in
float64 inside, whatever the dtype, and sum non-negative terms wherever a formula allows it, so
that nothing cancels near equality. Gradients are exact and finite, at equality and at repeated
eigenvalues too.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from vntransfer._arrays import Array, take
from vntransfer.errors import ArgumentError
from vntransfer.linalg import Spectrum, once, safe_sqrt, spectrum


def pair(sigma: Any, rho: Any) -> tuple[Tensor, Tensor, Callable[[Tensor], Any]]:
    """Check two stacks of matrices and broadcast them against each other."""
    (s, r), back = take(sigma=sigma, rho=rho)
    if s.shape[-2:] != r.shape[-2:]:
        raise ArgumentError(
            f"rho: expected matrices of the size of sigma {tuple(s.shape[-2:])}, got "
            f"{tuple(r.shape[-2:])}"
        )
    try:
        shape = torch.broadcast_shapes(s.shape, r.shape)
    except RuntimeError:
        raise ArgumentError(
            f"rho: batch dimensions {tuple(r.shape)} do not fit those of sigma {tuple(s.shape)}"
        ) from None
    return s.expand(shape), r.expand(shape), back


def _relative_entropy(x: Tensor, y: Tensor) -> Tensor:
    """X log(x/y) - x + y ≥ 0, elementwise for positive x and y, without cancellation at x = y."""
    r = (x - y) / y
    series = r.square() * (0.5 - r / 6 + r.square() / 12)
    return y * torch.where(r.abs() < 1e-3, series, (1 + r) * torch.log1p(r) - r).clamp_min(0)


class _BothDirections(torch.autograd.Function):
    """D(σ‖ρ) and D(ρ‖σ) from one decomposition of each matrix.

    With overlaps W_ij = (v_i'u_j)², D(σ‖ρ) = Σ W_ij (λ_i log(λ_i/θ_j) - λ_i + θ_j): every term is
    non-negative. dD/dσ = log σ - log ρ; dD/dρ = L_ρ[ρ - σ] with L the derivative of log.
    """

    @staticmethod
    def forward(ctx: Any, sigma: Tensor, rho: Tensor) -> tuple[Tensor, Tensor]:
        s, r = spectrum(sigma, "sigma"), spectrum(rho, "rho")
        ctx.save_for_backward(s.values, s.vectors, r.values, r.vectors)
        overlap = (s.vectors.mT @ r.vectors).square()
        x, y = s.values.unsqueeze(-1), r.values.unsqueeze(-2)
        there = (overlap * _relative_entropy(x, y)).sum((-1, -2))
        back = (overlap * _relative_entropy(y, x)).sum((-1, -2))
        return there.to(sigma.dtype), back.to(sigma.dtype)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        with torch.no_grad():
            there, back = (u.to(torch.float64)[..., None, None] for u in upstream)
            s, r = Spectrum(*ctx.saved_tensors[:2]), Spectrum(*ctx.saved_tensors[2:])
            logs = s.log() - r.log()
            gap = s.apply(s.values) - r.apply(r.values)
            on_sigma = there * logs + back * s.dlog(gap)
            on_rho = -back * logs - there * r.dlog(gap)
        return once(on_sigma.to(upstream[0].dtype)), once(on_rho.to(upstream[0].dtype))


def directions(sigma: Tensor, rho: Tensor) -> tuple[Tensor, Tensor]:
    """D(σ‖ρ) and D(ρ‖σ)."""
    return _BothDirections.apply(sigma, rho)


def von_neumann(sigma: Array, rho: Array) -> Array:
    """Von Neumann divergence D(σ‖ρ) = tr(σ log σ - σ log ρ - σ + ρ).

    Not symmetric. Scaling both matrices by c scales it by c. Its gradient with respect to ρ is
    I - L_ρ[σ], L_ρ the derivative of the logarithm at ρ; the paper's I - σρ⁻¹ is right only for
    commuting matrices.

    Parameters
    ----------
    sigma, rho
        SPD matrices (..., n, n).

    Examples
    --------
    >>> import numpy as np
    >>> round(float(von_neumann(np.diag([1.0, 2.0]), np.eye(2))), 4)
    0.3863
    """
    s, r, back = pair(sigma, rho)
    return back(directions(s, r)[0])


def jeffreys(sigma: Array, rho: Array, *, sqrt: bool = False) -> Array:
    """Jeffreys von Neumann divergence J(σ:ρ) = ½ tr((σ - ρ)(log σ - log ρ)).

    Its square root is *not* a metric, though the paper's Theorem 1 uses it as one: for 1 x 1
    matrices d(.01, 1) = 1.510 > d(.01, .1) + d(.1, 1) = 1.340.

    Parameters
    ----------
    sigma, rho
        SPD matrices (..., n, n).
    sqrt
        Give √J; its gradient at equality is defined as zero.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(jeffreys(np.diag([1.0, 2.0]), np.diag([2.0, 1.0]))), 4)
    0.6931
    """
    s, r, back = pair(sigma, rho)
    there, reverse = directions(s, r)
    value = (there + reverse) / 2
    return back(safe_sqrt(value) if sqrt else value)


def features_of(matrix: Tensor, n_response: int) -> Tensor:
    """Leading block of a joint matrix whose last ``n_response`` columns are responses."""
    size = matrix.shape[-1]
    if isinstance(n_response, bool) or not isinstance(n_response, int) or not 0 < n_response < size:
        raise ArgumentError(
            f"n_response: expected an integer from 1 to {size - 1} for matrices of size {size}, "
            f"got {n_response!r}"
        )
    return matrix[..., :-n_response, :-n_response]


def conditional_von_neumann(
    sigma: Array, rho: Array, *, n_response: int = 1, symmetric: bool = True
) -> Array:
    """Von Neumann conditional divergence of P(y|x): D(σ_xy‖ρ_xy) - D(σ_x‖ρ_x) (Eqs. 3 and 4).

    At least D(σ_y‖ρ_y), hence never negative. It compares second moments only and is not zero for
    equal conditionals under different feature covariances.

    Parameters
    ----------
    sigma, rho
        SPD matrices (..., n, n) of [features, response], responses last.
    n_response
        Number of response columns.
    symmetric
        Mean of both directions (Eq. 4, the default) or one direction (Eq. 3).

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([[1.0, -0.5], [-0.5, 1.0]])
    >>> round(float(conditional_von_neumann(a, b)), 4)
    1.0986
    """
    s, r, back = pair(sigma, rho)
    joint = directions(s, r)
    features = directions(features_of(s, n_response), features_of(r, n_response))
    there, reverse = ((j - f).clamp_min(0) for j, f in zip(joint, features, strict=True))
    return back((there + reverse) / 2 if symmetric else there)


def relative_eigenvalues(sigma: Tensor, rho: Tensor) -> Tensor:
    """Eigenvalues (..., n) of ρ⁻¹σ; differentiable, as eigenvalues alone are harmless."""
    spectrum(sigma, "sigma"), spectrum(rho, "rho")
    root = torch.linalg.cholesky(rho.double())
    half = torch.linalg.solve_triangular(root, sigma.double(), upper=False)
    whole = torch.linalg.solve_triangular(root, half.mT, upper=False)
    tiny = torch.finfo(torch.float64).tiny
    return torch.linalg.eigvalsh((whole + whole.mT) / 2).clamp_min(tiny)


def log_det(sigma: Array, rho: Array) -> Array:
    """LogDet divergence tr(σρ⁻¹) - log det(σρ⁻¹) - n.

    Twice the Kullback-Leibler divergence of centred Gaussians. Not symmetric; invariant under any
    common invertible linear map of the columns.

    Parameters
    ----------
    sigma, rho
        SPD matrices (..., n, n).

    Examples
    --------
    >>> import numpy as np
    >>> round(float(log_det(np.diag([1.0, 2.0]), np.eye(2))), 4)
    0.3069
    """
    s, r, back = pair(sigma, rho)
    return back(_log_det(s, r))


def _log_det(sigma: Tensor, rho: Tensor) -> Tensor:
    ratio = relative_eigenvalues(sigma, rho)
    return (ratio - 1 - ratio.log()).clamp_min(0).sum(-1).to(sigma.dtype)


def conditional_log_det(
    sigma: Array, rho: Array, *, n_response: int = 1, symmetric: bool = True
) -> Array:
    """Conditional form of `log_det`: joint minus features, as `conditional_von_neumann`.

    Parameters
    ----------
    sigma, rho
        SPD matrices (..., n, n) of [features, response], responses last.
    n_response
        Number of response columns.
    symmetric
        Mean of both directions or one direction.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([[1.0, -0.5], [-0.5, 1.0]])
    >>> round(float(conditional_log_det(a, b)), 4)
    1.3333
    """
    s, r, back = pair(sigma, rho)

    def one_way(left: Tensor, right: Tensor) -> Tensor:
        blocks = features_of(left, n_response), features_of(right, n_response)
        return (_log_det(left, right) - _log_det(*blocks)).clamp_min(0)

    value = (one_way(s, r) + one_way(r, s)) / 2 if symmetric else one_way(s, r)
    return back(value)
