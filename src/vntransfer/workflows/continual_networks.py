"""Networks and methods that learn the tasks of a table."""

from collections.abc import Sequence

import torch
from torch import nn

from vntransfer.continual import (
    METHODS,
    ClosedForm,
    ClosedFormProjection,
    ContinualMethod,
    JoinedNet,
    RandomFeatureNet,
    dense,
)

FEATURES = 256
"""Random features of closed forms."""


def make_network(sizes: Sequence[int], features: int, random_state: int) -> nn.Module:
    """Make a network of these sizes; one without hidden layers has random features alone."""
    random = {"features": features, "columns": sizes[0], "random_state": random_state}
    if features and len(sizes) == 2:
        return RandomFeatureNet(sizes[-1], **random).double()
    network = dense(sizes, generator=torch.Generator().manual_seed(random_state))
    return JoinedNet(network, **random) if features else network


def make_learner(method: str, network: nn.Module) -> ContinualMethod:
    """Make a method for a network; closed forms choose their ridge from the moments."""
    if method == ClosedForm.id:
        return ClosedForm(network, "auto")
    if method == ClosedFormProjection.id:
        return ClosedFormProjection(network, ridge="auto")
    return METHODS[method](network)


def sizes_for(
    method: str, columns: int, hidden: Sequence[int], outputs: int
) -> tuple[list[int], int]:
    """Sizes of the network of a method, and its number of random features."""
    if method == ClosedForm.id:
        return [columns, outputs], FEATURES
    features = FEATURES if method == ClosedFormProjection.id else 0
    return [columns, *hidden, outputs], features


def sizes_of(net: nn.Module) -> tuple[tuple[int, ...], int]:
    """Sizes of a network, and its number of random features; `make_network` makes it again."""
    if isinstance(net, RandomFeatureNet):
        inputs = net.random.width - net.random.features
        return (inputs, net.head.out_features), net.random.features
    layers = [layer for layer in net.modules() if isinstance(layer, nn.Linear)]
    sizes = (layers[0].in_features, *(layer.out_features for layer in layers))
    return sizes, net.random.features if isinstance(net, JoinedNet) else 0
