"""A bounded sample of rows that depends on their contents, not on their order or split."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vntransfer.checks import Floats
from vntransfer.repeats import Keys, row_keys


@dataclass
class RowSample:
    """The distinct rows with the smallest keys, and the weight of each."""

    most: int = 2000  # rows
    keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    rows: Floats | None = None
    counts: Floats = field(
        default_factory=lambda: np.zeros(0)
    )  # times that a row was added, or weights

    def add(self, rows: Floats, keys: Keys | None = None, counts: Any = None) -> None:
        """Add rows (n, D)."""
        keys = row_keys(rows) if keys is None else keys
        counts = np.ones(len(keys)) if counts is None else counts
        if len(self.keys) == self.most:
            near = keys <= self.keys[-1]
            keys, rows, counts = keys[near], rows[near], counts[near]
        if not len(keys):
            return
        every = np.concatenate((self.keys, keys))
        rows = rows if self.rows is None else np.concatenate((self.rows, rows))
        self.keys, first, at = np.unique(every, return_index=True, return_inverse=True)
        total = np.bincount(at, np.concatenate((self.counts, counts)))
        few = slice(self.most)
        self.keys, self.rows = self.keys[few], rows[first[few]]
        self.counts = total[few].astype(np.float64)

    def merge(self, other: "RowSample") -> None:
        """Add the sample of further rows."""
        if other.rows is not None:
            self.add(other.rows, other.keys, other.counts)
