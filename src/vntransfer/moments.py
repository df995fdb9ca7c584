"""Matrices from samples: covariance, centered correntropy, and mergeable moments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from vntransfer.arrays import Array, check_finite, take
from vntransfer.checks import number
from vntransfer.display import counted, one_line, rounded
from vntransfer.errors import ArgumentError


def join(x: Tensor, y: Tensor | None) -> Tensor:
    """Append responses (..., N) or (..., N, m) to features (..., N, d) as further columns."""
    if x.ndim < 2:
        raise ArgumentError(f"x: expected samples (..., N, d), got shape {tuple(x.shape)}")
    if y is None:
        return x
    columns = y.unsqueeze(-1) if y.shape == x.shape[:-1] else y
    if columns.shape[:-1] != x.shape[:-1]:
        raise ArgumentError(
            f"y: expected shape {tuple(x.shape[:-1])} or {(*x.shape[:-1], 'm')} to fit x, got "
            f"{tuple(y.shape)}"
        )
    return torch.cat((x, columns), -1)


@dataclass(frozen=True)
class Moments:
    """Weight, mean and scatter of samples: everything a covariance needs, in O(d²) memory.

    Immutable; `update` and `merge` return new objects and are exact under any split and order of
    the samples. The state is float64 tensors; `covariance` returns numpy or torch, like the
    samples. Leading batch dimensions are kept.

    Parameters
    ----------
    count
        Sum of the samples' weights (their number, if unweighted), shape (...).
    square_count
        Sum of the squared weights: what the unbiased normalizer count - square_count/count needs;
        it is N - 1 for equal weights, whatever their scale.
    mean
        Weighted mean, (..., d).
    scatter
        Weighted sum of (x - mean)(x - mean)', (..., d, d).

    Examples
    --------
    >>> x = np.array([[0.0, 1.0], [2.0, 5.0], [4.0, 3.0]])
    >>> stream = Moments.from_samples(x[:1]).update(x[1:])
    >>> stream.covariance()
    array([[4., 2.],
           [2., 4.]])
    """

    count: Tensor
    square_count: Tensor
    mean: Tensor
    scatter: Tensor
    numpy: bool = False

    @classmethod
    def from_samples(cls, x: Any, y: Any = None, *, weights: Any = None) -> Self:
        """Moments of samples x (..., N, d), with responses y appended if given.

        Parameters
        ----------
        x
            Samples; a single one is enough.
        y
            Responses (..., N) or (..., N, m).
        weights
            Non-negative sample weights (..., N); their scale does not matter for covariances.
        """
        tensors, _ = take(optional=("y", "weights"), x=x, y=y, weights=weights)
        samples = join(tensors[0], tensors[1] if y is not None else None).double()
        if weights is None:
            w = samples.new_ones(samples.shape[:-1])
        else:
            w = _check_weights(tensors[-1], samples.shape[:-1])
        count = w.sum(-1)
        mean = (w.unsqueeze(-1) * samples).sum(-2) / count.unsqueeze(-1)
        centered = samples - mean.unsqueeze(-2)
        scatter = (w.unsqueeze(-1) * centered).mT @ centered
        return cls(count, w.square().sum(-1), mean, scatter, isinstance(x, np.ndarray))

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.mean.shape[-1]

    def update(self, x: Any, y: Any = None, *, weights: Any = None) -> Self:
        """Moments after adding further samples."""
        return self.merge(type(self).from_samples(x, y, weights=weights))

    def merge(self, other: Self) -> Self:
        """Moments of both sets of samples together."""
        if not isinstance(other, Moments):
            raise ArgumentError(f"other: expected Moments, got {type(other).__name__}")
        if self.n_features != other.n_features:
            raise ArgumentError(
                f"other: has {other.n_features} columns, these moments have {self.n_features}"
            )
        count = self.count + other.count
        share = (other.count / count).unsqueeze(-1)
        gap = other.mean - self.mean
        between = (self.count.unsqueeze(-1) * share * gap).unsqueeze(-1) * gap.unsqueeze(-2)
        return type(self)(
            count,
            self.square_count + other.square_count,
            self.mean + share * gap,
            self.scatter + other.scatter + between,
            self.numpy,
        )

    def scaled(self, factor: float | Tensor) -> Self:
        """Moments with all sample weights multiplied by a positive factor."""
        f = torch.as_tensor(factor, dtype=torch.float64, device=self.mean.device)
        if not bool(((f > 0) & f.isfinite()).all()):
            raise ArgumentError(f"factor: expected positive finite numbers, got {factor}")
        scatter = self.scatter * f[..., None, None]
        return type(self)(
            self.count * f, self.square_count * f.square(), self.mean, scatter, self.numpy
        )

    @classmethod
    def weighted(cls, parts: Sequence[Self], weights: Any) -> Self:
        """Moments of the mixture Σ w_i P_i: as if each part's samples shared the weight w_i.

        The covariance of a mixture is *not* the mixture of covariances: the spread of the means
        between the parts enters.

        Parameters
        ----------
        parts
            Moments of the domains.
        weights
            One non-negative weight per part, not all zero.

        Examples
        --------
        >>> a = Moments.from_samples(np.array([[0.0], [0.0]]))
        >>> b = Moments.from_samples(np.array([[2.0], [2.0]]))
        >>> float(Moments.weighted([a, b], [0.5, 0.5]).mean)
        1.0
        """
        if not parts:
            raise ArgumentError("parts: empty; give at least one Moments")
        try:
            w = torch.as_tensor(weights, dtype=torch.float64, device=parts[0].mean.device)
        except (TypeError, ValueError, RuntimeError):
            raise ArgumentError(f"weights: expected numbers, got {weights!r}") from None
        _check_weights(w, (len(parts),))
        shares = ((part, v / part.count) for part, v in zip(parts, w, strict=True))
        chosen = [part.scaled(factor) for part, factor in shares if bool((factor > 0).all())]
        mixture = chosen[0]
        for part in chosen[1:]:
            mixture = mixture.merge(part)
        return mixture

    def covariance_tensor(self, *, ridge: float = 0.0) -> Tensor:
        """Unbiased covariance plus ``ridge`` times the identity, as a tensor."""
        ridge = number("ridge", ridge)
        freedom = self.count - self.square_count / self.count
        if bool((freedom <= 1e-12 * self.count).any()):
            raise ArgumentError(
                "x: a covariance needs at least two samples (with positive weight), got one"
            )
        sigma = self.scatter / freedom[..., None, None]
        sigma = (sigma + sigma.mT) / 2
        if not bool(sigma.detach().isfinite().all()):
            raise ArgumentError("x: variances overflow float64; rescale the columns")
        return sigma + ridge * torch.eye(self.n_features).to(sigma) if ridge else sigma

    def covariance(self, *, ridge: float = 0.0) -> Any:
        """Unbiased covariance plus ``ridge`` times the identity, in the kind of the samples."""
        sigma = self.covariance_tensor(ridge=ridge)
        return sigma.detach().numpy() if self.numpy else sigma

    def __repr__(self) -> str:
        columns = counted(self.n_features, "column")
        if self.count.ndim:
            shape = " x ".join(map(str, self.count.shape))
            return one_line(f"Moments of {columns}, batch of {shape}")
        total = float(self.count.detach())
        if total == float(self.square_count.detach()):
            return one_line(f"Moments of {counted(round(total), 'sample')} in {columns}")
        return one_line(f"Moments of samples of total weight {rounded(total)} in {columns}")


def _check_weights(weights: Tensor, shape: tuple[int, ...]) -> Tensor:
    if weights.shape != torch.Size(shape):
        raise ArgumentError(f"weights: expected shape {tuple(shape)}, got {tuple(weights.shape)}")
    check_finite(weights=weights)
    w = weights.double()
    if bool((w < 0).any()) or bool((w.sum(-1) <= 0).any()):
        raise ArgumentError(
            f"weights: expected non-negative numbers with a positive sum, got a minimum of "
            f"{float(w.min()):.3g} and sums down to {float(w.sum(-1).min()):.3g}"
        )
    return w


def covariance(
    x: Array, y: Array | None = None, *, weights: Array | None = None, ridge: float = 0.0
) -> Array:
    """Unbiased covariance of samples, with responses as further columns.

    Parameters
    ----------
    x
        Features (..., N, d).
    y
        Responses (..., N) or (..., N, m).
    weights
        Non-negative sample weights (..., N); only their ratios matter.
    ridge
        Added to the diagonal. 0 by default: with fewer samples than columns the result is
        singular, and no logarithm of it exists.

    Returns
    -------
    array
        (..., d + m, d + m), in the kind and dtype of ``x``; differentiable for torch.

    Examples
    --------
    >>> covariance(np.array([[0.0], [2.0]]), np.array([1.0, 2.0]))
    array([[2. , 1. ],
           [1. , 0.5]])
    """
    (tensor,), back = take(finite=False, x=x)
    if weights is not None:
        (w,), kind = take(finite=False, weights=weights)
        weights = kind(_common_scale(w))
    sigma = Moments.from_samples(x, y, weights=weights).covariance_tensor(ridge=ridge)
    sigma = sigma.to(tensor.dtype)
    if not bool(sigma.detach().isfinite().all()):
        raise ArgumentError(
            f"x: variances overflow {tensor.dtype}; rescale the columns, or give float64"
        )
    return back(sigma)


def _common_scale(weights: Tensor) -> Tensor:
    """Scale weights to at most one: squares of very large or small ones would be lost.

    They are divided by a power of two, which changes no digit.
    """
    exponent = torch.frexp(weights.double().amax(-1, keepdim=True)).exponent.clamp(-1000, 1000)
    return (weights.double() * torch.exp2(-exponent.double())).to(weights.dtype)


def correntropy(
    x: Array, y: Array | None = None, *, width: float | Literal["median"] = "median"
) -> Array:
    """Centered correntropy matrix: like a covariance, but with moments of all even orders.

    C_ij = mean_k κ(x_i^k - x_j^k) - mean_kl κ(x_i^k - x_j^l) with κ(u) = exp(-u²/2s²), columns i, j
    and samples k, l (Yu et al. 2020). Columns should have comparable scales. O(N² d²) time.

    Parameters
    ----------
    x
        Features (N, d).
    y
        Responses (N,) or (N, m), appended as columns.
    width
        Kernel width s; "median" takes the median absolute difference between entries that are not
        equal (at most 2000, of evenly spaced rows).

    Examples
    --------
    >>> correntropy(np.array([[0.0, 0.0], [1.0, 2.0]]), width=1.0).round(3)
    array([[0.197, 0.216],
           [0.216, 0.432]])
    """
    tensors, back = take(optional=("y",), x=x, y=y)
    samples = join(tensors[0], tensors[1] if y is not None else None)
    if samples.ndim != 2 or samples.shape[0] < 2:
        raise ArgumentError(
            f"x: expected at least two samples (N, d), got shape {tuple(samples.shape)}"
        )
    s = median_gap(samples) if width == "median" else number("width", width, exclusive=True)
    scaled = samples.double() / (s * 2**0.5)
    columns = scaled.mT
    paired = torch.exp(-(columns.unsqueeze(0) - columns.unsqueeze(1)).square()).mean(-1)
    rows = [_mean_kernel(column, columns) for column in columns]
    centered = paired - torch.stack(rows)
    return back(((centered + centered.mT) / 2).to(samples.dtype))


def _mean_kernel(column: Tensor, columns: Tensor) -> Tensor:
    """Mean of exp(-(u - v)²) over all entries u of one column and v of every column, (d,)."""
    block = max(1, 4_000_000 // columns.numel())
    total = columns.new_zeros(columns.shape[0])
    for part in column.split(block):
        gaps = columns.unsqueeze(-1) - part
        total = total + torch.exp(-gaps.square()).sum((-1, -2))
    return total / columns.shape[1] ** 2


def median_gap(samples: Tensor) -> float:
    """Median absolute difference, without zeros, between entries of evenly spaced rows (N, d).

    At most 2000 entries, all columns alike.
    """
    values = samples.detach().double()
    values = values[:: -(-len(values) // max(1, 2000 // values.shape[1]))].flatten()
    gaps = (values.unsqueeze(0) - values.unsqueeze(1)).abs()
    median = float(gaps[gaps > 0].median()) if bool((gaps > 0).any()) else 0.0
    if median == 0:
        raise ArgumentError("width: 'median' is zero because all entries are equal; give a number")
    return median
