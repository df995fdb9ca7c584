"""`AutoTransferRegressor`: the right learner is found, the target's labels are never read."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor

from vntransfer import (
    AutoTransferRegressor,
    DANNRegressor,
    MomentAlignmentRegressor,
    PooledRegressor,
    load,
)
from vntransfer import stack as stack_domains
from vntransfer.adaptation.candidates import CANDIDATES
from vntransfer.adaptation.guarded_choice import stack
from vntransfer.errors import ArgumentError, DataError, NumericalWarning

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
    names = ["boosting", "ridge", "source_only", "align"]
    options: dict[str, Any] = {"combine": "mean", "temperature": 5.0, "random_state": 0}
    model = AutoTransferRegressor(names, **options).fit(X, y, domain)
    assert set(model.models_) == set(names)  # so warm that all have a share
    assert all(np.isfinite(list(own.values())).all() for own in model.selection_.errors.values())
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(target), model.predict(target))
    assert again.selection_ == model.selection_
    assert again.source_weights_ == model.source_weights_
    moved = load(tmp_path / "m", device="cpu:0")
    assert {moved.models_[name].device for name in ("source_only", "align")} == {"cpu:0"}
    np.testing.assert_array_equal(moved.predict(target), model.predict(target))
    for part in (tmp_path / "m").glob("model-*"):
        whole = part.read_bytes()
        part.write_bytes(whole[:-1])
        with pytest.raises(DataError, match=r"does not match model\.json"):
            load(tmp_path / "m")
        part.write_bytes(whole)


def test_a_choice_takes_the_place_of_another(tmp_path: Path) -> None:
    X, y, domain, target = world(linear)
    wide = AutoTransferRegressor(CHEAP, combine="mean", temperature=5.0, random_state=0)
    narrow = AutoTransferRegressor(["ridge"], random_state=0)
    for model in (wide, narrow):
        model.fit(X, y, domain).save(tmp_path)
        np.testing.assert_array_equal(load(tmp_path).predict(target), model.predict(target))
    assert len(list(tmp_path.iterdir())) == 2  # a record and ridge regression


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
    for ratio, spread, worse in (
        (0.1, 0.05, True),
        (0.01, 0.05, False),
        (-0.1, 0.05, False),
        (3.0, 4.0, True),  # no doubt excuses so much
    ):
        assert replace(found, ratio=ratio, standard_error=spread).worse == worse


def test_a_virtual_target_without_errors_does_not_rule_the_stack() -> None:
    rng = np.random.default_rng(0)
    truth = [rng.normal(size=200) for _ in range(5)]
    predicted = [np.stack((y + 1, y + 0.1)) for y in truth[:4]]
    for least in (0.0, 1e-6, 1e-3):
        easy = np.stack((truth[4] + least, truth[4] + 0.002))
        found = stack([*predicted, easy], truth)
        assert found.weights[1] > 0.9
        assert not found.worse


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


def test_a_candidate_that_was_far_better_may_be_farther_away() -> None:
    rng = np.random.default_rng(1)
    slope = rng.normal(size=4) * 3
    parts = {}
    for k in range(4):
        x = rng.normal(rng.normal(size=4) * 2, 1, size=(40, 4))
        parts[str(k)] = (x, x @ slope + 0.2 * rng.normal(size=40))
    target = rng.normal(
        5 * np.sign(slope), 1, size=(40, 4)
    )  # beyond all sources, where boosting is wrong
    X, y, domain = stack_domains(parts, target=target)
    model = AutoTransferRegressor(["boosting", "ridge"], random_state=0).fit(X, y, domain)
    boosting, ridge = (model.candidates_held_out_[name] for name in ("boosting", "ridge"))
    sources = [domain == name for name in parts]
    errors = np.array([[np.abs(p[v] - y[v]).mean() for p in (boosting, ridge)] for v in sources])
    assert (errors[:, 0] / errors[:, 1]).min() > 3
    seen = max(np.abs(boosting[v] - ridge[v]).mean() for v in sources)
    safe = PooledRegressor("boosting", 0).fit(X, y, domain)
    assert np.abs(safe.predict(target) - target @ slope).mean() > seen  # without example
    assert model.selection_.left_out == {}
    assert np.abs(model.predict(target) - target @ slope).mean() < 1


def test_two_sources_do_not_judge_weights_or_alignment() -> None:
    X, y, domain, _ = world(linear, 30)
    two = np.isin(domain, ["a", "b", "target"])
    model = AutoTransferRegressor(random_state=0).fit(X[two], y[two], domain[two])
    assert model.selection_.candidates == ("boosting", "ridge", "constant", "source_only")
    assert "cannot be judged with two sources" in model.selection_.reason
    named = AutoTransferRegressor(CHEAP, random_state=0).fit(X[two], y[two], domain[two])
    assert named.selection_.candidates == tuple(CHEAP)


class Failing(DummyRegressor):  # type: ignore[misc]
    """Predicts what is not a number."""

    def predict(self, X: Any) -> Any:
        return np.full(len(X), np.nan)


def test_a_candidate_that_fails_is_not_used_and_spoils_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y, domain, target = world(steps)
    usual = AutoTransferRegressor(["boosting", "constant"], random_state=0).fit(X, y, domain)
    monkeypatch.setitem(CANDIDATES, "ridge", partial(PooledRegressor, Failing()))
    with pytest.warns(NumericalWarning, match="failed on a virtual target and is not used"):
        model = AutoTransferRegressor(["boosting", "ridge", "constant"], random_state=0).fit(
            X, y, domain
        )
    assert model.selection_.shares["ridge"] == 0
    assert np.isinf(model.selection_.scores["ridge"])
    assert np.abs(model.predict(target) - usual.predict(target)).mean() < 0.1
    with pytest.raises(DataError, match="the prediction of row 0 is nan"):
        AutoTransferRegressor(["ridge", "boosting"], random_state=0).fit(X, y, domain)


def test_of_many_sources_some_play_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vntransfer.adaptation._selection.MOST", 3)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(7 * 8, 2))
    y, domain = x @ [1.0, 2.0], np.repeat(np.arange(7) - 1, 8)
    model = AutoTransferRegressor(["boosting", "ridge", "source_only", "align"], random_state=0)
    model.fit(x, y, domain)
    assert list(model.selection_.errors) == [0, 2, 4]
    assert list(model.source_weights_) == list(range(6))
    assert set(domain[~np.isnan(model.held_out_)]) == {0, 2, 4}
    assert "over 3 virtual targets" in model.selection_.reason
    alone = MomentAlignmentRegressor(epochs=2, random_state=0).fit(x, y, domain)
    assert list(alone.selection_.ratios) == [0, 2, 4]
    merged = DANNRegressor(trade_off="auto", epochs=2, random_state=0).fit(x, y, domain)
    assert list(merged.selection_.ratios) == [0, 2, 4]
    model.save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path).predict(x), model.predict(x))


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
        ({"candidates": ["boostin"]}, "candidates: .*got 'boostin'; did you mean 'boosting'"),
        ({"candidates": []}, "expected different names"),
        ({"candidates": "ridge"}, "candidates: expected a list of names, got 'ridge'"),
        ({"combine": "vote"}, r"combine: expected one of .*, got 'vote'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            AutoTransferRegressor(**options).fit(X, y, domain)
    assert next(iter(CANDIDATES)) == "boosting"
