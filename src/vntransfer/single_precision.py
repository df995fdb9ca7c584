"""Where float32 keeps three digits of J in `vntransfer.bordered`; elsewhere float64 is used.

All quantities are in units of the ridge. Float32 rounds every eigenvalue by up to η = eps λ₁,
λ₁ the largest. That hardly changes the resolvent (K + τI)⁻¹ along large eigenvalues, but by a share
η/(λ + τ) along a small one λ. Where this matters, the small eigenvalues are computed again from
the data without the directions of the large ones (`decompose`): what is left is eps λ_k, λ_k the
largest that was computed again. Checks on J, its terms and its gradients refuse the rest.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, bmm

EPS = torch.finfo(torch.float32).eps

VALUE = 1e-3
"""Largest relative error of J that float32 may cause."""

GRADIENT = 1e-3
"""Largest estimated relative error of a gradient that float32 may cause; estimates can be low."""

RESOLVENT = 2e-3
"""Largest relative error of the resolvents: that of gradients is up to twice as large."""

FITTED = 1e5
"""Largest eigenvalue where residuals of a regression on the features are used, which cancel."""

RANGE = 1e12
"""Largest variance of a single response, where only overflow matters."""

SEVERAL = 1e5
"""Largest variance of several responses, whose inverses lose digits too."""


class TooFewDigitsError(ArithmeticError):
    """Rounding leaves fewer than three digits of J."""


class Decomposition(NamedTuple):
    """Eigenvalues (B, n), ascending, and eigenvectors (B, n, n) of rows rows'.

    ``noise`` (B, n) or (B, 1) bounds the rounding of eigenvalues. ``scores`` (B, k, l) are the rows
    in the directions of the k eigenvalues that were computed again, if any were.
    """

    values: Tensor
    vectors: Tensor
    noise: Tensor
    scores: Tensor | None = None


def decompose(rows: Tensor, ridge: float, *, zeros: int, most: float = math.inf) -> Decomposition:
    """Decompose rows rows' of rows (B, n, l), whose first ``zeros`` eigenvalues do not count.

    Raises `TooFewDigitsError` if float32 cannot keep `RESOLVENT`.
    """
    values, vectors = torch.linalg.eigh(bmm(rows, rows.mT))
    values = values.clamp_min_(0)
    top = values[:, -1:]
    noise = torch.finfo(values.dtype).eps * top
    largest = float(top.max())
    if values.dtype == torch.float64 or EPS * largest <= RESOLVENT * ridge:
        return Decomposition(values, vectors, noise)
    if largest > most:
        raise TooFewDigitsError
    smallest = float(values[:, zeros].min())
    if EPS * largest <= RESOLVENT * (max(smallest - EPS * largest, 0.0) + ridge):
        return Decomposition(values, vectors, noise)
    least = (values[:, zeros : zeros + 1] - noise).clamp_min(0) + ridge
    # of the k smallest, computed again, and of what couples them to the others
    own = EPS * values[:, :-1] / least
    coupling = noise / (2 * ((values[:, 1:] + ridge) * least).sqrt())
    fits = (torch.maximum(own, coupling) <= RESOLVENT).all(0)
    if not bool(fits.any()):
        raise TooFewDigitsError
    k = 1 + int(fits.int().argmax())
    scores = bmm(vectors[..., :k].mT, rows)
    small, turn = torch.linalg.eigh(bmm(scores, scores.mT))
    values[:, :k] = small.clamp_min_(0)
    vectors[..., :k] = bmm(vectors[..., :k], turn)
    left = torch.maximum(
        EPS * values[:, k - 1 : k], noise.square() / (values[:, k : k + 1] + ridge)
    )
    noise = torch.cat((left.expand(-1, k), noise.expand(-1, values.shape[1] - k)), 1)
    return Decomposition(values, vectors, noise, bmm(turn.mT, scores))


def check_cancellation(terms: Tensor, found: Tensor, *, columns: bool = False) -> None:
    """Raise if rounding of terms (B, n, p), times eps, exceeds `GRADIENT` of their sums (B, l, p).

    As a whole, or in any of the columns.
    """
    axes = -2 if columns else (-2, -1)
    lost, whole = (torch.linalg.vector_norm(part, dim=axes) for part in (terms, found))
    if bool((lost * EPS > GRADIENT * whole).any()):
        raise TooFewDigitsError


def check_means(far: Tensor, apart: Tensor, unit: Tensor, d: int) -> None:
    """Raise if rounding at means far from zero may change J by `VALUE`.

    A mean that is off by η, at most about 3 eps of itself, adds η² to the variance of its column,
    which counts beside the ridge. Values of δ = a - b are off by as much themselves.

    Parameters
    ----------
    far
        Squared means (B, d + 3m) of the columns of the features and of δ, a and b.
    apart
        Variance (B,) of δ.
    unit
        The ridge (B,).
    d
        Number of features.
    """
    eta, m = (3 * EPS) ** 2, (far.shape[-1] - d) // 3
    most = eta * far.shape[-1] * float(far.max())
    if most < VALUE * min(float(unit.min()), VALUE * float(apart.min())):
        return  # by far, as nearly always
    beside_ridge = far.sum(-1) > (VALUE / eta) * unit
    in_delta = far[:, d : d + m].sum(-1) > (VALUE**2 / eta) * apart
    if bool((beside_ridge | in_delta).any()):
        raise TooFewDigitsError


def check_responses(variance: Tensor, m: int) -> None:
    """Raise if the variances (B,) of m responses, in units of the ridge, are too large."""
    if float(variance.max()) > (RANGE if m == 1 else SEVERAL):
        raise TooFewDigitsError


def check_value(value: Tensor, uncertainty: Tensor) -> None:
    """Raise if rounded eigenvalues may change J (B,) by `VALUE`."""
    if bool((uncertainty > VALUE * value).any()):
        raise TooFewDigitsError
