"""Von Neumann and LogDet divergences between symmetric positive definite (SPD) matrices.

The functions take SPD matrices (..., n, n), return (...), and never add a ridge. They compute in
float64 for every dtype and sum non-negative terms wherever a formula allows it, so that nothing
cancels near equality. Gradients are exact and finite, even at equality and at repeated
eigenvalues.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vntransfer.arrays import Array, take
from vntransfer.checks import whole
from vntransfer.errors import ArgumentError
from vntransfer.linalg import Spectrum, once, safe_sqrt, spectrum


class Pair(NamedTuple):
    """Two stacks of matrices, checked, broadcast and in float64, and the conversion back."""

    sigma: Tensor
    rho: Tensor
    eps: float
    back: Callable[[Tensor], Any]


def pair(sigma: Any, rho: Any) -> Pair:
    """Check two stacks of matrices and broadcast them against each other."""
    (s, r), back = take(sigma=sigma, rho=rho)
    dtype = s.dtype
    if s.ndim < 2 or r.ndim < 2 or s.shape[-2:] != r.shape[-2:]:
        raise ArgumentError(
            f"sigma, rho: expected matrices (..., n, n) of one size, got shapes {tuple(s.shape)} "
            f"and {tuple(r.shape)}"
        )
    try:
        shape = torch.broadcast_shapes(s.shape, r.shape)
    except RuntimeError:
        raise ArgumentError(
            f"rho: batch dimensions {tuple(r.shape)} do not fit those of sigma {tuple(s.shape)}"
        ) from None
    s, r = s.double().expand(shape), r.double().expand(shape)
    return Pair(s, r, torch.finfo(dtype).eps, lambda value: back(value.to(dtype)))


def _relative_entropy(x: Tensor, y: Tensor) -> Tensor:
    """Elementwise x log(x/y) - x + y ≥ 0 of positive x and y, without cancellation at x = y."""
    r = (x - y) / y
    near = r.abs() < 1e-2
    r = torch.where(near, r, 0.0)
    # y ((1 + r) log(1 + r) - r) = y Σ_k (-r)^k / (k (k - 1)), k from 2
    series = torch.zeros_like(r)
    for k in range(8, 1, -1):
        series = 1 / (k * (k - 1)) - r * series
    return torch.where(near, y * r.square() * series, x * (x.log() - y.log()) - x + y).clamp_min(0)


class _BothDirections(torch.autograd.Function):
    """D(σ‖ρ) and D(ρ‖σ) from one decomposition of each matrix.

    With overlaps W_ij = (v_i'u_j)², D(σ‖ρ) = Σ W_ij (λ_i log(λ_i/θ_j) - λ_i + θ_j): every term is
    non-negative. dD/dσ = log σ - log ρ; dD/dρ = L_ρ[ρ - σ] with L the derivative of log.
    """

    @staticmethod
    def forward(
        ctx: Any, sigma: Tensor, rho: Tensor, names: tuple[str, str], eps: float
    ) -> tuple[Tensor, Tensor]:
        s, r = spectrum(sigma, names[0], eps), spectrum(rho, names[1], eps)
        ctx.save_for_backward(sigma, rho, s.values, s.vectors, r.values, r.vectors)
        overlap = (s.vectors.mT @ r.vectors).square()
        x, y = s.values.unsqueeze(-1), r.values.unsqueeze(-2)
        there = (overlap * _relative_entropy(x, y)).sum((-1, -2))
        back = (overlap * _relative_entropy(y, x)).sum((-1, -2))
        return there, back

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        sigma, rho, *spectra = ctx.saved_tensors
        with torch.no_grad():
            there, back = (u[..., None, None] for u in upstream)
            s, r = Spectrum(*spectra[:2]), Spectrum(*spectra[2:])
            logs, gap = s.log() - r.log(), sigma - rho
            on_sigma = there * logs + back * s.dlog(gap)
            on_rho = -back * logs - there * r.dlog(gap)
        return once(on_sigma, sigma, rho), once(on_rho, sigma, rho), None, None


def directions(
    sigma: Tensor, rho: Tensor, eps: float, names: tuple[str, str] = ("sigma", "rho")
) -> tuple[Tensor, Tensor]:
    """D(σ‖ρ) and D(ρ‖σ) of float64 matrices."""
    return _BothDirections.apply(sigma, rho, names, eps)


def von_neumann(sigma: Array, rho: Array) -> Array:
    """Von Neumann divergence D(σ‖ρ) = tr(σ log σ - σ log ρ - σ + ρ) of SPD matrices (..., n, n).

    Not symmetric. Scaling both matrices by c scales it by c. Its gradient with respect to ρ is
    I - L_ρ[σ], L_ρ the derivative of the logarithm at ρ; the paper's I - σρ⁻¹ is right only for
    commuting matrices.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(von_neumann(np.diag([1.0, 2.0]), np.eye(2))), 4)
    0.3863
    """
    both = pair(sigma, rho)
    return both.back(directions(both.sigma, both.rho, both.eps)[0])


def jeffreys(sigma: Array, rho: Array, sqrt: bool = False) -> Array:
    """Jeffreys von Neumann divergence J(σ:ρ) = ½ tr((σ - ρ)(log σ - log ρ)).

    Its square root is *not* a metric, though the paper's Theorem 1 uses it as one: for 1 x 1
    matrices d(.01, 1) = 1.510 > d(.01, .1) + d(.1, 1) = 1.340.

    Parameters
    ----------
    sigma, rho
        SPD matrices (..., n, n).
    sqrt
        Return √J; its gradient at equality is defined as zero.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(jeffreys(np.diag([1.0, 2.0]), np.diag([2.0, 1.0]))), 4)
    0.6931
    """
    both = pair(sigma, rho)
    there, reverse = directions(both.sigma, both.rho, both.eps)
    value = (there + reverse) / 2
    return both.back(safe_sqrt(value) if sqrt else value)


def features_of(matrix: Tensor, n_response: int) -> Tensor:
    """Leading block of a joint matrix whose last ``n_response`` columns are responses."""
    size = matrix.shape[-1]
    kept = size - whole("n_response", n_response, minimum=1, maximum=size - 1)
    return matrix[..., :kept, :kept]


def conditional_von_neumann(
    sigma: Array, rho: Array, n_response: int = 1, symmetric: bool = True
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
    both = pair(sigma, rho)
    sigma_x, rho_x = (features_of(matrix, n_response) for matrix in (both.sigma, both.rho))
    joint = directions(both.sigma, both.rho, both.eps)
    features = directions(sigma_x, rho_x, both.eps)
    there, reverse = ((j - f).clamp_min(0) for j, f in zip(joint, features, strict=True))
    return both.back((there + reverse) / 2 if symmetric else there)


class RelativeSpectrum:
    """Eigenvalues μ of ρ⁻¹σ, those above one with σw = μρw, w'ρw = 1, the others the other way.

    Each half is computed where it is large: an eigenvalue of 1e-12 beside one of 1e12 is lost in
    a single decomposition.
    """

    def __init__(self, sigma: Tensor, rho: Tensor, eps: float) -> None:
        spectrum(sigma, "sigma", eps), spectrum(rho, "rho", eps)
        self.above, self.above_vectors = self._half(sigma, rho)
        self.below, self.below_vectors = self._half(rho, sigma)

    @staticmethod
    def _half(sigma: Tensor, rho: Tensor) -> tuple[Tensor, Tensor]:
        root = torch.linalg.cholesky(rho)
        half = torch.linalg.solve_triangular(root, sigma, upper=False)
        whole = torch.linalg.solve_triangular(root, half.mT, upper=False)
        values, vectors = torch.linalg.eigh((whole + whole.mT) / 2)
        return values, torch.linalg.solve_triangular(root.mT, vectors, upper=True)

    def sum(self, function: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Σ f(μ, log μ), each eigenvalue taken from the half where it is more accurate."""
        up, down = self.above, self.below.flip(-1)
        # ascending μ: the two halves list the same eigenvalues, so that exactly one is chosen
        use_up = up >= 1
        safe_up, safe_down = torch.where(use_up, up, 1.0), torch.where(use_up, 1.0, down)
        safe_down = safe_down.clamp_min(1.0)
        mu = torch.where(use_up, safe_up, 1 / safe_down)
        log_mu = torch.where(use_up, safe_up.log(), -safe_down.log())
        return function(mu, log_mu).sum(-1)


