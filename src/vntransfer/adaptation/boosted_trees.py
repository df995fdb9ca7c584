"""Gradient boosting by LightGBM, as an estimator that is saved as LightGBM's own text."""

from collections.abc import Mapping
from typing import Any, Self

import lightgbm
import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from vntransfer.adaptation.tree_text import END, FILE, TREES_RECORD, read_trees
from vntransfer.checks import Floats
from vntransfer.errors import DataError
from vntransfer.storage.folder import Savable
from vntransfer.storage.record import SavedModel, check_record

TREES = 100


class BoostedTrees(Savable, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gradient boosting with LightGBM: 100 trees with constant or linear leaves.

    Equivalent to LightGBM's defaults with the objective "huber" on standardized responses. Trees
    with linear leaves (ridge regression on the columns that lead to a leaf, ``linear_lambda=1``)
    have 15 leaves, 63 bins and squared error. No early stopping: held-out rows of the sources say
    little about another domain. One thread, so that the same seed gives the same trees.

    Parameters
    ----------
    linear
        Whether leaves are linear.
    random_state
        Seed; it matters where LightGBM draws rows for its bins, above 200,000.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.where(x[:, 0] > 0, 3.0, 1.0)
    >>> bool(np.abs(BoostedTrees().fit(x, y).predict(x) - y).mean() < 0.1)
    True
    """

    def __init__(self, linear: bool = False, random_state: Any = None) -> None:
        self.linear, self.random_state = linear, random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit trees to rows, dense or sparse; rows of weight 0 are ignored."""
        X, y = validate_data(self, X, y, accept_sparse="csr", y_numeric=True)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weights is not None:
            used = weights > 0
            X, y, weights = X[used], y[used], weights[used] / weights[used].mean()
        self.center_, self.scale_ = float(np.median(y)), float(np.std(y)) or 1.0
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        options: dict[str, Any] = {
            "objective": "l2" if self.linear else "huber",
            "seed": seed,
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }
        if self.linear:
            options |= {"linear_tree": True, "linear_lambda": 1.0, "num_leaves": 15, "max_bin": 63}
        scaled = (y - self.center_) / self.scale_
        rows = lightgbm.Dataset(_plain(X), scaled, weight=weights, params=options)
        self.trees_ = lightgbm.train(options, rows, TREES)
        return self

    def predict(self, X: Any) -> Floats:
        """Predict responses (n,)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        found = self.trees_.predict(_plain(X), num_threads=1)
        return np.asarray(found, dtype=np.float64) * self.scale_ + self.center_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _saved(self) -> SavedModel:
        seed = self.random_state if isinstance(self.random_state, int) else None
        record = {
            "linear": self.linear,
            "random_state": seed,
            "n_features": self.n_features_in_,
            "center": self.center_,
            "scale": self.scale_,
        }
        text, end, _ = self.trees_.model_to_string().partition(END)  # what follows is for people
        return SavedModel(type(self).__name__, record, files={FILE: (text + end).encode()})

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        record = saved.record
        check_record("record", record, TREES_RECORD)
        model = cls(record["linear"], record["random_state"])
        model.n_features_in_ = record["n_features"]
        model.center_, model.scale_ = record["center"], record["scale"]
        text = saved.files[FILE].decode()
        read_trees(text, model.n_features_in_)
        model.trees_ = booster(text)
        return model


def booster(text: str) -> lightgbm.Booster:
    """Make LightGBM's model of text that was checked."""
    try:
        return lightgbm.Booster(model_str=text)
    except lightgbm.basic.LightGBMError as error:
        raise DataError(f"{FILE}: LightGBM cannot read it ({error!s:.100})") from error


def _plain(X: Any) -> Any:
    """Rows as LightGBM takes them: sparse ones as a matrix, not an array."""
    return scipy.sparse.csr_matrix(X) if scipy.sparse.issparse(X) else X
