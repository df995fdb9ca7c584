"""What all estimators share: the arguments of ``fit``, and checks of options and rows."""

from dataclasses import fields
from types import UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from vntransfer.adaptation._fit_rows import FitRows, read_responses, read_weights
from vntransfer.checks import number, one_of, whole
from vntransfer.domains import Groups, Target, group, target_names
from vntransfer.errors import DomainError
from vntransfer.progress import Progress

MATRIX: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}


class TransferEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that learns from labeled sources for an unlabeled target.

    Subclasses are dataclasses, whose fields are the options, and say how to fit in ``_fit_rows``.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}

    _needs_target: ClassVar[bool] = False
    _several: ClassVar[bool] = False  # targets
    _numeric: ClassVar[bool] = True  # responses

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
            parameters. An empty list: train on the sources alone and `adapt` later.
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
        later = self._several and target_names(target) == []
        if self._needs_target and sample_domain is not None and not later:
            need_target(groups)
        labels = read_responses(type(self).__name__, y, groups, n, numeric=self._numeric)
        rows = FitRows(X, labels, groups, read_weights(sample_weight, groups, n))
        return self._fit_rows(rows, progress)

    def _fit_rows(self, rows: FitRows, progress: Progress | None) -> Self:
        raise NotImplementedError

    def _new_rows(self, X: Any) -> Any:
        """Check rows that a fitted estimator is given."""
        check_is_fitted(self)
        return validate_data(self, X, **MATRIX, reset=False)

    def _check_options(self) -> None:
        """Raise if an option is not of the type that its field has; numbers are at least 0."""
        for field in fields(self):
            if field.name != "n_jobs":  # joblib counts negative ones from the number of cores
                check_option(field.name, getattr(self, field.name), field.type)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def check_option(name: str, value: Any, kind: Any) -> None:
    """Raise unless an option is a number, or one of the words, that its type allows.

    Examples
    --------
    >>> check_option("trade_off", "auto", float | Literal["auto"])
    >>> check_option("schedule", "cosin", Literal["cosine", "constant"])
    Traceback (most recent call last):
    vntransfer.errors.ArgumentError: schedule: expected one of cosine, constant, got 'cosin'; did you mean 'cosine'?
    """  # noqa: E501
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
            f"below 0, or say target=... with names (of networks target=[] to adapt later)"
        )
    return groups
