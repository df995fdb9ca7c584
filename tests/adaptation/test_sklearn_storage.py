"""Models as files: the same predictions back, nothing unknown written or read."""

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from helpers.worlds import easy
from vntransfer import (
    ArgumentError,
    DataError,
    PooledRegressor,
    SourceOnlyRegressor,
    WeightedSourceClassifier,
    WeightedSourceRegressor,
)
from vntransfer.adaptation import load_model
from vntransfer.adaptation.sklearn_storage import MOVED, load, save

MODELS = [
    PooledRegressor("ridge"),
    PooledRegressor("boosting", random_state=0),
    PooledRegressor(RandomForestRegressor(3, max_leaf_nodes=9, random_state=0)),
    PooledRegressor(GradientBoostingRegressor(n_estimators=3)),
    WeightedSourceRegressor("ridge"),
    WeightedSourceClassifier(),
    WeightedSourceClassifier(RandomForestClassifier(3, random_state=0), sharpness=1.0),
]


def fitted(model: Any) -> Any:
    X, y, domain = easy()
    X[:, 0] = X[:, 0].round().clip(0, 5)
    return model.fit(X, y > 0 if isinstance(model, WeightedSourceClassifier) else y, domain), X


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_same_model_comes_back(model: Any, tmp_path: Path) -> None:
    model, X = fitted(model)
    save(model, tmp_path / "new")
    same = load(tmp_path / "new")
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.source_weights_ == model.source_weights_
    if hasattr(model, "selection_"):
        assert same.selection_.reason == model.selection_.reason
        assert same.selection_.sharpness == model.selection_.sharpness
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(same.predict_proba(X), model.predict_proba(X))
    assert json.loads((tmp_path / "new" / "model.json").read_text())["format"] == 1


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
        save(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_default_network_comes_back(tmp_path: Path) -> None:
    model, X = fitted(WeightedSourceRegressor(sharpness=1.0, random_state=0))
    model.save(tmp_path)
    same = load_model(tmp_path)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.source_weights_ == model.source_weights_
    assert same.get_params() == model.get_params()
    assert load_model(tmp_path, device="cpu").estimator_.device == "cpu"


def test_a_given_network_comes_back_with_its_options(tmp_path: Path) -> None:
    model, X = fitted(PooledRegressor(SourceOnlyRegressor(**SHORT)))
    model.save(tmp_path)
    same = load_model(tmp_path)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.estimator.get_params() == model.estimator.get_params()
    with pytest.raises(ArgumentError, match="read it with load_model"):
        load(tmp_path)


def test_another_model_in_its_place_leaves_no_network(tmp_path: Path) -> None:
    model, _ = fitted(PooledRegressor(SourceOnlyRegressor(**SHORT)))
    model.save(tmp_path)
    fitted(PooledRegressor("ridge"))[0].save(tmp_path)
    assert not list((tmp_path / "network").iterdir())
    assert load_model(tmp_path).estimator == "ridge"


def test_a_save_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, X = fitted(SourceOnlyRegressor(**SHORT))
    model.save(tmp_path)
    other, _ = fitted(PooledRegressor(SourceOnlyRegressor(**SHORT)))

    def full(model: Any, folder: Path) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(SourceOnlyRegressor, "save", full)
    with pytest.raises(OSError, match="no space left"):
        other.save(tmp_path)
    np.testing.assert_array_equal(load_model(tmp_path).predict(X), model.predict(X))


def test_a_network_of_another_model_is_refused(tmp_path: Path) -> None:
    for seed in (0, 1):
        network = SourceOnlyRegressor(**{**SHORT, "random_state": seed})
        fitted(PooledRegressor(network))[0].save(tmp_path / str(seed))
    for name in ("model.json", "model.safetensors"):
        (tmp_path / "1" / "network" / name).replace(tmp_path / "0" / "network" / name)
    with pytest.raises(DataError, match="not the network of this model"):
        load_model(tmp_path / "0")


def rewrite(folder: Path, change: Any) -> None:
    """Change the description inside a saved archive."""
    with zipfile.ZipFile(folder / "model.skops") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["schema.json"] = change(parts["schema.json"].decode()).encode()
    with zipfile.ZipFile(folder / "model.skops", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    record = json.loads((folder / "model.json").read_text())
    record["sha256"] = hashlib.sha256((folder / "model.skops").read_bytes()).hexdigest()
    (folder / "model.json").write_text(json.dumps(record))


def test_unknown_types_are_refused_unread(tmp_path: Path) -> None:
    save(LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0]), tmp_path)
    rewrite(
        tmp_path,
        lambda text: text.replace('"LinearRegression"', '"Evil"').replace(
            '"sklearn.linear_model._base"', '"evil"'
        ),
    )
    with pytest.raises(DataError, match=r"names evil\.Evil"):
        load(tmp_path)


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
    save(model, tmp_path)
    with pytest.raises(DataError, match="leads nowhere"):
        load(tmp_path)


def test_damaged_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no saved model"):
        load(tmp_path / "absent")
    save(LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0]), tmp_path)
    (tmp_path / "model.skops").write_bytes(b"PK nothing")
    with pytest.raises(DataError, match="damaged"):
        load(tmp_path)
    (tmp_path / "model.json").write_text('{"format": 99}')
    with pytest.raises(DataError, match="expected format 1"):
        load(tmp_path)
    (tmp_path / "model.json").write_text("{")
    with pytest.raises(DataError, match="damaged"):
        load(tmp_path)


def test_files_that_name_modules_of_earlier_versions_load(tmp_path: Path) -> None:
    X, y, domain = easy()
    model = WeightedSourceRegressor("ridge").fit(X, y, domain)
    model.save(tmp_path)
    path, record = tmp_path / "model.skops", json.loads((tmp_path / "model.json").read_text())
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    (old, new) = next(iter(MOVED.items()))
    assert f'"{new}"'.encode() in parts["schema.json"]
    parts["schema.json"] = parts["schema.json"].replace(f'"{new}"'.encode(), f'"{old}"'.encode())
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    record["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "model.json").write_text(json.dumps(record))
    np.testing.assert_array_equal(load_model(tmp_path).predict(X), model.predict(X))
