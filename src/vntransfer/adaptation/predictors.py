"""Fitted models that only predict, with numpy alone: what `vnt predict` makes of a folder.

Each is made from what the estimator of the same kind saves and is the same function, up to
rounding. scikit-learn is imported only for a user's own estimator, LightGBM for very many rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vntransfer.adaptation._records import COMMON, bounds_of, check_parts, checked_choice
from vntransfer.adaptation._scaler import dense
from vntransfer.adaptation.network_predictor import NetworkPredictor
from vntransfer.adaptation.tree_text import FILE, TREES_RECORD, read_trees
from vntransfer.checks import Floats, finite_predictions, is_sparse
from vntransfer.errors import DataError
from vntransfer.random_features import RandomFeatures
from vntransfer.storage.record import SavedModel, check_record

Parts = Mapping[str, Any]

MANY = 50_000
"""Rows from which on importing LightGBM takes less time than it saves."""


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """ŷ = c + ((x - center) / scale) B."""

    center: Floats  # (p,)
    scale: Floats  # (p,)
    coefficients: Floats  # B (p, m)
    intercept: Floats  # c (m,)
    one_column: bool

    ARRAYS: ClassVar[tuple[str, ...]] = ("center", "scale", "coefficients", "intercept")

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return len(self.center)

    @classmethod
    def _restored(cls, saved: SavedModel, parts: Parts, given: Parts) -> Self:
        check_record("record", saved.record, {"one_column": bool})
        if missing := [name for name in cls.ARRAYS if name not in saved.arrays]:
            raise DataError(f"arrays: {missing[0]} is missing")
        own = {name: np.asarray(saved.arrays[name], dtype=np.float64) for name in cls.ARRAYS}
        model = cls(**own, one_column=saved.record["one_column"])
        p, m = model.coefficients.shape
        shapes = [own[name].shape for name in LinearPredictor.ARRAYS]
        if shapes != [(p,), (p,), (p, m), (m,)] or (
            model.one_column and m != 1 and "values" not in own
        ):
            raise DataError(f"arrays: {', '.join(cls.ARRAYS)} do not fit together ({shapes})")
        if not all(np.isfinite(value).all() for value in own.values()) or not model.scale.all():
            raise DataError("arrays: numbers that are not finite, or scales of 0")
        return model

    def predict(self, X: Any) -> Floats:
        """Predict responses (n,) or (n, m) of rows (n, p), dense or sparse."""
        found = self.linear(X)
        return found[:, 0] if self.one_column else found

    def linear(self, X: Any) -> Floats:
        """Give c + ((x - center) / scale) B, (n, m)."""
        if is_sparse(X) and not self.center.any():
            scaled = X @ (self.coefficients / self.scale[:, None])
        else:
            scaled = ((dense(X) - self.center) / self.scale) @ self.coefficients
        return np.asarray(scaled + self.intercept)


@dataclass(frozen=True, eq=False)
class LogisticPredictor(LinearPredictor):
    """The median of y under P(y = v) ∝ exp(ŷ_v), ŷ_v a column of `LinearPredictor`."""

    values: Floats  # (m,), increasing

    ARRAYS: ClassVar[tuple[str, ...]] = (*LinearPredictor.ARRAYS, "values")

    def __post_init__(self) -> None:
        shape = self.values.shape
        if shape != self.intercept.shape or not (np.diff(self.values) > 0).all():
            n = len(self.intercept)
            raise DataError(f"arrays.values: expected {n} increasing numbers, got shape {shape}")

    def predict(self, X: Any) -> Floats:
        """Predict responses (n,) of rows (n, p), dense or sparse."""
        found = self.linear(X)
        p = np.exp(found - found.max(1, keepdims=True))
        below = np.cumsum(p, 1) / p.sum(1, keepdims=True)
        return np.asarray(self.values[(below >= 0.5).argmax(1)])


@dataclass(frozen=True, eq=False)
class Predictor:
    """A function from rows (n, p) to responses (n,) or (n, m)."""

    n_features_in_: int
    function: Callable[[Any], NDArray[Any]]

    @classmethod
    def _restored(cls, saved: SavedModel, parts: Parts, given: Parts) -> "Predictor":
        return READERS[saved.kind](saved, parts)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict responses of dense or sparse rows."""
        found: NDArray[Any] = finite_predictions(np.asarray(self.function(X)), "the model")
        return found


