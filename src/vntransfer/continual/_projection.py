"""Gradients times a matrix P: what projection methods share."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from vntransfer.continual._base import ContinualMethod, Criterion, refuse_infinite
from vntransfer.continual._layers import Layer, Tape, find_layers
from vntransfer.continual.descent import backward
from vntransfer.continual.method_state import Stateful

BUFFER = 64
"""Rows that are collected before they are added to a second moment, in one product. A larger batch
is reduced to this many rows, chosen at random."""


class Full(NamedTuple):
    """A change of inputs (n, p): one matrix Q (p, p)."""

    Q: Tensor

    def times(self, a: Tensor) -> Tensor:
        """Rows a (n, p) times Q."""
        return a @ self.Q


class LowRank(NamedTuple):
    """A change of inputs (n, p): V diag(e) V' + tail I, V of few columns."""

    V: Tensor
    e: Tensor
    tail: Tensor

    def times(self, a: Tensor) -> Tensor:
        """Rows a (n, p) times the matrix."""
        return torch.addmm(self.tail * a, (a @ self.V) * self.e, self.V.mT)


class TwoSided(NamedTuple):
    """Damping of a change (outputs, p) of a layer, in directions V of outputs and U of inputs.

    The part along v_j u_k' is multiplied by e_j + E_jk, and what is outside of the directions U by
    e_j. Where U has all directions, nothing is outside, and e is zero.
    """

    V: Tensor
    U: Tensor
    E: Tensor
    e: Tensor

    def damped(self, change: Tensor) -> Tensor:
        """Damp a change."""
        V, U, E, e = self
        turned = V.mT @ change
        inside = (turned @ U).mul_(E) @ U.mT
        return V @ (inside if U.shape[1] == len(U) else inside.addcmul_(e[:, None], turned))


class Projected(ContinualMethod):
    """A method that turns the gradient d a' of each layer into d (Pa)', P = I + Q.

    Small batches have their inputs multiplied by Q, batches of more rows than a layer has outputs
    the gradient itself. A part of a gradient that does not come through the layer's output (a
    penalty on weights that was written into the loss) is damped in the second case only; use the
    optimizer's weight decay, which is not damped (but see ``sides="both"`` of
    `CovarianceProjection`, where every change of the weights is).
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Sequence[str] | None = None,
        *,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, criterion=criterion)
        self.on = False  # whether anything is to be done
        self.layers = find_layers(model, layers)
        self.Q: list[Any] = [None for _ in self.layers]  # None: P = I
        self.tape = Tape(self.layers)
        self.keep_hooks(self.tape.handles)

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """See a batch: its inputs to every layer are recorded in the coming pass."""
        if self.on:
            if self.tape.recorded and not any(layer.has_gradient for layer in self.layers):
                self.tape.take()  # of a skipped step
            self.tape.start()
        return x, y

    def _backward(self, x: Tensor, y: Tensor, criterion: Criterion) -> Tensor:
        """Compute the gradients, of single samples without the graph and the hooks, if possible."""
        loss = backward(self.model, x, y, criterion, self.tape)
        return super()._backward(x, y, criterion) if loss is None else loss

    def _recorded(self) -> list[list[tuple[Tensor, Tensor]]]:
        """Return inputs and slopes since the last step; none if the scaler is going to skip it."""
        found = self.tape.take()
        if self.scaler is None:
            return found
        scale = self.scaler.get_scale()
        found = [[(x, d / scale) for x, d in passes] for passes in found]
        whole = all(bool(d.isfinite().all()) for passes in found for _, d in passes)
        return found if whole else [[] for _ in found]

    @torch.no_grad()
    def adjust_gradients(self) -> None:
        """Turn d a' into d (Pa)'."""
        if not self.on:
            return
        for k, (layer, passes) in enumerate(zip(self.layers, self._recorded(), strict=True)):
            n = sum(d.numel() for _, d in passes) // layer.units
            few = n <= min(layer.units, BUFFER)
            for x, d in passes:
                a = self._rows(k, x, few=few)
                if few and self.Q[k]:
                    layer.add_gradient(layer.slopes(d), self.Q[k].times(a))
            if self.Q[k] and not few:
                layer.add_gradient(None, self.Q[k].times(layer.gradient()))

    def _rows(self, k: int, x: Tensor, *, few: bool) -> Tensor:
        """Return inputs (n, p) of layer k, with the one if they are ``few``."""
        return self.layers[k].rows(x) if few else x

    def damp(self, layer: int, change: Tensor) -> Tensor:
        """Return the damped change (outputs, p) of a layer, given by its index."""
        match self.Q[layer]:
            case None:
                return change
            case TwoSided() as both:
                return both.damped(change)
            case one_sided:
                return change + one_sided.times(change)


class SecondMoments(Stateful):
    """Mean of aa' over the rows of the present task, one matrix per layer.

    ``centered`` subtracts the mean, so that covariances come out; with ``slopes`` the rows are
    slopes at the layers' outputs, without a one.
    """

    saved = ("waiting", "sums", "totals", "filled", "counts")
    fixed = ("centered",)

    def __init__(
        self, layers: Sequence[Layer], *, centered: bool = False, slopes: bool = False
    ) -> None:
        self.centered = centered
        self._names = [layer.name for layer in layers]
        self._widths = [layer.units if slopes else layer.inputs for layer in layers]
        blank = [
            layer.weight.detach().new_ones(BUFFER, layer.units if slopes else layer.width)
            for layer in layers
        ]
        self.waiting = blank
        self.sums = [rows.new_zeros(rows.shape[1], rows.shape[1]) for rows in blank]
        self.totals = [rows.new_zeros(rows.shape[1]) for rows in blank]
        self.filled, self.counts = [0] * len(blank), [0] * len(blank)
        self.restored()

    def restored(self) -> None:
        """Find the places of single rows in the buffers, without the one."""
        self._places = [
            list(rows[:, :width].split(1))
            for rows, width in zip(self.waiting, self._widths, strict=True)
        ]

    def add(self, k: int, patches: Tensor) -> Tensor:
        """Add inputs (n, p), n at most BUFFER, of layer k; gives the rows, with the one."""
        n, p = patches.shape
        if self.filled[k] + n > BUFFER:
            self._empty(k)
        start = self.filled[k]
        a = self.waiting[k].narrow(0, start, n)
        a.narrow(1, 0, p).copy_(patches)
        self.filled[k] = start + n
        self.counts[k] += n
        return a

    def add_row(self, k: int, row: Tensor) -> None:
        """Add one row (1, p) of layer k: the same as `add`, but faster."""
        place = self.filled[k]
        if place == BUFFER:
            self._empty(k)
            place = 0
        self._places[k][place].copy_(row)
        self.filled[k] = place + 1
        self.counts[k] += 1

    def _empty(self, k: int) -> None:
        if self.filled[k]:
            a = self.waiting[k][: self.filled[k]]
            self.sums[k].addmm_(a.mT, a)
            if self.centered:
                self.totals[k] += a.sum(0)
            self.filled[k] = 0

    def take(self, k: int) -> Tensor | None:
        """Mean of aa' over the rows of layer k since the last call, in float64, if any."""
        self._empty(k)
        n = self.counts[k]
        if n == 0:
            return None
        moment = self.sums[k].double() / n
        if self.centered:
            mean = self.totals[k].double() / n
            moment -= mean.outer(mean)
        refuse_infinite(f"inputs or slopes of layer {self._names[k]!r}", moment)
        self.sums[k].zero_(), self.totals[k].zero_()
        self.counts[k] = 0
        return moment
