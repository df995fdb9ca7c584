"""What is kept of a domain while its rows pass by: moments of blocks of rows, and a few rows.

Everything here merges: summaries of parts of a table, made anywhere, give those of the whole.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from vntransfer.moments import Moments
from vntransfer.relate._basis import Matrix

BLOCKS = 128
"""A large domain is kept as so many blocks at least, and at most twice as many."""

BYTES = 4_000_000
"""Memory of a domain's blocks, from which on there are fewer of them (32 at least)."""

RESERVOIR = 1000
"""Rows of each domain that are kept, at random."""


Block = tuple[float, Matrix, Matrix]
"""Number of rows, mean (D,) and scatter (D, D) of a block."""


@dataclass
class Blocks:
    """Moments of blocks of rows: at least `few` of them, or single rows.

    A block is merged with its neighbour whenever there are too many, so that memory is bounded
    however many rows come. The moments of all rows are exact; the blocks are what intervals are
    computed from.

    Parameters
    ----------
    n_columns
        Number of columns.
    parts
        The blocks.
    size
        Rows of a block.
    """

    n_columns: int
    parts: list[Block] = field(default_factory=list)
    size: int = 1

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def few(self) -> int:
        """Number of blocks below which none are merged."""
        return min(BLOCKS, max(32, BYTES // (16 * self.n_columns**2)))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(sum(part[0] for part in self.parts))

    def stacked(self) -> tuple[Matrix, Matrix, Matrix]:
        """Numbers of rows (m,), means (m, D) and scatters (m, D, D) of all blocks."""
        count, mean, scatter = zip(*self.parts, strict=True)
        return np.array(count), np.stack(mean), np.stack(scatter)

    def add(self, Z: Matrix) -> None:
        """Take in rows, given as columns of Z (D, n)."""
        n = Z.shape[1]
        while len(self) + -(-n // self.size) > 2 * self.few:
            self.size *= 2
            if len(self) > self.few:
                self.parts = _halved(self)
        full = n // self.size * self.size
        for rows, size in ((Z[:, :full], self.size), (Z[:, full:], n - full)):
            self.parts += _moments(rows, size) if rows.shape[1] else []

    def merge(self, other: "Blocks") -> None:
        """Take in the blocks of further rows."""
        self.parts = self.parts + other.parts
        self.size = max(self.size, other.size)
        while len(self) > 2 * self.few:
            self.size *= 2
            self.parts = _halved(self)

    def total(self) -> Moments:
        """Moments of all rows."""
        whole = Blocks(self.n_columns, self.parts)
        while len(whole) > 1:
            whole.parts = _halved(whole)
        count, mean, scatter = (torch.as_tensor(part) for part in whole.parts[0])
        return Moments(count.double(), count.double(), mean, scatter, True)

    def columns(self, kept: Any) -> "Blocks":
        """Blocks of some of the columns."""
        parts = [(n, mean[kept], scatter[kept][:, kept]) for n, mean, scatter in self.parts]
        return Blocks(len(parts[0][1]) if parts else 0, parts, self.size)


def _halved(blocks: Blocks) -> list[Block]:
    """Merge neighbours."""
    even = len(blocks) // 2 * 2
    tensors = [torch.from_numpy(part[:even]) for part in blocks.stacked()]
    count, mean, scatter = ((t[::2], t[1::2]) for t in tensors)
    one, two = (Moments(c, c, m, s) for c, m, s in zip(count, mean, scatter, strict=True))
    both = one.merge(two)
    merged = (part.numpy() for part in (both.count, both.mean, both.scatter))
    # copies, so that a block does not keep all others alive
    made = [(float(n), m.copy(), s.copy()) for n, m, s in zip(*merged, strict=True)]
    return [*made, *blocks.parts[even:]]


def _moments(Z: Matrix, size: int) -> list[Block]:
    """Moments of every ``size`` rows of Z (D, n), n being a multiple of it."""
    rows = Z.reshape(len(Z), -1, size).transpose(1, 0, 2)  # (m, D, size)
    mean = rows @ np.full(size, 1 / size)
    centred = rows - mean[:, :, None]
    scatter = centred @ centred.transpose(0, 2, 1)
    return [(float(size), m, s) for m, s in zip(mean, scatter, strict=True)]


@dataclass
class Reservoir:
    """A uniform random sample of rows: those with the smallest of random keys."""

    keys: Matrix
    rows: Matrix
    capacity: int = RESERVOIR

    def add(self, keys: Matrix, Z: Matrix) -> None:
        """Take in rows, given as columns of Z (D, n), with their keys (n,)."""
        if len(self.keys) == self.capacity:
            better = keys < self.keys.max()
            keys, Z = keys[better], Z[:, better]
        if len(keys):
            self._keep(np.concatenate((self.keys, keys)), np.concatenate((self.rows, Z.T)))

    def merge(self, other: "Reservoir") -> None:
        """Take in the sample of further rows."""
        self._keep(np.concatenate((self.keys, other.keys)), np.concatenate((self.rows, other.rows)))

    def _keep(self, keys: Matrix, rows: Matrix) -> None:
        kept = np.argsort(keys, kind="stable")[: self.capacity]
        self.keys, self.rows = keys[kept], rows[kept]


@dataclass
class Summary:
    """One domain: rows with a response as [x, y], rows without one as x alone.

    Parameters
    ----------
    joint, bare
        Blocks of the rows with and without a response.
    reservoir
        Random sample of the rows with one.
    """

    joint: Blocks
    bare: Blocks
    reservoir: Reservoir

    @classmethod
    def empty(cls, n_features: int) -> Self:
        """No rows yet."""
        D = n_features + 1
        reservoir = Reservoir(np.zeros(0), np.zeros((0, D)))
        return cls(Blocks(D), Blocks(n_features), reservoir)

    def add(self, Z: Matrix, rng: np.random.Generator) -> None:
        """Take in rows [x, y] given as columns of Z (d + 1, n); y is NaN where it is not known."""
        unknown = np.isnan(Z[-1])
        if unknown.any():
            self.bare.add(Z[:-1, unknown])
            Z = Z[:, ~unknown]
        if Z.shape[1]:
            self.joint.add(Z)
            self.reservoir.add(rng.random((Z.shape[1],)), Z)

    def merge(self, other: "Summary") -> None:
        """Take in further rows."""
        self.joint.merge(other.joint)
        self.bare.merge(other.bare)
        self.reservoir.merge(other.reservoir)

    @property
    def labelled(self) -> int:
        """Rows with a response."""
        return self.joint.rows

    @property
    def unlabelled(self) -> int:
        """Rows without one."""
        return self.bare.rows

    def features(self) -> Blocks:
        """Blocks of the features of all rows."""
        every = self.joint.columns(np.arange(self.bare.n_columns))
        every.n_columns = self.bare.n_columns
        every.merge(self.bare)
        return every


@dataclass
class Summaries:
    """Summaries of all domains seen so far, by name, in the order in which they came.

    Examples
    --------
    >>> parts = Summaries(1), Summaries(1)
    >>> for k, part in enumerate(parts):
    ...     part.add(np.array([0, 1, 0]), ["a", "b"], np.ones((2, 3)), np.random.default_rng(k))
    >>> parts[0].merge(parts[1])
    >>> {name: own.labelled for name, own in parts[0].items()}
    {'a': 4, 'b': 2}
    """

    n_features: int
    domains: dict[str, Summary] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)

    def add(
        self, codes: NDArray[np.intp], names: list[str], Z: Matrix, rng: np.random.Generator
    ) -> None:
        """Take in rows [x, y], columns of Z (d + 1, n), that belong to domains ``names[codes]``.

        There are fewer than 2^15 names. Rows are shuffled first: where a table is sorted, blocks of
        its rows would differ more than chance makes them.
        """
        order = rng.permutation(Z.shape[1])
        order = order[np.argsort(codes[order].astype(np.int16), kind="stable")]
        bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
        rows = np.empty_like(Z)
        for row, into in zip(Z, rows, strict=True):  # several times faster than Z[:, order]
            np.take(row, order, out=into, mode="clip")
        for name, start, stop in zip(names, bounds, bounds[1:], strict=False):
            if start < stop:
                if name not in self.domains:
                    self.domains[name] = Summary.empty(self.n_features)
                self.domains[name].add(rows[:, start:stop], rng)

    def merge(self, other: "Summaries") -> None:
        """Take in what came elsewhere."""
        for name, own in other.domains.items():
            if name in self.domains:
                self.domains[name].merge(own)
            else:
                self.domains[name] = own
        for note, n in other.notes.items():
            self.notes[note] = self.notes.get(note, 0) + n

    def items(self) -> Iterator[tuple[str, Summary]]:
        """Name and summary of each domain."""
        yield from self.domains.items()


def pooled(blocks: Iterable[Blocks]) -> Moments:
    """Moments of the rows of several domains together."""
    every = [own.total() for own in blocks if len(own)]
    whole = every[0]
    for part in every[1:]:
        whole = whole.merge(part)
    return whole
