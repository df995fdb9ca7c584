"""`AutoTransferRegressor`: the right learner is found, the target's labels are never read."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vntransfer import AutoTransferRegressor, PooledRegressor, load_model
from vntransfer import stack as stack_domains
from vntransfer.adaptation._candidates import CANDIDATES
from vntransfer.adaptation._stack import stack
from vntransfer.errors import ArgumentError, DataError

CHEAP = ["boosting", "ridge", "ridge, sharpness 3"]


def world(relation: Any, n: int = 80) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    parts = {name: rng.normal(m, 1, size=(n, 3)) for m, name in enumerate("abcd")}
    target = rng.normal(1.5, 1, size=(n, 3))
    sources = {k: (x, relation(x) + 0.1 * rng.normal(size=n)) for k, x in parts.items()}
    return *stack_domains(sources, target=target), target


def linear(x: Any) -> Any:
    return x @ [1.0, -2.0, 0.5]


def steps(x: Any) -> Any:
    return np.where(x[:, 0] > 1.2, 5.0, 0.0) + np.where(x[:, 1] > 2.0, 3.0, 0.0)


@pytest.mark.parametrize(("relation", "best"), [(linear, "ridge"), (steps, "boosting")])
def test_the_learner_that_fits_the_relation_leads(relation: Any, best: str) -> None:
    X, y, domain, target = world(relation)
    model = AutoTransferRegressor(CHEAP, random_state=0).fit(X, y, domain)
    assert model.selection_.chosen.startswith(best)
    assert sum(model.selection_.shares.values()) == pytest.approx(1)
    assert sum(model.source_weights_.values()) == pytest.approx(1)
    assert list(model.source_weights_) == list("abcd")
    safe = PooledRegressor("boosting", 0).fit(X, y, domain)
    errors = [np.abs(m.predict(target) - relation(target)).mean() for m in (model, safe)]
    assert errors[0] <= 1.05 * errors[1]


def test_scores_are_the_errors_of_leaving_sources_out() -> None:
    X, y, domain, _ = world(linear)
    model = AutoTransferRegressor(CHEAP, random_state=0).fit(X, y, domain)
    others = (domain != "a") & (domain != "target")
    by_hand = PooledRegressor("ridge").fit(X[others], y[others]).predict(X[domain == "a"])
    np.testing.assert_allclose(model.candidates_held_out_["ridge"][domain == "a"], by_hand)
    expected = np.abs(by_hand - y[domain == "a"]).mean()
    assert model.selection_.errors["a"]["ridge"] == pytest.approx(expected)
    assert np.isnan(model.held_out_[domain == "target"]).all()
    assert not np.isnan(model.held_out_[domain != "target"]).any()


def test_held_out_predictions_do_not_see_their_own_responses() -> None:
    X, y, domain, _ = world(linear)
    own = domain == "b"
    first = AutoTransferRegressor(CHEAP, random_state=0).fit(X, y, domain)
    changed = np.where(own, 100.0 - 3 * y, y)
    second = AutoTransferRegressor(CHEAP, random_state=0).fit(X, changed, domain)
    for name in CHEAP:
        before, after = (m.candidates_held_out_[name] for m in (first, second))
        np.testing.assert_array_equal(before[own], after[own])
    assert not np.allclose(first.held_out_[domain == "a"], second.held_out_[domain == "a"])


def test_networks_are_judged_and_the_whole_survives_saving(tmp_path: Path) -> None:
    X, y, domain, target = world(linear, n=40)
    used = ~np.isin(domain, ["c", "d"])
    X, y, domain = X[used], y[used], domain[used]
    names = ["boosting", "ridge", "source_only", "mdd"]
    options: dict[str, Any] = {"combine": "mean", "temperature": 5.0, "random_state": 0}
    model = AutoTransferRegressor(names, **options).fit(X, y, domain)
    assert set(model.models_) == set(names)  # so warm that all have a share
    assert all(np.isfinite(list(own.values())).all() for own in model.selection_.errors.values())
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(target), model.predict(target))
    assert again.selection_ == model.selection_
    assert again.source_weights_ == model.source_weights_
    part = next((tmp_path / "m" / "part0").glob("*.skops"))
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"does not match model\.json"):
        load_model(tmp_path / "m")


def test_target_labels_are_never_read_and_one_source_is_enough() -> None:
    X, y, domain, target = world(linear)
    model = AutoTransferRegressor(CHEAP, random_state=0).fit(X, y, domain)
    poisoned = np.where(domain == "target", 1e9, y)
    same = AutoTransferRegressor(CHEAP, random_state=0).fit(X, poisoned, domain)
    np.testing.assert_array_equal(model.predict(target), same.predict(target))
    alone = AutoTransferRegressor(CHEAP, random_state=0).fit(X[:80], y[:80])
    assert alone.selection_.chosen == "boosting"
    best = AutoTransferRegressor(CHEAP, combine="best", random_state=0).fit(X, y, domain)
    assert list(best.models_) == [best.selection_.chosen]


def test_stack_is_the_best_mean_and_a_worse_one_is_refused() -> None:
    rng = np.random.default_rng(0)
    truth = [rng.normal(size=200) for _ in range(4)]
    noise = [rng.normal(size=(3, 200)) for _ in range(4)]
    independent = [y + e for y, e in zip(truth, noise, strict=True)]
    found = stack(independent, truth)
    np.testing.assert_allclose(found.weights, 1 / 3, atol=0.08)  # equal and independent errors
    assert found.ratio < np.log(0.75)  # the mean of three has 1/√3 of the error
    assert not found.worse
    grid = [
        np.array([a, b, 1 - a - b])
        for a in np.linspace(0, 1, 21)
        for b in np.linspace(0, 1 - a, 21)
    ]

    def risk(w: Any) -> float:
        pairs = zip(independent, truth, strict=True)
        return float(
            np.mean([np.abs(w @ p - y).mean() / np.abs(p[0] - y).mean() for p, y in pairs])
        )

    assert risk(found.weights) <= min(map(risk, grid)) + 2e-3
    worse = [np.stack((p[0], 3 * p[1], 3 * p[2])) for p in noise]
    doubtful = stack([y + e for y, e in zip(truth, worse, strict=True)], truth)
    assert doubtful.weights[0] > 0.8
    alone = [np.stack((y + e[0], y + e[0])) for y, e in zip(truth, noise, strict=True)]
    assert stack(alone, truth).worse  # nothing gained, and no doubt about it: the safe one is kept
    for ratio, worse in ((0.1, True), (0.01, False), (-0.1, False)):
        assert replace(found, ratio=ratio, standard_error=0.05).worse == worse


def test_what_no_virtual_target_is_an_example_of_is_left_out() -> None:
    X, y, domain, target = world(linear)
    usual = AutoTransferRegressor(CHEAP, random_state=0).fit(X, y, domain)
    assert usual.selection_.left_out == {}
    assert usual.selection_.shares["ridge"] > 0
    far = np.where((domain == "target")[:, None], X + 30.0, X)  # a line runs away there
    model = AutoTransferRegressor(CHEAP, random_state=0).fit(far, y, domain)
    assert set(model.selection_.left_out) == {"ridge", "ridge, sharpness 3"}
    assert min(model.selection_.left_out.values()) > 1
    assert model.selection_.shares == {"boosting": 1.0, "ridge": 0.0, "ridge, sharpness 3": 0.0}
    assert "too far from boosting on the target: ridge" in model.selection_.reason
    assert model.selection_.errors == usual.selection_.errors
    boosting = PooledRegressor("boosting", 0).fit(X, y, domain)
    assert np.ptp(model.predict(target + 30.0)) <= np.ptp(boosting.predict(X)) + 1


def test_a_constant_is_taken_where_columns_mislead() -> None:
    rng = np.random.default_rng(0)
    signs = dict(zip("abcdef", (1, -1, 1, -1, 1, -1), strict=True))
    x = {name: rng.normal(size=(60, 2)) for name in signs}
    parts = {name: (x[name], signs[name] * x[name][:, 0]) for name in signs}
    X, y, domain = stack_domains(parts, target=rng.normal(size=(60, 2)))
    names = ["boosting", "ridge", "constant"]
    model = AutoTransferRegressor(names, random_state=0).fit(X, y, domain)
    assert model.selection_.chosen == "constant"


def test_bad_options_are_named() -> None:
    X, y, domain, _ = world(linear)
    for options, message in (
        ({"candidates": ["boostin"]}, "'boostin' is not known"),
        ({"candidates": []}, "expected different names"),
        ({"combine": "vote"}, "combine: expected one of"),
    ):
        with pytest.raises(ArgumentError, match=message):
            AutoTransferRegressor(**options).fit(X, y, domain)
    assert next(iter(CANDIDATES)) == "boosting"
