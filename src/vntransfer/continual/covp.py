"""Covariance projection: learning is damped along the directions that earlier tasks use."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from vntransfer.checks import fraction, number, one_of, whole
from vntransfer.continual._base import Criterion, seeded
from vntransfer.continual._layers import Layer
from vntransfer.continual._memory import SampleReservoir
from vntransfer.continual._projection import (
    BUFFER,
    Full,
    LowRank,
    Projected,
    SecondMoments,
    TwoSided,
)

IMAGES = 8
"""Number of pictures of a large batch from whose patches rows for second moments are drawn."""
Sides = Literal["both", "input"]
Filter = Literal["inverse", "exponential"]
Directions = Literal["all", "diagonal", "random"]
History = Literal["all", "first", "last"]

STRENGTHS: dict[tuple[Sides, Filter], float] = {
    ("both", "inverse"): 10.0,
    ("both", "exponential"): 4.0,
    ("input", "inverse"): 1.0,
    ("input", "exponential"): 0.3,
}
"""Default γ."""


def damping(values: Tensor, strength: float, filter: Filter) -> Tensor:
    """Eigenvalues of P from those of what earlier tasks use: 1/(1 + γs) or exp(-γs)."""
    return 1 / (1 + strength * values) if filter == "inverse" else (-strength * values).exp()


class CovarianceProjection(Projected):
    """Damp every change along the directions that earlier tasks use.

    For each dense or convolutional layer, as one matrix W (a one appended to its inputs a for the
    bias; patches of a convolution), a task t leaves the mean A_t of aa' over its samples and the
    mean G of dd', over tasks by their time, d the slopes of the loss at the layer's output: the
    Kronecker factors of the Fisher information F = A ⊗ G, where A = Σ τ_t A_t and τ_t, the sum of
    the learning rates of its steps (with replay, times the share of new samples in a batch), is the
    time that a task was learned for. After ``every`` steps, the change Δ of W since the last
    damping becomes PΔ, where P solves ::

        minimize over P ≻ 0   γ tr(PF) + D(P‖I)

    If D is the LogDet divergence, P = (I + γF)⁻¹; if D is the von Neumann divergence, P = exp(-γF).
    In a task of the same time, a change is then at most 1/γ of a Newton step for earlier tasks
    (τ/τ_t of that where times differ). With ``sides="input"`` only the inputs count, P = (I + γS)⁻¹
    with S = Σ_t A_t/c, A_t the mean of aa' over task t and c the mean diagonal of A_1 in each
    layer, and every gradient d a' becomes d (Pa)'. Nothing else is stored: no anchor of an earlier
    task, no sample. The derivation, relatives (natural continual learning, OWM, GPM, Adam-NSCL) and
    ablations are in docs/continual-methods.md.

    Parameters outside the layers are trained freely. Memory O(p² + outputs²) per layer with p
    inputs, whatever the number of tasks.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`.
    strength
        γ; None: see `STRENGTHS`. The default for both sides suits cross-entropy and standardized
        responses; a loss in other units needs another value.
    sides
        "both" or "input".
    every
        Steps between two dampings, for both sides.
    filter
        "inverse" (LogDet) or "exponential" (von Neumann).
    rank
        Use only the leading eigenvectors of A, and one damping, that of the mean remaining
        eigenvalue, for the rest: a cheaper step. None uses all.
    open_share
        Share of input directions, the least used ones, that stay undamped: A is lowered by that
        quantile of its eigenvalues. In long streams all directions are used up eventually; with
        0 all are damped and learning slows down.
    decay
        A ← decay A at the end of every task: below 1, earlier tasks are gradually forgotten.
    memory, replay
        With a memory (samples kept, for all tasks together), every batch is trained on together
        with ``replay`` remembered samples, as in `Replay`. P damps the steps of both; only new
        samples enter A and G, each once. The loss is a mean over both: use a learning rate about
        ten times as high.
    layers
        Names of layers to protect; None finds all.
    directions
        Ablations: "diagonal" ignores eigenvectors, "random" draws those of the inputs.
    history
        Ablations: A and G of the "first" or "last" task alone.
    centered
        Ablation: covariances of the inputs in place of second moments.
    random_state
        Seed of the memory, the random eigenvectors and the rows of large batches (see `BUFFER`).

    Examples
    --------
    >>> from vntransfer.continual import CovarianceProjection, Task
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> method = CovarianceProjection(net)
    >>> for shift in (0.0, 1.0):
    ...     method = method.learn(Task(torch.randn(16, 4) + shift, torch.arange(16) % 2))
    >>> change = torch.ones(8, 5)
    >>> bool(method.damp(0, change).norm() < change.norm())
    True
    """

    id = "covp"
    saved: ClassVar[tuple[str, ...]] = (
        "S",
        "T",
        "weights",
        "scale",
        "Q",
        "moments",
        "slopes",
        "positions",
        "times",
        "blocks",
        "since",
        "generator",
        "memory",
    )

    def __init__(
        self,
        model: nn.Module,
        strength: float | None = None,
        *,
        sides: Sides = "both",
        every: int = 20,
        filter: Filter = "inverse",
        rank: int | None = None,
        open_share: float = 0.0,
        decay: float = 1.0,
        memory: int = 0,
        replay: int = 10,
        layers: Sequence[str] | None = None,
        directions: Directions = "all",
        history: History = "all",
        centered: bool = False,
        random_state: int = 0,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, layers, criterion=criterion)
        self.sides: Sides = one_of("sides", sides, Sides)
        self.every = whole("every", every, minimum=1)
        self.filter: Filter = one_of("filter", filter, Filter)
        usual = STRENGTHS[self.sides, self.filter]
        self.strength = number("strength", usual if strength is None else strength)
        self.on = self.strength > 0
        self.rank = None if rank is None else whole("rank", rank, minimum=1)
        self.open_share = fraction("open_share", open_share)
        self.decay = fraction("decay", decay)
        self.directions = one_of("directions", directions, Directions)
        self.history = one_of("history", history, History)
        self.S = [layer.zeros(layer.width).double() for layer in self.layers]
        self.T = [layer.zeros(layer.units).double() for layer in self.layers]
        self.weights = [0.0] * len(self.layers)  # that the sum T has
        self.scale: list[float] = [0.0] * len(self.layers)
        self.moments = SecondMoments(self.layers, centered=centered)
        self.slopes = SecondMoments(self.layers, slopes=True)
        self.positions = [[0, 0] for _ in self.layers]  # rows, and samples that they are of
        self.times = [0.0] * len(self.layers)  # learning rates of the present task, added up
        self.blocks: list[Tensor] = []
        self.since = 0
        self.generator = seeded(random_state)
        self.memory = SampleReservoir(memory, seeded(random_state))
        self.replay = whole("replay", replay)
        self._replayed, self._share = 0, 1.0  # samples of the batch, and what the new ones make up
        self._observed = 0  # samples of the step, which several batches can be gathered for

    @property
    def stored_samples(self) -> int:
        """Number of samples that are kept."""
        return len(self.memory)

    def before_task(self) -> None:
        """Begin a task: changes count from here."""
        super().before_task()
        if self.sides == "both" and any(self.Q):
            self.blocks, self.since = [layer.matrix() for layer in self.layers], 0

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Take a batch; with a memory, append remembered samples."""
        super().observe(x, y)
        if not self.tape.recorded:
            self._observed = 0
        both = self.memory.extend(x, y, self.replay)
        self._observed += len(both[0])
        self._replayed = len(both[0]) - len(x)
        self._share = len(x) / max(len(both[0]), 1)
        return both

    @torch.no_grad()
    def adjust_gradients(self) -> None:
        """Add inputs and slopes; with ``sides="input"`` turn d a' into d (Pa)'."""
        if self.sides == "input":
            super().adjust_gradients()
        elif self.on:
            single = self._observed == 1
            for k, (layer, passes) in enumerate(zip(self.layers, self._recorded(), strict=True)):
                for x, d in passes:
                    if single and x.shape[0] == 1 and x.dim() == 2:  # the quick way
                        self.moments.add_row(k, x)
                        self.slopes.add_row(k, d)
                    else:
                        self._count(k, layer, x, d)

    def _count(self, k: int, layer: Layer, x: Tensor, d: Tensor) -> None:
        """Take in inputs and slopes of the new samples of a batch, the first ones."""
        new = max(0, len(x) - self._replayed)
        self.moments.add(k, self._some(layer, x[:new]))
        # the loss is a mean over all samples: times their number they are the slopes of each one's
        rows = layer.slopes(d[:new]) * self._observed
        self.slopes.add(k, self._few(rows))
        self.positions[k][0] += len(rows)
        self.positions[k][1] += new

    def after_step(self) -> None:
        """Damp the changes, once in ``every`` steps."""
        if self.on and self.sides == "both":
            for k, rate in enumerate(self.rates([layer.weight for layer in self.layers])):
                self.times[k] += self._share * rate
        if self.blocks:
            self.since += 1
            if self.since >= self.every:
                self._settle()

    @torch.no_grad()
    def _settle(self) -> None:
        for k, layer in enumerate(self.layers):
            if self.Q[k]:
                before = self.blocks[k]
                before += self.Q[k].damped(layer.matrix() - before)
                layer.set_matrix(before)
                if not layer.trained:
                    self.blocks[k] = layer.matrix()
        self.since = 0

    def _rows(self, k: int, x: Tensor, *, few: bool) -> Tensor:
        layer, new = self.layers[k], x[: max(0, len(x) - self._replayed)] if self._replayed else x
        a = self.moments.add(k, layer.patches(new) if few else self._some(layer, new))
        return layer.rows(x) if few and len(new) < len(x) else a

    def _some(self, layer: Layer, x: Tensor) -> Tensor:
        """At most BUFFER randomly chosen inputs (n, p) of a layer."""
        if isinstance(layer.module, nn.Conv2d) and len(x) > IMAGES:
            x = x[torch.randperm(len(x), generator=self.generator)[:IMAGES].to(x.device)]
        return self._few(layer.patches(x))

    def _few(self, rows: Tensor) -> Tensor:
        """At most BUFFER randomly chosen rows."""
        if len(rows) <= BUFFER:
            return rows
        chosen = torch.randperm(len(rows), generator=self.generator)[:BUFFER]
        return rows[chosen.to(rows.device)]

    def after_task(self) -> None:
        """Add the task's second moments and solve for P."""
        super().after_task()
        if self.since:
            self._settle()
        found = [(self.moments.take(k), self.slopes.take(k)) for k in range(len(self.layers))]
        for k, (layer, (A, G)) in enumerate(zip(self.layers, found, strict=True)):
            if A is None:
                continue
            if not self.scale[k]:
                self.scale[k] = float(A.trace()) / layer.width or 1.0
            if self.history != "first" or not self.Q[k]:
                decay = 0.0 if self.history == "last" else self.decay
                # inputs of a convolution are summed over positions, slopes are not
                rows, samples = self.positions[k]
                both = self.times[k] * (rows / samples if samples else 1)
                times = both if self.sides == "both" else 1 / self.scale[k]
                self.S[k].mul_(decay).add_(A * times)
                self.weights[k] = decay * self.weights[k] + self.times[k]
                if G is not None:
                    self.T[k].mul_(decay).add_(G * self.times[k])
            change = self._two_sided(k) if self.sides == "both" else self._change(self.S[k])
            # The memory layout decides the last bits: a checkpoint restores plain rows.
            self.Q[k] = type(change)(*(q.to(layer.weight).contiguous() for q in change))
        self.times = [0.0] * len(self.layers)
        self.positions = [[0, 0] for _ in self.layers]

    def restored(self) -> None:
        """Name what a checkpoint has as lists of one, three or four tensors."""
        kinds = {1: Full, 3: LowRank, 4: TwoSided}
        self.Q = [kinds[len(parts)](*parts) if parts else None for parts in self.Q]

    def _two_sided(self, k: int) -> TwoSided:
        """Damping of both sides by what earlier tasks use."""
        S, T = self.S[k], self.T[k] / (self.weights[k] or 1.0)
        if self.directions == "diagonal":
            S, T = S.diag().diag(), T.diag().diag()
        s, U = self._spectrum(S)
        t, V = torch.linalg.eigh(T)
        t = t.clamp_min(0)[:, None]
        D = damping(t * s, self.strength, self.filter)
        rank = len(s) if self.rank is None else min(self.rank, len(s))
        rest = torch.zeros_like(t[:, 0])
        if rank < len(s):
            rest = damping(t[:, 0] * s[:-rank].mean(), self.strength, self.filter)
        return TwoSided(V, U[:, -rank:], D[:, -rank:] - rest[:, None], rest)

    def _spectrum(self, S: Tensor) -> tuple[Tensor, Tensor]:
        """Ascending eigenvalues, lowered for open directions, and eigenvectors."""
        values, V = torch.linalg.eigh(S)
        if self.directions == "random":
            noise = torch.randn(V.shape, generator=self.generator, dtype=V.dtype)
            V = torch.linalg.qr(noise.to(V)).Q
        level = values.quantile(self.open_share) if self.open_share else 0.0
        return (values - level).clamp_min(0), V

    def _change(self, S: Tensor) -> Full | LowRank:
        """P - I, with ``sides="input"``."""
        if self.directions == "diagonal":
            S = S.diag().diag()
        rank = len(S) if self.rank is None else min(self.rank, len(S))
        plain = self.filter == "inverse" and self.directions != "random" and not self.open_share
        if plain and rank == len(S):
            eye = torch.eye(len(S)).to(S)
            root = torch.linalg.cholesky(eye + self.strength * S)
            return Full(torch.cholesky_inverse(root) - eye)
        values, V = self._spectrum(S)
        if rank == len(S):
            change = damping(values, self.strength, self.filter) - 1
            return Full((V * change) @ V.mT)
        rest, first = values[:-rank], values[-rank:]
        tail = damping(rest.mean(), self.strength, self.filter)
        return LowRank(V[:, -rank:], damping(first, self.strength, self.filter) - tail, tail - 1)
