"""Gradient projection memory."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from vntransfer.checks import fraction
from vntransfer.continual._base import Criterion, refuse_infinite
from vntransfer.continual._layers import layer_inputs
from vntransfer.continual._memory import Pending
from vntransfer.continual._projection import LowRank, Projected


class GPM(Projected):
    """Gradient projection memory (Saha, Garg and Roy 2021): steps orthogonal to earlier inputs.

    After a task the inputs R (n, p) of each layer are collected. With the orthonormal basis M of
    earlier tasks, the leading right singular vectors of R - RMM' are added to M until ::

        ‖RMM'‖² ≥ ε ‖R‖²

    and from then on every gradient G becomes G - GMM'. Inputs have a one appended for the bias
    (the original has no biases).

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`.
    threshold
        ε; 0 protects nothing.
    samples
        Number of samples, the first of a task, for R; None: all.
    layers
        Names of layers to protect; None finds all.

    Attributes
    ----------
    used : list of int
        Number of protected directions of each layer.

    Examples
    --------
    >>> from vntransfer.continual import GPM, Task
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> method = GPM(net, threshold=0.9).learn(Task(torch.eye(4), torch.arange(4) % 2))
    >>> method.used[0]      # of four inputs and the one
    4
    """

    id = "gpm"
    off: ClassVar[dict[str, float]] = {"threshold": 0.0}
    saved: ClassVar[tuple[str, ...]] = ("bases", "used", "pending")

    def __init__(
        self,
        model: nn.Module,
        threshold: float = 0.95,
        *,
        samples: int | None = 300,
        layers: Sequence[str] | None = None,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, layers, criterion=criterion)
        self.threshold = fraction("threshold", threshold)
        self.on = self.threshold > 0
        self.pending = Pending(samples, "samples")
        self.bases = [layer.zeros(layer.width) for layer in self.layers]
        self.used = [0] * len(self.layers)

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Keep samples for the representations."""
        if self.on:
            self.pending.add(x, y)
        return super().observe(x, y)

    @torch.no_grad()
    def after_task(self) -> None:
        """Add the directions that this task needs."""
        super().after_task()
        if not self.on:
            return
        x, _ = self.pending.take()
        inputs = layer_inputs(self.model, self.layers, x)
        for k, (layer, batch) in enumerate(zip(self.layers, inputs, strict=True)):
            rows = layer.rows(batch).double()
            refuse_infinite(f"inputs of layer {layer.name!r}", rows)
            new = new_directions(rows, self._basis(k).double(), self.threshold)
            self.bases[k][:, self.used[k] : self.used[k] + new.shape[1]] = new.to(self.bases[k])
            self.used[k] += new.shape[1]
            self._weigh(k, rows)
        self.restored()

    def _weigh(self, k: int, rows: Tensor) -> None:
        """Add rows (n, p) to the statistics of layer k; nothing by default."""

    def _removed(self, k: int) -> Tensor:
        """Give the share of a gradient that is removed along each direction of layer k."""
        return self.bases[k].new_ones(self.used[k])

    def _basis(self, k: int) -> Tensor:
        return self.bases[k][:, : self.used[k]]

    def restored(self) -> None:
        """Make the projections from the bases."""
        self.Q = []
        for k in range(len(self.layers)):
            M = self._basis(k).contiguous()
            taken = LowRank(M, -self._removed(k), M.new_zeros(()))
            self.Q.append(taken if self.used[k] else None)


def new_directions(R: Tensor, M: Tensor, share: float) -> Tensor:
    """Leading directions (p, k) of what M leaves of rows R (n, p), so that both hold a share."""
    missing = share * R.square().sum() - (R @ M).square().sum()
    if missing <= 0:
        return M[:, :0]
    values, V = torch.linalg.eigh((R - R @ M @ M.mT).mT @ (R - R @ M @ M.mT))
    gained = values.flip(0).clamp_min(0).cumsum(0)
    # beyond these there is nothing but rounding, which can keep the sum below a share of one
    there = int((values > values[-1] * len(values) * torch.finfo(values.dtype).eps).sum())
    k = min(int((gained < missing).sum()) + 1, there, R.shape[1] - M.shape[1])
    # Rounding leaves a little of M in the new directions; with many tasks it would add up.
    fresh = V.flip(1)[:, :k]
    return torch.linalg.qr(fresh - M @ (M.mT @ fresh)).Q
