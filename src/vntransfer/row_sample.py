"""A bounded sample of rows that depends on their contents alone, not on their order or split."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]


def row_keys(rows: Floats) -> Keys:
    """Numbers that look random and depend on the contents of rows (n, D) alone.

    Examples
    --------
    >>> keys = row_keys(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    factors = np.random.Philox(key=0).random_raw(rows.shape[1]) | np.uint64(1)
    bits = (np.ascontiguousarray(rows) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    bits ^= bits >> np.uint64(32)
    key = (bits * factors).sum(1, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        key = (key ^ (key >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(key ^ (key >> np.uint64(31)))


@dataclass
class RowSample:
    """The distinct rows with the smallest keys, and the weight of each: the same in any order."""

    most: int = 2000  # rows
    keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    rows: Floats | None = None
    counts: Floats = field(default_factory=lambda: np.zeros(0))  # how often a row came, or weights

    def add(self, rows: Floats, keys: Keys | None = None, counts: Any = None) -> None:
        """Take in rows (n, D)."""
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
        """Take in the sample of further rows."""
        if other.rows is not None:
            self.add(other.rows, other.keys, other.counts)
