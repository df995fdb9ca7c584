"""J between two responses to the same features: the divergence that training uses."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from vntransfer.arrays import Array, check_finite, from_numpy, take
from vntransfer.bordered import bordered_jeffreys
from vntransfer.centered_samples import NotFiniteError
from vntransfer.checks import number, one_of
from vntransfer.errors import ArgumentError
from vntransfer.linalg import safe_sqrt
from vntransfer.single_precision import TooFewDigitsError

Method = Literal["auto", "features", "gram"]


def response_divergence(
    features: Array,
    a: Array,
    b: Array,
    *,
    sqrt: bool = False,
    ridge: float | Tensor | Literal["auto"] = "auto",
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
        Return √J, the paper's loss; its gradient at equality is defined as zero.
    ridge
        Added to the diagonals of both covariances: a number, a tensor (...) of positive numbers,
        one per sample set, or "auto" = 1e-3 times the mean eigenvalue of the feature covariance,
        per sample set and not differentiated. With N ≤ d the covariances are singular without it
        and J depends on it.
    method
        "features" or "gram" decompose d x d or N x N, "auto" takes the smaller.

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
    one_of("method", method, Method)
    fixed: float | Tensor | None
    if isinstance(ridge, np.ndarray):
        ridge = from_numpy(np.atleast_1d(ridge))
    if isinstance(ridge, Tensor):
        fixed = ridge.detach().reshape(-1)
        if not bool((fixed > 0).all() & fixed.isfinite().all()):
            raise ArgumentError("ridge: expected positive finite numbers, one per sample set")
    else:
        fixed = None if ridge == "auto" else number("ridge", ridge)
    tensors, back = take(finite=False, features=features, a=a, b=b)
    flat = _check_shapes(*tensors)
    if isinstance(fixed, Tensor) and len(fixed) != len(flat[0]):
        raise ArgumentError(f"ridge: expected {len(flat[0])} numbers, got {len(fixed)}")
    n, d = flat[0].shape[-2:]
    try:
        side = method if method != "auto" else "gram" if n <= d else "features"
        value = bordered_jeffreys(*flat, ridge=fixed, side=side)
        if fixed is not None and not bool(value.detach().isfinite().all()):
            raise OverflowError
    except NotFiniteError:
        # Looked for in detail only if something went wrong: a NaN anywhere reaches the variances.
        check_finite(features=tensors[0], a=tensors[1], b=tensors[2])
        raise ArgumentError(
            f"features, a, b: variances overflow {flat[0].dtype}; rescale the columns"
        ) from None
    except TooFewDigitsError:
        raise ArgumentError(
            "a, b: the responses are linearly dependent and vary at least 1e12 times as much as "
            "the ridge, so J would have fewer than three digits; rescale the responses, or use a "
            "larger ridge"
        ) from None
    except (torch.linalg.LinAlgError, OverflowError):  # type: ignore[attr-defined]
        least = float(ridge.min()) if isinstance(ridge, Tensor) else ridge
        raise ArgumentError(
            f"ridge: {least} is so small that {flat[0].dtype} cannot hold the variances in its "
            f"units; use a larger one{', or float64' * (flat[0].dtype == torch.float32)}"
        ) from None
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
