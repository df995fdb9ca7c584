"""The closed-form learner: exact from moments, whatever the split and order of the rows."""

import copy
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

from helpers.samples import seeds
from vntransfer import (
    AutoTransferRegressor,
    ClosedFormClassifier,
    ClosedFormRegressor,
    load,
    stack,
)
from vntransfer.closed_form import (
    JITTER,
    choose_ridge,
    fit_ridge,
    leave_one_out,
    squared_error,
)
from vntransfer.errors import ArgumentError, DomainError
from vntransfer.moments import Moments
from vntransfer.random_features import RandomFeatures, normal_numbers

Floats = NDArray[np.float64]


def places(seed: int = 0, rows: int = 60) -> dict[str, tuple[Floats, Floats]]:
    rng = np.random.default_rng(seed)
    found = {}
    for i, name in enumerate("abc"):
        x = rng.normal(i, 1 + i, size=(rows + 7 * i, 3))
        found[name] = x, np.sin(x[:, 0]) + x[:, 1] * 0.3 + 0.1 * rng.normal(size=len(x))
    return found


def world(seed: int = 0) -> tuple[Any, Any, Any]:
    target = np.random.default_rng(seed + 1).normal(1.5, 1, size=(40, 3))
    return stack(places(seed), target=target)


@given(seed=seeds, ridge=st.sampled_from([1e-4, 1e-2, 1.0]), responses=st.integers(1, 3))
def test_is_ridge_regression_on_the_features(seed: int, ridge: float, responses: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(2, 3, size=(50, 4)), rng.normal(5, 2, size=(50, responses))
    z = RandomFeatures.standardizing(x, 20, 0)(x)
    moments = Moments.from_samples(z, y)
    fit = fit_ridge(moments, responses, ridge)
    penalty = (ridge + JITTER) * float(moments.scatter[:24, :24].diagonal().mean())
    other = Ridge(penalty).fit(z, y)
    new = RandomFeatures.standardizing(x, 20, 0)(rng.normal(2, 3, size=(9, 4)))
    got = new @ fit.coefficients.numpy() + fit.intercept.numpy()
    np.testing.assert_allclose(got, other.predict(new).reshape(got.shape), rtol=1e-6, atol=1e-8)


@given(seed=seeds)
def test_errors_on_other_rows_follow_from_their_moments(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (za, ya), (zb, yb) = ((rng.normal(size=(30, 5)), rng.normal(size=(30, 2))) for _ in "ab")
    fit = fit_ridge(Moments.from_samples(za, ya), 2, 0.1)
    residuals = yb - zb @ fit.coefficients.numpy() - fit.intercept.numpy()
    got = squared_error(fit, Moments.from_samples(zb, yb))
    assert got == pytest.approx((residuals**2).mean(), rel=1e-9)


@given(seed=seeds, parts=st.integers(1, 6))
def test_any_split_order_and_machine_give_the_same(seed: int, parts: int) -> None:
    X, y, domain = world()
    start = ClosedFormRegressor(32, 1e-3).fit(X[::20], y[::20], domain[::20])
    rest = np.random.default_rng(seed).permutation(len(X))
    whole = copy.deepcopy(start).partial_fit(X[rest], y[rest], domain[rest])
    pieces, merged = copy.deepcopy(start), None
    for own in np.array_split(rest[::-1], parts):
        pieces.partial_fit(X[own], y[own], domain[own])
    for own in (domain != "b", domain == "b"):  # two machines
        alone = copy.deepcopy(start)
        alone.moments_ = {}
        alone._target = None
        alone.partial_fit(X[own], y[own], domain[own])
        merged = alone if merged is None else merged.merge(alone)
    assert merged is not None
    merged = merged.merge(start)
    for other in (pieces, merged):
        np.testing.assert_allclose(other.predict(X), whole.predict(X), rtol=1e-9, atol=1e-9)


def test_without_a_source_is_as_if_it_had_not_been_there() -> None:
    X, y, domain = world()
    both = ClosedFormRegressor(32).fit(X, y, domain)
    rest = both.without("b")
    own = domain != "b"
    start = copy.deepcopy(both)
    start.moments_ = {}
    start._target = None
    again = start.partial_fit(X[own], y[own], domain[own])
    np.testing.assert_allclose(rest.predict(X), again.predict(X), rtol=1e-9, atol=1e-12)
    assert set(both.moments_) == {"a", "b", "c"}


def test_the_ridge_is_the_best_one_of_left_out_sources() -> None:
    """Against refits on the rows, as one would do without moments."""
    X, y, domain = world()
    model = ClosedFormRegressor(16).fit(X, y, domain)
    parts = list(model.moments_.values())
    assert model.ridge_ == choose_ridge(parts, 1, [float(part.count) for part in parts])
    scores = {}
    for ridge in (1e-6, 1e-4, 1e-2, 1.0, 100.0):
        logs = []
        for name in "abc":
            fitted = model.without(name).set_params(ridge=ridge)._solve()
            own = domain == name
            logs.append(np.log(np.mean((fitted.predict(X[own]) - y[own]) ** 2)))
        scores[ridge] = np.mean(logs)
    chosen = model.set_params(ridge=model.ridge_)
    best = [
        np.log(np.mean((chosen.without(n)._solve().predict(X[domain == n]) - y[domain == n]) ** 2))
        for n in "abc"
    ]
    assert np.mean(best) <= min(scores.values()) + 1e-9


def test_weights_of_sources() -> None:
    X, y, domain = world()
    plain = ClosedFormRegressor(16).fit(X, y, domain)
    rows = {name: float((domain == name).sum()) for name in "abc"}
    assert plain.source_weights_ == pytest.approx(
        {k: v / sum(rows.values()) for k, v in rows.items()}
    )
    near = ClosedFormRegressor(16, source_weights="divergence").fit(X, y, domain)
    assert near.source_weights_["b"] > plain.source_weights_["b"]
    only = ClosedFormRegressor(16, 0.1, {"a": 1, "b": 0, "c": 0}).fit(X, y, domain)
    assert only.source_weights_ == {"a": 1.0, "b": 0.0, "c": 0.0}
    plain.set_params(ridge=0.1)
    np.testing.assert_allclose(only.predict(X), plain.without("b").without("c").predict(X))
    with pytest.raises(DomainError, match="source_weights"):
        ClosedFormRegressor(16, source_weights={"a": 1}).fit(X, y, domain)
    with pytest.raises(DomainError, match="target"):
        ClosedFormRegressor(16, source_weights="divergence").fit(X[:60], y[:60])


def test_random_features_are_the_same_everywhere() -> None:
    numbers = normal_numbers(7, 20_000)
    assert numbers[:3] == pytest.approx(
        [1.1362472746449774, -0.5377773613536538, -0.20164360050307614], abs=1e-14
    )
    assert scipy.stats.kstest(numbers, "norm").pvalue > 0.01


def test_saved_and_loaded_it_predicts_and_learns_the_same(tmp_path: Any) -> None:
    X, y, domain = world()
    model = ClosedFormRegressor(32).fit(X, y, domain)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    more = [m.partial_fit(X[:50], y[:50], domain[:50]).predict(X) for m in (model, again)]
    np.testing.assert_array_equal(*more)


def test_held_out_predictions_are_those_of_fits_without_the_source() -> None:
    X, y, domain = world()
    model = ClosedFormRegressor(32).fit(X, y, domain)
    found = model.held_out_predictions(X, domain)
    for name in "abc":
        own = domain == name
        np.testing.assert_allclose(found[own], model.without(name).predict(X[own]), rtol=1e-12)
    target = domain == "target"
    np.testing.assert_allclose(found[target], model.predict(X[target]), rtol=1e-12)
    with pytest.raises(DomainError, match=r"sample_domain: .*'z'"):
        model.held_out_predictions(X, np.where(target, "target", "z"))
    with pytest.raises(DomainError, match="two sources"):
        ClosedFormRegressor(8).fit(X[:60], y[:60]).held_out_predictions(X[:60], np.zeros(60, int))


def test_a_second_fit_forgets_the_first() -> None:
    X, y, domain = world()
    once = ClosedFormRegressor(8, source_weights="divergence").fit(X, y, domain)
    again = ClosedFormRegressor(8, source_weights="divergence").fit(X + 5, y, domain)
    assert again.fit(X, y, domain).source_weights_ == once.source_weights_


@given(seed=seeds, ridge=st.sampled_from([1e-3, 0.1]))
def test_rows_left_out_are_predicted_as_by_fits_without_them(seed: int, ridge: float) -> None:
    rng = np.random.default_rng(seed)
    z, y, w = rng.normal(size=(30, 4)), rng.normal(size=(30, 2)), rng.integers(1, 4, 30) * 1.0
    moments = Moments.from_samples(z, y, weights=w)
    fit = fit_ridge(moments, 2, ridge)
    tensors = (torch.from_numpy(own) for own in (z, y, w))
    got = leave_one_out(fit, moments, *tensors).numpy()
    penalty = (ridge + JITTER) * float(moments.scatter[:4, :4].diagonal().mean())
    rest = np.arange(30) != 7
    other = Ridge(penalty).fit(z[rest], y[rest], sample_weight=w[rest])
    np.testing.assert_allclose(got[7], other.predict(z[7:8])[0], rtol=1e-6, atol=1e-9)


def test_one_row_is_refused() -> None:
    X, y, _ = world()
    for model in (ClosedFormRegressor(), ClosedFormClassifier()):
        with pytest.raises(ValueError, match="1 sample"):
            model.fit(X[:1], y[:1] > 0)


def test_a_ridge_of_zero_needs_more_rows_than_features() -> None:
    X, y, domain = world()
    for model in (ClosedFormRegressor(256, 0.0), ClosedFormClassifier(256, 0.0)):
        with pytest.raises(ArgumentError, match=r"ridge: 0 with 201 rows and 259 features"):
            model.fit(X, np.nan_to_num(y) > 0, domain)
    assert np.isfinite(ClosedFormRegressor(8, 0.0).fit(X, y, domain).predict(X)).all()


def test_moments_of_other_features_are_not_added() -> None:
    X, y, domain = world()
    model = ClosedFormRegressor(8).fit(X, y, domain)
    others = ClosedFormRegressor(8, random_state=1), ClosedFormRegressor(9)
    for other, x in (*((own, X) for own in others), (ClosedFormRegressor(8), 2 * X)):
        with pytest.raises(ArgumentError, match="features differ"):
            model.merge(other.fit(x, y, domain))
    with pytest.raises(ArgumentError, match=r"^other: .*fitted ClosedFormRegressor"):
        model.merge(ClosedFormRegressor(8))
    features = RandomFeatures.standardizing(X, 5, 0)
    with pytest.raises(ArgumentError, match=r"^moments: .*'a'.* 12 .* 9"):
        ClosedFormRegressor.from_moments(features, model.moments_)


def test_constant_columns_are_ignored_or_named() -> None:
    X, y, domain = world()
    with pytest.raises(ArgumentError, match="X: all columns are constant"):
        ClosedFormRegressor(8).fit(np.full_like(X, 7.0), y, domain)
    X = np.hstack((X, np.full((len(X), 1), 0.7)))
    model = ClosedFormRegressor(8).fit(X, y, domain)
    changed = X + np.array([0, 0, 0, 1e6])
    np.testing.assert_array_equal(model.predict(changed), model.predict(X))
    with pytest.raises(ArgumentError, match=r"X: column 3 was constant \(0.7\)"):
        model.partial_fit(changed, y, domain)
    model.partial_fit(X, y, domain)


def test_bad_input_is_named() -> None:
    X, y, domain = world()
    model = ClosedFormRegressor(8).fit(X, y, domain)
    with pytest.raises(DomainError, match="source"):
        model.without("z")
    with pytest.raises(ArgumentError, match="y"):
        model.partial_fit(X, np.stack([y, y], 1), domain)


def test_auto_takes_it_as_a_candidate() -> None:
    X, y, domain = world()
    model = AutoTransferRegressor(["ridge", "closed_form"], random_state=0).fit(X, y, domain)
    assert np.isfinite(model.predict(X)).all()
    assert model.selection_.shares["closed_form"] > 0  # sines are not linear


def test_many_sources_choose_their_ridge_in_groups() -> None:
    rng = np.random.default_rng(0)
    X, domain = rng.normal(size=(900, 3)), np.repeat(np.arange(90), 10)
    y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=900)
    model = ClosedFormRegressor(n_features=5, random_state=0).fit(X, y, domain)
    assert model.ridge_ < 1
    assert np.abs(model.predict(X) - y).mean() < 0.2
