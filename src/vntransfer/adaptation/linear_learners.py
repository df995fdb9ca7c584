"""Linear functions of the columns: ridge regression, a constant, probabilities of responses."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from vntransfer.adaptation.predictors import LinearPredictor, LogisticPredictor
from vntransfer.checks import Floats, is_sparse
from vntransfer.errors import DataError
from vntransfer.storage.folder import Savable
from vntransfer.storage.record import SavedModel

RIDGES = np.logspace(-2, 5, 15)
MOST_VALUES = 20
"""Different responses of `LogisticLearner` at most: of more, most are too rare to learn."""


class LinearLearner(Savable, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """ŷ = c + ((x - center) / scale) B; subclasses say how B and c are found."""

    _function: ClassVar[type[LinearPredictor]] = LinearPredictor

    def predict(self, X: Any) -> Floats:
        """Predict responses (n,) or (n, m)."""
        check_is_fitted(self)
        return self.function_.predict(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    def _saved(self) -> SavedModel:
        own: LinearPredictor = self.function_
        arrays = {name: getattr(own, name) for name in own.ARRAYS}
        return SavedModel(type(self).__name__, {"one_column": own.one_column}, arrays)

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        model = cls()
        model.function_ = cls._function._restored(saved, parts, given)
        model.n_features_in_ = model.function_.n_features_in_
        return model


class ScaledRidge(LinearLearner):
    """Ridge regression on scaled columns, its strength by leave-one-out in closed form.

    Equivalent to scikit-learn's `StandardScaler` and `RidgeCV` with 15 strengths from 0.01 to
    100,000. Sparse rows (counts, tf-idf) are in one unit and stay as they are: scaling each word to
    the same variance would give rare words as much influence as others, which raises the error of
    ridge regression on amazon4 by 13 %.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(50, 2))
    >>> bool(np.abs(ScaledRidge().fit(x, x[:, 0]).predict(x) - x[:, 0]).max() < 0.01)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit rows, dense or sparse."""
        X, center, scale = _scaled(X)
        fitted = RidgeCV(RIDGES).fit(X, y, sample_weight)
        p = X.shape[1]
        self.n_features_in_, self.alpha_ = p, fitted.alpha_
        self.function_ = LinearPredictor(
            center,
            scale,
            np.asarray(fitted.coef_, dtype=np.float64).reshape(-1, p).T.copy(),
            np.atleast_1d(np.asarray(fitted.intercept_, dtype=np.float64)),
            np.ndim(y) == 1,
        )
        return self


class MedianLearner(LinearLearner):
    """Predict the median of the responses, a baseline for every other learner."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the median."""
        p = X.shape[1]
        fitted = DummyRegressor(strategy="median").fit(X, y, sample_weight)
        middle = np.asarray(fitted.constant_, dtype=np.float64).ravel()
        self.n_features_in_ = p
        self.function_ = LinearPredictor(
            np.zeros(p), np.ones(p), np.zeros((p, len(middle))), middle, np.ndim(y) == 1
        )
        return self


class LogisticLearner(LinearLearner):
    """The median of y under P(y = v | x) ∝ exp(c_v + x B_v), v the different responses.

    The median minimizes the absolute error. Responses with few values, such as star ratings, often
    lie at the ends of their scale, which a regression seldom predicts. Equivalent to scikit-learn's
    `LogisticRegression` with C = 2 and the responses as classes, on standardized columns or, of
    sparse rows, on rows divided by the root mean square of their length. Prefer this to ridge
    regression for text with ratings.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> stars = np.where(x[:, 0] > 0, 5.0, 1.0)
    >>> LogisticLearner().fit(x, stars).predict(np.array([[2.0, 0.0], [-2.0, 0.0]]))
    array([5., 1.])
    """

    _function: ClassVar[type[LinearPredictor]] = LogisticPredictor

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit rows, dense or sparse, with at most twenty different responses."""
        values, codes = np.unique(np.asarray(y, dtype=np.float64), return_inverse=True)
        if np.ndim(y) != 1 or len(values) > MOST_VALUES:
            raise DataError(
                f"y: expected one response per row with at most {MOST_VALUES} different values "
                f"(got {len(values)} in shape {np.shape(y)}). Use ridge regression or boosting."
            )
        X, center, scale = _scaled(X, of_rows=True)
        coefficients, intercept = np.zeros((X.shape[1], len(values))), np.zeros(len(values))
        if len(values) > 1:
            fitted = LogisticRegression(C=2.0, max_iter=500).fit(X, codes, sample_weight)
            own = len(fitted.coef_)  # of two classes scikit-learn has the second alone
            coefficients[:, -own:], intercept[-own:] = fitted.coef_.T, fitted.intercept_
        self.n_features_in_ = X.shape[1]
        self.function_ = LogisticPredictor(center, scale, coefficients, intercept, True, values)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


def _scaled(X: Any, *, of_rows: bool = False) -> tuple[Any, Floats, Floats]:
    """Standardize dense columns; divide sparse rows by their typical length, or leave them."""
    p = X.shape[1]
    if not is_sparse(X):
        scaler = StandardScaler().fit(X)
        return scaler.transform(X), scaler.mean_, scaler.scale_
    length = float(np.sqrt(X.multiply(X).sum() / X.shape[0])) if of_rows else 1.0
    scale = np.full(p, length or 1.0)
    return (X / scale[0] if of_rows else X), np.zeros(p), scale
