"""Any scikit-learn estimator as a learner on several sources."""

import inspect
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import TruncatedSVD
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from vntransfer.checks import one_of
from vntransfer.errors import ArgumentError

REDUCED = 100
"""Components to which sparse rows are reduced for learners that need dense ones."""


class SparseReducer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Reduce sparse rows to dense components (truncated SVD); dense rows pass unchanged.

    Boosting needs dense columns and looks at each of them at every split: a thousand columns of
    counts cost a lot and say little one by one.
    """

    def __init__(self, n_components: int = REDUCED, random_state: Any = None) -> None:
        self.n_components, self.random_state = n_components, random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of sparse rows."""
        self.svd_ = None
        if scipy.sparse.issparse(X) and X.shape[1] > self.n_components:
            self.svd_ = TruncatedSVD(self.n_components, random_state=self.random_state).fit(X)
        return self

    def transform(self, X: Any) -> Any:
        """Give dense rows."""
        if self.svd_ is not None:
            return self.svd_.transform(X)
        return X.toarray() if scipy.sparse.issparse(X) else X


class ColumnBins(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replace the values of a column by the number of their bin, where there are more than bins.

    Histogram boosting does so by itself, and comes to the same trees. But with weights of rows it
    takes one weighted quantile after the other, in Python: it has nothing left to do here, and the
    bins do not depend on weights. Missing values stay.
    """

    def __init__(self, n_bins: int = 255) -> None:
        self.n_bins = n_bins

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the thresholds of the columns."""
        at = np.linspace(0, 100, self.n_bins + 1)[1:-1]
        self.thresholds_: list[NDArray[np.float64] | None] = []
        for column in np.asarray(X, dtype=np.float64).T:
            known = np.sort(column[~np.isnan(column)])
            few = len(np.unique(known)) <= self.n_bins
            cuts = None if few else np.percentile(known, at, method="averaged_inverted_cdf")
            self.thresholds_.append(None if cuts is None else np.unique(cuts))
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Give numbers of bins."""
        out = np.array(X, dtype=np.float64)
        for j, cuts in enumerate(self.thresholds_):
            if cuts is not None:
                known = ~np.isnan(out[:, j])
                out[known, j] = np.searchsorted(cuts, out[known, j])
        return out


class TiedBoosting(HistGradientBoostingRegressor):  # type: ignore[misc]
    """Histogram boosting with absolute error, for responses of which half or more are one value.

    The gradient of |y - f| counts rows with f = y as rows above. Where the median is also the
    minimum (amounts that are mostly zero, counts, classes 0 and 1) all gradients are equal at the
    start and no tree would ever grow. Rows of that value are moved up or down by next to nothing,
    so that they pull neither way. Other responses are left exactly as they are.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit trees, to responses without too many ties.

        With one thread: the trees are small, and threads that wait for a busy core take minutes.
        """
        with threadpool_limits(limits=1, user_api="openmp"):
            return super().fit(X, self._untied(y, sample_weight), sample_weight)

    def _untied(self, y: Any, sample_weight: Any) -> Any:
        flat = np.ravel(y).astype(np.float64)
        values, place = np.unique(flat, return_inverse=True)
        mass = np.bincount(place, sample_weight)
        most = int(mass.argmax())
        if len(values) < 2 or mass[most] < 0.5 * mass.sum():
            return y
        tied = place == most
        gap = np.diff(values)[max(most - 1, 0) : most + 1].min()
        step = max(1e-9 * gap, 8 * np.spacing(abs(values[most])))
        flat[tied] += step * check_random_state(self.random_state).uniform(-1, 1, tied.sum())
        return flat


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


def ridge(random_state: Any = None) -> Pipeline:
    """Ridge regression on scaled columns, its strength by leave-one-out in closed form."""
    return make_pipeline(DenseScaler(), RidgeCV(np.logspace(-2, 5, 15)))


def boosting(random_state: Any = None) -> Pipeline:
    """Histogram gradient boosting with absolute error, 100 trees.

    No early stopping: held-out rows of the sources say little about another domain.
    """
    return make_pipeline(
        SparseReducer(random_state=random_state),
        ColumnBins(),
        TiedBoosting(loss="absolute_error", early_stopping=False, random_state=random_state),
    )


def constant(random_state: Any = None) -> DummyRegressor:
    """Predict the median of the responses: what every other learner has to beat."""
    return DummyRegressor(strategy="median")


LEARNERS = {"ridge": ridge, "boosting": boosting, "constant": constant}


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
            f"estimator: {type(inner).__name__} takes no sample_weight, so that its sources "
            f"cannot be weighted; use one that does (linear models, trees, forests, boosting, "
            f"kernel machines), or PooledRegressor, which needs no weights"
        )
    with config_context(enable_metadata_routing=False):  # the step that takes them is known
        return estimator.fit(X, y, **{key: weights})
