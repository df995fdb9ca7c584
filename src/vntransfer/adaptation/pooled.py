"""What one would use without thinking of domains: a scikit-learn regressor on all sources."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import get_tags

from vntransfer.adaptation._estimator import TransferEstimator
from vntransfer.adaptation._fit_rows import FitRows
from vntransfer.adaptation._learners import fit_weighted, learner
from vntransfer.adaptation._saving import SavableWrapper
from vntransfer.progress import Progress


@dataclass(eq=False, repr=False)
class SourceLearner(SavableWrapper, TransferEstimator):
    """A scikit-learn estimator, fitted to rows of the sources as ``estimator_``."""

    estimator: Any = None

    def _learner(self) -> Any:
        """Give a new learner."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict responses (n,) or (n, m)."""
        rows = self._new_rows(X)
        return np.asarray(self.estimator_.predict(rows))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._learner())
        named = self.estimator is None or isinstance(self.estimator, str)
        tags.input_tags.sparse = named or inner.input_tags.sparse
        tags.target_tags.multi_output = inner.target_tags.multi_output
        if inner.classifier_tags is not None and tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags


@dataclass(eq=False, repr=False)
class PooledRegressor(RegressorMixin, SourceLearner):  # type: ignore[misc]
    """Any scikit-learn regressor on the pooled rows of all sources; the target is passed over.

    A method that adapts and loses to this helps nobody: with a table, boosting on all that is
    labeled is what one would use instead.

    Parameters
    ----------
    estimator
        "ridge": dense columns scaled, `RidgeCV` with its leave-one-out in closed form. "boosting":
        `HistGradientBoostingRegressor`, absolute error, 100 trees, no early stopping (held-out rows
        of the sources say little about another domain); sparse rows are first reduced to 100
        components by a truncated SVD. "constant": the median of the responses. Or any regressor.
    random_state
        Seed of the named ones.

    Attributes
    ----------
    estimator_ : estimator
        The fitted regressor.
    source_weights_ : dict
        Share of each source in the (weighted) rows.

    Examples
    --------
    >>> from vntransfer import stack
    >>> rng = np.random.default_rng(0)
    >>> a, b, new = (rng.normal(m, 1, size=(50, 2)) for m in (0, 1, 2))
    >>> X, y, domain = stack({"a": (a, a[:, 0]), "b": (b, b[:, 0])}, target=new)
    >>> model = PooledRegressor("ridge").fit(X, y, domain)
    >>> bool(abs(model.predict(new) - new[:, 0]).max() < 0.1), model.source_weights_
    (True, {'a': 0.5, 'b': 0.5})
    """

    estimator: Any = "boosting"
    random_state: Any = None

    _several: ClassVar[bool] = True

    def _learner(self) -> Any:
        return learner(self.estimator, self.random_state)

    def _fit_rows(self, rows: FitRows, progress: Progress | None) -> Self:
        own, weights = rows.groups.source_rows, rows.weights
        given = None if weights is None else weights[own]
        self.estimator_ = fit_weighted(self._learner(), rows.x[own], rows.y[own], given)
        mass = np.ones(len(rows.y)) if weights is None else weights
        total = mass[own].sum()
        self.source_weights_ = {
            name: float(mass[places].sum() / total) for name, places in rows.groups.sources.items()
        }
        return self
