"""Networks of the continual experiments: a dense classifier, a small CNN with a head per task."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from vntransfer.checks import whole
from vntransfer.errors import ArgumentError


def _xavier(kind: Any, *sizes: int, generator: torch.Generator, **options: Any) -> nn.Module:
    """Make a layer with Xavier-uniform weights and zero biases."""
    layer = nn.utils.skip_init(kind, *sizes, **options)
    nn.init.xavier_uniform_(layer.weight, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


def dense(sizes: Sequence[int], *, generator: torch.Generator) -> nn.Sequential:
    """ReLU network with Xavier-uniform weights and zero biases, as in the public code of MER.

    Parameters
    ----------
    sizes
        Sizes of inputs, hidden layers and outputs.
    generator
        Generator of the initial weights.

    Examples
    --------
    >>> net = dense([784, 100, 100, 10], generator=torch.Generator().manual_seed(0))
    >>> sum(p.numel() for p in net.parameters())
    89610
    """
    if len(sizes) < 2:
        raise ArgumentError(
            f"sizes: expected at least the sizes of inputs and outputs, got {sizes}"
        )
    layers: list[nn.Module] = []
    for pair in pairwise(whole("sizes", size, minimum=1) for size in sizes):
        layers += [_xavier(nn.Linear, *pair, generator=generator), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class MultiHead(nn.Module):
    """A body and one linear head per task; the outputs of all heads side by side.

    Train it with `Heads` as criterion: a sample's label selects the outputs that count.

    Parameters
    ----------
    body
        Network that computes features (N, width).
    width
        Number of features.
    heads
        Number of classes of each task.
    generator
        Generator of the initial weights of the heads.

    Examples
    --------
    >>> g = torch.Generator().manual_seed(0)
    >>> net = MultiHead(nn.Flatten(), 4, [2, 3], generator=g)
    >>> net(torch.zeros(1, 2, 2)).shape
    torch.Size([1, 5])
    """

    def __init__(
        self, body: nn.Module, width: int, heads: Sequence[int], *, generator: torch.Generator
    ) -> None:
        super().__init__()
        sizes = [whole("heads", size, minimum=1) for size in heads]
        if not sizes:
            raise ArgumentError("heads: empty; give the number of classes of each task")
        self.body = body
        made = (_xavier(nn.Linear, width, n, generator=generator) for n in sizes)
        self.heads = nn.ModuleList(made)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (N, all classes)."""
        z = self.body(x)
        return torch.cat([head(z) for head in self.heads], -1)


def last_layers(model: nn.Module) -> list[nn.Linear]:
    """Heads of a network with several, or its last linear layer."""
    if isinstance(model, MultiHead):
        return [head for head in model.heads if isinstance(head, nn.Linear)]
    linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise ArgumentError("model: no linear layer to solve; end the network with torch.nn.Linear")
    return linear[-1:]


def character_cnn(
    heads: Sequence[int],
    *,
    size: int = 28,
    channels: int = 64,
    hidden: int = 64,
    generator: torch.Generator,
) -> MultiHead:
    """Four blocks of 3 x 3 convolution, ReLU and 2 x 2 maximum, two dense layers, a head per task.

    The paper's network for Omniglot; it does not state the width of the dense layers.

    Parameters
    ----------
    heads
        Number of characters of each alphabet.
    size
        Side of the images, at least 16: it is halved four times.
    channels, hidden
        Filters of each block, units of each dense layer.
    generator
        Generator of the initial weights (Xavier-uniform).

    Examples
    --------
    >>> net = character_cnn([20, 29], channels=8, generator=torch.Generator().manual_seed(0))
    >>> net(torch.zeros(3, 1, 28, 28)).shape
    torch.Size([3, 49])
    """
    channels, hidden = whole("channels", channels, minimum=1), whole("hidden", hidden, minimum=1)
    layers: list[nn.Module] = []
    side, before = whole("size", size, minimum=16), 1
    for _ in range(4):
        conv = _xavier(nn.Conv2d, before, channels, 3, padding=1, generator=generator)
        layers += [conv, nn.ReLU(), nn.MaxPool2d(2)]
        side, before = side // 2, channels
    layers.append(nn.Flatten())
    width = channels * side * side
    for _ in range(2):
        layers += [_xavier(nn.Linear, width, hidden, generator=generator), nn.ReLU()]
        width = hidden
    return MultiHead(nn.Sequential(*layers), hidden, heads, generator=generator)
