"""The closed-form classifier: moments of one-hot classes, probabilities from held-out sources."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss

from helpers.samples import seeds
from helpers.saved import contents
from vntransfer import ClosedFormClassifier, ClosedFormRegressor, load, stack
from vntransfer.adaptation._calibration import PlattScaling
from vntransfer.closed_form import JITTER
from vntransfer.errors import ArgumentError, DomainError

Floats = NDArray[np.float64]
KINDS = np.array(["blue", "green", "red"])


def kinds(x: Floats, rng: np.random.Generator, noise: float = 0.5) -> Any:
    scores = np.stack((x[:, 0], np.sin(x[:, 1]) * 2, -x[:, 0] + x[:, 2]), 1)
    return KINDS[(scores + noise * rng.gumbel(size=scores.shape)).argmax(1)]


def world(seed: int = 0, rows: int = 80) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    sources = {}
    for i, name in enumerate("abc"):
        x = rng.normal(0.3 * i, 1, size=(rows + 7 * i, 3))
        sources[name] = x, kinds(x, rng)
    X, y, domain = stack(sources, target=rng.normal(0.5, 1, size=(40, 3)))
    return X, np.where(domain == "target", "red", y).astype(str), domain


def test_scores_are_ridge_regression_on_indicators() -> None:
    X, y, domain = world()
    own = domain != "target"
    model = ClosedFormClassifier(16, 0.1).fit(X, y, domain)
    z = model._features(X)
    total = z[own] - z[own].mean(0)
    penalty = (0.1 + JITTER) * (total**2).sum(0).mean()
    other = Ridge(penalty).fit(z[own], (y[own, None] == KINDS).astype(float))
    logits = model._scaling.slope * other.predict(z) + model._scaling.offsets
    np.testing.assert_allclose(model.predict_proba(X), softmax(logits, axis=1), rtol=1e-6)
    np.testing.assert_array_equal(model.predict(X), KINDS[model.decision_function(X).argmax(1)])


@given(seed=seeds, parts=st.integers(1, 5))
def test_any_split_order_and_machine_give_the_same(seed: int, parts: int) -> None:
    X, y, domain = world()
    start = ClosedFormClassifier(16, 1e-2).fit(X[::20], y[::20], domain[::20])
    order = np.random.default_rng(seed).permutation(len(X))
    whole = copy.deepcopy(start).partial_fit(X, y, domain)
    pieces, merged = copy.deepcopy(start), copy.deepcopy(start)
    for own in np.array_split(order, parts):
        pieces.partial_fit(X[own], y[own], domain[own])
        alone = copy.deepcopy(start)
        alone.moments_, alone._samples, alone._target = {}, {}, None
        if (domain[own] != "target").any():
            merged = merged.merge(alone.partial_fit(X[own], y[own], domain[own]))
    for other in (pieces, merged):
        np.testing.assert_allclose(
            other.predict_proba(X), whole.predict_proba(X), rtol=1e-9, atol=1e-12
        )


@given(seed=seeds)
def test_classes_may_come_one_by_one(seed: int) -> None:
    """Indicators of a class are 0 in all rows before it: the moments say so exactly."""
    X, y, domain = world()
    own = domain != "target"
    X, y, domain = X[own], y[own], domain[own]
    start = ClosedFormClassifier(16, 1e-2).fit(X, y, domain)
    order = np.random.default_rng(seed).permutation(3)
    first = copy.deepcopy(start)
    first.moments_, first._samples, first.classes_ = {}, {}, KINDS[[order[0]]]
    for k in order[1:]:  # two classes at first, since one alone cannot be learned
        rows = np.isin(y, KINDS[[order[0], k]]) if k == order[1] else y == KINDS[k]
        first.partial_fit(X[rows], y[rows], domain[rows])
    np.testing.assert_array_equal(first.classes_, KINDS)
    np.testing.assert_allclose(first.predict_proba(X), start.predict_proba(X), rtol=1e-9)


def test_models_of_different_classes_merge() -> None:
    X, y, domain = world()
    few = y != "green"
    start = ClosedFormClassifier(16, 1e-2).fit(X, y, domain)
    one, other = copy.deepcopy(start), copy.deepcopy(start)
    for model, rows, classes in ((one, few, KINDS[[0, 2]]), (other, ~few, KINDS[[1]])):
        model.moments_, model._samples, model.classes_, model._target = {}, {}, classes, None
        own = rows & (domain != "target")
        model.partial_fit(X[own], y[own], domain[own], classes=["blue", "green"])
    merged = one.merge(other)
    np.testing.assert_array_equal(merged.classes_, KINDS)
    np.testing.assert_allclose(merged.predict_proba(X), start.predict_proba(X), rtol=1e-9)


def test_without_a_source_is_as_if_it_had_not_been_there() -> None:
    X, y, domain = world()
    both = ClosedFormClassifier(16).fit(X, y, domain)
    own = domain != "b"
    start = copy.deepcopy(both)
    start.moments_, start._samples, start._target = {}, {}, None
    again = start.partial_fit(X[own], y[own], domain[own])
    np.testing.assert_allclose(
        both.without("b").predict_proba(X), again.predict_proba(X), rtol=1e-8
    )
    found = both.held_out_predictions(X, domain)
    np.testing.assert_array_equal(found[~own], both.without("b").predict(X[~own]))


def test_no_row_of_a_source_that_was_removed_is_saved(tmp_path: Path) -> None:
    X, y, domain = world()
    rest = ClosedFormClassifier(16).fit(X, y, domain).without("b")
    rest.save(tmp_path)
    again = load(tmp_path)
    np.testing.assert_array_equal(again.predict_proba(X), rest.predict_proba(X))
    assert {name for name, _ in rest._saved().record["kept"]} == {"a", "c"}


@pytest.mark.parametrize("sources", [1, 3])
@pytest.mark.parametrize("noise", [0.3, 1.5])
def test_probabilities_are_calibrated(sources: int, noise: float) -> None:
    """On new rows the mean probability is the accuracy, and a better slope gains little."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y, domain = kinds(X, rng, noise), np.arange(900) % sources
    model = ClosedFormClassifier(64).fit(X, y, domain)
    new = rng.normal(size=(4000, 3))
    truth = kinds(new, rng, noise)
    p = model.predict_proba(new)
    assert p.max(1).mean() == pytest.approx((model.predict(new) == truth).mean(), abs=0.04)
    logits = np.log(p)
    best = min(log_loss(truth, softmax(a * logits, axis=1)) for a in np.linspace(0.5, 2, 31))
    assert log_loss(truth, p) < best + 0.01


