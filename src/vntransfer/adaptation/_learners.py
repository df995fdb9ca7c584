"""Any scikit-learn estimator as a learner on several sources."""

import inspect
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from vntransfer.adaptation.boosted_trees import BoostedTrees
from vntransfer.adaptation.linear_learners import LogisticLearner, MedianLearner, ScaledRidge
from vntransfer.checks import one_of
from vntransfer.errors import ArgumentError


class DenseScaler(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Standardize dense columns; sparse rows (counts, tf-idf) are in one unit and stay as they are.

    Scaling each word to the same variance would make the rare ones count as much as the others:
    ridge regression on amazon4 loses 13 % by it.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Measure dense columns."""
        self.scaler_ = None if scipy.sparse.issparse(X) else StandardScaler().fit(X)
        return self

    def transform(self, X: Any) -> Any:
        """Give scaled rows."""
        if self.scaler_ is None:
            return X
        return self.scaler_.transform(X.toarray() if scipy.sparse.issparse(X) else X)


LEARNERS: dict[str, Callable[[Any], Any]] = {
    "ridge": lambda seed: ScaledRidge(),
    "logistic": lambda seed: LogisticLearner(),
    "boosting": lambda seed: BoostedTrees(random_state=seed),
    "linear_trees": lambda seed: BoostedTrees(linear=True, random_state=seed),
    "constant": lambda seed: MedianLearner(),
}
"""Learners by name, made with a seed."""


def learner(estimator: Any, random_state: Any = None) -> Any:
    """Give a new, unfitted estimator from a name of `LEARNERS` or a copy of the one given."""
    if isinstance(estimator, str):
        return LEARNERS[one_of("estimator", estimator, LEARNERS)](random_state)
    if not hasattr(estimator, "fit") or inspect.isclass(estimator):
        raise ArgumentError(
            f"estimator: expected a scikit-learn estimator or one of {', '.join(LEARNERS)}, got "
            f"{estimator!r:.80}"
        )
    return clone(estimator)


def weight_key(estimator: Any) -> str | None:
    """Name the argument of ``fit`` that takes sample weights, such as "ridgecv__sample_weight"."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = weight_key(last)
        return inner and f"{name}__{inner}"
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    # a search or a transformed response hands what it does not know on to what it wraps
    wrapped = getattr(estimator, "estimator", getattr(estimator, "regressor", None))
    kinds = {p.kind for p in inspect.signature(estimator.fit).parameters.values()}
    if wrapped is not None and inspect.Parameter.VAR_KEYWORD in kinds:
        return weight_key(wrapped)
    return None


def fit_weighted(estimator: Any, X: Any, y: Any, weights: NDArray[np.float64] | None) -> Any:
    """Fit an estimator with sample weights."""
    if weights is None:
        return estimator.fit(X, y)
    if (key := weight_key(estimator)) is None:
        inner = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        raise ArgumentError(
            f"estimator: {type(inner).__name__} does not accept sample_weight, so its "
            f"sources cannot be weighted; use one that does (linear models, trees, forests, "
            f"boosting, kernel machines), or PooledRegressor, which needs no weights"
        )
    with config_context(enable_metadata_routing=False):  # the step that takes them is known
        return estimator.fit(X, y, **{key: weights})
