"""Model selection without target labels: a splitter, and scorers on the sources."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import BaseCrossValidator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_array

from vntransfer.adaptation._estimator import need_target
from vntransfer.checks import number, one_of
from vntransfer.domains import Groups, Rows, Target, group
from vntransfer.errors import ArgumentError, DomainError, NumericalWarning

Loss = Callable[[NDArray[Any], NDArray[Any]], NDArray[np.float64]]
Kind = Literal["absolute", "zero_one"]


class LeaveOneSourceOut(BaseCrossValidator):  # type: ignore[misc]
    """A scikit-learn splitter that holds out one source after another.

    Splits are made from ``groups``, the ``sample_domain`` of the rows. With metadata routing it
    takes the metadata of that name, so that one argument serves estimator and splitter::

        model = WeightedSourceRegressor("ridge")
        cross_val_score(
            model, X, y, cv=LeaveOneSourceOut(keep_target=True), params={"sample_domain": domain}
        )

    scikit-learn passes training rows with their own names, so the held-out source cannot become the
    target: models that adapt see the true target (``keep_target``) or none. `AutoTransferRegressor`
    does adapt to each held-out source.

    Parameters
    ----------
    keep_target
        Whether the target's rows (unlabeled) are among the training rows of every split:
        estimators that adapt need them. They are never test rows.
    target
        With names: the target, or a list of them; "target" if not given.

    Examples
    --------
    >>> domain = ["a", "b", "b", "target"]
    >>> for train, test in LeaveOneSourceOut().split(np.zeros((4, 1)), groups=domain):
    ...     print(train, test)
    [1 2] [0]
    [0] [1 2]
    """

    __metadata_request__split: ClassVar[dict[str, str]] = {"groups": "sample_domain"}

    def __init__(self, keep_target: bool = False, target: Target = None) -> None:
        self.keep_target, self.target = keep_target, target

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Yield training and test rows, source after source in the order of their names."""
        found = self._sources(groups, X.shape[0] if hasattr(X, "shape") else len(X))
        kept = list(found.targets.values()) if self.keep_target else []
        for name, test in found.sources.items():
            others = [rows for other, rows in found.sources.items() if other != name]
            yield np.sort(np.concatenate(others + kept)), test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Count the sources."""
        return len(self._sources(groups, None if groups is None else len(groups)).sources)

    def _sources(self, groups: Any, n_rows: int | None) -> Groups:
        if groups is None or n_rows is None:
            raise DomainError(
                "groups: LeaveOneSourceOut needs the domain of every row; pass "
                "groups=sample_domain or, with metadata routing, params={'sample_domain': ...}"
            )
        found = group(groups, n_rows, target=self.target, several=True)
        if len(found.sources) < 2:
            raise DomainError(f"groups: only one source {list(found.sources)}; give at least two")
        return found


def absolute_error(truth: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.float64]:
    """Absolute error of each row, averaged over response columns."""
    gaps = np.abs(np.asarray(predicted, dtype=np.float64).reshape(truth.shape) - truth)
    return np.asarray(gaps.reshape(len(truth), -1).mean(1))


def zero_one_error(truth: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.float64]:
    """1 for each row of a wrong class, else 0."""
    return np.asarray(truth != predicted, dtype=np.float64)


LOSSES: dict[str, Loss] = {"absolute": absolute_error, "zero_one": zero_one_error}


class _DomainScorer:
    """A scorer that asks scikit-learn for ``sample_domain``."""

    def get_metadata_routing(self) -> MetadataRequest:
        """Name the metadata that the score needs."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_domain", alias=True)
        return request


@dataclass(frozen=True)
class SourceScorer(_DomainScorer):
    """Minus the mean error on the sources' rows, each source counting the same.

    A scikit-learn scorer for rows that the model was not fitted to. It ignores the target, so it
    measures how good a model is where the sources are.

    Parameters
    ----------
    loss
        "absolute" error, "zero_one" (classes), or a function (truth, predicted) -> error of each
        row.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> X, y = np.zeros((4, 1)), np.array([0.0, 0.0, 1.0, np.nan])
    >>> model = DummyRegressor(strategy="constant", constant=0.0).fit(X[:3], y[:3])
    >>> SourceScorer()(model, X, y, sample_domain=[0, 0, 1, -1])
    -0.5
    """

    loss: Loss | Kind = "absolute"

    def __call__(
        self, estimator: Any, X: Any, y: Any, sample_domain: Any = None, target: Target = None
    ) -> float:
        """Score a fitted estimator."""
        found = group(sample_domain, np.shape(X)[0], target=target, several=True)
        own = [_errors(self.loss, estimator, X, y, rows) for rows in found.sources.values()]
        return -float(np.mean([errors.mean() for errors in own]))


