"""The objective that a method adds to the training loop, and its building blocks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from vntransfer.adaptation._weights import UPDATES, Update, adam_slope
from vntransfer.checks import number, one_of
from vntransfer.divergences import response_divergence
from vntransfer.linalg import safe_sqrt
from vntransfer.networks import Linear, Net

if TYPE_CHECKING:
    from vntransfer.adaptation._base import DomainRegressor

Error = Literal["mixed", "mse", "rmse", "huber", "jeffreys"]
Auto = Literal["auto"]
Block = Literal["extractor", "head", "adversary"]
Step = tuple[tuple[Block, ...], Tensor]

NETWORK: tuple[Block, ...] = ("extractor", "head")
EVERYTHING: tuple[Block, ...] = ("extractor", "head", "adversary")

FEW = 20
"""Rows below which a source counts less than others where all count equally."""

HUBER = 0.1
"""Where the Huber loss turns from square to absolute, in standard deviations of the response."""


class Batch(NamedTuple):
    """Rows of D domains, equally many of each, and the role of each domain for each member."""

    x: Tensor  # inputs (D, B, p)
    y: Tensor  # of the sources, (K, B, m), or (M, K, B, m) where members have different sources
    order: Tensor | None = None  # domains of each member, its target last; None: all as they come
    # (D, B, m) where columns are the pixels of a patch: those that count
    mask: Tensor | None = None
    scale: float = 1.0  # columns of a patch are this times a density

    def features(self, net: Net) -> Tensor:
        """Features (M, K + 1, B, d) of each member's own domains."""
        if self.order is None:
            features: Tensor = net.extractor(self.x)
        elif self.order.shape[1] < len(self.x):  # no member needs all domains
            features = net.extractor(self.x[self.order], own=True)
        else:
            members = torch.arange(len(self.order), device=self.x.device)[:, None]
            features = net.extractor(self.x)[members, self.order]
        return features

    def masked(self, columns: Tensor) -> Tensor:
        """Columns (M, K or K + 1, B, m) of each member's first domains, multiplied by the mask."""
        if self.mask is None:
            return columns
        mask = self.mask[None] if self.order is None else self.mask[self.order]
        return columns * mask[:, : columns.shape[1]]

    def response(self, prediction: Tensor) -> Tensor:
        """Responses of rows: the predictions, or the sum over each patch as one column."""
        if self.mask is None:
            return prediction
        return self.masked(prediction).sum(-1, keepdim=True) / self.scale


class Setup(NamedTuple):
    """What an objective is made for."""

    n_sources: int  # K
    width: int  # d
    n_responses: int  # m
    generator: torch.Generator
    members: Sequence[Mapping[str, Any]] = ({},)  # changes of the options, one per member
    prior: Tensor | None = None  # shares of the rows that each source has, (M, K); None: equal ones
    support: Tensor | None = None  # of each source by `support`, (M, K); None: one
    device: str = "cpu"
    make_head: Callable[[], nn.Module] | None = None  # for all members; None: a linear one

    def option(self, method: Any, name: str) -> Tensor:
        """Value of a number among the method's options for each member, (M,)."""
        values = [number(name, own.get(name, getattr(method, name))) for own in self.members]
        return torch.tensor(values, device=self.device)

    def flag(self, method: Any, name: str) -> Tensor:
        """Value of a switch among the method's options for each member, (M,)."""
        values = [bool(own.get(name, getattr(method, name))) for own in self.members]
        return torch.tensor(values, device=self.device)

    def second_head(self) -> nn.Module:
        """Make a second head for all members."""
        if self.make_head is not None:
            return self.make_head()
        return Linear(self.width, self.n_responses, self.generator, members=len(self.members))


def support(rows: Tensor) -> Tensor:
    """Give how much sources (M, K) with so many rows count: min(1, n/20), divided by the mean.

    It is exactly one where all sources have twenty rows or more. In batches every source has
    equally many rows; without this, a source of three rows would count as much as all others.
    """
    enough = rows.clamp_max(FEW)
    return enough / enough.mean(-1, keepdim=True)