class _LogDet(torch.autograd.Function):
    """Σ μ - 1 - log μ; gradients ρ⁻¹ - σ⁻¹ and ρ⁻¹(ρ - σ)ρ⁻¹."""

    @staticmethod
    def forward(ctx: Any, sigma: Tensor, rho: Tensor, eps: float) -> Tensor:
        ctx.save_for_backward(sigma, rho)
        relative = RelativeSpectrum(sigma, rho, eps)
        return relative.sum(lambda mu, log_mu: torch.expm1(log_mu) - log_mu)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        sigma, rho = ctx.saved_tensors
        with torch.no_grad():
            up = upstream[0][..., None, None]
            inverse, own = (torch.cholesky_inverse(torch.linalg.cholesky(m)) for m in (rho, sigma))
            on_sigma, on_rho = up * (inverse - own), up * (inverse @ (rho - sigma) @ inverse)
        return once(on_sigma, sigma, rho), once((on_rho + on_rho.mT) / 2, sigma, rho), None


def log_det(sigma: Array, rho: Array) -> Array:
    """LogDet divergence tr(σρ⁻¹) - log det(σρ⁻¹) - n of SPD matrices (..., n, n).

    Twice the Kullback-Leibler divergence of centered Gaussians. Not symmetric; invariant under any
    common invertible linear map of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(log_det(np.diag([1.0, 2.0]), np.eye(2))), 4)
    0.3069
    """
    both = pair(sigma, rho)
    return both.back(_LogDet.apply(both.sigma, both.rho, both.eps))


def conditional_log_det(
    sigma: Array, rho: Array, n_response: int = 1, symmetric: bool = True
) -> Array:
    """Conditional form of `log_det`: joint minus features.

    Parameters
    ----------
    sigma, rho, n_response, symmetric
        As in `conditional_von_neumann`.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([[1.0, -0.5], [-0.5, 1.0]])
    >>> round(float(conditional_log_det(a, b)), 4)
    1.3333
    """
    both = pair(sigma, rho)

    def one_way(s: Tensor, r: Tensor) -> Tensor:
        joint = _LogDet.apply(s, r, both.eps)
        features = _LogDet.apply(features_of(s, n_response), features_of(r, n_response), both.eps)
        return (joint - features).clamp_min(0)

    there = one_way(both.sigma, both.rho)
    return both.back((there + one_way(both.rho, both.sigma)) / 2 if symmetric else there)
