"""Representation similarity penalty: the paper's method."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from vntransfer.checks import number, whole
from vntransfer.continual._base import Criterion, choice, refuse_infinite
from vntransfer.continual._fisher import Pending, evaluation
from vntransfer.continual._group_anchors import Owned, Owns
from vntransfer.continual._layer_recorder import Tape, layer_fisher, layer_inputs, refuse_silent
from vntransfer.continual._layers import find_layers, junctions, watch_order
from vntransfer.continual._quadratic import Penalized, Quadratic, Update
from vntransfer.continual._relatedness import GroupBlocks, RunningMoments
from vntransfer.continual._unit_groups import Grouping, find_groups
from vntransfer.errors import ArgumentError
from vntransfer.moments import covariance

Normalize = Literal["tasks", "groups", "none"]
Response = Literal["one_hot", "index"]
Relatedness = Literal["similar", "reversed", "constant"]
Covariances = Literal["running", "memory"]
LARGEST = 50.0
"""Largest exponent: exp(D) of very different tasks must not overflow."""


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def relatedness(D: Tensor, kind: Relatedness, temperature: float, over: Normalize) -> Tensor:
    """Give r (tasks, groups) of divergences D (tasks, groups): Eq. 11 without λ.

    Examples
    --------
    >>> D = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    >>> relatedness(D, "similar", 1.0, "tasks")
    tensor([[0.5000, 0.2689],
            [0.5000, 0.7311]])
    """
    sign = {"similar": -1.0, "reversed": 1.0, "constant": 0.0}[kind]
    exponent = sign * D / temperature
    if over == "none":
        return exponent.clamp_max(LARGEST).exp()
    return exponent.softmax(0 if over == "tasks" else 1)


class RSP(Penalized):
    """Representation similarity penalty (Eqs. 10 and 11): similar tasks' modules are held.

    While task B is learned, with θ_A the parameters at the end of each earlier task A::

        λ Σ_A Σ_k r_A,k Σ_{i in g_k} (θ_i - θ_A,i)²,   r_A,k = exp(-D_A,k / T) / Z

    where g_k are groups of hidden units, found once after the first task, and D the symmetric von
    Neumann conditional divergence of the response given the group's activations between A and B.
    λ Σ_A F_A (θ - θ_A)² with the diagonal Fisher information protects the first layer.

    What the paper leaves open or says otherwise, and the option that follows it, is listed in
    docs/continual-methods.md: above all λ instead of λ/2, Z, the response of a class, and that
    biases get the mean coefficient of their layer's groups. Replacing D by a constant changes
    almost nothing on the paper's streams: see there too.

    Memory: one copy of the parameters above the first layer and the groups' covariances per task
    (r changes while B is learned, so that these anchors cannot be summed); all else is constant.
    The penalty itself is collapsed into one precision and one anchor per parameter whenever r is
    recomputed, so that a step costs hardly more with many tasks.

    Parameters
    ----------
    model, criterion
        See `Method`. Layers must form a chain; a convolution's units are its channels.
    strength
        λ: about 1 with ``normalize="tasks"``, 3 with "groups".
    groups
        Number of groups per hidden layer, at most.
    grouping
        "communities" (Watanabe et al. 2018), "spectral" or "random".
    threshold, starts
        Of the communities: see `vntransfer.continual._unit_groups.find_groups`.
    owns
        A group's parameters: weights "outgoing" from its units, "incoming" (with their biases; the
        first layer then has groups too), or "both".
    normalize
        Z sums over earlier "tasks", over "groups" of a layer, or is one ("none").
    relatedness
        "similar" (Eq. 11), "reversed" (exp(+D)) or "constant" (D is not used).
    temperature
        T.
    response
        Classes as "one_hot" columns or as one number, their "index". Real responses are taken as
        they are.
    covariances
        "running": over all samples of a task, while the network changes. "memory": of the first
        ``memory`` samples of each task, earlier tasks' too, under the present network.
    memory
        Samples per task that are kept for "memory".
    every
        D is recomputed after so many samples; equal r for all tasks before that.
    ridge
        Added to the covariances' diagonals; they are singular without.
    first_layer
        "fisher" or "none".
    fisher_samples
        Samples of a task, its first, that the Fisher information is taken on; all if None.
    layers
        Names of the layers, in order; None finds all.
    classes
        Number of classes, if it is not the number of the last layer's outputs.
    update
        "proximal" or "explicit": see `Quadratic`.
    random_state
        Of the groups.

    Attributes
    ----------
    divergences : list
        D (earlier tasks, groups) of each hidden layer, as last computed.

    Examples
    --------
    >>> from vntransfer.continual import RSP, Task, train
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> method = RSP(net, strength=1.0, groups=3)
    >>> for shift in (0.0, 1.0):
    ...     method.before_task()
    ...     train(net, Task(torch.randn(40, 4) + shift, torch.arange(40) % 2), method)
    ...     method.after_task()
    >>> len(method.divergences[0])
    1
    """

    id: ClassVar[str] = "rsp"
    saved: ClassVar[tuple[str, ...]] = (
        "quadratic",
        "pending",
        "generator",
        "labels",
        "owned",
        "running",
        "past",
        "kept",
        "divergences",
        "since",
        "n_response",
        "sample",
    )

    def __init__(
        self,
        model: nn.Module,
        strength: float = 1.0,
        *,
        groups: int = 20,
        grouping: Grouping = "communities",
        threshold: float | Literal["median"] = "median",
        starts: int = 11,
        owns: Owns = "outgoing",
        normalize: Normalize = "tasks",
        relatedness: Relatedness = "similar",
        temperature: float = 1.0,
        response: Response = "one_hot",
        covariances: Covariances = "running",
        memory: int = 10,
        every: int = 20,
        ridge: float = 1e-6,
        first_layer: Literal["fisher", "none"] = "fisher",
        fisher_samples: int | None = None,
        layers: Sequence[str] | None = None,
        classes: int | None = None,
        update: Update = "proximal",
        random_state: int = 0,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, criterion=criterion)
        self.groups = whole("groups", groups, minimum=1)
        self.grouping: Grouping = choice("grouping", grouping, get_args(Grouping))
        self.threshold = threshold if threshold == "median" else number("threshold", threshold)
        self.starts = whole("starts", starts, minimum=1)
        self.normalize: Normalize = choice("normalize", normalize, get_args(Normalize))
        self.relatedness: Relatedness = choice("relatedness", relatedness, get_args(Relatedness))
        self.temperature = number("temperature", temperature, exclusive=True)
        self.response: Response = choice("response", response, get_args(Response))
        self.covariances: Covariances = choice("covariances", covariances, get_args(Covariances))
        self.memory = whole("memory", memory, minimum=2)
        self.every = whole("every", every, minimum=2)
        self.ridge = number("ridge", ridge, exclusive=True)
        self.first_layer = choice("first_layer", first_layer, ("fisher", "none"))
        self.classes = None if classes is None else whole("classes", classes, minimum=1)
        self.layers = find_layers(model, layers)
        self.junctions = junctions(self.layers)
        if not self.junctions:
            raise ArgumentError(
                f"layers: RSP groups the units between two layers, but there is only "
                f"{self.layers[0].name!r}; use a network with a hidden layer"
            )
        self.quadratic = Quadratic(self.parameters, strength, update)
        self.fisher = first_layer == "fisher" and owns == "outgoing"
        self.pending = Pending(fisher_samples)
        self.sample = Pending(self.memory, "memory")
        self.generator = torch.Generator().manual_seed(whole("random_state", random_state))
        self.tape = Tape([junction.after for junction in self.junctions])
        self.keep_hooks(self.tape.handles)
        ranks = ((layer.name, layer.module, k) for k, layer in enumerate(self.layers))
        self.keep_hooks(watch_order(list(ranks)))
        self.running = RunningMoments(len(self.junctions))
        self.labels: list[Tensor] = []
        self.blocks: list[GroupBlocks] = []
        self.owned = Owned(self.layers, owns)
        self.past: list[list[list[Tensor]]] = []
        self.kept: list[list[Tensor]] = []
        self.divergences: list[Tensor] = []
        self.since, self.n_response = 0, 1
        self._stacked: list[list[Tensor]] | None = None
        self._responses: list[Tensor] = []

    @property
    def stored_samples(self) -> int:
        """Number of samples of finished tasks that are kept."""
        return sum(len(y) for _, y in self.kept)

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
                self.tape.take()  # of a step that was not made
                self._responses.clear()
            if self.fisher:
                self.pending.add(x, y)
            if self.covariances == "memory":
                self.sample.add(x, y)
            self.tape.start()
            self._responses.append(self._columns(y))
        return x, y

    @torch.no_grad()
    def adjust_gradients(self) -> None:
        """Add the activations to the statistics; recompute r if it is time."""
        if not self._responses:
            return
        Y = _joined(self._responses)
        self._responses, self.n_response = [], Y.shape[1]
        for k, (junction, passes) in enumerate(zip(self.junctions, self.tape.take(), strict=True)):
            refuse_silent([] if passes else [junction.after.name])
            z = _joined([junction.activations(x) for x, _ in passes])
            if len(z) != len(Y):
                raise ArgumentError(
                    f"observe: {len(Y)} samples were observed, but layer "
                    f"{junction.after.name!r} met {len(z)}; train on what observe returns"
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
        self._stacked = None
        if self.covariances == "memory":
            self.kept.append(list(self.sample.take()))
        if self.fisher:
            self._protect_first_layer()

    def _protect_first_layer(self) -> None:
        layer = self.layers[0]
        with evaluation(self.model):
            (F,) = layer_fisher(self.model, [layer], *self.pending.take(), self.criterion)
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
        if sizes is not None:  # classes are counted anew in every head
            ends = torch.tensor(sizes, device=y.device).cumsum(0)
            head = torch.bucketize(y, ends, right=True)
            y = y - functional.pad(ends, (1, 0))[head]
        m = self.classes or (max(sizes) if sizes is not None else self.layers[-1].units)
        if int(y.min()) < 0 or int(y.max()) >= m:
            seen = int(y.min() if int(y.min()) < 0 else y.max())
            raise ArgumentError(
                f"y: class {seen} seen, but {m} classes are known, from 0 on; say classes=..."
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
                starts=self.starts,
                generator=self.generator,
            )
            for junction in self.junctions
        ]
        self._make_blocks()

    def _make_blocks(self) -> None:
        m, ridge = self.n_response, self.ridge
        self.blocks = [GroupBlocks(labels, m, ridge=ridge) for labels in self.labels]
        self.owned.labels = self.labels

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over the state that another RSP with these options gave."""
        super().load_state(state)
        self._stacked = None
        self._make_blocks()

    def _recompute(self) -> None:
        """D between the present task and all earlier ones, and the penalty that follows."""
        if self.covariances == "running":
            now, past = self.running.covariances(), self._past()
            blocks = [b.take(sigma) for b, sigma in zip(self.blocks, now, strict=True)]
        else:
            samples = [*self.kept, [torch.cat(self.sample.x), torch.cat(self.sample.y)]]
            *earlier, blocks = [self._under_present_network(x, y) for x, y in samples]
            past = self._stack(earlier)
        self.divergences = [
            b.divergence(now, then) for b, now, then in zip(self.blocks, blocks, past, strict=True)
        ]
        self._penalize(self.divergences)

    def _under_present_network(self, x: Tensor, y: Tensor) -> list[list[Tensor]]:
        """Blocks of every hidden layer, of samples seen through the network as it is now."""
        after = [junction.after for junction in self.junctions]
        with evaluation(self.model):
            inputs = layer_inputs(self.model, after, x)
        Y = self._columns(y)
        z = [junction.activations(a) for junction, a in zip(self.junctions, inputs, strict=True)]
        return [b.take(covariance(a, Y.to(a))) for b, a in zip(self.blocks, z, strict=True)]

    def _stack(self, tasks: list[list[list[Tensor]]]) -> list[list[Tensor]]:
        return [b.stack([task[k] for task in tasks]) for k, b in enumerate(self.blocks)]

    def _past(self) -> list[list[Tensor]]:
        """Covariances of all earlier tasks, put together once per task."""
        if self._stacked is None:
            self._stacked = self._stack(self.past)
        return self._stacked

    @torch.no_grad()
    def _penalize(self, divergences: list[Tensor]) -> None:
        """Collapse the penalties of all earlier tasks into one precision and anchor each."""
        like = self.parameters[0]
        r = [
            relatedness(D, self.relatedness, self.temperature, self.normalize).to(like)
            for D in divergences
        ]
        places = self.places()
        for p, R, anchor in self.owned.collapse(r):
            place = places[id(p)]
            self.quadratic.precisions[place].copy_(R)
            self.quadratic.anchors[place].copy_(anchor)
        self.quadratic.changed()
