"""The rows of a fit as tensors: standardized, in batches, dense only where needed."""

import copy
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from vntransfer.adaptation._objective import Batch
from vntransfer.adaptation._scaler import Scaler, column_range, kept_within
from vntransfer.domains import Rows, balanced
from vntransfer.networks import Net

CHUNK = 4096
"""Rows that are predicted at once."""


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
        limits: tuple[NDArray[Any], NDArray[Any]] | None = None,
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
        parts = [self.x, *added]
        whole.x = scipy.sparse.vstack(parts, format="csr") if self.sparse else np.vstack(parts)
        whole.y = self.y[torch.from_numpy(again)]
        whole.weights = None if self.weights is None else self.weights[again]
        return whole, places

    def bound(self, scaled: Tensor) -> Tensor:
        """Keep predictions within their limits."""
        return scaled if self.limits is None else scaled.clamp(*map(torch.from_numpy, self.limits))

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
