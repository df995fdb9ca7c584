"""Keys of rows by their contents, to find repeated rows and keep them together in splits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Rows = NDArray[np.intp]

FEWEST = 10
"""Smallest number of different rows for which equal rows count as copies."""

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def row_keys(*blocks: Any) -> Keys:
    """Give each row a random-looking key of 64 bits that depends on its contents alone.

    ``blocks`` are arrays of numbers (n,) or (n, p), dense or sparse, whose columns make the rows.

    Examples
    --------
    >>> keys = row_keys(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]), np.array([5, 5, 5]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    total, column = np.zeros(blocks[0].shape[0], dtype=np.uint64), 1
    for block in blocks:
        if hasattr(block, "tocsr"):  # sparse, without importing scipy
            rows = block.tocsr()
            mixed = _mixed(rows.data, np.uint64(column) + rows.indices.astype(np.uint64))
            sums = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(mixed)))
            total += sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
            column += block.shape[1]
            continue
        for own in np.atleast_2d(np.asarray(block).T):
            total += _mixed(own, np.array([column], dtype=np.uint64))
            column += 1
    return total


def _mixed(values: Any, column: Any) -> Keys:
    """Mix the bits of numbers and their column (splitmix64); 0 gives 0, dense or sparse."""
    bits = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # -0 is 0
    key = bits.view(np.uint64) + column * _ODD
    for shift, factor in zip((30, 27), _MIX, strict=True):
        key = (key ^ (key >> np.uint64(shift))) * factor
    return np.where(bits == 0, np.uint64(0), key ^ (key >> np.uint64(31)))


def repeated(keys: Keys) -> NDArray[np.bool_]:
    """Mark the rows that repeat an earlier one.

    Examples
    --------
    >>> repeated(np.array([7, 8, 7, 7], dtype=np.uint64))
    array([False, False,  True,  True])
    """
    out = np.ones(len(keys), dtype=bool)
    out[np.unique(keys, return_index=True)[1]] = False
    return out


def split_rows(rows: Rows, keys: Keys, n: int) -> tuple[Rows, Rows]:
    """Split rows, given in random order, into about n and the others, equal rows on one side.

    Without repeats the first part is ``rows[:n]``; with repeats it has at most n rows, but at least
    one group of equal rows. If fewer than `FEWEST` rows are different, equal rows are no copies,
    and the first part is ``rows[:n]`` as well. ``keys`` are those of `row_keys`.

    Examples
    --------
    >>> keys = np.repeat(np.arange(10, dtype=np.uint64), 2)
    >>> split_rows(np.arange(20), keys, 5)[0]
    array([0, 1, 2, 3])
    """
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    if n < 1 or len(first) < FEWEST or len(first) == len(rows):
        return rows[:n], rows[n:]
    sizes, taken, left = np.bincount(group), np.zeros(len(first), dtype=bool), n
    for own in np.argsort(first):  # in order of appearance
        if sizes[own] <= left:
            taken[own], left = True, left - sizes[own]
    if not taken.any():
        taken[sizes.argmin()] = True
    return rows[taken[group]], rows[~taken[group]]
