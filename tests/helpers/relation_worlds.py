"""Domains and tables for the tests of `vntransfer.relations`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Pair = tuple[NDArray[Any], NDArray[Any]]


def domain(
    seed: int,
    *,
    rows: int = 200,
    scale: float = 1.0,
    shift: float = 0.0,
    slope: float = 2.0,
    bend: float = 0.0,
    noise: float = 1.0,
) -> Pair:
    """Two features and y = slope x_1 - x_2 + bend x_1² + noise."""
    rng = np.random.default_rng([seed, 3])
    x = scale * rng.standard_normal((rows, 2)) + shift
    y = slope * x[:, 0] - x[:, 1] + bend * x[:, 0] ** 2 + noise * rng.standard_normal(rows)
    return x, y


def towns(rows: int = 600, seed: int = 0) -> dict[str, list[Any]]:
    """A table of three towns, the third without prices, with columns of several kinds."""
    rng = np.random.default_rng(seed)
    town = np.array(["Lyon", "Oslo", "new"])[np.arange(rows) % 3]
    area = rng.gamma(4.0, 20.0, rows).round(1)
    kind = rng.choice(["flat", "house"], rows)
    price = np.where(town == "Oslo", -3.0, 3.0) * area + rng.normal(0, 20, rows)
    return {
        "town": town.tolist(),
        "area": area.tolist(),
        "kind": kind.tolist(),
        "price": [None if t == "new" else round(p, 2) for t, p in zip(town, price, strict=True)],
    }


def write_csv(path: Any, table: dict[str, list[Any]], delimiter: str = ",", end: str = "\n") -> Any:
    lines = [delimiter.join(table)]
    for row in zip(*table.values(), strict=True):
        lines.append(delimiter.join("" if cell is None else str(cell) for cell in row))
    path.write_bytes((end.join(lines) + end).encode())
    return path
