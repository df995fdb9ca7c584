"""Networks that learn the tasks of a table: made with torch, kept and evaluated as arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vntransfer.array_networks import ArrayLayer, forward
from vntransfer.checks import Floats
from vntransfer.errors import ArgumentError, DataError
from vntransfer.random_features import RandomFeatures

if TYPE_CHECKING:
    from torch import nn

    from vntransfer.continual import ContinualMethod


CLOSED, FEATURES = ("closed_form", "closed_form_covp"), 256
"""Closed forms, and their number of random features."""


def sizes_for(
    method: str, columns: int, hidden: Sequence[int], outputs: int
) -> tuple[tuple[int, ...], int]:
    """Sizes of the network of a method, and its number of random features."""
    layers = () if method == "closed_form" else hidden
    return (columns, *layers, outputs), FEATURES if method in CLOSED else 0


def make_network(sizes: Sequence[int], features: int, random_state: int) -> "nn.Module":
    """Make a network of these sizes; one without hidden layers has random features alone."""
    import torch

    from vntransfer.continual import JoinedNet, RandomFeatureNet, dense

    random = {"features": features, "columns": sizes[0], "random_state": random_state}
    if features and len(sizes) == 2:
        return RandomFeatureNet(sizes[-1], **random).double()
    network = dense(sizes, generator=torch.Generator().manual_seed(random_state))
    return JoinedNet(network, **random) if features else network


def make_learner(method: str, network: "nn.Module") -> "ContinualMethod":
    """Make a method for a network; closed forms choose their ridge from the moments."""
    from vntransfer.continual import METHODS

    make: Any = METHODS[method]
    return make(network, ridge="auto") if method in CLOSED else make(network)


class MethodState(NamedTuple):
    """Copy of the state of a method: its structure, fit for JSON, and its tensors as arrays.

    Examples
    --------
    >>> from torch import nn
    >>> from vntransfer.continual import EWC
    >>> kept = MethodState.of(EWC(nn.Linear(2, 1)))
    >>> kept.restore(EWC(nn.Linear(2, 1)))
    """

    structure: Any
    arrays: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, method: "ContinualMethod") -> Self:
        """Copy the state of a method."""
        from vntransfer.continual.method_state import flatten

        tensors: dict[str, Any] = {}
        structure = flatten(method.state(), tensors)
        return cls(structure, {name: own.numpy() for name, own in tensors.items()})

    def restore(self, method: "ContinualMethod") -> None:
        """Load the state into a method with the same options."""
        import torch

        from vntransfer.continual.method_state import unflatten

        tensors = {name: torch.from_numpy(own.copy()) for name, own in self.arrays.items()}
        try:
            method.load_state(unflatten(self.structure, tensors))
        except (ArgumentError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"state: does not fit {type(method).__name__} ({error}); learn the model again"
            ) from error


@dataclass(frozen=True, eq=False)
class TaskNetwork:
    """Sizes and parameters of a network that `make_network` makes."""

    sizes: tuple[int, ...]  # of inputs, hidden layers and outputs
    features: int  # number of random features; without hidden layers they are all there is
    random_state: int  # their seed
    arrays: Mapping[str, NDArray[Any]]  # parameters by name

    def module(self) -> "nn.Module":
        """Make the network with torch."""
        import torch

        net = make_network(self.sizes, self.features, self.random_state)
        net.load_state_dict({name: torch.from_numpy(own) for name, own in self.arrays.items()})
        return net.eval()

    @cached_property
    def _random(self) -> RandomFeatures:
        p = self.sizes[0]
        return RandomFeatures(np.zeros(p), np.ones(p), self.features, self.random_state)

    def __call__(self, X: Floats) -> Floats:
        """Give outputs (n, m) of standardized rows (n, p)."""
        own = self.arrays
        if self.features and len(self.sizes) == 2:
            return np.asarray(self._random(X) @ own["head.weight"].T + own["head.bias"])
        prefix = "network." if self.features else ""
        layers = [
            ArrayLayer(own[f"{name}.weight"].T[None], own[f"{name}.bias"][None, None])
            for name in (f"{prefix}{2 * i}" for i in range(len(self.sizes) - 1))
        ]
        found = forward(layers, "relu", X.astype(layers[0].weight.dtype))[0].astype(np.float64)
        if self.features and own["joined"]:
            found += self._random(X) @ own["extra"].T
        return np.asarray(found)


def arrays_of(net: "nn.Module") -> dict[str, NDArray[Any]]:
    """Give the parameters of a network by name; they are not copied."""
    return {name: own.contiguous().numpy() for name, own in net.state_dict().items()}
