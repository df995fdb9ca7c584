"""J between two responses to the same features: the divergence that training uses."""

import warnings
from typing import Literal

import torch
from torch import Tensor

from vntransfer._arrays import Array, number, take
from vntransfer.bordered import bordered_jeffreys
from vntransfer.divergences._matrix import jeffreys
from vntransfer.errors import ArgumentError, NumericalWarning
from vntransfer.linalg import safe_sqrt
from vntransfer.moments import covariance, join

Method = Literal["auto", "features", "gram", "exact"]

AUTO_RIDGE = 1e-3
"""The "auto" ridge, relative to the mean eigenvalue of the feature covariance."""


def response_divergence(
    features: Array,
    a: Array,
    b: Array,
    *,
    sqrt: bool = False,
    ridge: float | Literal["auto"] = "auto",
    method: Method = "auto",
) -> Array:
    """J between cov[features, a] and cov[features, b], for batches of sample sets.

    The symmetric conditional divergence of Eq. 4 when both joint distributions share their
    features (Eq. 5): how differently ``a`` and ``b`` depend on the features. Fast (no matrix
    logarithm; one decomposition of the smaller of the N x N and d x d matrices) and accurate near
    a = b; see `vntransfer.bordered` for the formula. Differentiable in all three arrays.

    Parameters
    ----------
    features
        (..., N, d), at least two samples.
    a, b
        Responses (..., N) or (..., N, m).
    sqrt
        Give √J, the paper's loss; its gradient at equality is defined as zero.
    ridge
        Added to the diagonals of both covariances: a number, or "auto" = 1e-3 times the mean
        eigenvalue of the feature covariance, per sample set and not differentiated. With N ≤ d the
        covariances are singular without it and J depends on it.
    method
        "features" or "gram" decompose d x d or N x N, "auto" takes the smaller, "exact" forms both
        full covariances and decomposes them in float64 (slow, for checks).

    Returns
    -------
    array
        (...), non-negative.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(6.0)[:, None]
    >>> y = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    >>> round(float(response_divergence(x, y, y + 1.0)), 6)   # the mean is not seen ...
    0.0
    >>> round(float(response_divergence(x, y, 2 * y)), 3)     # ... the dependence is
    0.987
    """
    tensors, back = take(features=features, a=a, b=b)
    z, left, right = _check_shapes(*tensors)
    value = _response_divergence(z, left, right, ridge, method)
    value = value.reshape(tensors[0].shape[:-2])
    return back(safe_sqrt(value) if sqrt else value)


def _check_shapes(features: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Flatten batch dimensions: (B, N, d), (B, N, m), (B, N, m)."""
    if features.ndim < 2 or features.shape[-2] < 2:
        raise ArgumentError(
            f"features: expected (..., N, d) with N of at least 2 samples, got shape "
            f"{tuple(features.shape)}"
        )
    if a.shape != b.shape:
        raise ArgumentError(f"b: expected the shape of a, {tuple(a.shape)}, got {tuple(b.shape)}")
    columns = a.ndim == features.ndim
    if a.shape[: features.ndim - 1] != features.shape[:-1] or a.ndim > features.ndim:
        fit = tuple(features.shape[:-1])
        raise ArgumentError(
            f"a, b: expected shape {fit} or {(*fit, 'm')} to fit features, got {tuple(a.shape)}"
        )
    n, d = features.shape[-2:]
    width = a.shape[-1] if columns else 1
    return features.reshape(-1, n, d), a.reshape(-1, n, width), b.reshape(-1, n, width)


def _response_divergence(
    z: Tensor, a: Tensor, b: Tensor, ridge: float | Literal["auto"], method: Method
) -> Tensor:
    if method not in ("auto", "features", "gram", "exact"):
        raise ArgumentError(
            f"method: expected 'auto', 'features', 'gram' or 'exact', got {method!r}"
        )
    n, d = z.shape[-2:]
    with torch.no_grad():
        variance = z.var(-2).mean(-1)
        if ridge == "auto":
            unit = _auto_ridge(variance, a, b)
        else:
            value = number("ridge", ridge)
            unit = torch.full_like(variance, value) if value else variance.clamp_min(1e-300)
    has_ridge = ridge == "auto" or float(ridge) > 0
    if method == "exact":
        return _exact(z, a, b, unit if has_ridge else torch.zeros_like(unit))
    if method == "auto":
        method = "gram" if n <= d else "features"
    return bordered_jeffreys(z, a, b, unit, ridge=has_ridge, side=method)


def _auto_ridge(variance: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """1e-3 of the features' mean variance, with a floor where the features do not vary at all."""
    ridge = AUTO_RIDGE * variance
    finfo = torch.finfo(variance.dtype)
    if bool((ridge > finfo.tiny / finfo.eps).all()):
        return ridge
    floor = (a.var(-2).mean(-1) + b.var(-2).mean(-1)) * finfo.eps
    floor = torch.where(floor > finfo.tiny / finfo.eps, floor, 1.0)
    dead = ridge <= finfo.tiny / finfo.eps
    warnings.warn(
        f"features: constant in {int(dead.sum())} of {dead.numel()} sample sets, so that 'auto' "
        f"would give no ridge; {float(floor[dead].max()):.2g} is used there",
        NumericalWarning,
        stacklevel=4,
    )
    return torch.where(dead, floor, ridge)


def _exact(z: Tensor, a: Tensor, b: Tensor, ridge: Tensor) -> Tensor:
    eye = torch.eye(z.shape[-1] + a.shape[-1], dtype=torch.float64, device=z.device)
    offset = ridge.double()[:, None, None] * eye
    sigma, rho = (covariance(join(z.double(), y.double())) + offset for y in (a, b))
    return jeffreys(sigma, rho).to(z.dtype)
