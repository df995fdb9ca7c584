"""Covariance projection: gradients are damped along the directions that earlier tasks use."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from vntransfer._arrays import number
from vntransfer.continual._base import Criterion, choice, whole
from vntransfer.continual._layers import Layer
from vntransfer.continual._memory import Reservoir
from vntransfer.continual._projection import BUFFER, Projected, SecondMoments
from vntransfer.errors import ArgumentError

IMAGES = 8
"""Pictures of a large batch whose patches the rows for second moments are chosen from."""
Filter = Literal["inverse", "exponential"]
Directions = Literal["all", "diagonal", "random"]
History = Literal["all", "first", "last"]


def damping(values: Tensor, strength: float, filter: Filter) -> Tensor:
    """Eigenvalues of P from those of S: 1/(1 + γs) or exp(-γs).

    Examples
    --------
    >>> damping(torch.tensor([0.0, 1.0]), 1.0, "inverse")
    tensor([1.0000, 0.5000])
    """
    return 1 / (1 + strength * values) if filter == "inverse" else (-strength * values).exp()


class CovarianceProjection(Projected):
    """Damp every gradient along the input directions that earlier tasks use.

    For each dense or convolutional layer, with inputs a (a one appended for the bias; patches of
    a convolution), task t leaves S ← S + C_t/c, C_t the mean of aa' over its samples and c the
    mean diagonal of C_1. The gradient d a' of a sample becomes d (Pa)', where P solves ::

        minimise over P ≻ 0   γ tr(PS) + D(P‖I)

    D the LogDet divergence: P = (I + γS)⁻¹; D the von Neumann divergence: P = exp(-γS). Nothing
    else is stored: no anchor, no Fisher information, no sample. The derivation, relatives (OWM,
    GPM, Adam-NSCL, natural continual learning) and ablations are in docs/continual-methods.md.

    Parameters outside the layers are trained freely. Memory O(p²) per layer with p inputs, whatever
    the number of tasks.

    Parameters
    ----------
    model, criterion
        See `Method`.
    strength
        γ; about 1 for "inverse", .3 for "exponential".
    filter
        "inverse" (LogDet) or "exponential" (von Neumann).
    rank
        Use the leading eigenvectors of S alone and one damping, that of the mean remaining
        eigenvalue, for all the rest: a cheaper step. None uses all.
    open_share
        Share of directions, those that were used least, that stay undamped: S is lowered by the
        eigenvalue at this place of its spectrum. In long streams all directions are used up in
        the end; 0 damps them all the same, so that learning slows down.
    decay
        S ← decay S + C_t/c: below 1 earlier tasks are given up little by little.
    memory, replay
        With a memory (samples kept, for all tasks together), every batch is trained on together
        with ``replay`` remembered samples, as `Replay` does. P damps the gradients of both; only
        new samples count in C_t, so that each task enters S once. The loss is a mean over both:
        take a learning rate about ten times as high.
    layers
        Names of layers to protect; None finds all.
    directions
        Ablations: "diagonal" ignores eigenvectors, "random" draws them.
    history
        Ablations: S of the "first" or "last" task alone.
    centred
        Ablation: covariances in place of second moments.
    seed
        Of the memory, the random eigenvectors and the rows of large batches (see `BUFFER`).

    Examples
    --------
    >>> from vntransfer.continual import CovarianceProjection, Task, train
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> method = CovarianceProjection(net)
    >>> for shift in (0.0, 1.0):
    ...     method.before_task()
    ...     train(net, Task(torch.randn(16, 4) + shift, torch.arange(16) % 2), method)
    ...     method.after_task()
    >>> method.projection(0).shape
    torch.Size([5, 5])
    """

    id: ClassVar[str] = "covp"
    saved: ClassVar[tuple[str, ...]] = ("S", "scale", "Q", "moments", "generator", "memory")

    def __init__(
        self,
        model: nn.Module,
        strength: float = 1.0,
        *,
        filter: Filter = "inverse",
        rank: int | None = None,
        open_share: float = 0.0,
        decay: float = 1.0,
        memory: int = 0,
        replay: int = 10,
        layers: Sequence[str] | None = None,
        directions: Directions = "all",
        history: History = "all",
        centred: bool = False,
        seed: int = 0,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, layers, criterion=criterion)
        self.strength = number("strength", strength)
        self.on = self.strength > 0
        self.filter: Filter = choice("filter", filter, ("inverse", "exponential"))
        self.rank = None if rank is None else whole("rank", rank, minimum=1)
        self.open_share = number("open_share", open_share)
        if self.open_share > 1:
            raise ArgumentError(f"open_share: expected a share of at most 1, got {open_share!r}")
        self.decay = number("decay", decay)
        self.directions = choice("directions", directions, ("all", "diagonal", "random"))
        self.history = choice("history", history, ("all", "first", "last"))
        self.S = [
            layer.weight.detach().new_zeros(layer.width, layer.width, dtype=torch.float64)
            for layer in self.layers
        ]
        self.scale: list[float] = [0.0] * len(self.layers)
        self.moments = SecondMoments(self.layers, centred=centred)
        self.generator = torch.Generator().manual_seed(whole("seed", seed))
        self.memory = Reservoir(memory, torch.Generator().manual_seed(seed))
        self.replay = whole("replay", replay)
        self._replayed = 0

    @property
    def stored_samples(self) -> int:
        """Number of samples that are kept."""
        return len(self.memory)

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """See a batch; with a memory, append remembered samples."""
        super().observe(x, y)
        both = self.memory.extend(x, y, self.replay)
        self._replayed = len(both[0]) - len(x)
        return both

    def _rows(self, k: int, x: Tensor, *, few: bool) -> Tensor:
        layer, new = self.layers[k], x[: max(0, len(x) - self._replayed)] if self._replayed else x
        a = self.moments.add(k, layer.patches(new) if few else self._some(layer, new))
        return layer.rows(x) if few and len(new) < len(x) else a

    def _some(self, layer: Layer, x: Tensor) -> Tensor:
        """At most BUFFER randomly chosen inputs (n, p) of a layer."""
        if isinstance(layer.module, nn.Conv2d) and len(x) > IMAGES:
            x = x[torch.randperm(len(x), generator=self.generator)[:IMAGES].to(x.device)]
        patches = layer.patches(x)
        if len(patches) <= BUFFER:
            return patches
        chosen = torch.randperm(len(patches), generator=self.generator)[:BUFFER]
        return patches[chosen.to(x.device)]

    def after_task(self) -> None:
        """Add the task's second moments to S and solve for P."""
        super().after_task()
        for k, layer in enumerate(self.layers):
            C = self.moments.take(k)
            if C is None:
                continue
            if not self.scale[k]:
                self.scale[k] = float(C.trace()) / layer.width or 1.0
            if self.history == "last":
                self.S[k].zero_()
            if self.history != "first" or not self.Q[k]:
                self.S[k].mul_(self.decay).add_(C / self.scale[k])
            like = layer.weight
            # The memory layout decides the last bits: a checkpoint restores plain rows.
            self.Q[k] = [q.to(like).contiguous() for q in self._change(self.S[k])]

    def _change(self, S: Tensor) -> list[Tensor]:
        """P - I: one matrix, or with a rank [V, e, tail] for V diag(e) V' + tail I."""
        if self.directions == "diagonal":
            S = S.diag().diag()
        rank = len(S) if self.rank is None else min(self.rank, len(S))
        plain = self.filter == "inverse" and self.directions != "random" and not self.open_share
        if plain and rank == len(S):
            eye = torch.eye(len(S)).to(S)
            root = torch.linalg.cholesky(eye + self.strength * S)
            return [torch.cholesky_inverse(root) - eye]
        values, V = torch.linalg.eigh(S)
        if self.directions == "random":
            noise = torch.randn(V.shape, generator=self.generator, dtype=V.dtype)
            V = torch.linalg.qr(noise.to(V)).Q
        level = values.quantile(self.open_share) if self.open_share else 0.0
        values = (values - level).clamp_min(0)
        if rank == len(S):
            change = damping(values, self.strength, self.filter) - 1
            return [(V * change) @ V.mT]
        rest, first = values[:-rank], values[-rank:]
        tail = damping(rest.mean(), self.strength, self.filter)
        return [V[:, -rank:], damping(first, self.strength, self.filter) - tail, tail - 1]
