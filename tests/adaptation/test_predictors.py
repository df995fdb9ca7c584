"""Models that only predict are the same functions as the estimators that were saved."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from helpers.worlds import easy
from vntransfer import PooledRegressor, SourceOnlyRegressor, WeightedSourceRegressor
from vntransfer.adaptation import METHODS, AutoTransferRegressor, predictors
from vntransfer.adaptation.blend import Stretch
from vntransfer.adaptation.boosted_trees import BoostedTrees
from vntransfer.adaptation.linear_learners import MedianLearner, ScaledRidge
from vntransfer.adaptation.network_predictor import NetworkPredictor
from vntransfer.adaptation.predictors import predictor_kind
from vntransfer.errors import ArgumentError, DataError, PredictionError
from vntransfer.networks import ACTIVATIONS
from vntransfer.storage.folder import restore

SHORT: dict[str, Any] = {"epochs": 1, "steps": 4, "batch_size": 16, "random_state": 0}
QUICK = {"auto": {"candidates": ["ridge", "boosting", "source_only"], "random_state": 0}}


def predictor(model: Any, **given: Any) -> Any:
    return restore(model._saved(), predictor_kind, given, "folder")


def same(model: Any, X: Any, **target: Any) -> None:
    """Rows as in the fit, and rows far from them."""
    for rows in (X, 30 * X):
        expected = model.predict(rows, **target)
        spread = np.abs(expected).max()
        found = predictor(model).predict(rows, **target)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5 * spread)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_predictor_that_gives_the_same(method: str) -> None:
    X, y, domain = easy()
    options = QUICK.get(method, SHORT if METHODS[method].neural else {})
    model = METHODS[method].make(**options).fit(X, y, domain)
    same(model, X)
    assert isinstance(predictor(model), NetworkPredictor) == METHODS[method].neural
    files = {name for _, part in model._saved().walk() for name in part.files}
    assert files <= {"trees.txt"}  # skops is for your own estimators


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("input_scales", [False, True])
@pytest.mark.parametrize("responses", [None, 2])
@pytest.mark.parametrize("kept", [False, True])
def test_networks_of_all_kinds(
    activation: Any, input_scales: bool, responses: int | None, kept: bool
) -> None:
    X, y, domain = easy()
    y = y if responses is None else np.column_stack((y, -y))
    model = SourceOnlyRegressor(
        **SHORT,
        members=3,
        hidden=(8, 6),
        width=5,
        activation=activation,
        input_scales=input_scales,
        bounded=kept,
        clip_inputs=kept,
    ).fit(X, y, domain)
    same(model, X)


def test_each_target_has_its_own_shares() -> None:
    X, y, domain = easy()
    names = np.where((domain == "target") & (np.arange(len(y)) % 2 == 0), "second", domain)
    model = METHODS["align"].make(**SHORT, trade_off=1.0, members=2)
    model.fit(X, y, names, target=["target", "second"])
    for target in ("target", "second", ["second"]):
        same(model, X, target=target)
    with pytest.raises(ArgumentError, match=r"target: .*'second'"):
        predictor(model).predict(X)
    with pytest.raises(ArgumentError, match="third"):
        predictor(model).predict(X, target="third")


@pytest.mark.parametrize("method", ["align", "ridge", "boosting", "closed_form", "weighted"])
def test_sparse_rows(method: str) -> None:
    X, y, domain = easy()
    rows = scipy.sparse.csr_array(np.where(np.abs(X) < 0.5, 0, X))
    options = SHORT if METHODS[method].neural else {}
    same(METHODS[method].make(**options).fit(rows, y, domain), rows)


@pytest.mark.parametrize("learner", ["ridge", "constant", "linear_trees", LinearRegression()])
def test_learners_of_ours_and_of_others(learner: Any) -> None:
    X, y, domain = easy()
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    same(PooledRegressor(learner).fit(X, y, domain, sample_weight=weights), X)
    if learner != "linear_trees":
        same(PooledRegressor(learner).fit(X, np.column_stack((y, y**2)), domain), X)


def test_a_network_inside_weighted_sources() -> None:
    X, y, domain = easy()
    inner = SourceOnlyRegressor(**SHORT)
    same(WeightedSourceRegressor(inner, sharpness=1.0).fit(X, y, domain), X)


def test_averages_are_stretched_and_kept_within_limits() -> None:
    X, y, domain = easy()
    model = AutoTransferRegressor(["ridge", "boosting"], random_state=0).fit(X, y, domain)
    model.bounds_ = model.bounds_._replace(stretch=Stretch(1.2, 0.5), caution=0.7)
    same(model, X)


def test_your_own_modules_need_torch() -> None:
    X, y, domain = easy()
    model = SourceOnlyRegressor(**SHORT, extractor=torch.nn.Linear(4, 3)).fit(X, y, domain)
    with pytest.raises(ArgumentError, match="your own modules"):
        predictor(model)


@settings(max_examples=40)
@given(
    st.integers(2, 300),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from(["smooth", "step", "constant", "noise"]),
    st.integers(0, 2**31),
)
def test_trees_are_walked_as_lightgbm_does(
    n: int, p: int, linear: bool, relation: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p)).round(1)  # ties at thresholds
    y = {"smooth": np.sin(x[:, 0]), "step": np.sign(x[:, 0]), "constant": np.ones(n)}.get(
        relation, rng.normal(size=n)
    )
    model = BoostedTrees(linear=linear, random_state=0).fit(x, y)
    rows = np.concatenate((x, rng.normal(size=(50, p)) * 10, np.zeros((1, p))))
    found = predictor(model).predict(rows)
    expected = model.predict(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_very_many_rows_are_left_to_lightgbm(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _ = easy()
    model = BoostedTrees().fit(X, np.nan_to_num(y))
    few = predictor(model).predict(X)
    monkeypatch.setattr(predictors, "MANY", 10)
    np.testing.assert_allclose(predictor(model).predict(X), few)


def test_predictions_that_are_not_finite_name_the_row() -> None:
    X, y, domain = easy()
    models = (
        PooledRegressor("ridge").fit(X, y, domain),
        METHODS["closed_form"].make().fit(X, y, domain),
        AutoTransferRegressor(["ridge"], random_state=0).fit(X, y, domain),
    )
    X[3] = 1e308
    for model in models:
        with np.errstate(all="ignore"), pytest.raises(PredictionError) as error:
            predictor(model).predict(X)
        assert error.value.row == 3


@pytest.mark.parametrize("learner", [ScaledRidge(), MedianLearner()])
@pytest.mark.parametrize(
    ("name", "value"),
    [("scale", np.zeros(4)), ("center", np.full(4, np.nan)), ("intercept", np.zeros(2))],
)
def test_unfit_arrays_are_refused(learner: Any, name: str, value: Any) -> None:
    X, y, _ = easy()
    saved = learner.fit(X, np.nan_to_num(y))._saved()
    saved.arrays[name] = value
    with pytest.raises(DataError, match="arrays"):
        restore(saved, predictor_kind, {}, "folder")
