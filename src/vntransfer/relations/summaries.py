"""Summaries of domains that are read row by row: moments of blocks of rows, and a few rows.

Everything here merges: summaries of parts of a table, made anywhere, give those of the whole.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vntransfer.relations._domains import MOST
from vntransfer.relations._matrices import Totals
from vntransfer.relations._smoother import Matrix

BLOCKS = 128
"""A large domain is kept as so many blocks at least, and at most twice as many."""

BYTES = 4_000_000
"""Memory of a domain's blocks, from which on there are fewer of them (32 at least)."""


@dataclass
class MomentBlocks:
    """Second moments of blocks of about equally many rows; single rows at first.

    A block is merged with its neighbor whenever there are too many, so that memory is bounded
    however many rows come. The moments of all rows are exact; the blocks are what intervals are
    computed from.

    Each block keeps the sum of z z' with z = [x - o, 1], which holds its count, sums and squares
    and makes merging an addition. The origin o is the mean of the rows that came first, m of them:
    they alone give n rows a variance of (m/n) (mean - o)² at least, so that squares about o exceed
    those about the mean by a factor of n/m at most, and no more digits than that are lost.
    """

    n_columns: int  # D
    parts: list[Matrix] = field(default_factory=list)  # the blocks, arrays (m, D + 1, D + 1)
    size: int = 1  # rows of a block but the last; merging leaves a few with up to twice as many
    origin: Matrix | None = None  # what the moments are about, (D,)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def few(self) -> int:
        """Number of blocks below which none are merged."""
        return min(BLOCKS, max(32, BYTES // (16 * self.n_columns**2)))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(sum(part[:, -1, -1].sum() for part in self.parts))

    def stacked(self) -> tuple[Matrix, Matrix, Matrix]:
        """Numbers of rows (m,), means (m, D) and scatters (m, D, D) of all blocks."""
        return _unpacked(np.concatenate(self.parts), self.origin)

    def add(self, Z: NDArray[Any]) -> None:
        """Add rows, given as columns of Z (D, n)."""
        n = Z.shape[1]
        if self.origin is None:
            self.origin = Z.mean(1, dtype=np.float64)
        while len(self) + -(-n // self.size) > 2 * self.few:
            self._halve()
        C = np.empty((self.n_columns + 1, n))
        np.subtract(Z, self.origin[:, None], out=C[:-1])
        C[-1] = 1.0
        if gap := min(self._gap(), n):
            self.parts[-1][-1] += C[:, :gap] @ C[:, :gap].T
        full = (n - gap) // self.size * self.size
        for rows, size in (
            (C[:, gap : gap + full], self.size),
            (C[:, gap + full :], n - gap - full),
        ):
            if rows.shape[1]:
                each = rows.reshape(len(C), -1, size).transpose(1, 0, 2)
                self.parts.append(each @ each.transpose(0, 2, 1))

    def merge(self, other: "MomentBlocks") -> None:
        """Add the blocks of further rows; blocks of both are made equally large first."""
        if other.origin is None:
            return
        origin = other.origin if self.origin is None else self.origin
        other = MomentBlocks(self.n_columns, other.parts, other.size, other.origin)
        self.origin = origin
        for one, size in ((self, other.size), (other, self.size)):
            while one.size < size:
                one._halve()
        added = _about(other, origin)
        if self._gap() and len(added):  # the short one comes last
            self.parts[-1], short = self.parts[-1][:-1], self.parts[-1][-1:]
            if added[-1, -1, -1] < self.size:
                short, added = short + added[-1:], added[:-1]
            added = np.concatenate((added, short))
        self.parts = [*self.parts, added]
        while len(self) > 2 * self.few:
            self._halve()

    def total(self) -> Totals:
        """Totals of all rows."""
        whole = np.concatenate(self.parts).sum(0, keepdims=True)
        return Totals(*(part[0] for part in _unpacked(whole, self.origin)))

    def columns(self, kept: Any) -> "MomentBlocks":
        """Blocks of some of the columns."""
        if self.origin is None:
            return MomentBlocks(len(np.arange(self.n_columns)[kept]))
        at = np.append(np.arange(self.n_columns)[kept], self.n_columns)
        parts = [part[:, at][:, :, at] for part in self.parts]
        return MomentBlocks(len(at) - 1, parts, self.size, self.origin[kept])

    def _gap(self) -> int:
        """Rows that are missing in the last block."""
        return max(0, self.size - int(self.parts[-1][-1, -1, -1])) if len(self) else 0

    def _halve(self) -> None:
        """Make blocks twice as large by merging neighbors."""
        self.size *= 2
        if len(self) > 1:
            M = np.concatenate(self.parts)
            even = len(M) // 2 * 2
            self.parts = [np.concatenate((M[:even:2] + M[1:even:2], M[even:]))]


def _unpacked(M: Matrix, origin: Matrix | None) -> tuple[Matrix, Matrix, Matrix]:
    """Turn sums of z z' (m, D + 1, D + 1) into counts (m,), means and scatters."""
    assert origin is not None
    count, first = M[:, -1, -1].copy(), M[:, :-1, -1]
    scatter = M[:, :-1, :-1] - first[:, :, None] * first[:, None, :] / count[:, None, None]
    at = np.arange(len(origin))
    scatter[:, at, at] = np.maximum(scatter[:, at, at], 0.0)  # rounding, where nothing varies
    return count, origin + first / count[:, None], scatter


def _about(blocks: MomentBlocks, origin: Matrix) -> Matrix:
    """All blocks, with their moments about another origin: z becomes z + [d, 0]."""
    assert blocks.origin is not None
    M = np.concatenate(blocks.parts)
    if (d := blocks.origin - origin).any():
        lift = M[:, :, -1:] * np.append(d, 0.0)
        M = M + lift + lift.transpose(0, 2, 1)
        M[:, :-1, :-1] += M[:, -1:, -1:] * (d[:, None] * d)
    return M


@dataclass
class RowReservoir:
    """A uniform random sample of rows: those with the smallest of random keys.

    Rows that may belong to it wait until there are as many as it has room for: sorting all of them
    whenever some come would cost more than the moments.
    """

    n_columns: int
    capacity: int = MOST
    pieces: list[tuple[Matrix, Matrix]] = field(default_factory=list)
    bound: float = 1.0

    def add(self, Z: NDArray[Any], rng: np.random.Generator) -> None:
        """Add rows, given as columns of Z (D, n), *in random order*.

        Only rows whose key is below the bound matter: how many there are is drawn, they may as well
        be the first ones, and keys are drawn for them alone.
        """
        if n := int(rng.binomial(Z.shape[1], self.bound)):
            self._hold(self.bound * rng.random(n), Z[:, :n].T.astype(np.float64))

    def merge(self, other: "RowReservoir") -> None:
        """Add the sample of further rows."""
        for piece in other.pieces:
            self._hold(*piece)

    @property
    def rows(self) -> Matrix:
        """The sample (at most ``capacity``, D), in random order."""
        return self._best()[1]

    def _hold(self, keys: Matrix, rows: Matrix) -> None:
        self.pieces = [*self.pieces, (keys, rows)]
        if sum(len(own) for own, _ in self.pieces) > 2 * self.capacity:
            best = self._best()
            self.pieces, self.bound = [best], float(best[0][-1])

    def _best(self) -> tuple[Matrix, Matrix]:
        keys = np.concatenate([np.zeros(0), *(own for own, _ in self.pieces)])
        rows = np.concatenate([np.zeros((0, self.n_columns)), *(own for _, own in self.pieces)])
        kept = np.argsort(keys, kind="stable")[: self.capacity]
        return keys[kept], rows[kept]


@dataclass
class DomainSummary:
    """One domain: blocks of its rows [x, y] and of those without a response, x, and a sample."""

    joint: MomentBlocks
    bare: MomentBlocks
    reservoir: RowReservoir

    @classmethod
    def empty(cls, n_features: int) -> Self:
        """No rows yet."""
        D = n_features + 1
        return cls(MomentBlocks(D), MomentBlocks(n_features), RowReservoir(D))

    def add(self, Z: NDArray[Any], rng: np.random.Generator) -> None:
        """Add rows [x, y], columns of Z (d + 1, n) in random order; y is NaN if not known."""
        unknown = np.isnan(Z[-1])
        if unknown.any():
            self.bare.add(Z[:-1, unknown])
            Z = Z[:, ~unknown]
        if Z.shape[1]:
            self.joint.add(Z)
            self.reservoir.add(Z, rng)

    def merge(self, other: "DomainSummary") -> None:
        """Add further rows."""
        self.joint.merge(other.joint)
        self.bare.merge(other.bare)
        self.reservoir.merge(other.reservoir)

    @property
    def labeled(self) -> int:
        """Rows with a response."""
        return self.joint.rows

    @property
    def unlabeled(self) -> int:
        """Rows without one."""
        return self.bare.rows

    def features(self) -> MomentBlocks:
        """Blocks of the features of all rows."""
        every = self.joint.columns(np.arange(self.bare.n_columns))
        every.merge(self.bare)
        return every


@dataclass(frozen=True)
class Reduction:
    """Principal components that stand for many columns: (x - mean) weights."""

    mean: Matrix
    weights: Matrix = field(repr=False)  # (columns, components)
    share: float
    constant: int

    @property
    def kept(self) -> int:
        """Number of components."""
        return self.weights.shape[1]

    def apply(self, Z: Sequence[NDArray[Any]] | Matrix) -> Matrix:
        """Components of rows [x, y], columns of Z; y stays."""
        X = np.stack(list(Z)[:-1]) - self.mean[:, None]
        return np.vstack((self.weights.T @ X, Z[-1]))

    def note(self) -> str:
        """Describe what replaces the columns."""
        return (
            f"{len(self.mean):,} columns are too many to compare one by one, so their {self.kept} "
            f"leading principal components are used ({100 * self.share:.0f} % of the variance of "
            f"the standardized columns); differences outside of these go unnoticed"
        )


@dataclass
class Summaries:
    """Summaries of all domains seen so far, by name, in the order in which they came.

    Examples
    --------
    >>> parts = Summaries(1), Summaries(1)
    >>> for k, part in enumerate(parts):
    ...     part.add(np.array([0, 1, 0]), ["a", "b"], np.ones((2, 3)), np.random.default_rng(k))
    >>> parts[0].merge(parts[1])
    >>> {name: own.labeled for name, own in parts[0].domains.items()}
    {'a': 4, 'b': 2}
    """

    n_features: int  # components, where they stand for the columns
    domains: dict[str, DomainSummary] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)
    reduction: Reduction | None = None
    features_only: bool = False  # only the names of the domains are kept, and ``total``
    total: Totals | None = None  # of the features of all domains

    def empty(self) -> "Summaries":
        """Start again without rows."""
        return replace(self, domains={}, notes=Counter(), total=None)

    def add(
        self,
        codes: NDArray[np.intp],
        names: list[str],
        Z: Sequence[NDArray[Any]] | Matrix,
        rng: np.random.Generator,
    ) -> None:
        """Add rows [x, y], columns of Z (d + 1, n), that belong to domains ``names[codes]``.

        There are fewer than 2^15 names. Z may be a list of its rows, all of one type; float32 stays
        so until moments are taken, which halves the traffic. Rows are shuffled first: where a table
        is sorted, blocks of its rows would differ more than chance makes them.
        """
        if self.features_only:
            features = Totals.of(np.stack(list(Z)[:-1], 1).astype(np.float64))
            self.total = features if self.total is None else self.total.merge(features)
            for code in np.unique(codes):
                self.domains.setdefault(names[code], DomainSummary.empty(0))
            return
        Z = Z if self.reduction is None else self.reduction.apply(Z)
        order = rng.permutation(len(codes))
        order = order[np.argsort(codes[order].astype(np.int16), kind="stable")]
        bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
        rows = np.empty((len(Z), len(codes)), dtype=Z[0].dtype)
        for row, into in zip(Z, rows, strict=True):  # several times faster than Z[:, order]
            np.take(row, order, out=into, mode="clip")
        for name, start, stop in zip(names, bounds, bounds[1:], strict=False):
            if start < stop:
                if name not in self.domains:
                    self.domains[name] = DomainSummary.empty(self.n_features)
                self.domains[name].add(rows[:, start:stop], rng)

    def merge(self, other: "Summaries") -> None:
        """Merge summaries of other rows."""
        for name, own in other.domains.items():
            if name in self.domains:
                self.domains[name].merge(own)
            else:
                self.domains[name] = own
        self.notes.update(other.notes)
        if other.total is not None:
            self.total = other.total if self.total is None else self.total.merge(other.total)