def closed_form(saved: SavedModel, parts: Parts) -> Predictor:
    """ŷ = c + z B with z the standardized columns and random features of `ClosedFormRegressor`."""
    record, arrays = saved.record, saved.arrays
    types = {"n_features": int, "count": int, "seed": int, "one_column": bool}
    check_record("record", record, {**COMMON, **types})
    names = ("center", "scale", "coefficients", "intercept")
    center, scale, B, c = (arrays[name] for name in names)
    p, q, m = record["n_features"], record["count"], len(c)
    shapes = [arrays[name].shape for name in names]
    if shapes != [(p,), (p,), (p + q, m), (m,)] or (record["one_column"] and m != 1):
        raise DataError(f"record.n_features, count: {p} and {q} do not fit the arrays ({shapes})")
    if record["seed"] < 0 or not all(np.isfinite(arrays[name]).all() for name in names):
        raise DataError("record.seed, arrays: numbers that are not finite, or below 0")
    features = RandomFeatures(center, scale, q, record["seed"])
    columns = 0 if record["one_column"] else slice(None)
    return Predictor(p, lambda X: (features(dense(X)) @ B + c)[:, columns])


def trees(saved: SavedModel, parts: Parts) -> Predictor:
    """Trees of LightGBM, walked with numpy; very many rows are left to LightGBM."""
    record = saved.record
    check_record("record", record, TREES_RECORD)
    text, n = saved.files[FILE].decode(), record["n_features"]
    forest = read_trees(text, n)

    def scaled(X: Any) -> NDArray[Any]:
        if X.shape[0] < MANY:
            return forest.predict(dense(X))
        from vntransfer.adaptation.boosted_trees import booster

        return np.asarray(booster(text).predict(X, num_threads=1))

    return Predictor(n, lambda X: scaled(X) * record["scale"] + record["center"])


def learner(saved: SavedModel, parts: Parts) -> Predictor:
    """Give the learner inside a `PooledRegressor` or `WeightedSourceRegressor`."""
    check_record("record", saved.record, COMMON)
    n, fitted = saved.record["n_features"], parts.get("estimator")
    if fitted is None:
        from vntransfer.storage.skops_files import read_skops

        fitted = read_skops(saved.files["estimator.skops"])
    if getattr(fitted, "n_features_in_", n) != n:
        raise DataError(f"record.n_features: {n} does not fit the estimator")
    return Predictor(n, fitted.predict)


def average(saved: SavedModel, parts: Parts) -> Predictor:
    """Give the weighted average of an `AutoTransferRegressor`."""
    record = saved.record
    check_record("record", record, COMMON)
    n, shares = record["n_features"], checked_choice(record["selection"])["shares"]
    check_parts(parts, n, shares)
    weights = np.array([shares[name] for name in parts])
    bounds = bounds_of(record)

    def blended(X: Any) -> NDArray[Any]:
        every = np.array([model.predict(X) for model in parts.values()])
        return bounds.average(every, weights)

    return Predictor(n, blended)


READERS: dict[str, Callable[[SavedModel, Parts], Predictor]] = {
    "AutoTransferRegressor": average,
    "BoostedTrees": trees,
    "ClosedFormRegressor": closed_form,
    "PooledRegressor": learner,
    "WeightedSourceRegressor": learner,
}
PREDICTORS: dict[str, Any] = {
    **dict.fromkeys(READERS, Predictor),
    "LogisticLearner": LogisticPredictor,
    "MedianLearner": LinearPredictor,
    "ScaledRidge": LinearPredictor,
}
"""Kind of an estimator -> what predicts in its place; those that are not here are networks."""


def predictor_kind(saved: SavedModel) -> Any:
    """Give what reads a predictor from what was saved; None if there is nothing."""
    network = "history" in saved.record and "offset" in saved.arrays
    return PREDICTORS.get(saved.kind, NetworkPredictor if network else None)
