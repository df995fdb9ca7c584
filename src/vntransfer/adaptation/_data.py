"""The rows of a fit as tensors: standardized, dense only where they are asked for, in batches."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis
from torch import Tensor

from vntransfer.adaptation._objective import Batch
from vntransfer.domains import Rows, balanced
from vntransfer.networks import Net

CHUNK = 4096
"""Rows that are predicted at once."""

LIMIT = 6.0
"""Standardized inputs are clipped to ± this many standard deviations."""


@dataclass(frozen=True)
class Scaler:
    """Mean and standard deviation of every column; constant columns have a scale of one."""

    mean: NDArray[np.float64]  # (p,)
    scale: NDArray[np.float64]
    # range within which values are kept before they are scaled
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None

    @classmethod
    def fit(cls, x: Any, weights: NDArray[np.float64] | None = None, within: Any = None) -> Self:
        """Measure the columns of a dense or CSR matrix.

        ``weights`` are those of a dense matrix's rows. Values are kept within the range of the rows
        ``within``; dense columns are measured after that.
        """
        low, high = (None, None) if within is None else column_range(within)
        if scipy.sparse.issparse(x):
            mean, variance = mean_variance_axis(x.astype(np.float64), axis=0)
        else:
            wide = np.asarray(x, dtype=np.float64)
            if low is not None:
                wide = np.clip(wide, low, high)
            mean = np.average(wide, axis=0, weights=weights)
            variance = np.average(np.square(wide - mean), axis=0, weights=weights)
        scale = np.sqrt(variance)
        noise = 1e3 * np.finfo(np.float64).eps * np.abs(mean)  # a constant column's rounding
        return cls(mean, np.where(scale > noise, scale, 1.0), low, high)

    def transform(self, x: Any) -> NDArray[np.float32]:
        """Standardized dense rows, clipped."""
        if not scipy.sparse.issparse(x):
            kept = x if self.low is None else np.clip(x, self.low, self.high)
            out = np.clip((kept - self.mean) / self.scale, -LIMIT, LIMIT)
            return np.asarray(out, dtype=np.float32)
        # in float32 unless a mean is so large beside its column's spread that digits would cancel
        exact = np.float32 if (np.abs(self.mean) < 1e3 * self.scale).all() else np.float64
        dense = x.astype(exact).toarray()
        if self.low is not None:
            np.clip(dense, self.low, self.high, out=dense)
        dense -= self.mean.astype(exact)
        dense /= self.scale.astype(exact)
        return np.asarray(np.clip(dense, -LIMIT, LIMIT, out=dense), dtype=np.float32)

    def outside(self, x: Any) -> float:
        """Share of the values that are cut: by their range, or else far from the mean."""
        if self.low is None or self.high is None:
            return float((np.abs(self.transform(x)) >= LIMIT).mean())
        cut = x - kept_within(x, self.low, self.high)
        return float((cut != 0).sum() / max(1, np.prod(cut.shape)))


def column_range(x: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lowest and highest value of each column of a dense or CSR matrix, (p,) each."""
    low, high = x.min(axis=0), x.max(axis=0)
    if scipy.sparse.issparse(x):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)


def kept_within(x: Any, low: NDArray[np.float64], high: NDArray[np.float64]) -> Any:
    """Values within the range of their column; zeros of sparse rows stay zeros."""
    if not scipy.sparse.issparse(x):
        return np.clip(x, low, high).astype(x.dtype, copy=False)
    x = x.copy()
    x.data = np.clip(x.data, low[x.indices], high[x.indices])
    return x


def stacked(parts: Sequence[Any]) -> Any:
    """Rows of several matrices, CSR if they are sparse."""
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")
    return np.vstack(parts)


class Data:
    """Scaled inputs, sparse ones only as far as they are asked for, and responses.

    ``y`` are scaled responses (n, m), anything in rows that have none; rows are drawn by their
    ``weights`` (n,); ``limits`` are the lowest and highest scaled response, (m,) each, that is
    predicted.
    """

    def __init__(
        self,
        x: Any,
        scaler: Scaler,
        y: Tensor,
        *,
        weights: NDArray[np.float64] | None = None,
        limits: tuple[Tensor, Tensor] | None = None,
        device: str = "cpu",
    ) -> None:
        self.sparse = scipy.sparse.issparse(x)
        self.x: Any = x if self.sparse else scaler.transform(x)
        self.scaler, self.y = scaler, y
        self.weights, self.limits, self.device = weights, limits, device

    def limited(self, domains: Sequence[Rows]) -> "tuple[Data, list[Rows]]":
        """Add, for each domain, its rows within the range of all others: as if it were the target.

        Gives all rows, and which ones were added for each domain.
        """
        added, places = [], []
        n = self.x.shape[0]
        for v, rows in enumerate(domains):
            others = np.concatenate([*domains[:v], *domains[v + 1 :]])
            if self.weights is not None:
                others = others[self.weights[others] > 0]
            added.append(kept_within(self.x[rows], *column_range(self.x[others])))
            places.append(np.arange(n, n + len(rows)))
            n += len(rows)
        whole = copy.copy(self)
        again = np.concatenate([np.arange(self.x.shape[0]), *domains])
        whole.x = stacked([self.x, *added])
        whole.y = self.y[torch.from_numpy(again)]
        whole.weights = None if self.weights is None else self.weights[again]
        return whole, places

    def bound(self, scaled: Tensor) -> Tensor:
        """Keep predictions within their limits."""
        return scaled if self.limits is None else scaled.clamp(*self.limits)

    def mass(self, rows: Rows) -> Tensor:
        """Weights of rows, (n,)."""
        if self.weights is None:
            return torch.ones(len(rows))
        return torch.from_numpy(self.weights[rows]).float()

    def inputs(self, rows: Rows) -> Tensor:
        """Give scaled rows (n, p)."""
        chosen = self.x[rows]
        scaled = self.scaler.transform(chosen) if self.sparse else chosen
        return torch.from_numpy(scaled).to(self.device)

    def responses(self, rows: Rows) -> Tensor:
        """Give scaled responses (..., m) of rows (...)."""
        return self.y[torch.from_numpy(rows)].to(self.device)

    def batches(
        self,
        domains: Sequence[Rows],
        order: NDArray[np.intp],
        n_sources: int,
        *,
        size: int,
        random_state: int,
        skip: int = 0,
    ) -> Iterator[Batch]:
        """Endless batches of ``size`` rows of each domain, after the first ``skip``.

        ``order`` (M, K + 1) are the domains of each member, sources first.
        """
        in_order = bool((order == np.arange(len(domains))[: order.shape[1]]).all())
        all_in_order = in_order and order.shape[1] == len(domains)
        places = None if all_in_order else torch.from_numpy(order).to(self.device)
        draws = balanced(domains, size, random_state=random_state, weights=self.weights)
        for chosen in islice(draws, skip, None):
            x = self.inputs(chosen.ravel()).reshape(*chosen.shape, -1)
            y = self.responses(chosen if places is None else chosen[order[:, :n_sources]])
            yield Batch(x, y[:n_sources] if places is None else y, places)


@torch.no_grad()
def predict(net: Net, data: Data, rows: Rows) -> Tensor:
    """Predictions (M, n, m) of all members, on the CPU."""
    net.eval()
    pieces = [rows[i : i + CHUNK] for i in range(0, len(rows), CHUNK)]
    return torch.cat([net(data.inputs(piece)[None])[:, 0].cpu() for piece in pieces], 1)