@dataclass(frozen=True)
class ImportanceWeightedScorer(_DomainScorer):
    """Minus the error on the sources' rows, weighted to look like the target's.

    A logistic classifier distinguishes target rows from source rows. Its odds, times the ratio of
    their numbers, estimate the density ratio p_target/p_source, by which errors on source rows are
    weighted (self-normalized; Sugiyama, Krauledat and Müller 2007). This is correct for pure
    covariate shift if the sources cover the target. Where they do not, a few rows carry all the
    weight. Ratios are therefore clipped, and a small effective number of rows (Σw)²/Σw² causes a
    warning that the score is uncertain.

    Parameters
    ----------
    loss
        See `SourceScorer`.
    clip
        Largest ratio.
    least
        Smallest effective share of rows without a warning.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate((rng.normal(0, 1, 500), rng.normal(1, 1, 500)))[:, None]
    >>> model = DummyRegressor(strategy="constant", constant=1.0).fit(X, X[:, 0])
    >>> domain = np.repeat([0, -1], 500)
    >>> source = SourceScorer()(model, X, X[:, 0], domain)
    >>> weighted = ImportanceWeightedScorer()(model, X, X[:, 0], domain)
    >>> truth = -abs(X[500:, 0] - 1.0).mean()
    >>> bool(abs(weighted - truth) < 0.1 < abs(source - truth))
    True
    """

    loss: Loss | Kind = "absolute"
    clip: float = 20.0
    least: float = 0.05

    def __call__(
        self, estimator: Any, X: Any, y: Any, sample_domain: Any = None, target: Target = None
    ) -> float:
        """Score a fitted estimator; the rows must hold some of the target."""
        found = need_target(group(sample_domain, np.shape(X)[0], target=target))
        w = self.ratios(X, found)
        share = float(w.sum() ** 2 / (w**2).sum() / len(w))
        if share < number("least", self.least):
            warnings.warn(
                f"sample_domain: {share:.1%} of the sources' rows carry the weight; the sources "
                f"hardly cover the target, and the score is uncertain",
                NumericalWarning,
                stacklevel=2,
            )
        return -float(w @ _errors(self.loss, estimator, X, y, found.source_rows) / w.sum())

    def ratios(self, X: Any, groups: Groups) -> NDArray[np.float64]:
        """Clipped density ratios of the sources' rows, in the order of the table."""
        clip = number("clip", self.clip, exclusive=True)
        rows, (target, *_) = groups.source_rows, need_target(groups).targets.values()
        both = np.concatenate((rows, target))
        Z = check_array(X, accept_sparse="csr", dtype=np.float64)[both]
        which = np.arange(len(both)) >= len(rows)
        model = make_pipeline(StandardScaler(with_mean=False), LogisticRegression(max_iter=1000))
        odds = np.exp(model.fit(Z, which).decision_function(Z[: len(rows)]).clip(-50, 50))
        return np.asarray(np.minimum(odds * len(rows) / len(target), clip))


def _errors(loss: Loss | Kind, estimator: Any, X: Any, y: Any, rows: Rows) -> NDArray[np.float64]:
    function = LOSSES[one_of("loss", loss, LOSSES)] if isinstance(loss, str) else loss
    whole = scipy.sparse.issparse(X) or hasattr(X, "columns")  # names of columns are kept
    own = _safe_indexing(X if whole else np.asarray(X), rows)
    errors = np.asarray(function(np.asarray(y)[rows], estimator.predict(own)), dtype=np.float64)
    if errors.shape != (len(rows),):
        raise ArgumentError(
            f"loss: expected one error per row, {(len(rows),)}, got shape {errors.shape}"
        )
    return errors
