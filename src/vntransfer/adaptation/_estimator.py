"""Code that all estimators share: the arguments and rows of ``fit``, and their checks."""

from dataclasses import dataclass, fields
from types import UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from vntransfer.checks import HUGE, Floats, finite_predictions, first_huge, number, one_of, whole
from vntransfer.domains import Groups, Target, group
from vntransfer.errors import ArgumentError, DomainError
from vntransfer.progress import Progress

MATRIX: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}

WIDE = 1e15
"""Beyond this, single precision is left: learners bring responses to the precision of X."""


@dataclass(frozen=True)
class FitRows:
    """Rows of all domains."""

    x: Any  # (n, p), dense or sparse
    y: NDArray[Any]  # (n,) or (n, m); a source's in rows of targets
    groups: Groups
    weights: Floats | None = None  # (n,), one for targets; None: all alike


class TransferEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that learns from labeled sources for an unlabeled target.

    Subclasses are dataclasses whose fields are the options; they implement ``_fit_rows``.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}

    _needs_target: ClassVar[bool] = False
    _several: ClassVar[bool] = False  # targets
    _numeric: ClassVar[bool] = True  # responses
    _multi_output: ClassVar[bool] = False

    def fit(
        self,
        X: Any,
        y: Any,
        sample_domain: Any = None,
        target: Target = None,
        sample_weight: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from the labeled sources for the unlabeled target.

        Parameters
        ----------
        X
            Rows of all domains (n, p), dense or sparse; see `stack`.
        y
            Responses (n,); networks and `PooledRegressor` take several, (n, m), too. Those of the
            target are never read and can be NaN.
        sample_domain
            Domain of each row: integers (0 and above are sources, below 0 targets) or names. None:
            all rows are one source, and there is no target.
        target
            With names: which one is the target, "target" if not given. Networks take a list, too:
            each target gets its own weights and networks, on the same sources and initial
            parameters.
        sample_weight
            Weights (n,) of the sources' rows: networks draw rows by them, other learners take them
            as they are. Those of targets are not read.
        progress
            Called with a description, the number done and the total while networks are trained and
            candidates are tried.
        """
        self._check_options()
        X = validate_data(self, X, **MATRIX, ensure_min_samples=2)
        n = X.shape[0]
        groups = group(sample_domain, n, target=target, several=self._several)
        if self._needs_target and sample_domain is not None:
            need_target(groups)
        refuse_huge_inputs(X, self)
        labels = read_responses(type(self).__name__, y, groups, n, numeric=self._numeric)
        if (
            X.dtype == np.float32
            and self._numeric
            and any(first_huge(v, WIDE) for v in (X, labels))
        ):
            X = X.astype(np.float64)
        rows = FitRows(X, labels, groups, read_weights(sample_weight, groups, n))
        return self._fit_rows(rows, progress)

    def _fit_rows(self, rows: FitRows, progress: Progress | None) -> Self:
        raise NotImplementedError

    def _new_rows(self, X: Any) -> Any:
        """Check rows that a fitted estimator is given."""
        check_is_fitted(self)
        return validate_data(self, X, **MATRIX, reset=False)

    def _finite(self, predicted: NDArray[Any]) -> NDArray[Any]:
        """Give predictions (n, ...), or raise if one of them is not finite."""
        found: NDArray[Any] = finite_predictions(predicted, type(self).__name__)
        return found

    def _check_options(self) -> None:
        """Raise if an option is not of the type that its field has; numbers are at least 0."""
        for field in fields(self):
            if field.name != "n_jobs":  # joblib counts negative ones from the number of cores
                check_option(field.name, getattr(self, field.name), field.type)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = self._multi_output
        return tags


def check_option(name: str, value: Any, kind: Any) -> None:
    """Raise unless an option is a number, or one of the words, that its type allows."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    words = [word for one in kinds if get_origin(one) is Literal for word in get_args(one)]
    if (value is None and type(None) in kinds) or (isinstance(value, str) and value in words):
        return
    if float in kinds:
        number(name, value)
    elif int in kinds:
        whole(name, value)
    elif words:
        one_of(name, value, words)


def need_target(groups: Groups) -> Groups:
    """Raise if there is no target."""
    if not groups.targets:
        raise DomainError(
            f"sample_domain: no target among {list(groups.sources)}; mark its rows by an integer "
            f"below 0, or pass target=... with names"
        )
    return groups


def read_responses(
    estimator: str, y: Any, groups: Groups, n: int, *, numeric: bool
) -> NDArray[Any]:
    """Responses of all n rows, those of targets replaced by a source's without being looked at.

    Numbers, (n,) or (n, m), or otherwise classes of any kind, (n,).
    """
    if y is None:
        raise ArgumentError(f"y: {estimator} requires y to be passed, but the target y is None")
    own = one_per_row(y, n)[groups.source_rows]
    if not numeric:
        own = column_or_1d(own, warn=True)
    else:
        _refuse_unknown(own, groups)
    kind: Any = np.float64 if numeric else None
    own = np.asarray(check_array(own, ensure_2d=False, dtype=kind, input_name="y"))
    labels = np.repeat(own[:1], n, axis=0)
    labels[groups.source_rows] = own
    return labels


def _refuse_unknown(own: NDArray[Any], groups: Groups) -> None:
    """Raise for responses of sources that are not known, infinite or huge, and say whose they are.

    What is no number at all is left to the conversion that follows.
    """
    try:
        values = np.asarray(own, dtype=np.float64)
    except (TypeError, ValueError):
        return

    def source(row: int) -> str:
        return next(f"source {name!r}" for name, rows in groups.sources.items() if row in rows)

    rows, bad = groups.source_rows, ~np.isfinite(values.reshape(len(values), -1)).all(1)
    if bad.any():
        first = rows[bad][:3].tolist()
        kind = "NaN" if np.isnan(values[bad][0]).any() else "infinity"
        shown = ", ".join(f"row {row} ({source(row)})" for row in first)
        advice = "remove them or fill them in"
        if not groups.targets:
            advice += (
                "; if they are rows of the unlabeled target, mark them with sample_domain (an "
                "integer below 0, or a name together with target=)"
            )
        raise DomainError(
            f"y: Input y contains {kind} in {int(bad.sum())} rows of sources, {shown}"
            f"{', ...' if bad.sum() > 3 else ''}; {advice}"
        )
    if at := first_huge(values):
        row = int(rows[at[0]])
        raise ArgumentError(f"y: row {row} ({source(row)}) is {values[at]:g}; {HUGE}")


def refuse_huge_inputs(X: Any, estimator: Any = None) -> None:
    """Raise if a value of a matrix is too large to compute with."""
    if at := first_huge(X):
        column = column_name(estimator, at[1])
        raise ArgumentError(f"X: row {at[0]}, column {column} is {X[at]:g}; {HUGE}")


def column_name(estimator: Any, column: int) -> str:
    """Name of a column in quotes, or its number if columns have no names."""
    names = getattr(estimator, "feature_names_in_", None)
    return str(column) if names is None else repr(str(names[column]))


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