def test_scaling_is_the_best_one() -> None:
    rng = np.random.default_rng(0)
    scores, codes, w = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), rng.random(60)
    own = PlattScaling.fit(scores, codes, w)
    wanted = np.full((60, 3), 1 / 63)
    wanted[np.arange(60), codes] += 60 / 63

    def loss(slope: float, offsets: Floats) -> float:
        p = softmax(slope * scores + offsets, axis=1)
        return float(-(wanted * np.log(p)).sum(1) @ w / w.sum() + 5e-5 * offsets @ offsets)

    least = loss(own.slope, own.offsets) if own.slope > 0.01 else np.inf
    for _ in range(50):
        step = 0.05 * rng.normal(size=4)
        assert loss(own.slope + step[0], own.offsets + step[1:]) >= least


def test_labels_of_the_target_are_never_read(tmp_path: Any) -> None:
    X, y, domain = world()
    poisoned = np.where(domain == "target", "poison", y)
    for name, labels in (("clean", y), ("poisoned", poisoned)):
        ClosedFormClassifier(16).fit(X, labels, domain).save(tmp_path / name)
    assert contents(tmp_path / "clean") == contents(tmp_path / "poisoned")


@pytest.mark.parametrize("labels", ["text", "number", "bool", "object"])
def test_saved_and_loaded_it_predicts_and_learns_the_same(tmp_path: Any, labels: str) -> None:
    X, y, domain = world()
    y = {"text": y, "number": np.searchsorted(KINDS, y) * 5, "bool": y == "red",
         "object": y.astype(object)}[labels]  # fmt: skip
    model = ClosedFormClassifier(16).fit(X, y, domain)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    more = [m.partial_fit(X[:50], y[:50], domain[:50]).predict_proba(X) for m in (model, again)]
    np.testing.assert_array_equal(*more)


def test_rows_kept_are_bounded() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    model = ClosedFormClassifier(8).fit(X, X[:, 0] > 0)
    assert [len(own.keys) for own in model._samples.values()] == [250, 250]
    assert model.score(X, X[:, 0] > 0) > 0.95


def test_one_class_is_refused() -> None:
    X, y, domain = world()
    with pytest.raises(ArgumentError, match=r"y: expected at least two classes, got one .*'red'"):
        ClosedFormClassifier().fit(X, np.full_like(y, "red"), domain)
    weights = (y == "red").astype(float)
    with pytest.raises(ArgumentError, match="y: expected at least two classes"):
        ClosedFormClassifier().fit(X, y, domain, sample_weight=weights)
    own = y == "red"
    model = ClosedFormClassifier(8).partial_fit(X[own], y[own], classes=KINDS)
    assert (model.predict(X) == "red").all()
    assert model.partial_fit(X, y, domain).score(X, y) > 0.6


def test_bad_input_is_named() -> None:
    X, y, domain = world()
    model = ClosedFormClassifier(8).fit(X, y, domain)
    with pytest.raises(ArgumentError, match=r"^other: .*fitted ClosedFormClassifier"):
        model.merge(ClosedFormRegressor(8).fit(X, np.arange(len(X)), domain))
    with pytest.raises(ArgumentError, match="features differ"):
        model.merge(ClosedFormClassifier(8, random_state=1).fit(X, y, domain))
    with pytest.raises(DomainError, match="source"):
        model.without("z")
    with pytest.raises(ValueError, match="continuous"):
        ClosedFormClassifier(8).fit(X, X[:, 0], domain)
