"""Conditional von Neumann divergences between tasks, for all groups of a layer at once."""

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from vntransfer.continual._base import refuse_infinite
from vntransfer.continual.method_state import Stateful
from vntransfer.moments import Moments

STEP = 4
"""Groups are padded to a multiple of this size, so that few sizes remain to be batched."""

RIDGE = 1e-6
"""Added to the diagonals of covariances, which can be singular."""

LONGEST = 100
"""Largest number of batches that wait before they enter the moments."""


class RunningMoments(Stateful):
    """Moments of [activations, response] of the current task, for several layers."""

    saved = ("waiting", "moments")

    def __init__(self, n_layers: int) -> None:
        self.n_layers = n_layers
        self.clear()

    def clear(self) -> None:
        """Begin a new task."""
        # count, squared count, mean and scatter
        self.moments: list[tuple[Tensor, Tensor, Tensor, Tensor] | None] = [None] * self.n_layers
        self.waiting: list[list[Tensor]] = [[] for _ in range(self.n_layers)]

    def add(self, k: int, rows: Tensor) -> None:
        """Add rows (n, d) of layer k."""
        self.waiting[k].append(rows)
        if len(self.waiting[k]) >= LONGEST:
            self._merge(k)

    @property
    def count(self) -> int:
        """Number of samples so far."""
        known = self.moments[0]
        return (0 if known is None else int(known[0])) + sum(map(len, self.waiting[0]))

    def covariances(self) -> list[Tensor]:
        """Covariance (d, d) of every layer, in float64; needs two samples."""
        for k in range(self.n_layers):
            self._merge(k)
        return [Moments(*m).covariance_tensor() for m in self.moments if m is not None]

    def _merge(self, k: int) -> None:
        if self.waiting[k]:
            rows = torch.cat(self.waiting[k])
            refuse_infinite("activations of the network", rows)
            m, known = Moments.from_samples(rows), self.moments[k]
            m = m if known is None else Moments(*known).merge(m)
            self.moments[k] = m.count, m.square_count, m.mean, m.scatter
            self.waiting[k] = []


class TaskMatrices(NamedTuple):
    """Covariances X (groups, n, n) of groups of one size in one task, and L of `GroupBlocks`."""

    X: Tensor
    L: Tensor


class StackedMatrices(NamedTuple):
    """The same of several tasks: upper triangles (groups, n (n + 1)/2, tasks), tr(Y L_Y)."""

    Y: Tensor
    L: Tensor
    own: Tensor


class GroupBlocks:
    """The covariance of [group, response] for every group of a layer, cut out of the layer's.

    Groups of similar size are padded with units of variance one that are independent of all others;
    these change no divergence. The response columns follow the units.
    """

    def __init__(self, labels: Tensor, n_response: int) -> None:
        self.n_response = n_response
        self.n_groups = int(labels.max()) + 1
        n = len(labels)
        members = [(labels == k).nonzero().flatten() for k in range(self.n_groups)]
        sizes = [-(-len(units) // STEP) * STEP for units in members]
        response = torch.arange(n, n + n_response, device=labels.device)
        self.order: list[int] = []
        self.buckets: list[Tensor] = []
        for size in sorted(set(sizes)):
            here = [k for k, own in enumerate(sizes) if own == size]
            padded = labels.new_full((len(here), size), n + n_response)
            for row, k in zip(padded, here, strict=True):
                row[: len(members[k])] = members[k]
            self.order += here
            self.buckets.append(torch.cat((padded, response.expand(len(here), -1)), 1))
        self.outside = n + n_response

    def take(self, sigma: Tensor) -> list[TaskMatrices]:
        """Blocks X of a layer's covariance, and L, for every size of group.

        L is log X less, in the rows and columns of the group, the logarithm of the group's own
        matrix: with these two, D = ½ tr((X - Y)(L_X - L_Y)), see `divergence`.
        """
        refuse_infinite("activations or responses", sigma)
        wide = torch.nn.functional.pad(sigma.double(), (0, 1, 0, 1))
        parts = []
        for index in self.buckets:
            X = wide[index.unsqueeze(-1), index.unsqueeze(-2)]
            padding = (index == self.outside).to(wide)
            X = X + torch.diag_embed(padding + RIDGE)
            L = _log(X)
            own = (..., slice(-self.n_response), slice(-self.n_response))
            L[own] -= _log(X[own])
            parts.append(TaskMatrices(X, L))
        return parts

    @staticmethod
    def stack(tasks: list[list[TaskMatrices]]) -> list[StackedMatrices]:
        """Lay results of `take` for several tasks out for `divergence`."""
        parts = []
        for of_size in zip(*tasks, strict=True):
            Y, L = (
                torch.stack([_upper(one) for one in ones], -1)
                for ones in zip(*of_size, strict=True)
            )
            weights = _counts(of_size[0].X).unsqueeze(-1)
            parts.append(StackedMatrices(Y, L, (weights * Y * L).sum(1)))
        return parts

    def divergence(self, now: list[TaskMatrices], then: list[StackedMatrices]) -> Tensor:
        """D (tasks, groups) = J of the joint matrices - J of the groups' own ones (Eq. 4).

        The groups' own matrices are blocks of the joint ones, so that tr(X_own log Y_own) is a part
        of tr(X ·) as well, and the difference one form ½ tr((X - Y)(L_X - L_Y)).
        """
        D = torch.cat([_apart(one, others) for one, others in zip(now, then, strict=True)])
        place = torch.tensor(self.order, device=D.device).argsort()
        return D.clamp_min(0)[place].mT


def _log(matrices: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(matrices)
    return (vectors * values.clamp_min(RIDGE).log().unsqueeze(-2)) @ vectors.mT


def _apart(now: TaskMatrices, then: StackedMatrices) -> Tensor:
    """½ tr((X - Y)(L - L_Y)) (groups, tasks): products in place of differences."""
    counts = _counts(now.X)
    x, along = _upper(now.X) * counts, _upper(now.L)
    own = then.own + (x * along).sum(-1, keepdim=True)
    crossed = x.unsqueeze(1) @ then.L + (along * counts).unsqueeze(1) @ then.Y
    return (own - crossed.squeeze(1)) / 2


def _upper(matrices: Tensor) -> Tensor:
    """Return the upper triangles (groups, n (n + 1)/2) of symmetric matrices (groups, n, n)."""
    return matrices.flatten(1)[:, _triangle(matrices.shape[-1], matrices.device)[0]]


def _counts(matrices: Tensor) -> Tensor:
    """Return how often an entry of the upper triangle occurs in a symmetric matrix: 1 or 2."""
    return _triangle(matrices.shape[-1], matrices.device)[1].to(matrices)


@lru_cache(maxsize=64)
def _triangle(n: int, device: torch.device) -> tuple[Tensor, Tensor]:
    i, j = torch.triu_indices(n, n, device=device)
    return i * n + j, 1 + (i != j).int()
