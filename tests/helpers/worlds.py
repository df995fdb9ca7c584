"""Small worlds of domains for the tests of adaptation."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.domains import stack

World = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def response(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(x[:, 0] + 0.5 * x[:, 1] ** 2)


def easy(n: int = 60, seed: int = 0) -> World:
    """Three sources of different sizes at different places and a target near the second."""
    rng = np.random.default_rng(seed)
    parts = {}
    for name, center, size in (("a", -1.0, n), ("b", 1.0, n - 10), ("c", 3.0, n + 10)):
        x = rng.normal(center, 1.0, size=(size, 4))
        parts[name] = (x, response(x) + 0.1 * rng.normal(size=size))
    return stack(parts, target=rng.normal(1.2, 1.0, size=(n, 4)))


def hard(seed: int = 0) -> World:
    """A source of two rows, one given twice, constant columns, large scales, a far target."""
    rng = np.random.default_rng(seed)

    def table(n: int, center: float) -> NDArray[Any]:
        x = rng.normal(center, 1.0, size=(n, 5))
        x[:, 1] = 7.0
        x[:, 2] = 0.0
        x[:, 3] *= 1e8
        return x

    twice, small, plain = table(30, 0.0), table(2, 2.0), table(25, -1.0)
    parts = {
        "twice": (twice, 1e6 * twice[:, 0]),
        "again": (twice, 1e6 * twice[:, 0]),
        "two": (small, 1e6 * small[:, 0]),
        "flat": (plain, np.zeros(25)),
    }
    return stack(parts, target=table(40, 500.0))
