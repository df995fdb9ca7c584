"""What a method adds to the training loop: an objective, and the parts objectives are made of."""

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.func import functional_call

from vntransfer.divergences import response_divergence
from vntransfer.errors import ArgumentError
from vntransfer.linalg import safe_sqrt
from vntransfer.networks import Net

Error = Literal["mse", "rmse", "huber", "jeffreys"]
Block = Literal["extractor", "head", "adversary"]
Step = tuple[tuple[Block, ...], Tensor]

NETWORK: tuple[Block, ...] = ("extractor", "head")
EVERYTHING: tuple[Block, ...] = ("extractor", "head", "adversary")

HUBER = 0.1
"""Where the Huber loss turns from square to absolute, in standard deviations of the response."""


class Batch(NamedTuple):
    """Rows of all domains, as many of each.

    Parameters
    ----------
    x
        Inputs (K, B, p) of the sources, followed by the target's if there is one: (K + 1, B, p).
    y
        Responses (K, B, m) of the sources.
    """

    x: Tensor
    y: Tensor


class Setup(NamedTuple):
    """What an objective is made for: sources, width of features, responses, random state."""

    n_sources: int
    width: int
    n_responses: int
    generator: torch.Generator


class Objective(nn.Module):
    """Losses of a batch, step by step, and the state that a method keeps (its adversary, weights).

    Called with a network and a batch it gives pairs of (blocks, loss): the loop makes a gradient
    step in these blocks before it asks for the next pair. The blocks are the network's "extractor"
    and "head", and the objective's own parameters, "adversary".

    Attributes
    ----------
    weights : Tensor
        Weights of the sources (K,).
    seen : dict
        Values of the last batch that belong into the history.
    """

    weights: Tensor

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        self.register_buffer("weights", torch.full((setup.n_sources,), 1 / setup.n_sources))
        self.seen: dict[str, Tensor] = {}

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the steps of one batch."""
        raise NotImplementedError

    def after_step(self) -> None:
        """Move what is not moved by a gradient step, such as the weights."""

    def note(self, **values: Tensor) -> None:
        """Keep values of this batch for the history."""
        self.seen = {name: value.detach() for name, value in values.items()}


def source_errors(kind: Error, batch: Batch, prediction: Tensor) -> Tensor:
    """Error of each source (K,).

    Examples
    --------
    >>> batch = Batch(torch.zeros(1, 2, 3), torch.zeros(1, 2, 1))
    >>> source_errors("mse", batch, torch.tensor([[[1.0], [3.0]]]))
    tensor([5.])
    """
    if kind == "jeffreys":
        x = batch.x[: len(batch.y)]
        value: Tensor = response_divergence(x, prediction, batch.y, sqrt=True)
        return value
    if kind == "huber":
        loss = nn.functional.smooth_l1_loss(prediction, batch.y, reduction="none", beta=HUBER)
        return loss.mean((-2, -1))
    mse = mean_square(prediction - batch.y)
    return safe_sqrt(mse) if kind == "rmse" else mse


def mean_square(gap: Tensor) -> Tensor:
    """Mean over rows and columns: (..., B, m) -> (...)."""
    return gap.square().mean((-2, -1))


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Tensor:
        return -upstream[0]


def reverse(x: Tensor) -> Tensor:
    """Identity whose gradient is reversed.

    Examples
    --------
    >>> x = torch.ones(1, requires_grad=True)
    >>> (3 * reverse(x)).backward()
    >>> x.grad
    tensor([-3.])
    """
    return _Reverse.apply(x)


def climbing(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """Give the module as a function whose parameters climb where all others descend."""
    parameters = {name: reverse(p) for name, p in module.named_parameters()}
    return lambda z: functional_call(module, parameters, (z,))


def frozen(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """Give the module as a function whose parameters get no gradient, though its input does."""
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    return lambda z: functional_call(module, parameters, (z,))


def choose(name: str, value: str, allowed: Any) -> None:
    """Raise unless an option is one of a Literal's values."""
    if value not in get_args(allowed):
        raise ArgumentError(f"{name}: expected one of {list(get_args(allowed))}, got {value!r}")