class Objective(nn.Module):
    """Losses of a batch, step by step, and the state that a method keeps (its adversary, weights).

    Called with a network and a batch it gives pairs of (blocks, losses (M,) of the members): the
    loop makes a gradient step in these blocks before it asks for the next pair. The blocks are the
    network's "extractor" and "head", and the objective's own parameters, "adversary". All
    parameters have a leading dimension M. ``weights`` (M, K) are those of the sources, ``seen``
    values (M,) of the last batch that belong into the history.
    """

    weights: Tensor

    def __init__(self, setup: Setup, method: "DomainRegressor") -> None:
        super().__init__()
        self.method: Any = method
        self.error = method._error()
        shape = (len(setup.members), setup.n_sources)
        even = torch.full(shape, 1 / setup.n_sources, device=setup.device)
        self.register_buffer("weights", even)
        self.seen: dict[str, Tensor] = {}
        self.done = 0  # steps

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the steps of one batch."""
        raise NotImplementedError

    def after_step(self) -> None:
        """Count the step; methods also move what no gradient step moves, such as the weights."""
        self.done += 1

    def note(self, **values: Tensor) -> None:
        """Keep values of this batch for the history."""
        self.seen = {name: value.detach() for name, value in values.items()}


class SourceLoss(Objective):
    """Mean error of the sources, by their `support`: what remains of methods without a target."""

    support: Tensor

    def __init__(self, setup: Setup, method: "DomainRegressor") -> None:
        super().__init__(setup, method)
        given = torch.ones_like(self.weights) if setup.support is None else setup.support
        self.register_buffer("support", given.to(self.weights), persistent=False)

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch."""
        errors = source_errors(self.error, batch, net.head(batch.features(net)))
        loss = (self.support * errors).mean(-1)
        self.note(loss=loss)
        yield NETWORK, loss


class Alignment(Objective):
    """An objective with a ``trade_off`` (M,) between the error of the sources and another term.

    Subclasses give their ``term``, or steps of their own.
    """

    blocks = NETWORK

    def __init__(self, setup: Setup, method: "DomainRegressor") -> None:
        super().__init__(setup, method)
        self.trade_off = setup.option(method, "trade_off")

    def term(self, z: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Give the term (M,) for features (M, K + 1, B, d), and values for the history."""
        raise NotImplementedError

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch: the mean error of the sources + μ times the term."""
        z = batch.features(net)
        error = source_errors(self.error, batch, net.head(z[:, :-1])).mean(-1)
        term, seen = self.term(z)
        self.note(loss=error, **seen)
        yield self.blocks, error + self.trade_off * term


class AdversarialAlignment(Alignment):
    """Alignment by an adversary, a second head, and weights that descend their ``slope`` (M, K).

    After each gradient step of the weights follows the method's ``weight_update``; after one of
    Adam's, ``adam_then``.
    """

    slope: Tensor
    moments: Tensor
    adam_then: ClassVar[Update]

    def __init__(self, setup: Setup, method: "DomainRegressor") -> None:
        super().__init__(setup, method)
        self.adversary = setup.second_head()
        if self.method.weight_update == "adam":
            self.register_buffer("moments", self.weights.new_zeros(2, *self.weights.shape))

    @torch.no_grad()
    def after_step(self) -> None:
        """Move the weights, unless they are not learned."""
        super().after_step()
        if not getattr(self.method, "learn_weights", True):
            return
        slope, update = self.slope, self.method.weight_update
        if update == "adam":
            slope, update = adam_slope(slope, self.moments, self.done), self.adam_then
        self.weights = UPDATES[update](self.weights - self.method.weight_rate * slope)


def source_errors(kind: Error, batch: Batch, prediction: Tensor) -> Tensor:
    """Error of each source (M, K) from predictions (M, K, B, m).

    "mixed" is half RMSE and half Huber loss: steep near a good fit, and not ruled by a few rows.
    """
    one_of("kind", kind, Error)
    if kind == "jeffreys":
        k = prediction.shape[1]
        x = batch.x[None] if batch.order is None else batch.x[batch.order]
        x = x[:, :k].expand(len(prediction), -1, -1, -1)
        value: Tensor = response_divergence(x, prediction, batch.y.expand_as(prediction), sqrt=True)
        return value
    gap = batch.masked(prediction - batch.y)
    if kind == "mse":
        return mean_square(gap)
    rmse = safe_sqrt(mean_square(gap)) if kind != "huber" else torch.zeros(())
    if kind == "rmse":
        return rmse
    distance = gap.abs()
    huber = torch.where(distance < HUBER, gap.square() / (2 * HUBER), distance - HUBER / 2)
    huber = huber.mean((-2, -1))
    return huber if kind == "huber" else (rmse + huber) / 2


def mean_square(gap: Tensor) -> Tensor:
    """Mean over rows and columns: (..., B, m) -> (...)."""
    return gap.square().mean((-2, -1))


def dot(w: Tensor, values: Tensor) -> Tensor:
    """Weighted sums over sources: (M, K), (M, K) -> (M,)."""
    return (w * values).sum(-1)


def reverse(x: Tensor) -> Tensor:
    """Identity whose gradient is reversed."""
    return 2 * x.detach() - x


def climbing(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """Give the module as a function whose parameters climb where all others descend."""
    parameters = {name: reverse(p) for name, p in module.named_parameters()}
    return lambda z: functional_call(module, parameters, (z,))


def frozen(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """Give the module as a function whose parameters get no gradient, though its input does."""

    def call(z: Tensor) -> Tensor:
        moved = [p for p in module.parameters() if p.requires_grad]
        for p in moved:
            p.requires_grad_(False)
        try:
            out: Tensor = module(z)
        finally:
            for p in moved:
                p.requires_grad_(True)
        return out

    return call
