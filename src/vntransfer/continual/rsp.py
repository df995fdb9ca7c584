"""Representation similarity penalty: the paper's method."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from vntransfer.checks import number, one_of, whole
from vntransfer.continual._base import Criterion, refuse_infinite, seeded
from vntransfer.continual._layers import (
    LayerFisher,
    Tape,
    find_layers,
    layer_fisher,
    refuse_silent,
    watch_order,
)
from vntransfer.continual._memory import Pending
from vntransfer.continual._quadratic import Penalized, Quadratic, Update
from vntransfer.continual._relatedness import (
    GroupBlocks,
    RunningMoments,
    StackedMatrices,
    TaskMatrices,
)
from vntransfer.continual._unit_groups import Grouping, Junction, Owned, find_groups
from vntransfer.continual.descent import backward
from vntransfer.errors import ArgumentError

Normalize = Literal["tasks", "groups"]
Response = Literal["one_hot", "index"]
Relatedness = Literal["similar", "reversed", "constant"]


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def relatedness(D: Tensor, kind: Relatedness, over: Normalize) -> Tensor:
    """Return r (tasks, groups) of divergences D (tasks, groups): Eq. 11 without λ."""
    sign = {"similar": -1.0, "reversed": 1.0, "constant": 0.0}[kind]
    return (sign * D).softmax(0 if over == "tasks" else 1)


class RSP(Penalized):
    """Representation similarity penalty (Eqs. 10 and 11): similar tasks' modules are held.

    While task B is learned, with θ_A the parameters at the end of each earlier task A::

        λ Σ_A Σ_k r_A,k Σ_{i in g_k} (θ_i - θ_A,i)²,   r_A,k = exp(-D_A,k) / Z

    where g_k are groups of hidden units, found once after the first task, which own their outgoing
    weights, and D is the symmetric von Neumann conditional divergence of the response given the
    group's activations between A and B. λ Σ_A F_A (θ - θ_A)² with the diagonal Fisher information
    protects the first layer.

    docs/continual-methods.md lists what the paper leaves open or states differently, with the
    option that follows it: mainly λ instead of λ/2, Z, the response of a class, and that biases get
    the mean coefficient of their layer's groups. Replacing D by a constant has almost no effect on
    the paper's streams.

    Memory: one copy of the parameters above the first layer and the groups' covariances per task (r
    changes while B is learned, so these anchors cannot be summed); everything else is constant. The
    penalty is collapsed into one precision and one anchor per parameter whenever r is recomputed,
    so a step hardly costs more with many tasks.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`. Layers must form a chain; the units of a convolution are its
        channels.
    strength
        λ: about 1 with ``normalize="tasks"``, 3 with "groups".
    groups
        Number of groups per hidden layer, at most.
    grouping
        "communities" (Watanabe et al. 2018) or "random".
    threshold
        Weights above it connect units: a number, or "median" of each layer's weights.
    normalize
        Z sums over earlier "tasks" or over "groups" of a layer.
    relatedness
        "similar" (Eq. 11), "reversed" (exp(+D)) or "constant" (D is not used).
    response
        Classes as "one_hot" columns or as one number, their "index". Real responses are taken as
        they are.
    every
        Number of samples after which D is recomputed; r is equal for all tasks before that.
    first_layer
        "fisher" or "none".
    fisher
        The Fisher information of the first layer: "observed" (mean of the squared gradients) or
        "squared_mean" (square of the mean gradient), the rule of the code that the paper builds on.
        The latter is much smaller where gradients differ in sign: see `diagonal_fisher`.
    fisher_samples
        Number of samples, the first of a task, for the Fisher information; None: all.
    layers
        Names of the layers, in order; None finds all.
    update
        "proximal" or "explicit": see `Quadratic`.
    random_state
        Seed of the groups.

    Attributes
    ----------
    divergences : list
        D (earlier tasks, groups) of each hidden layer, as last computed.

    Examples
    --------
    >>> from vntransfer.continual import RSP, Task
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> method = RSP(net, strength=1.0, groups=3)
    >>> for shift in (0.0, 1.0):
    ...     method = method.learn(Task(torch.randn(40, 4) + shift, torch.arange(40) % 2))
    >>> len(method.divergences[0])
    1
    """

    id = "rsp"
    saved = (
        "quadratic",
        "pending",
        "generator",
        "labels",
        "owned",
        "running",
        "past",
        "divergences",
        "since",
        "n_response",
    )

    def __init__(
        self,
        model: nn.Module,
        strength: float = 1.0,
        *,
        groups: int = 20,
        grouping: Grouping = "communities",
        threshold: float | Literal["median"] = "median",
        normalize: Normalize = "tasks",
        relatedness: Relatedness = "similar",
        response: Response = "one_hot",
        every: int = 20,
        first_layer: Literal["fisher", "none"] = "fisher",
        fisher: LayerFisher = "observed",
        fisher_samples: int | None = None,
        layers: Sequence[str] | None = None,
        update: Update = "proximal",
        random_state: int = 0,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, criterion=criterion)
        self.groups = whole("groups", groups, minimum=1)
        self.grouping: Grouping = one_of("grouping", grouping, Grouping)
        self.threshold = threshold if threshold == "median" else number("threshold", threshold)
        self.normalize: Normalize = one_of("normalize", normalize, Normalize)
        self.relatedness: Relatedness = one_of("relatedness", relatedness, Relatedness)
        self.response: Response = one_of("response", response, Response)
        self.every = whole("every", every, minimum=2)
        self.first_layer = one_of("first_layer", first_layer, ("fisher", "none"))
        self.layers = find_layers(model, layers)
        self.junctions = [Junction(*pair) for pair in pairwise(self.layers)]
        if not self.junctions:
            raise ArgumentError(
                f"layers: RSP groups the units between two layers, but there is only "
                f"{self.layers[0].name!r}; use a network with a hidden layer"
            )
        self.quadratic = Quadratic(self.parameters, strength, update)
        self.fisher: LayerFisher = one_of("fisher", fisher, LayerFisher)
        self.pending = Pending(fisher_samples)
        self.generator = seeded(random_state)
        self.tape = Tape([junction.after for junction in self.junctions])
        self.keep_hooks(self.tape.handles)
        ranks = ((layer.name, layer.module, k) for k, layer in enumerate(self.layers))
        self.keep_hooks(watch_order(list(ranks)))
        self.running = RunningMoments(len(self.junctions))
        self.labels: list[Tensor] = []
        self.blocks: list[GroupBlocks] = []
        self.owned = Owned(self.layers)
        self.past: list[list[list[TaskMatrices]]] = []  # task, hidden layer, size of group
        self.divergences: list[Tensor] = []
        self.since, self.n_response = 0, 1
        self._stacked: list[list[StackedMatrices]] = []
        self._responses: list[Tensor] = []

    def before_task(self) -> None:
        """Begin a task: every earlier one has the same r until D can be computed."""
        super().before_task()
        self.since = 0
        if self.past:
            equal = [torch.zeros(len(self.past), b.n_groups) for b in self.blocks]
            self._penalize(equal)

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """See a batch: its activations are recorded in the coming pass."""
        if self.quadratic.strength:
            if self._responses and not any(layer.has_gradient for layer in self.layers):
                self.tape.take()  # of a skipped step
                self._responses.clear()
            if self.first_layer == "fisher":
                self.pending.add(x, y)
            self.tape.start()
            self._responses.append(self._columns(y))
        return x, y

    def _backward(self, x: Tensor, y: Tensor, criterion: Criterion) -> Tensor:
        """Compute the gradients, of single samples without the graph and the hooks, if possible."""
        loss = backward(self.model, x, y, criterion, self.tape)
        return super()._backward(x, y, criterion) if loss is None else loss

    @torch.no_grad()
    def adjust_gradients(self) -> None:
        """Add the activations to the statistics; recompute r after ``every`` samples."""
        if not self._responses:
            return
        Y = _joined(self._responses)
        self._responses, self.n_response = [], Y.shape[1]
        for k, (junction, passes) in enumerate(zip(self.junctions, self.tape.take(), strict=True)):
            refuse_silent([] if passes else [junction.after])
            z = _joined([junction.activations(x) for x, _ in passes])
            if len(z) != len(Y):
                raise ArgumentError(
                    f"observe: {len(Y)} samples were observed, but layer "
                    f"{junction.after.name!r} received {len(z)}; train on the batch that "
                    f"observe returns"
                )
            Y = Y.to(z)
            self.running.add(k, torch.cat((z, Y), 1))
        self.since += len(Y)
        if self.past and self.since >= self.every and self.running.count > 1:
            self.since = 0
            self._recompute()
        super().adjust_gradients()

    def after_task(self) -> None:
        """Keep the task's covariances and parameters; find the groups after the first one."""
        super().after_task()
        if not self.quadratic.strength:
            return
        if self.running.count < 2:
            raise ArgumentError(
                f"after_task: RSP needs two samples of a task, {self.running.count} seen; call "
                f"observe and adjust_gradients in the loop"
            )
        if not self.labels:
            self._group()
        sigmas = self.running.covariances()
        self.past.append([b.take(s) for b, s in zip(self.blocks, sigmas, strict=True)])
        self.running.clear()
        self.owned.keep()
        self._stacked = []
        if self.first_layer == "fisher":
            self._protect_first_layer()

    def _protect_first_layer(self) -> None:
        layer = self.layers[0]
        x, y = self.pending.take()
        (F,) = layer_fisher(self.model, [layer], x, y, self.criterion, kind=self.fisher)
        precisions, places = [torch.zeros_like(p) for p in self.parameters], self.places()
        for p, value in zip(layer.parameters(), layer.split(F), strict=True):
            precisions[places[id(p)]] = value
        self.quadratic.add(precisions)

    def _columns(self, y: Tensor) -> Tensor:
        """Response columns (n, m) of labels."""
        if y.is_floating_point():
            return y.reshape(len(y), -1)
        if self.response == "index":
            return y.unsqueeze(1).double()
        sizes = getattr(self.criterion, "sizes", None)
        if sizes is not None:  # classes are counted from 0 in every head
            ends = torch.tensor(sizes, device=y.device).cumsum(0)
            head = torch.bucketize(y, ends, right=True)
            y = y - functional.pad(ends, (1, 0))[head]
        m = max(sizes) if sizes is not None else self.layers[-1].units
        if int(y.min()) < 0 or int(y.max()) >= m:
            seen = int(y.min() if int(y.min()) < 0 else y.max())
            raise ArgumentError(
                f"y: class {seen} seen, but the network has outputs for {m} classes, from 0 on"
            )
        return functional.one_hot(y, m)

    def _group(self) -> None:
        refuse_infinite("weights of the network", *self.parameters)
        self.labels = [
            find_groups(
                junction.incoming(),
                junction.outgoing(),
                self.groups,
                grouping=self.grouping,
                threshold=self.threshold,
                generator=self.generator,
            )
            for junction in self.junctions
        ]
        self._make_blocks()

    def _make_blocks(self) -> None:
        self.blocks = [GroupBlocks(labels, self.n_response) for labels in self.labels]
        self.owned.labels = self.labels

    def restored(self) -> None:
        """Rebuild the matrices of earlier tasks and the blocks of groups."""
        self.past = [[[TaskMatrices(*own) for own in k] for k in task] for task in self.past]
        self._stacked = []
        self._make_blocks()

    def _recompute(self) -> None:
        """D between the present task and all earlier ones, and the penalty that follows."""
        if not self._stacked:  # covariances of all earlier tasks, put together once per task
            self._stacked = [
                b.stack([task[k] for task in self.past]) for k, b in enumerate(self.blocks)
            ]
        now = self.running.covariances()
        blocks = [b.take(sigma) for b, sigma in zip(self.blocks, now, strict=True)]
        self.divergences = [
            b.divergence(now, then)
            for b, now, then in zip(self.blocks, blocks, self._stacked, strict=True)
        ]
        self._penalize(self.divergences)

    @torch.no_grad()
    def _penalize(self, divergences: list[Tensor]) -> None:
        """Collapse the penalties of all earlier tasks into one precision and anchor each."""
        like = self.parameters[0]
        r = [relatedness(D, self.relatedness, self.normalize).to(like) for D in divergences]
        places = self.places()
        for p, R, anchor in self.owned.collapse(r):
            place = places[id(p)]
            self.quadratic.precisions[place].copy_(R)
            self.quadratic.anchors[place].copy_(anchor)
        self.quadratic.changed()
