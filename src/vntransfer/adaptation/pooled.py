"""What one would use without thinking of domains: a scikit-learn regressor on all sources."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from vntransfer.adaptation._learners import fit_weighted, learner, read
from vntransfer.adaptation._saving import SavableWrapper
from vntransfer.domains import Target


@dataclass(eq=False, repr=False)
class PooledRegressor(SavableWrapper, RegressorMixin, BaseEstimator):  # type: ignore[misc]
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

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}

    def fit(
        self,
        X: Any,
        y: Any,
        sample_domain: Any = None,
        target: Target = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit the estimator to the rows of the sources.

        Parameters
        ----------
        X
            Rows of all domains (n, p), dense or sparse; see `stack`.
        y
            Responses (n,) or (n, m); those of the target are never read and can be NaN.
        sample_domain
            Domain of each row: integers (0 and above are sources, below 0 targets) or names. None:
            all rows are one source.
        target
            With names: the target, or a list of them; "target" if not given.
        sample_weight
            Weights (n,) of the rows, for estimators that take them.
        """
        X, y, groups, weights = read(
            self, X, y, sample_domain, target, sample_weight, numeric=True, several=True
        )
        rows = groups.source_rows
        self.estimator_ = fit_weighted(
            learner(self.estimator, self.random_state),
            X[rows],
            y[rows],
            None if weights is None else weights[rows],
        )
        mass = np.ones(len(y)) if weights is None else weights
        total = mass[rows].sum()
        self.source_weights_ = {
            name: float(mass[own].sum() / total) for name, own in groups.sources.items()
        }
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict responses (n,) or (n, m)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        return np.asarray(self.estimator_.predict(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(learner(self.estimator))
        named = isinstance(self.estimator, str)
        tags.input_tags.sparse = named or inner.input_tags.sparse
        tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags
