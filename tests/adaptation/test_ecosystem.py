"""Our estimators among others': scikit-learn's tools, tables of all kinds, skada."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.worlds import easy
from vntransfer import (
    ImportanceWeightedScorer,
    LeaveOneSourceOut,
    PooledRegressor,
    SourceScorer,
    WeightedSourceClassifier,
    WeightedSourceRegressor,
)
from vntransfer.adaptation import METHODS

COLUMNS = ["a", "b", "c", "d"]
SHORT: dict[str, Any] = {"epochs": 1, "steps": 6, "hidden": (8,), "width": 8, "random_state": 0}
IDS = {"a": 1, "b": 2, "c": 3, "target": -1}


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def skada() -> Iterator[Any]:
    """The package, whose import turns metadata routing on for everybody."""
    with sklearn.config_context():
        import skada

        sklearn.set_config(enable_metadata_routing=True)
        yield skada


def make(method: str) -> Any:
    fixed = {"trade_off": 1.0, "members": 2} if method == "align" else {}
    return METHODS[method].make(**SHORT, **fixed) if METHODS[method].neural else sharp(method)


def sharp(method: str) -> Any:
    """A learner without epochs, made to depend on its domains."""
    options: dict[str, Any] = {"weighted": {"sharpness": 1.0}}.get(method, {})
    if method == "auto":
        options = {"candidates": ["boosting", "ridge"], "random_state": 0}
    return METHODS[method].make(**options)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("method", METHODS)
def test_pipelines_hand_the_domains_to_every_method(method: str) -> None:
    X, y, domain = easy()
    pipe = make_pipeline(StandardScaler(), make(method)).fit(X, y, sample_domain=domain)
    assert pipe[-1].source_weights_.keys() == {"a", "b", "c"}
    alone = make(method).fit(StandardScaler().fit_transform(X), y, domain)
    np.testing.assert_array_equal(pipe.predict(X), alone.predict(StandardScaler().fit_transform(X)))


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("method", ["coral", "align", "weighted", "boosting"])
def test_cross_validation_and_search(method: str) -> None:
    X, y, domain = easy()
    model, splits = make(method), LeaveOneSourceOut(keep_target=True)
    routed: dict[str, Any] = {"cv": splits, "scoring": SourceScorer(), "error_score": "raise"}
    scores = cross_val_score(model, X, y, params={"sample_domain": domain}, **routed)
    train, test = next(splits.split(X, groups=domain))
    by_hand = clone(model).fit(X[train], y[train], domain[train])
    assert scores[0] == -np.abs(by_hand.predict(X[test]) - y[test]).mean()
    grid = {"random_state": [0]} if method == "boosting" else {"random_state": [0, 1]}
    search = GridSearchCV(model, grid, **routed).fit(X, y, sample_domain=domain)
    assert search.best_estimator_.source_weights_.keys() == {"a", "b", "c"}
    assert search.cv_results_["split0_test_score"][0] == scores[0]


def tables(X: Any, y: Any, domain: Any) -> dict[str, tuple[Any, Any, Any, Any]]:
    """The same rows as arrays, frames and tensors, with weights."""
    ids, w = np.array([IDS[name] for name in domain]), np.linspace(1.0, 2.0, len(y))
    pandas = pd.DataFrame(X, columns=COLUMNS)
    masked = pd.Series(ids, dtype="Int64")
    return {
        "numpy": (X, y, ids, w),
        "pandas": (pandas, pd.Series(y), pd.Series(ids), pd.Series(w)),
        "pandas, masked integers": (pandas, pd.Series(y), masked, pd.Series(w)),
        "polars": (pl.DataFrame(X, schema=COLUMNS), pl.Series(y), pl.Series(ids), pl.Series(w)),
        "torch": tuple(map(torch.from_numpy, (X, y, ids, w))),
        "lists": (X.tolist(), y.tolist(), ids.tolist(), w.tolist()),
    }


@pytest.mark.parametrize("method", ["source_only", "align", "weighted", "boosting"])
def test_tables_of_all_kinds_give_the_same(method: str) -> None:
    found = {}
    for kind, (X, y, domain, w) in tables(*easy()).items():
        model = make(method).fit(X, y, sample_domain=domain, sample_weight=w)
        found[kind] = model.predict(X)
        named = kind.startswith(("pandas", "polars"))
        assert hasattr(model, "feature_names_in_") == named
        assert not named or list(model.feature_names_in_) == COLUMNS
    for kind, predicted in found.items():
        np.testing.assert_allclose(predicted, found["numpy"], rtol=1e-9, err_msg=kind)


@pytest.mark.parametrize("library", [pd, pl])
def test_names_as_domains_from_a_column(library: Any) -> None:
    X, y, domain = easy()
    frame = library.DataFrame({name: X[:, i] for i, name in enumerate(COLUMNS)} | {"s": domain})
    column = frame["s"].astype("category") if library is pd else frame["s"].cast(pl.Categorical)
    model = make("weighted").fit(frame[COLUMNS], y, sample_domain=column)
    plain = make("weighted").fit(X, y, domain)
    assert model.source_weights_ == pytest.approx(plain.source_weights_, rel=1e-12)


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("method", ["source_only", "weighted", "ridge"])
def test_names_of_columns_are_checked(method: str, library: Any) -> None:
    X, y, domain = easy()
    frame = library.DataFrame({name: X[:, i] for i, name in enumerate(COLUMNS)})
    model = make(method).fit(frame, y, domain)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(frame)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[COLUMNS[::-1]])
    renamed = library.DataFrame({name.upper(): X[:, i] for i, name in enumerate(COLUMNS)})
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.predict(renamed)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        make(method).fit(X, y, domain).predict(frame)


@pytest.mark.parametrize("scorer", [SourceScorer(), ImportanceWeightedScorer(least=0.0)])
def test_scorers_keep_the_names_of_columns(scorer: Any) -> None:
    X, y, domain = easy()
    frame = pd.DataFrame(X, columns=COLUMNS)
    model = PooledRegressor("ridge").fit(frame, y, domain)
    plain = PooledRegressor("ridge").fit(X, y, domain)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scorer(model, frame, y, domain) == pytest.approx(scorer(plain, X, y, domain))


def labeled() -> tuple[Any, Any, Any]:
    """Skada's view of a world: integers, and the target's responses, which it masks itself."""
    X, y, domain = easy()
    truth = X[:, 0] + 0.5 * X[:, 1] ** 2
    return X, np.where(domain == "target", truth, y), np.array([IDS[name] for name in domain])


@pytest.mark.parametrize("method", ["source_only", "align", "mdd_paper", "weighted", "boosting"])
def test_steps_of_a_skada_pipeline(method: str, skada: Any) -> None:
    X, truth, ids = labeled()
    pipe = skada.make_da_pipeline(StandardScaler(), make(method))
    pipe.fit(X, truth.copy(), sample_domain=ids)
    inner = pipe[-1].get_estimator()
    assert inner.source_weights_.keys() == {1, 2, 3}
    masked = np.where(ids < 0, np.nan, truth)
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(
        pipe.predict(X, sample_domain=ids), make(method).fit(scaled, masked, ids).predict(scaled)
    )


@pytest.mark.parametrize("method", ["align", "weighted"])
def test_scorers_of_skada_judge_regressors(method: str, skada: Any) -> None:
    from skada.metrics import ImportanceWeightedScorer, SupervisedScorer
    from skada.model_selection import SourceTargetShuffleSplit

    X, truth, ids = labeled()
    model = make(method).set_score_request(sample_weight=True)
    supervised = SupervisedScorer().set_score_request(sample_domain=True, target_labels=True)
    found = cross_validate(
        skada.make_da_pipeline(StandardScaler(), model),
        X,
        truth,
        cv=SourceTargetShuffleSplit(n_splits=2, random_state=0),
        params={"sample_domain": ids, "target_labels": truth},
        scoring={"supervised": supervised, "weighted": ImportanceWeightedScorer()},
        error_score="raise",
    )
    assert np.isfinite(found["test_weighted"]).all()
    assert (found["test_supervised"] <= 1).all()


def test_circular_validation_of_one_source(skada: Any) -> None:
    from skada.metrics import CircularValidation

    X, truth, ids = labeled()
    rows = (ids == 2) | (ids < 0)
    pipe = skada.make_da_pipeline(StandardScaler(), make("coral"))
    masked = np.where(ids[rows] < 0, np.nan, truth[rows])
    pipe.fit(X[rows], masked.copy(), sample_domain=ids[rows])
    scorer = CircularValidation(source_scorer=mean_absolute_error, greater_is_better=False)
    assert scorer(pipe, X[rows], masked, sample_domain=ids[rows]) < 0


def test_scorers_of_skada_judge_the_classifier(skada: Any) -> None:
    from skada.metrics import PredictionEntropyScorer, SoftNeighborhoodDensity

    X, truth, ids = labeled()
    classes = (truth > np.median(truth)).astype(int)
    model = WeightedSourceClassifier(sharpness=1.0)
    pipe = skada.make_da_pipeline(StandardScaler(), model)
    pipe.fit(X, classes.copy(), sample_domain=ids)
    assert set(pipe.predict(X[ids < 0])) <= {0, 1}
    for scorer in (PredictionEntropyScorer(), SoftNeighborhoodDensity()):
        assert np.isfinite(scorer(pipe, X, classes, sample_domain=ids))


def test_weights_of_a_skada_adapter_reach_the_learner(skada: Any) -> None:
    X, truth, ids = labeled()
    asks = WeightedSourceRegressor("ridge", sharpness=0.0).set_fit_request(sample_weight=True)
    adapter = skada.DensityReweightAdapter()
    weighted = skada.make_da_pipeline(adapter, asks).fit(X, truth.copy(), sample_domain=ids)
    plain = skada.make_da_pipeline(WeightedSourceRegressor("ridge", sharpness=0.0))
    plain.fit(X, truth.copy(), sample_domain=ids)
    assert np.abs(weighted.predict(X) - plain.predict(X)).max() > 1e-3
