"""Elastic weight consolidation in rotated coordinates."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from vntransfer.checks import one_of
from vntransfer.continual._base import Criterion, refuse_infinite, seeded
from vntransfer.continual._fisher import sample_labels
from vntransfer.continual._layers import (
    Layer,
    find_layers,
    refuse_silent,
    sample_slopes,
    watch_order,
)
from vntransfer.continual._memory import Pending
from vntransfer.continual._quadratic import Penalized, Quadratic, Update
from vntransfer.continual.networks import MultiHead

Rotation = Literal["corrected", "published"]
Form = Literal["last", "online"]


def turn(module: nn.Module, x: Tensor, U: Tensor) -> Tensor:
    """Features (..., n) of a dense layer, or channels (N, n, height, width) of another, times U."""
    return x @ U if isinstance(module, nn.Linear) else torch.einsum("nchw,cd->ndhw", x, U)


class Turn(NamedTuple):
    """Rotations of a layer's inputs, U₁, and outputs, U₂."""

    U1: Tensor
    U2: Tensor


class REWC(Penalized):
    """Rotated elastic weight consolidation (Liu et al. 2018): EWC where the Fisher is diagonal.

    EWC ignores the off-diagonal Fisher information. Here a layer y = xW' + b (W as torch has it,
    outputs x inputs) is written after each task as ::

        y = ((x U₁) W̃' + b̃) U₂',   W̃ = U₂' W U₁,   b̃ = U₂' b

    U₁ the eigenvectors of E[x'x], U₂ those of E[g'g] (g the gradient of the log-likelihood at y,
    labels drawn from the prediction), and W̃, b̃ are trained under EWC's penalty. The network's
    parameter objects now hold W̃ and b̃, and hooks rotate inputs and outputs: the function is the
    same, and optimizers keep working; `unrotate` restores plain parameters. In convolutions the
    channels are rotated. A layer with a frozen weight or bias keeps its coordinates.

    The public code has U₂ in place of U₂' on the output side: the gradient at the inner output is
    then g U₂', whose second moment is not diagonal. ``rotation="published"`` does the same.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`.
    strength
        λ in λ Σ F (θ - θ*)², without the factor 1/2.
    rotation
        "corrected" or "published".
    form
        "online": earlier tasks' Fisher information is carried over to the new coordinates (the
        diagonal of the rotated matrix, exactly) and added, around the latest parameters. "last":
        that of the latest task alone, as published.
    fisher_samples
        Samples of a task, its first, for rotation and Fisher information; all if None. With fewer
        samples than a layer has inputs part of U₁ is arbitrary.
    layers
        Names of layers to rotate; None takes all dense and convolutional ones but the output layer.
        All others are penalized but not rotated.
    update
        "proximal" or "explicit": see `Quadratic`.
    random_state
        Seed of the drawn labels.

    Examples
    --------
    >>> from vntransfer.continual import REWC, Task, train
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> method = REWC(net)
    >>> method.before_task()
    >>> _ = train(net, Task(torch.randn(16, 4), torch.arange(16) % 2), method)
    >>> x, plain = torch.randn(3, 4), [p.detach().clone() for p in net.parameters()]
    >>> before = net(x)
    >>> method.after_task()
    >>> bool((net(x) - before).abs().max() < 1e-5), torch.equal(net[0].weight, plain[0])
    (True, False)
    >>> method.unrotate()
    >>> torch.allclose(net[0].weight, plain[0], atol=1e-5)
    True
    """

    id = "rewc"
    saved = ("quadratic", "pending", "generator", "turns")

    def __init__(
        self,
        model: nn.Module,
        strength: float = 10.0,
        *,
        rotation: Rotation = "corrected",
        form: Form = "online",
        fisher_samples: int | None = None,
        layers: Sequence[str] | None = None,
        update: Update = "proximal",
        random_state: int = 0,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, criterion=criterion)
        self.rotation: Rotation = one_of("rotation", rotation, Rotation)
        self.form: Form = one_of("form", form, Form)
        self.quadratic = Quadratic(self.parameters, strength, update)
        self.pending = Pending(fisher_samples)
        self.generator = seeded(random_state)
        self.layers = find_layers(model, layers)
        heads = any(isinstance(module, MultiHead) for module in model.modules())
        if layers is None and not heads and len(self.layers) > 1:
            ranks = ((layer.name, layer.module, layer is self.layers[-1]) for layer in self.layers)
            self.keep_hooks(watch_order(list(ranks)))
            self.layers = self.layers[:-1]
        self.turns: list[Turn | None] = [None for _ in self.layers]
        for k, layer in enumerate(self.layers):
            self.keep_hooks(
                [
                    layer.module.register_forward_pre_hook(partial(self._turn_in, k)),
                    layer.module.register_forward_hook(partial(self._turn_out, k)),
                ]
            )

    def _turn_in(self, k: int, module: nn.Module, inputs: tuple[Tensor, ...]) -> Any:
        own = self.turns[k]
        return None if own is None else (turn(module, inputs[0], own.U1),)

    def _turn_out(self, k: int, module: nn.Module, inputs: Any, out: Tensor) -> Tensor | None:
        own = self.turns[k]
        return None if own is None else turn(module, out, own.U2.mT)

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Keep samples for rotation and Fisher information."""
        if self.quadratic.strength:
            self.pending.add(x, y)
        return x, y

    def after_task(self) -> None:
        """Rotate again and estimate the Fisher information in the new coordinates."""
        super().after_task()
        if not self.quadratic.strength:
            return
        x, y = self.pending.take()
        old, F_old = list(self.turns), self.quadratic.precisions
        self._unrotate([layer for layer in self.layers if layer.trained])
        new = self._find_turns(x, y)
        if self.form == "online" and self.tasks_done > 1:
            F_old = self._carry(F_old, old, new)
        for layer, own in zip(self.layers, new, strict=True):
            if layer.trained:
                _transform(layer, own.U1, own.U2)
        self.turns = list(new)
        F = self.fisher_of(x, y, "sampled")
        if self.form == "online":
            F = list(torch._foreach_add(F, F_old))
        self.quadratic.replace(F)

    def unrotate(self) -> None:
        """Restore the plain parameters of the network; the penalty no longer applies to them."""
        self._unrotate(self.layers)

    def _unrotate(self, chosen: list[Layer]) -> None:
        for k, (layer, own) in enumerate(zip(self.layers, self.turns, strict=True)):
            if layer in chosen and own is not None:
                _transform(layer, own.U1.mT, own.U2.mT)
                self.turns[k] = None

    def restored(self) -> None:
        """Name the rotations."""
        self.turns = [Turn(*own) if own else None for own in self.turns]

    def close(self) -> None:
        """Unrotate, and remove the hooks from the network."""
        self.unrotate()
        super().close()

    def _find_turns(self, x: Tensor, y: Tensor) -> list[Turn]:
        """Eigenvectors of E[x'x] and E[g'g] of every layer, not rotated; a frozen one stays."""
        L: list[Tensor | float] = [0.0] * len(self.layers)
        M: list[Tensor | float] = [0.0] * len(self.layers)
        y = sample_labels(self.model, x, y, self.criterion, self.generator)
        for k, inputs, slopes in sample_slopes(self.model, self.layers, x, y, self.criterion):
            a, d = (_channels(self.layers[k].module, own) for own in (inputs, slopes))
            L[k], M[k] = L[k] + a.mT @ a, M[k] + d.mT @ d
        silent = (k for k, m in zip(self.layers, M, strict=True) if isinstance(m, float))
        refuse_silent([layer for layer in silent if layer.trained])
        turns = []
        for layer, own, *both in zip(self.layers, self.turns, L, M, strict=True):
            if layer.trained:
                found = [torch.as_tensor(m).double() for m in both]
                refuse_infinite(f"inputs or slopes of layer {layer.name!r}", *found)
                U1, U2 = (torch.linalg.eigh(m)[1] for m in found)
                pair = U1, U2.mT if self.rotation == "published" else U2
                own = Turn(*(U.to(layer.weight.detach()).contiguous() for U in pair))
            elif own is None:
                channels = layer.weight.shape[1], layer.units
                own = Turn(*(torch.eye(n).to(layer.weight.detach()) for n in channels))
            turns.append(own)
        return turns

    def _carry(self, F: list[Tensor], old: list[Turn | None], new: list[Turn]) -> list[Tensor]:
        """Diagonal of the old Fisher information in new coordinates: squared overlaps times F."""
        carried, places = [f.clone() for f in F], self.places()
        for layer, before, after in zip(self.layers, old, new, strict=True):
            assert before is not None  # there was a task
            if before is after:  # frozen
                continue
            R, S = ((U.mT @ V).square() for U, V in zip(before, after, strict=True))
            for p in layer.parameters():
                k = places[id(p)]
                carried[k] = _two_sided(F[k], R, S) if p.ndim > 1 else F[k] @ S
        return carried


def _channels(module: nn.Module, x: Tensor) -> Tensor:
    """Rows (n, features or channels)."""
    return (x if isinstance(module, nn.Linear) else x.movedim(1, -1)).flatten(0, -2)


def _two_sided(W: Tensor, U1: Tensor, U2: Tensor) -> Tensor:
    """U₂' W U₁, on the channels of a kernel."""
    return torch.einsum("oi...,op,iq->pq...", W, U2, U1)


@torch.no_grad()
def _transform(layer: Layer, U1: Tensor, U2: Tensor) -> None:
    """Replace weight and bias by U₂' W U₁ and U₂' b."""
    layer.weight.copy_(_two_sided(layer.weight, U1, U2))
    if layer.module.bias is not None:
        layer.module.bias.copy_(layer.module.bias @ U2)
