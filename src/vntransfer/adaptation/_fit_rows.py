"""The rows that a fit is given: checked, with their domains, responses and weights."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, column_or_1d

from vntransfer.adaptation._scaling import stacked
from vntransfer.domains import TARGET, Groups, Name
from vntransfer.errors import ArgumentError, DomainError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FitRows:
    """Rows of all domains.

    Parameters
    ----------
    x
        Inputs (n, p), dense or sparse.
    y
        Responses (n,) or (n, m); a source's in rows of targets.
    groups
        Rows of each domain.
    weights
        Weights (n,) of rows, one for targets; None: all alike.
    """

    x: Any
    y: NDArray[Any]
    groups: Groups
    weights: Floats | None = None

    def inputs(self) -> tuple[Any, ...]:
        """Give what the inputs are made of, of sparse ones shape and arrays."""
        x = self.x
        return (x.shape, x.data, x.indices, x.indptr) if scipy.sparse.issparse(x) else (x,)

    def sources(self) -> "FitRows":
        """Give the rows of the sources alone."""
        rows = self.groups.source_rows
        own = {name: np.searchsorted(rows, r) for name, r in self.groups.sources.items()}
        weights = None if self.weights is None else self.weights[rows]
        return FitRows(self.x[rows], self.y[rows], Groups(own), weights)

    def with_target(self, x: Any) -> "FitRows":
        """Give the rows of the sources and those of a target."""
        own, n = self.sources(), x.shape[0]
        sparse = scipy.sparse.issparse(own.x)
        if sparse != scipy.sparse.issparse(x):
            kinds = "sparse" if sparse else "dense"
            raise ArgumentError(f"X: the sources are {kinds}; give the target's rows so too")
        name: Name = TARGET if isinstance(next(iter(own.groups.sources)), str) else -1
        rows = np.arange(len(own.y), len(own.y) + n)
        return FitRows(
            stacked([own.x, x]),
            np.concatenate([own.y, np.repeat(own.y[:1], n, axis=0)]),
            Groups(own.groups.sources, {name: rows}),
            None if own.weights is None else np.concatenate((own.weights, np.ones(n))),
        )


def read_responses(
    estimator: str, y: Any, groups: Groups, n: int, *, numeric: bool
) -> NDArray[Any]:
    """Responses of all rows, those of targets replaced by a source's without being looked at.

    Parameters
    ----------
    estimator
        Name of who asks.
    y
        Responses of all n rows.
    groups, n
        Rows of each domain, and their number.
    numeric
        Whether responses are numbers, (n,) or (n, m); otherwise classes of any kind, (n,).
    """
    if y is None:
        raise ArgumentError(f"y: {estimator} requires y to be passed, but the target y is None")
    own = one_per_row(y, n)[groups.source_rows]
    if not numeric:
        own = column_or_1d(own, warn=True)
    kind: Any = np.float64 if numeric else None
    own = np.asarray(check_array(own, ensure_2d=False, dtype=kind, input_name="y"))
    labels = np.repeat(own[:1], n, axis=0)
    labels[groups.source_rows] = own
    return labels


def one_per_row(y: Any, n: int) -> NDArray[Any]:
    """Responses as an array, (n,) or (n, m)."""
    given = np.asarray(y)
    if given.ndim not in (1, 2) or len(given) != n:
        raise DomainError(
            f"y: expected {n} responses (n,) or (n, m) as X has rows, got shape {given.shape}"
        )
    return given


def read_weights(given: Any, groups: Groups, n: int) -> Floats | None:
    """Weights (n,) of rows, one for targets; None if none are given."""
    if given is None:
        return None
    values = np.asarray(given, dtype=np.float64)
    if values.shape not in ((), (n,)):
        raise ArgumentError(f"sample_weight: expected {n} numbers, got shape {values.shape}")
    weights, rows = np.ones(n), groups.source_rows
    weights[rows] = np.broadcast_to(values, (n,))[rows]
    own = weights[rows]
    if not np.isfinite(own).all() or (own < 0).any() or own.sum() <= 0:
        raise ArgumentError(
            "sample_weight: expected finite numbers of at least 0 that are not all zero"
        )
    return weights
