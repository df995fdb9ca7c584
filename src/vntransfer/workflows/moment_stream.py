"""Reduce streamed rows to moments of [z, y] per place, and a few rows to measure errors on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import Floats
from vntransfer.closed_form import BLOCK, feature_moments
from vntransfer.errors import DataError
from vntransfer.moments import Moments
from vntransfer.random_features import RandomFeatures
from vntransfer.row_sample import RowSample
from vntransfer.tables.problem import LABELED
from vntransfer.workflows.prediction_intervals import KEPT

BYTES = 2**29
"""Memory of the moments of all places together."""


@dataclass
class PlaceMoments:
    """Moments of the rows [z, y] of a place, or of z where no response is known."""

    moments: Moments | None = None
    sample: RowSample = field(default_factory=lambda: RowSample(KEPT))
    waiting: list[Floats] = field(default_factory=list)  # rows [x, y] or x, columns first
    rows: int = 0

    def add(self, rows: Floats, features: RandomFeatures) -> None:
        """Take in rows, columns first: (p + 1, n), or (p, n) without responses."""
        self.waiting.append(rows)
        self.rows += rows.shape[1]
        if sum(own.shape[1] for own in self.waiting) >= BLOCK:
            self.flush(features)

    def flush(self, features: RandomFeatures) -> None:
        """Turn the rows that wait into moments."""
        if not self.waiting:
            return
        every = np.ascontiguousarray(np.hstack(self.waiting).T, dtype=np.float64)
        self.waiting, p = [], len(features.center)
        y = every[:, p:] if every.shape[1] > p else None
        self._join(feature_moments(features, every[:, :p], y))
        if y is not None:
            self.sample.add(every)

    def merge(self, other: "PlaceMoments") -> None:
        """Take in further rows; both were flushed."""
        if other.moments is not None:
            self._join(other.moments)
        self.sample.merge(other.sample)
        self.rows += other.rows

    def _join(self, new: Moments) -> None:
        self.moments = new if self.moments is None else self.moments.merge(new)


@dataclass
class MomentStream:
    """What rows are taken into: moments of every source, and of the targets.

    Rows of targets count without their responses, unless ``use_target_labels``: then those that
    have one make a source, "NAME (labeled)".

    Examples
    --------
    >>> features = RandomFeatures(np.zeros(1), np.ones(1), count=2, seed=0)
    >>> one, other = (MomentStream(features, ("new",)) for _ in range(2))
    >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, np.nan, 5.0])
    >>> for part in (one, other):
    ...     part.add(np.array([0, 0, 1]), ["old", "new"], [x, y], np.random.default_rng(0))
    >>> one.merge(other)
    >>> one.domains["old"].rows, one.targets["new"].rows, one.unlabeled["old"], one.not_read
    (2, 2, 2, 2)
    """

    features: RandomFeatures
    aimed: tuple[str, ...]
    use_target_labels: bool = False
    domains: dict[str, PlaceMoments] = field(default_factory=dict)  # sources
    targets: dict[str, PlaceMoments] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)
    unlabeled: Counter[str] = field(default_factory=Counter)  # rows of other places left out
    not_read: int = 0  # responses of targets that are not used

    def empty(self) -> "MomentStream":
        """Start again without rows."""
        return MomentStream(self.features, self.aimed, self.use_target_labels)

    def add(
        self,
        codes: NDArray[np.intp],
        names: list[str],
        Z: Sequence[NDArray[Any]] | Floats,
        rng: np.random.Generator,
    ) -> None:
        """Take in rows [x, y], columns of Z, that belong to the places ``names[codes]``."""
        order = np.argsort(codes.astype(np.int16), kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
        rows = np.empty((len(Z), len(codes)))
        for row, into in zip(Z, rows, strict=True):
            into[:] = row[order]
        for name, start, stop in zip(names, bounds, bounds[1:], strict=False):
            if start < stop:
                self._add(name, rows[:, start:stop])

    def _add(self, name: str, rows: Floats) -> None:
        known, source = ~np.isnan(rows[-1]), name
        if name in self.aimed:
            source = name + LABELED
            if not self.use_target_labels:
                self.not_read += int(known.sum())
                known = np.zeros(len(known), dtype=bool)
            if not known.all():
                self._place(self.targets, name).add(rows[:-1, ~known], self.features)
        elif not known.all():
            self.unlabeled[name] += int((~known).sum())
        if known.any():
            own = rows if known.all() else rows[:, known]
            self._place(self.domains, source).add(own.copy(), self.features)

    def _place(self, places: dict[str, PlaceMoments], name: str) -> PlaceMoments:
        if name not in places:
            q = len(self.features.center) + self.features.count + 1
            n = len(self.domains) + len(self.targets) + 1
            if 8 * q * q * n > BYTES:
                raise DataError(
                    f"domain: {n} places with {q - 1:,} features each take more than "
                    f"{BYTES >> 20} MiB of moments; use fewer columns (features=, drop=) or group "
                    f"the places"
                )
            places[name] = PlaceMoments()
        return places[name]

    def flush(self) -> None:
        """Turn all rows that wait into moments."""
        for own in (*self.domains.values(), *self.targets.values()):
            own.flush(self.features)

    def merge(self, other: "MomentStream") -> None:
        """Take in what came elsewhere."""
        self.flush()
        other.flush()
        for mine, others in ((self.domains, other.domains), (self.targets, other.targets)):
            for name, own in others.items():
                self._place(mine, name).merge(own)
        self.notes.update(other.notes)
        self.unlabeled += other.unlabeled
        self.not_read += other.not_read
