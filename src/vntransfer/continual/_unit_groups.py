"""Groups of hidden units, communities of their connections or random ones, and what they own.

The communities are those of Watanabe, Hiramatsu and Kashino (2018), a mixture model after Newman
and Leicht: a connection counts if its weight is large, unit k belongs to community c with
probability π_c, its incoming connections come from unit i with probability τ_ci and its outgoing
ones go to unit j with probability τ'_cj. EM, with bonds A (units, before) and B (units, after) ::

    M:  π_c = mean_k q_kc,   τ_ci ∝ Σ_k q_kc A_ki,   τ'_cj ∝ Σ_k q_kc B_kj
    E:  log q_kc = log π_c + Σ_i A_ki log τ_ci + Σ_j B_kj log τ'_cj - log Σ_c' ...

It groups units with similar connections, which is not functional independence, and different
starts may give quite different groups (see docs/continual-methods.md).
"""

import warnings
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from vntransfer.continual._layers import Layer
from vntransfer.continual.method_state import Stateful
from vntransfer.errors import ArgumentError, NumericalWarning

Grouping = Literal["communities", "random"]
FLOOR = 1e-10
"""Least probability: a connection that no member of a community has does not exclude a unit."""


class Junction:
    """The units between two layers that follow each other: outputs or channels of the first.

    Unit k of a dense layer meets one column of the next layer; a channel meets one slice of a
    convolution's kernel or, flattened, one column per position of a dense layer.
    """

    def __init__(self, before: Layer, after: Layer) -> None:
        self.before, self.after = before, after
        self.units = before.units
        self.spread, rest = divmod(after.inputs, self.units)
        after_channels = after.weight.shape[1]
        fits = after_channels == self.units or isinstance(after.module, nn.Linear)
        if rest or not fits:
            raise ArgumentError(
                f"layers: the {self.units} units of {before.name!r} do not fit the "
                f"{after_channels} inputs of {after.name!r}: these layers do not follow each "
                f"other; name those that do, in order (layers=[...])"
            )

    def activations(self, x: Tensor) -> Tensor:
        """Activation (n, units) of every unit, from inputs of the second layer.

        A channel's activation is its mean over the positions.
        """
        n = len(x) if isinstance(self.after.module, nn.Conv2d) else x.numel() // self.after.inputs
        shaped = x.reshape(n, self.units, -1)
        return shaped.squeeze(-1) if shaped.shape[-1] == 1 else shaped.mean(-1)

    def incoming(self) -> Tensor:
        """Strongest |weight| (units, units before or inputs) from each input to each unit."""
        weight = self.before.weight.detach().abs()
        return weight.flatten(2).amax(-1) if weight.ndim > 2 else weight

    def outgoing(self) -> Tensor:
        """Strongest |weight| (units, outputs) from each unit to each output."""
        weight = self.after.weight.detach().abs()
        return weight.reshape(len(weight), self.units, -1).amax(-1).mT


class BondMixture(NamedTuple):
    """Result of EM from several starts, all at once."""

    q: Tensor  # memberships (starts, units, communities)
    likelihood: Tensor  # (iterations, starts) before every step; at convergence it repeats
    score: Tensor  # log-likelihood (starts,) of the most probable memberships


def bonds(weights: Tensor, threshold: float | Literal["median"]) -> Tensor:
    """Return the connections (units, others) that count, as zeros and ones in float64."""
    cut = float(weights.median()) if threshold == "median" else threshold
    return (weights > cut).double()


def fit_mixture(
    A: Tensor,
    B: Tensor,
    groups: int,
    *,
    starts: int = 11,
    iterations: int = 1000,
    tolerance: float = 0.1,
    generator: torch.Generator | None = None,
) -> BondMixture:
    """Fit the mixture by EM from several random starts.

    A and B are incoming and outgoing bonds (units, before) and (units, after). A start ends when
    Σ|Δq| falls below the tolerance.
    """
    noise = torch.rand(starts, len(A), groups, generator=generator, dtype=torch.float64)
    q = -(1 - noise).log()  # exponential variables, divided by their sum: uniform on the simplex
    q = (q / q.sum(-1, keepdim=True)).to(A)
    running = torch.ones(starts, dtype=torch.bool, device=A.device)
    history = []
    for _ in range(iterations):
        log_joint = _log_joint(q, A, B)
        history.append(log_joint.logsumexp(-1).sum(-1))
        new = log_joint.softmax(-1)
        moved = (new - q).abs().sum((-1, -2))
        q = torch.where(running[:, None, None], new, q)
        running = running & (moved >= tolerance)
        if not running.any():
            break
    score = _log_joint(q, A, B).gather(-1, q.argmax(-1, keepdim=True)).sum((-1, -2))
    return BondMixture(q, torch.stack(history), score)


