"""The network of a continual model as arrays, to predict with numpy or rebuild with torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vntransfer.array_networks import ArrayLayer, forward
from vntransfer.random_features import RandomFeatures

if TYPE_CHECKING:
    from torch import nn

    from vntransfer.continual import ContinualMethod

Floats = NDArray[np.float64]


class KeptState(NamedTuple):
    """What a method keeps to continue learning: `MethodState` with arrays for tensors."""

    structure: Any
    arrays: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, method: "ContinualMethod") -> Self:
        """Copy the state of a method."""
        from vntransfer.continual.method_state import MethodState

        found = MethodState.of(method)
        return cls(found.structure, {name: own.numpy() for name, own in found.tensors.items()})

    def restore(self, method: "ContinualMethod") -> None:
        """Give the state to a method that was made with the same options."""
        import torch

        from vntransfer.continual.method_state import MethodState

        tensors = {name: torch.from_numpy(own) for name, own in self.arrays.items()}
        MethodState(self.structure, tensors).restore(method)


@dataclass(frozen=True, eq=False)
class TaskNetwork:
    """Sizes and parameters of a network that `make_network` makes.

    Parameters
    ----------
    sizes
        Sizes of inputs, hidden layers and outputs.
    features
        Number of random features; without hidden layers they are all there is.
    random_state
        Their seed.
    arrays
        Parameters by name.
    """

    sizes: tuple[int, ...]
    features: int
    random_state: int
    arrays: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, net: "nn.Module", random_state: int) -> Self:
        """Take the parameters of a network; they are not copied."""
        from vntransfer.workflows.continual_networks import sizes_of

        arrays = {name: own.contiguous().numpy() for name, own in net.state_dict().items()}
        return cls(*sizes_of(net), random_state, arrays)

    def module(self) -> "nn.Module":
        """Make the network with torch."""
        import torch

        from vntransfer.workflows.continual_networks import make_network

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
