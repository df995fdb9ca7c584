"""Pooled training: a scikit-learn regressor on the rows of all sources."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.utils import get_tags

from vntransfer.adaptation._estimator import FitRows, TransferEstimator
from vntransfer.adaptation._learners import fit_weighted, learner
from vntransfer.adaptation._records import COMMON
from vntransfer.adaptation._saving import bad_options, common_record, restored_common
from vntransfer.errors import DataError
from vntransfer.progress import Progress
from vntransfer.storage.folder import Savable
from vntransfer.storage.record import SavedModel, check_record
from vntransfer.storage.skops_files import read_skops, write_skops

MOST = 10**8
"""Columns that are believed when a model is read."""


@dataclass(eq=False, repr=False)
class SourceLearner(Savable, TransferEstimator):
    """A scikit-learn estimator, fitted to rows of the sources as ``estimator_``.

    Saved are a learner of ours, as such, or what skops can write.
    """

    estimator: Any = None

    def _learner(self) -> Any:
        """Give a new learner."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict responses (n,) or (n, m)."""
        rows = self._new_rows(X)
        return self._finite(np.asarray(self.estimator_.predict(rows)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._learner())
        named = self.estimator is None or isinstance(self.estimator, str)
        tags.input_tags.sparse = named or inner.input_tags.sparse
        tags.target_tags.multi_output = inner.target_tags.multi_output
        if inner.classifier_tags is not None and tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags

    def fitted_record(self) -> dict[str, Any]:
        """Give the plain values of the fitted model, apart from the estimator inside it."""
        own = not isinstance(self.estimator, str | None)
        named = {"estimator": None if own else self.estimator, "own_estimator": own}
        return {**common_record(self, ("estimator",)), **named}

    def _saved(self) -> SavedModel:
        kind, record = type(self).__name__, self.fitted_record()
        if isinstance(self.estimator_, Savable):
            return SavedModel(kind, record, parts={"estimator": self.estimator_._saved()})
        return SavedModel(
            kind, record, files={"estimator.skops": write_skops(self.estimator_, kind)}
        )

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        record = saved.record
        check_record("record", record, {**COMMON, "estimator": str | None, "own_estimator": bool})
        fitted = parts.get("estimator")
        if fitted is None:
            fitted = read_skops(saved.files["estimator.skops"])
        asked = clone(fitted) if record["own_estimator"] else record["estimator"]
        model: Any = restored_common(cls, record, {}, estimator=asked)
        with bad_options({}):
            model._learner()
        model.estimator_ = fitted
        n = model.n_features_in_
        fine = n <= MOST and getattr(fitted, "n_features_in_", n) == n
        if fine and not record["own_estimator"]:  # those of others may refuse zeros
            try:
                fitted.predict(np.zeros((1, n)))
            except ValueError:
                fine = False
        if not fine:
            raise DataError(f"record.n_features: {n} does not fit the estimator")
        return model


@dataclass(eq=False, repr=False)
class PooledRegressor(RegressorMixin, SourceLearner):  # type: ignore[misc]
    """Any scikit-learn regressor on the pooled rows of all sources; the target's rows are ignored.

    Use it as a baseline: an adaptation method with a higher error than boosting on all labeled rows
    is not worth using.

    Parameters
    ----------
    estimator
        "ridge": dense columns scaled, `RidgeCV` with its leave-one-out in closed form. "boosting":
        LightGBM, Huber loss, 100 trees, no early stopping (held-out rows of the sources say little
        about another domain). "linear_trees": the same with linear leaves. "constant": the median
        of the responses. "logistic": the median under logistic regression, for responses with at
        most twenty values. Or any regressor.
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

    _several = True

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
