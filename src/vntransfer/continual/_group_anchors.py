"""Weights that go out from groups of hidden units, and the weighted mean of their past values."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from vntransfer.continual._base import Stateful
from vntransfer.continual._layers import Layer


class Owned(Stateful):
    """Parameters that belong to groups of units, with a copy of their values after every task.

    A group owns the weights that go out from its units; the bias of the next layer, which is
    nobody's, has the mean weight of the groups before it. The units are those between the layers,
    which form a chain.

    Examples
    --------
    >>> from torch import nn
    >>> from vntransfer.continual._layers import find_layers
    >>> net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1, bias=False))
    >>> owned = Owned(find_layers(net))
    >>> owned.labels = [torch.tensor([0, 1])]
    >>> with torch.no_grad():
    ...     for value in (0.0, 1.0):
    ...         _ = net[2].weight.fill_(value)
    ...         owned.keep()
    >>> _, R, anchor = next(owned.collapse([torch.tensor([[1.0, 3.0], [1.0, 1.0]])]))
    >>> R, anchor
    (tensor([[2., 4.]]), tensor([[0.5000, 0.2500]]))
    """

    saved: ClassVar[tuple[str, ...]] = ("values",)

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = list(layers[1:])
        self.parameters = [p for layer in self.layers for p in layer.parameters()]
        self.labels: list[Tensor] = []
        self.values: list[Tensor] = []
        self._packed: dict[int, Tensor] = {}

    def keep(self) -> None:
        """Keep the parameters as they are now: those at the end of a task."""
        now = [p.detach().unsqueeze(0).clone() for p in self.parameters]
        old = self.values
        self.values = [torch.cat(both) for both in zip(old, now, strict=True)] if old else now
        self._packed = {}

    def restored(self) -> None:
        """Drop what was laid out for other values."""
        self._packed = {}

    def collapse(self, r: list[Tensor]) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Each parameter with R = Σ_A r_A and Σ_A r_A θ_A / R, for r (tasks, groups) per layer."""
        for k, (p, (axis, c)) in enumerate(zip(self.parameters, self._weights(r), strict=True)):
            total, weighted = self._weigh(k, axis, c)
            R = torch.zeros_like(p) + total
            yield p, R, weighted / R.clamp_min(torch.finfo(R.dtype).tiny)

    def _weights(self, r: list[Tensor]) -> Iterator[tuple[int | None, Tensor]]:
        """Weights (tasks, n) of a parameter's slices along an axis; None: one for all of it."""
        for of_groups, labels, layer in zip(r, self.labels, self.layers, strict=True):
            units = of_groups[:, labels]
            yield 1, units.repeat_interleave(layer.weight.shape[1] // units.shape[1], 1)
            if layer.has_bias:
                yield None, of_groups.mean(1, keepdim=True)

    def _weigh(self, k: int, axis: int | None, c: Tensor) -> tuple[Tensor, Tensor]:
        """Σ_A c_A and Σ_A c_A θ_A, to be broadcast to the parameter's shape."""
        theta = self.values[k]
        if k not in self._packed:  # slices first, so that one product serves all
            slices = theta.unsqueeze(0) if axis is None else theta.movedim(axis + 1, 0)
            self._packed[k] = slices.reshape(*slices.shape[:2], -1).contiguous()
        weighted = c.mT.unsqueeze(1) @ self._packed[k]
        if axis is None:
            return c.sum(), weighted.reshape(theta.shape[1:])
        rest = [n for i, n in enumerate(theta.shape[1:]) if i != axis]
        total = c.sum(0).reshape([-1, *[1] * (theta.ndim - 2 - axis)])
        return total, weighted.reshape(-1, *rest).movedim(0, axis)
