"""Networks: plain modules that are initialised and drop units from a generator of their own."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from vntransfer._arrays import number
from vntransfer.errors import ArgumentError

Activation = Literal["leaky_relu", "relu", "elu", "tanh"]
ACTIVATIONS: dict[str, type[nn.Module]] = {
    "leaky_relu": nn.LeakyReLU,
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "tanh": nn.Tanh,
}
LEAK = 0.1
"""Slope of the leaky rectifier below zero."""


class Dropout(nn.Module):
    """Dropout from a generator, with one mask (N, d) for all leading dimensions.

    All domains of a batch (K, N, d) lose the same units of their n-th rows: what a domain gets does
    not depend on its place.

    Examples
    --------
    >>> drop = Dropout(0.5, torch.Generator().manual_seed(0))
    >>> a, b = drop(torch.ones(2, 4, 3))
    >>> bool((a == b).all()), sorted(set(a.flatten().tolist()))
    (True, [0.0, 2.0])
    """

    def __init__(self, rate: float, generator: torch.Generator) -> None:
        super().__init__()
        self.rate = number("rate", rate)
        if self.rate >= 1:
            raise ArgumentError(f"rate: expected a share below 1, got {rate!r}")
        self.generator = generator

    def forward(self, x: Tensor) -> Tensor:
        """Drop units while training."""
        if not self.training or self.rate == 0:
            return x
        chance = torch.rand(x.shape[-2:], generator=self.generator, dtype=x.dtype)
        return x * ((chance >= self.rate) / (1 - self.rate)).to(x)


def linear(n_in: int, n_out: int, generator: torch.Generator) -> nn.Linear:
    """Linear layer with torch's default initialisation, drawn from a generator.

    Examples
    --------
    >>> one, two = (linear(3, 1, torch.Generator().manual_seed(0)) for _ in range(2))
    >>> bool((one.weight == two.weight).all())
    True
    """
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, n_in, n_out)
    bound = n_in**-0.5
    nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
    nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
    return layer


def mlp(
    n_in: int,
    hidden: Sequence[int] = (64,),
    width: int = 24,
    *,
    dropout: float = 0.1,
    activation: Activation = "leaky_relu",
    generator: torch.Generator,
) -> nn.Sequential:
    """Feature extractor (..., N, n_in) -> (..., N, width).

    Parameters
    ----------
    n_in
        Number of inputs.
    hidden
        Sizes of the hidden layers, each followed by the activation and dropout.
    width
        Number of features that come out, after an activation.
    dropout
        Share of hidden units that are dropped while training.
    activation
        "leaky_relu" (slope .1), "relu", "elu" or "tanh".
    generator
        Gives initial parameters and dropout; no global random state is used.

    Examples
    --------
    >>> net = mlp(3, (8, 8), 5, generator=torch.Generator().manual_seed(0))
    >>> net(torch.zeros(2, 10, 3)).shape
    torch.Size([2, 10, 5])
    """
    if activation not in ACTIVATIONS:
        raise ArgumentError(
            f"activation: expected one of {', '.join(get_args(Activation))}, got {activation!r}"
        )
    sizes = [n_in, *hidden, width]
    if bad := [size for size in sizes if not isinstance(size, int) or size < 1]:
        raise ArgumentError(f"hidden, width: expected whole numbers of at least 1, got {bad}")
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        kind = ACTIVATIONS[activation]
        layers += [linear(before, after, generator)]
        layers += [kind(LEAK) if kind is nn.LeakyReLU else kind()]
        layers += [Dropout(dropout, generator)]
    return nn.Sequential(*layers[:-1])


class Net(nn.Module):
    """Extractor and head: features (..., N, d) and predictions (..., N, m).

    Examples
    --------
    >>> g = torch.Generator().manual_seed(0)
    >>> net = Net(mlp(3, generator=g), linear(24, 1, g))
    >>> net(torch.zeros(10, 3)).shape
    torch.Size([10, 1])
    """

    def __init__(self, extractor: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.extractor = extractor
        self.head = head

    def forward(self, x: Tensor) -> Tensor:
        """Predict."""
        return self.head(self.extractor(x))
