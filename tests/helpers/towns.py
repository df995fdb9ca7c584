"""Small tables for the tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def towns(n: int = 25, seed: int = 0) -> dict[str, list[Any]]:
    """Prices in four towns, none in "new": 3 per square meter, 20 for a garden."""
    rng = np.random.default_rng(seed)
    town = np.repeat(["north", "south", "east", "west", "new"], n)
    size = rng.uniform(30, 120, len(town)) + 10 * (town == "east")
    garden = rng.random(len(town)) < 0.5
    price = 3 * size + 20 * garden + rng.normal(0, 2, len(town))
    return {
        "town": town.tolist(),
        "size": size.round(1).tolist(),
        "garden": np.where(garden, "yes", "no").tolist(),
        "kind": rng.choice(["flat", "house", ""], len(town)).tolist(),
        "price": [
            None if t == "new" else round(float(p), 1) for t, p in zip(town, price, strict=True)
        ],
    }


def csv_text(columns: Mapping[str, Sequence[Any]], end: str = "\n", delimiter: str = ",") -> str:
    rows = zip(*columns.values(), strict=True)
    lines = [list(columns), *([("" if c is None else str(c)) for c in row] for row in rows)]
    return "".join(delimiter.join(line) + end for line in lines)


def write(path: Path, columns: Mapping[str, Sequence[Any]], **options: str) -> Path:
    path.write_text(csv_text(columns, **options), encoding="utf-8", newline="")
    return path
