"""Functions of symmetric positive definite (SPD) matrices with correct derivatives.

Differentiating through eigenvectors divides by differences of eigenvalues: NaN at repeated
eigenvalues, noise on rank-deficient covariances. Everything here uses the Daleckii-Krein formula
instead: for B = f(A), A = V diag(λ) V', the derivative in direction H is V (Γ ∘ (V'HV)) V' with
the divided differences Γ_ij = (f(λ_i) - f(λ_j)) / (λ_i - λ_j), Γ_ii = f'(λ_i).
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from vntransfer.arrays import Array, take
from vntransfer.errors import ArgumentError, NotPositiveDefiniteError, VnError


class Spectrum(NamedTuple):
    """Eigenvalues (..., n), ascending, and eigenvectors (..., n, n) of SPD matrices, in float64."""

    values: Tensor
    vectors: Tensor

    def apply(self, values: Tensor) -> Tensor:
        """Matrices with the same eigenvectors and the given eigenvalues."""
        return (self.vectors * values.unsqueeze(-2)) @ self.vectors.mT

    def log(self) -> Tensor:
        """Matrix logarithms."""
        return self.apply(self.values.log())

    def dlog(self, direction: Tensor) -> Tensor:
        """Differentiate the matrix logarithm in a symmetric direction."""
        inner = log_divided_differences(self.values)
        inner *= self.vectors.mT @ direction @ self.vectors
        return self.vectors @ inner @ self.vectors.mT


def spectrum(matrix: Tensor, name: str, eps: float | None = None) -> Spectrum:
    """Decompose SPD matrices (..., n, n), or report precisely why they are not SPD.

    An eigenvalue counts as positive if it exceeds what rounding alone can produce, n ε λ_max with
    the machine precision ε of the *user's* dtype (``eps``, by default the matrix's own): a float32
    covariance whose exact eigenvalue is zero is reported as singular rather than given a logarithm
    of noise. Decomposed in float64.
    """
    eps = torch.finfo(matrix.dtype).eps if eps is None else eps
    check_square(matrix, name, eps)
    double = matrix.detach().to(torch.float64)
    values, vectors = torch.linalg.eigh((double + double.mT) / 2)
    check_positive(values, name, eps)
    return Spectrum(values, vectors)


def check_square(matrix: Tensor, name: str, eps: float) -> None:
    """Raise unless ``matrix`` (..., n, n) is square and symmetric up to rounding."""
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ArgumentError(
            f"{name}: expected square matrices (..., n, n), got shape {tuple(matrix.shape)}"
        )
    detached = matrix.detach()
    gap = (detached - detached.mT).abs().amax((-1, -2))
    scale = detached.abs().amax((-1, -2))
    bad = gap > 100 * eps * matrix.shape[-1] * scale
    if bool(bad.any()):
        raise NotPositiveDefiniteError(
            f"{name}: not symmetric, |A - A'| is up to {float(gap[bad].max()):.3g} with entries "
            f"up to {float(scale[bad].max()):.3g}; symmetrize it with (A + A.mT) / 2 if the "
            f"difference is rounding"
        )


def check_positive(values: Tensor, name: str, eps: float) -> None:
    """Raise unless all ascending eigenvalues (..., n) are positive beyond rounding."""
    floor = values[..., -1:] * (eps * values.shape[-1])
    bad = (values <= floor.clamp_min(torch.finfo(values.dtype).tiny)).any(-1)
    if not bool(bad.any()):
        return
    which = bad.nonzero()[0].tolist()
    smallest, largest = (float(values[tuple(which)][k]) for k in (0, -1))
    where = f" (the first at index {tuple(which)})" if which else ""
    raise NotPositiveDefiniteError(
        f"{name}: {int(bad.sum())} of {bad.numel()} matrices not positive definite{where}: "
        f"eigenvalues from {smallest:.3g} to {largest:.3g}, rounding is "
        f"{eps * values.shape[-1] * abs(largest):.1g}; add a ridge: covariance(..., ridge=1e-3 * "
        f"variance) or A + ridge * I"
    )


def log_divided_differences(values: Tensor) -> Tensor:
    """Divided differences of log at positive values, (..., n) -> (..., n, n).

    (log λ_i - log λ_j)/(λ_i - λ_j) = log1p(r)/(r λ_j) with r = (λ_i - λ_j)/λ_j, taken with λ_j the
    smaller of the two so that nothing cancels; 1/λ_j at equality.
    """
    row, column = values.unsqueeze(-1), values.unsqueeze(-2)
    small = torch.minimum(row, column)
    # In place, which is what large matrices pay for; log1p(r)/r is one at the smallest r, too.
    ratio = (row - column).abs_().div_(small).clamp_min_(torch.finfo(values.dtype).tiny)
    return torch.log1p(ratio).div_(ratio).div_(small)


class _NoSecondDerivative(torch.autograd.Function):
    """Identity on a gradient; a second derivative through it is a clear error, not a wrong zero."""

    @staticmethod
    def forward(_: Any, gradient: Tensor, *inputs: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def backward(_: Any, *__: Tensor) -> Any:
        raise VnError(
            "second derivatives of vntransfer's divergences are not implemented (their formulas "
            "need second divided differences); penalize something other than their gradient"
        )


def once(gradient: Tensor, *inputs: Tensor) -> Tensor:
    """Mark a hand-written gradient with respect to ``inputs`` as not differentiable again."""
    if torch.is_grad_enabled():
        return _NoSecondDerivative.apply(gradient.detach(), *inputs)
    return gradient


class _SymLogm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Tensor, name: str, eps: float | None) -> Tensor:
        eig = spectrum(matrix, name, eps)
        ctx.save_for_backward(matrix, eig.values, eig.vectors)
        return eig.log().to(matrix.dtype)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        matrix, values, vectors = ctx.saved_tensors
        with torch.no_grad():
            double = upstream[0].to(torch.float64)
            gradient = Spectrum(values, vectors).dlog((double + double.mT) / 2).to(matrix.dtype)
        return once(gradient, matrix), None, None


def log_of(matrix: Tensor, name: str, eps: float | None = None) -> Tensor:
    """`sym_logm` for tensors that are already checked; see `spectrum` for the arguments."""
    return _SymLogm.apply(matrix, name, eps)


def sym_logm(matrix: Array) -> Array:
    """Logarithm of SPD matrices (..., n, n) with the Daleckii-Krein derivative.

    Never NaN for SPD input, forward or backward, even at repeated eigenvalues.

    Parameters
    ----------
    matrix
        SPD matrices.

    Examples
    --------
    >>> identity = torch.eye(2, dtype=torch.float64, requires_grad=True)
    >>> sym_logm(identity).sum().backward()
    >>> identity.grad
    tensor([[1., 1.],
            [1., 1.]], dtype=torch.float64)
    """
    (tensor,), back = take(matrix=matrix)
    return back(log_of(tensor, "matrix"))


class _SafeSqrt(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        root = value.clamp_min(0).sqrt()
        ctx.save_for_backward(root)
        return root

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        (root,) = ctx.saved_tensors
        # Below this, the root of a value is that of its rounding error.
        positive = root > torch.finfo(root.dtype).tiny ** 0.5
        return upstream[0] * torch.where(positive, 0.5 / torch.where(positive, root, 1.0), 0.0)


def safe_sqrt(value: Tensor) -> Tensor:
    """Square root whose derivative at zero is zero instead of infinite.

    The square root of a divergence behaves like |x| at equality: zero is one of its subgradients.
    """
    return _SafeSqrt.apply(value)
