"""Data sets of the benchmarks, by their names."""

from typing import Any

import numpy as np

from vntransfer_lab.data import Domains
from vntransfer_lab.runner.datasets import load_data

Rows = tuple[Any, np.ndarray]


def domains(name: str) -> Domains:
    """Load a set of named domains, such as ``bike`` or ``bike:k=8``; a stream is refused."""
    loaded = load_data(name)
    if not isinstance(loaded, Domains):
        raise SystemExit(f"{name}: a stream of tasks; give a set of domains (vnt data list)")
    return loaded


def drawn(name: str, most: int, *draw: int, in_order: bool = False) -> dict[str, Rows]:
    """At most so many rows of each domain, at random: another ``draw`` gives others."""
    out = {}
    for place, (domain, (x, y)) in enumerate(domains(name).items()):
        rows = np.random.default_rng([place, *draw]).permutation(len(y))[:most]
        rows = np.sort(rows) if in_order else rows
        out[domain] = x[rows], np.asarray(y[rows], dtype=float)
    return out
