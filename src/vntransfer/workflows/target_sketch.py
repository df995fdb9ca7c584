"""A few rows and quantiles of a fit, stored with the model so that its page can draw them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import Floats
from vntransfer.domains import Groups, Rows
from vntransfer.errors import DataError, PredictionError

HELD_OUT, PER_SOURCE = 2400, 80
"""Held-out rows that are kept in all, and of each source."""

INPUTS, TARGET = 800, 200
"""Rows of the sources, and of the target, whose inputs are kept."""

QUANTILES = 101
"""Quantiles that are kept of responses and predictions."""

WIDTHS = {"held_out": 3, "inputs": 3, "distributions": 2, "shares": 2}
"""Columns of the arrays."""


@dataclass(frozen=True, eq=False)
class TargetSketch:
    """Held-out predictions, a view of the inputs, and distributions, each of a sample of rows.

    Sources are numbered in the order of their weights in the outcome; -1 is the target.
    """

    held_out: Floats  # (n, 3): source, response, prediction without that source's responses
    inputs: Floats  # (m, 3): place, and the first two principal components of its encoded row
    distributions: Floats  # (q, 2): quantiles of the sources' responses, and of predictions
    shares: Floats  # (1, 2): variance of the encoded columns along each of the two components

    @classmethod
    def of(cls, X: Any, y: Floats, groups: Groups, held_out: Floats, model: Any) -> Self:
        """Sample a fit; ``held_out`` and the model's predictions are in the user's units.

        ``held_out`` is NaN on rows that were not held out, and on those of the target.
        """
        sources = list(groups.sources.values())
        target = groups.target
        assert target is not None
        per = max(8, min(PER_SOURCE, HELD_OUT // len(sources)))
        pairs = []
        for k, rows in enumerate(sources):
            own = _some(rows[np.isfinite(held_out[rows])], per)
            pairs.append(np.column_stack((np.full(len(own), float(k)), y[own], held_out[own])))
        kept = [_some(rows, max(2, INPUTS // len(sources))) for rows in sources]
        ahead = _some(target, TARGET)
        inputs, shares = _view([X[rows] for rows in kept], X[ahead])
        levels = np.linspace(0, 1, QUANTILES)
        try:
            predicted = np.quantile(model(X[_some(target, 10 * TARGET)]), levels)
        except PredictionError:  # `predict` names the row
            predicted = np.full(QUANTILES, np.nan)
        known = np.quantile(y[groups.source_rows], levels)
        return cls(np.vstack(pairs), inputs, np.column_stack((known, predicted)), shares)

    @classmethod
    def from_arrays(cls, at: str, arrays: Mapping[str, NDArray[Any]]) -> Self | None:
        """Read what `arrays` gives, checking its shape; None if there are none."""
        own = [arrays.get(f"{at}/{name}") for name in WIDTHS]
        if all(value is None for value in own):
            return None
        for (name, width), value in zip(WIDTHS.items(), own, strict=True):
            if value is None or value.ndim != 2 or value.shape[1] != width:
                raise DataError(f"arrays: {at}/{name} is missing or has the wrong shape")
        return cls(*(np.asarray(value, dtype=np.float64) for value in own))

    def arrays(self, at: str) -> dict[str, Floats]:
        """Name the arrays for a model folder."""
        return {f"{at}/{name}": getattr(self, name) for name in WIDTHS}

    def overlap(self) -> float:
        """Share of the target's rows that lie among those of the sources in the view.

        A row lies among them if it is no farther from the nearest one than 95 % of the sources'
        rows are from the nearest row of another source.
        """
        from scipy.spatial import cKDTree

        place, points = self.inputs[:, 0], self.inputs[:, 1:]
        sources, target = points[place >= 0], points[place < 0]
        apart = np.full(len(sources), np.inf)
        for k in np.unique(place[place >= 0]):
            own = place[place >= 0] == k
            if not own.all():
                apart[own] = cKDTree(sources[~own]).query(sources[own])[0]
        if not np.isfinite(apart).any() or not len(target):
            return np.nan
        return float((cKDTree(sources).query(target)[0] <= np.quantile(apart, 0.95)).mean())


def _some(rows: Rows, most: int) -> Rows:
    """At most so many rows, evenly spaced in the table."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]


def _view(sources: list[Any], target: Any) -> tuple[Floats, Floats]:
    """Principal components of standardized columns; values beyond 6 standard deviations clipped."""
    from sklearn.decomposition import PCA

    every = np.vstack([np.asarray(own, dtype=np.float64) for own in (*sources, target)])
    known = every[: len(every) - len(target)]
    spread = known.std(0)
    Z = np.clip((every - known.mean(0)) / np.where(spread > 0, spread, 1.0), -6, 6)
    fitted = PCA(min(2, *Z.shape), random_state=0).fit(Z[: len(known)])
    points, shares = np.zeros((len(Z), 2)), np.zeros((1, 2))
    points[:, : fitted.n_components_] = fitted.transform(Z)
    shares[0, : fitted.n_components_] = np.nan_to_num(fitted.explained_variance_ratio_)
    sizes = [*map(len, sources), len(target)]
    places = np.repeat([*range(len(sources)), -1], sizes).astype(np.float64)
    return np.column_stack((places, points)), shares
