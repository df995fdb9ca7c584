"""`AutoTransferRegressor`: the right learner is found, the target's labels are never read."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.dummy import DummyRegressor

from vntransfer import (
    AutoTransferRegressor,
    DANNRegressor,
    MomentAlignmentRegressor,
    PooledRegressor,
    load,
)
from vntransfer import stack as stack_domains
from vntransfer.adaptation.blend import middle_average
from vntransfer.adaptation.candidates import CANDIDATES, DENSE
from vntransfer.errors import ArgumentError, DataError, NumericalWarning

CHEAP = ["boosting", "ridge", "weighted"]


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
    model = AutoTransferRegressor(["constant", "ridge", "boosting"], random_state=0)
    model.fit(X, y, domain)
    assert model.selection_.chosen == best
    assert sum(model.selection_.shares.values()) == pytest.approx(1)
    assert sum(model.source_weights_.values()) == pytest.approx(1)
    assert list(model.source_weights_) == list("abcd")
    reference = PooledRegressor("constant").fit(X, y, domain)
    errors = [np.abs(m.predict(target) - relation(target)).mean() for m in (model, reference)]
    assert errors[0] < 0.5 * errors[1]


def test_scores_are_the_errors_of_leaving_sources_out() -> None:
    X, y, domain, _ = world(linear)
    model = AutoTransferRegressor(CHEAP, random_state=0).fit(X, y, domain)
    others = (domain != "a") & (domain != "target")
    by_hand = PooledRegressor("ridge").fit(X[others], y[others]).predict(X[domain == "a"])
    by_hand = np.clip(by_hand, y[others].min(), y[others].max())
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
    model = AutoTransferRegressor(names, random_state=0).fit(X, y, domain)
    assert {"source_only", "align"} <= set(model.models_)  # networks always have a weight
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
    wide = AutoTransferRegressor(CHEAP, random_state=0)
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
    assert "at least two sources" in alone.selection_.reason


def test_two_sources_do_not_judge_alignment_and_sparse_rows_have_it() -> None:
    X, y, domain, _ = world(linear, 30)
    two = np.isin(domain, ["a", "b", "target"])
    model = AutoTransferRegressor(random_state=0).fit(X[two], y[two], domain[two])
    assert model.selection_.candidates == DENSE
    assert model.selection_.shares["source_only"] >= 0.2 - 1e-9
    sparse = scipy.sparse.csr_array(X)
    few = AutoTransferRegressor(random_state=0).fit(sparse[two], y[two], domain[two])
    assert "align" not in few.selection_.candidates
    every = AutoTransferRegressor(random_state=0).fit(sparse, y, domain)
    assert "align" in every.selection_.candidates
    named = AutoTransferRegressor(CHEAP, random_state=0).fit(X[two], y[two], domain[two])
    assert named.selection_.candidates == tuple(CHEAP)


def test_stars_in_sparse_rows_are_stretched_and_saved(tmp_path: Path) -> None:
    X, y, domain, target = world(linear, 80)
    stars = np.where(y > np.median(y[domain != "target"]), 5.0, 1.0)
    model = AutoTransferRegressor(["ridge", "boosting"], random_state=0)
    assert model.fit(X, stars, domain).bounds_.stretch.factor == 1  # dense rows are left alone
    model.fit(scipy.sparse.csr_array(X), stars, domain)
    assert model.bounds_.stretch.factor > 1
    assert set(model.selection_.shares) == {"ridge", "boosting"}
    model.save(tmp_path / "m")
    rows = scipy.sparse.csr_array(target)
    np.testing.assert_array_equal(load(tmp_path / "m").predict(rows), model.predict(rows))
    found = model.predict(rows)
    assert found.min() >= 1
    assert found.max() <= 5


def test_predictions_stay_within_the_responses_of_the_sources() -> None:
    X, y, domain, target = world(linear)
    model = AutoTransferRegressor(["ridge", "linear_trees"], random_state=0).fit(X, y, domain)
    known = y[domain != "target"]
    far = model.predict(target + 1e6)
    assert known.min() <= far.min() <= far.max() <= known.max()
    assert model.bounds_.limits == (known.min(), known.max())


def test_the_reason_is_a_sentence_with_numbers() -> None:
    X, y, domain, _ = world(linear)
    model = AutoTransferRegressor(["boosting", "ridge"], random_state=0).fit(X, y, domain)
    reason = model.selection_.reason
    found = re.search(
        r"models, mostly ridge.* its error is ([\d.]+) ± [\d.]+ % below boosting", reason
    )
    assert found is not None
    assert float(found[1]) > 20


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
    with pytest.warns(NumericalWarning, match=r"failed.*held-out source"):
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
    alone = MomentAlignmentRegressor(epochs=2, random_state=0).fit(x, y, domain)
    assert list(alone.selection_.ratios) == [0, 2, 4]
    merged = DANNRegressor(trade_off="auto", epochs=2, random_state=0).fit(x, y, domain)
    assert list(merged.selection_.ratios) == [0, 2, 4]
    model.save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path).predict(x), model.predict(x))


def test_bad_options_are_named() -> None:
    X, y, domain, _ = world(linear)
    for options, message in (
        ({"candidates": ["boostin"]}, "candidates: .*got 'boostin'; did you mean 'boosting'"),
        ({"candidates": []}, "expected different names"),
        ({"candidates": "ridge"}, "candidates: expected a list of names, got 'ridge'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            AutoTransferRegressor(**options).fit(X, y, domain)
    assert set(DENSE) <= set(CANDIDATES)


def test_progress_names_the_parts_and_counts_all_of_them_to_the_end() -> None:
    X, y, domain, _ = world(linear)
    seen: dict[str, list[tuple[int, int | None]]] = {}

    def watch(what: str, done: int, total: int | None) -> None:
        seen.setdefault(what, []).append((done, total))

    names = ["source_only", "linear_trees", "ridge"]
    AutoTransferRegressor(names, random_state=0).fit(X, y, domain, progress=watch)
    every = seen.pop("all models")
    assert [done for done, _ in every] == sorted(done for done, _ in every)
    assert every[-1][0] == every[-1][1]
    assert {*names} == {what.split()[-1] for what in seen}
    assert all(own[-1][0] == own[-1][1] for own in seen.values())


def test_predictions_stay_nearer_the_reference_than_on_most_held_out_sources() -> None:
    X, y, domain, _ = world(linear)
    X[domain == "target"] *= 2  # far from all sources, where trees and ridge contradict each other
    names = ["boosting", "ridge"]
    model = AutoTransferRegressor(names, random_state=0).fit(X, y, domain)
    part, weights = model.bounds_.caution, model._shares()
    assert 0 < part < 1
    assert f"only {100 * part:.0f} % of its difference" in model.selection_.reason
    rows = X[domain == "target"]
    here = np.clip([own.predict(rows) for own in model.models_.values()], *model.bounds_.limits)
    held = [
        np.array([model.candidates_held_out_[name][domain == source] for name in names])
        for source in "abcd"
    ]
    taken = [np.abs(middle_average(p, weights) - p[0]).mean() for p in held]
    own = np.abs(model.predict(rows) - here[0]).mean()
    assert own == pytest.approx(np.quantile(taken, 0.25))
    shares = np.array(list(model.source_weights_.values()))
    assert shares.sum() == pytest.approx(1)