def _log_joint(q: Tensor, A: Tensor, B: Tensor) -> Tensor:
    """M step, and log π_c + Σ A log τ + Σ B log τ' (starts, units, communities) with its result."""

    def log_share(counts: Tensor) -> Tensor:
        return (counts / counts.sum(-1, keepdim=True).clamp_min(FLOOR)).clamp_min(FLOOR).log()

    log_pi = q.mean(1, keepdim=True).clamp_min(FLOOR).log()
    log_tau, log_tau_out = log_share(q.mT @ A), log_share(q.mT @ B)
    return log_pi + A @ log_tau.mT + B @ log_tau_out.mT


def find_groups(
    incoming: Tensor,
    outgoing: Tensor,
    groups: int,
    *,
    grouping: Grouping = "communities",
    threshold: float | Literal["median"] = "median",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Group (units,) of every unit of a layer; numbers without gaps, so that no group is empty.

    From absolute weights (units, before) and (units, after): at most so many "communities" (the
    best of several starts of EM in which not all units came together) or "random" groups of equal
    size. A weight above the threshold is a bond: a number, or "median" of each side's weights.
    """
    n = len(incoming)
    groups = min(groups, n)
    if grouping == "random":
        labels = torch.arange(n)[torch.randperm(n, generator=generator)] % groups
    else:
        A, B = bonds(incoming, threshold).cpu(), bonds(outgoing, threshold).cpu()
        both = torch.cat((A, B), 1)
        if not both.any() or both.all():
            raise ArgumentError(
                f"threshold: {'every' if both.any() else 'no'} weight is above {threshold}, so "
                f"all units look alike; use 'median' or a number within the range of the weights"
            )
        labels = _communities(A, B, groups, generator)
    # Numbered by their first unit, so that empty groups drop out.
    number: dict[int, int] = {}
    renamed = [number.setdefault(int(label), len(number)) for label in labels]
    return torch.tensor(renamed, device=incoming.device)


def _communities(A: Tensor, B: Tensor, groups: int, generator: torch.Generator | None) -> Tensor:
    fit = fit_mixture(A, B, groups, generator=generator)
    labels = fit.q.argmax(-1)
    several = (labels != labels[:, :1]).any(-1)
    if not several.any() and groups > 1:
        warnings.warn(
            f"groups: all {len(A)} units formed one group in each of {len(labels)} starts, so one "
            f"group is used; another threshold may separate them",
            NumericalWarning,
            stacklevel=3,
        )
        return labels[0]
    best = torch.where(several, fit.score, -torch.inf).argmax() if groups > 1 else 0
    return labels[best]


class Owned(Stateful):
    """Parameters that belong to groups of units, with a copy of their values after every task.

    A group owns the outgoing weights of its units; the bias of the next layer, which no group
    owns, has the mean weight of the groups before it. The layers form a chain.
    """

    saved = ("values",)

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
        """Drop the cache of other values."""
        self._packed = {}

    def collapse(self, r: list[Tensor]) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Each parameter with R = Σ_A r_A and Σ_A r_A θ_A / R, for r (tasks, groups) per layer."""
        for k, (p, c) in enumerate(zip(self.parameters, self._weights(r), strict=True)):
            if k not in self._packed:  # slices first, so that one product serves all
                theta = self.values[k] if p.ndim > 1 else self.values[k].unsqueeze(-1)
                self._packed[k] = theta.movedim(2, 0).flatten(2).contiguous()
            # torch multiplies batches of rows that lie apart in memory several times slower
            weighted = c.mT.unsqueeze(1).contiguous() @ self._packed[k]
            weighted = weighted.reshape(-1, len(p), *p.shape[2:]).movedim(0, 1).reshape(p.shape)
            R = torch.zeros_like(p) + c.sum(0).reshape(-1, *[1] * (p.ndim - 2))
            yield p, R, weighted / R.clamp_min(torch.finfo(R.dtype).tiny)

    def _weights(self, r: list[Tensor]) -> Iterator[Tensor]:
        """Weights (tasks, n) of a weight's slices along its inputs; of a bias n is one."""
        for of_groups, labels, layer in zip(r, self.labels, self.layers, strict=True):
            units = of_groups[:, labels]
            yield units.repeat_interleave(layer.weight.shape[1] // units.shape[1], 1)
            if layer.bias is not None:
                yield of_groups.mean(1, keepdim=True)
