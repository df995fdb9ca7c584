"""Models as files: the same predictions back, nothing unknown written or read."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from torch import nn

from helpers.saved import contents
from helpers.worlds import easy
from vntransfer import (
    ArgumentError,
    DataError,
    PooledRegressor,
    SourceOnlyRegressor,
    WeightedSourceClassifier,
    WeightedSourceRegressor,
    load,
)
from vntransfer.storage.skops_files import SCHEMA, read_skops, unzipped, write_skops, zipped

MODELS = [
    PooledRegressor("ridge"),
    PooledRegressor("boosting", random_state=0),
    PooledRegressor(RandomForestRegressor(3, max_leaf_nodes=9, random_state=0)),
    PooledRegressor(GradientBoostingRegressor(n_estimators=3, random_state=0)),
    WeightedSourceRegressor("ridge"),
    WeightedSourceClassifier(),
    WeightedSourceClassifier(RandomForestClassifier(3, random_state=0), sharpness=1.0),
]


def given_to(model: Any) -> tuple[Any, Any, Any]:
    X, y, domain = easy()
    X[:, 0] = X[:, 0].round().clip(0, 5)
    return X, y > 0 if isinstance(model, WeightedSourceClassifier) else y, domain


def fitted(model: Any) -> Any:
    X, y, domain = given_to(model)
    return model.fit(X, y, domain), X


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_same_model_comes_back(model: Any, tmp_path: Path) -> None:
    model, X = fitted(model)
    model.save(tmp_path / "new")
    same = load(tmp_path / "new")
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.source_weights_ == model.source_weights_
    if hasattr(model, "selection_"):
        np.testing.assert_equal(asdict(same.selection_), asdict(model.selection_))
        assert same.divergences_ == model.divergences_
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(same.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(same.classes_, model.classes_)
    assert repr(same.get_params()) == repr(model.get_params())
    for again in (model, clone(model).fit(*given_to(model))):
        again.save(tmp_path / "again")
        assert contents(tmp_path / "again") == contents(tmp_path / "new")


class Own(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    def fit(self, X: Any, y: Any) -> "Own":
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean_)


CATEGORIES = HistGradientBoostingRegressor(max_iter=3, categorical_features=[0])


SHORT: dict[str, Any] = {"epochs": 2, "steps": 4, "hidden": (8,), "random_state": 0}
PIPED = make_pipeline(SourceOnlyRegressor(**SHORT))


@pytest.mark.parametrize("inner", [Own(), PIPED, CATEGORIES])
def test_what_cannot_be_saved_is_named(inner: Any, tmp_path: Path) -> None:
    model, _ = fitted(PooledRegressor(inner))
    with pytest.raises(
        ArgumentError, match=r"PooledRegressor holds .*(Own|torch|Pipeline|functools)"
    ):
        model.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_default_network_comes_back(tmp_path: Path) -> None:
    model, X = fitted(WeightedSourceRegressor(sharpness=1.0, random_state=0))
    model.save(tmp_path)
    same = load(tmp_path)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.source_weights_ == model.source_weights_
    assert same.get_params() == model.get_params()
    assert load(tmp_path, device="cpu").estimator_.device == "cpu"


def test_a_given_network_comes_back_with_its_options(tmp_path: Path) -> None:
    model, X = fitted(PooledRegressor(SourceOnlyRegressor(**SHORT)))
    model.save(tmp_path)
    same = load(tmp_path)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.estimator.get_params() == model.estimator.get_params()


def test_an_own_module_inside_a_model_is_given_again(tmp_path: Path) -> None:
    own = nn.Linear(4, 3)
    model, X = fitted(PooledRegressor(SourceOnlyRegressor(**SHORT, extractor=own)))
    model.save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path, extractor=own).predict(X), model.predict(X))
    with pytest.raises(ArgumentError, match="your own modules"):
        load(tmp_path)


def test_a_model_takes_the_place_of_one_of_another_kind(tmp_path: Path) -> None:
    for model in (PooledRegressor(SourceOnlyRegressor(**SHORT)), PooledRegressor("ridge")):
        fitted(model)[0].save(tmp_path / "m")
    assert load(tmp_path / "m").estimator == "ridge"
    fitted(PooledRegressor("ridge"))[0].save(tmp_path / "new")
    assert contents(tmp_path / "m") == contents(tmp_path / "new")


def test_a_save_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    model, X = fitted(SourceOnlyRegressor(**SHORT))
    model.save(tmp_path)
    with pytest.raises(ArgumentError, match="cannot be saved safely"):
        fitted(PooledRegressor(Own()))[0].save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path).predict(X), model.predict(X))


def test_unknown_types_are_refused_unread() -> None:
    parts = unzipped(write_skops(LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0]), "Line"))
    text = parts[SCHEMA].replace(b'"LinearRegression"', b'"Evil"')
    parts[SCHEMA] = text.replace(b'"sklearn.linear_model._base"', b'"evil"')
    with pytest.raises(DataError, match=r"names evil\.Evil"):
        read_skops(zipped(parts))


def test_damaged_archives_are_refused() -> None:
    with pytest.raises(DataError, match="damaged"):
        read_skops(b"PK nothing")


@pytest.mark.parametrize("change", ["loop", "column"])
@pytest.mark.parametrize("kind", ["boosting", "forest"])
def test_forged_trees_are_refused(kind: str, change: str, tmp_path: Path) -> None:
    inner: Any = (
        RandomForestRegressor(2, random_state=0)
        if kind == "forest"
        else HistGradientBoostingRegressor(max_iter=2)
    )
    model, _ = fitted(PooledRegressor(inner))
    if kind == "boosting":
        nodes = model.estimator_._predictors[1][0].nodes
        nodes["left" if change == "loop" else "feature_idx"][0] = 0 if change == "loop" else 99
    else:
        tree = model.estimator_.estimators_[1].tree_
        (tree.children_left if change == "loop" else tree.feature)[0] = (
            0 if change == "loop" else 99
        )
    model.save(tmp_path)
    with pytest.raises(DataError, match="tree"):
        load(tmp_path)
