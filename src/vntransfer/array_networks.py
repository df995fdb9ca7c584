"""Forward passes of networks with numpy: the same function as `vntransfer.networks`, without torch.

Saved networks of tables are small; importing torch takes longer than predicting with them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LEAK = 0.1
"""Slope of the leaky rectifier below zero."""
SCALE_RATE = 6.0
"""Factor by which the scale of an input moves faster than a weight."""

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "leaky_relu": lambda x: np.maximum(x, LEAK * x),
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "tanh": np.tanh,
}
"""Activations by name."""


class ArrayLayer(NamedTuple):
    """Linear layers of M members, x ↦ x W + b."""

    weight: Array  # (M, n_in, n_out)
    bias: Array  # (M, 1, n_out)


def mlp_layers(arrays: Mapping[str, Array]) -> list[ArrayLayer]:
    """Layers of a `Net` of `mlp` and a linear head, from its parameters by name.

    Trained scales of inputs are multiplied into the first weights. Parameters of other networks are
    an error (KeyError).
    """
    hidden = sum(name.startswith("extractor.") and name.endswith(".weight") for name in arrays)
    names = [f"extractor.{3 * i}" for i in range(hidden)] + ["head"]
    layers = [ArrayLayer(arrays[f"{name}.weight"], arrays[f"{name}.bias"]) for name in names]
    theta = "extractor.0.theta"
    if theta in arrays:
        scales = 1 + np.float32(SCALE_RATE) * arrays[theta]
        layers[0] = layers[0]._replace(weight=layers[0].weight * scales)
    if len(arrays) != 2 * len(names) + (theta in arrays):
        raise KeyError(f"parameters of another network: {sorted(arrays)!r:.80}")
    return layers


def forward(layers: Sequence[ArrayLayer], activation: str, x: Array) -> Array:
    """Give outputs (M, n, m) of all members for rows (n, p); the last layer has no activation.

    Examples
    --------
    >>> layer = ArrayLayer(np.array([[[2.0], [0.0]]]), np.array([[[1.0]]]))
    >>> forward([layer], "relu", np.array([[3.0, 5.0]]))
    array([[[7.]]])
    """
    function = FUNCTIONS[activation]
    for layer in layers[:-1]:
        x = function(x @ layer.weight + layer.bias)
    return x @ layers[-1].weight + layers[-1].bias
