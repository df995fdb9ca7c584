"""Which parameters a group of hidden units owns, and the weighted mean of their past values."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from vntransfer.continual._base import choice
from vntransfer.continual._layers import Layer

Owns = Literal["outgoing", "incoming", "both"]
Term = tuple[int | None, Tensor]
"""Weights (tasks, n) of the slices along an axis of a parameter; None: one weight for all of it."""


class Owned:
    """Parameters that belong to groups of units, with a copy of their values after every task.

    A parameter that two groups own is held by both; one between groups (the bias of the next
    layer, the last layer if groups own what comes in) has the mean weight of the groups before it.

    Parameters
    ----------
    layers
        A chain; the units are those between its layers.
    owns
        "outgoing" weights, "incoming" weights and biases, or "both".

    Examples
    --------
    >>> from torch import nn
    >>> from vntransfer.continual._layers import find_layers
    >>> net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1, bias=False))
    >>> owned = Owned(find_layers(net), "outgoing")
    >>> owned.labels = [torch.tensor([0, 1])]
    >>> with torch.no_grad():
    ...     for value in (0.0, 1.0):
    ...         _ = net[2].weight.fill_(value)
    ...         owned.keep()
    >>> _, R, anchor = next(owned.collapse([torch.tensor([[1.0, 3.0], [1.0, 1.0]])]))
    >>> R, anchor
    (tensor([[2., 4.]]), tensor([[0.5000, 0.2500]]))
    """

    def __init__(self, layers: Sequence[Layer], owns: Owns) -> None:
        self.owns: Owns = choice("owns", owns, get_args(Owns))
        self.layers = list(layers)
        used = self.layers[1:] if owns == "outgoing" else self.layers
        self.parameters = [p for layer in used for p in layer.parameters()]
        self.labels: list[Tensor] = []
        self.values: list[Tensor] = []
        self._packed: dict[tuple[int, int | None], Tensor] = {}

    def keep(self) -> None:
        """Keep the parameters as they are now: those at the end of a task."""
        now = [p.detach().unsqueeze(0).clone() for p in self.parameters]
        old = self.values
        self.values = [torch.cat(both) for both in zip(old, now, strict=True)] if old else now
        self._packed = {}

    def collapse(self, r: list[Tensor]) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Each parameter with R = Σ_A r_A and Σ_A r_A θ_A / R.

        Parameters
        ----------
        r
            Weights (tasks, groups) of each layer of units.
        """
        for k, (p, terms) in enumerate(zip(self.parameters, self._terms(r), strict=True)):
            R, pull = torch.zeros_like(p), torch.zeros_like(p)
            for axis, c in terms:
                total, weighted = self._weigh(k, axis, c)
                R += total
                pull += weighted
            yield p, R, pull / R.clamp_min(torch.finfo(R.dtype).tiny)

    def _weigh(self, k: int, axis: int | None, c: Tensor) -> tuple[Tensor, Tensor]:
        """Σ_A c_A and Σ_A c_A θ_A, to be broadcast to the parameter's shape."""
        theta = self.values[k]
        if (k, axis) not in self._packed:  # slices first, so that one product serves all
            slices = theta.unsqueeze(0) if axis is None else theta.movedim(axis + 1, 0)
            self._packed[k, axis] = slices.reshape(*slices.shape[:2], -1).contiguous()
        weighted = c.mT.unsqueeze(1) @ self._packed[k, axis]
        if axis is None:
            return c.sum(), weighted.reshape(theta.shape[1:])
        rest = [n for i, n in enumerate(theta.shape[1:]) if i != axis]
        total = c.sum(0).reshape([-1, *[1] * (theta.ndim - 2 - axis)])
        return total, weighted.reshape(-1, *rest).movedim(0, axis)

    def _terms(self, r: list[Tensor]) -> Iterator[list[Term]]:
        last = len(self.layers) - 1
        for i, layer in enumerate(self.layers):
            if i == 0 and self.owns == "outgoing":
                continue
            inward: list[Term] = []
            outward: list[Term] = []
            if i < last and self.owns != "outgoing":
                inward = [(0, r[i][:, self.labels[i]])]
            if i > 0 and self.owns != "incoming":
                units = r[i - 1][:, self.labels[i - 1]]
                outward = [(1, units.repeat_interleave(layer.weight.shape[1] // units.shape[1], 1))]
            between: list[Term] = [(None, r[i - 1].mean(1, keepdim=True))]
            yield inward + outward or between
            if layer.has_bias:
                yield inward or between

    def state(self) -> dict[str, Any]:
        """Give what a checkpoint must hold."""
        return {"values": self.values}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self.values, self._packed = list(state["values"]), {}
