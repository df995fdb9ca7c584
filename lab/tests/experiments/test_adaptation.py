"""The experiment ``adaptation``: rows, hidden responses, comparisons, presets."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from lab_helpers.runs import changed, final
from vntransfer.adaptation import METHODS, AdaptationMethod
from vntransfer.adaptation.auto import AutoSelection
from vntransfer.domains import stack
from vntransfer.step_times import StepTimes
from vntransfer_lab.data import Domains, load
from vntransfer_lab.errors import PresetError
from vntransfer_lab.experiments import adaptation
from vntransfer_lab.experiments.adaptation_options import late
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.schema import resolve, schema
from vntransfer_lab.runner.workers import compute

SMALL = {"data": "synthetic", "rows": 40, "common.epochs": 1}
RIVALS = ("constant", "source_only", "source_only_5", "weighted_boosting", "catboost", "oracle")
ARCHIVED = Path(__file__).parents[2] / "results" / "mdd-ablation" / "cells.parquet"
VARIED = {name for name in adaptation.VARIANTS if name not in RIVALS}


preset = partial(changed, "adaptation")


def cell(method: str, *, target: str = "s2", seed: int = 0, **settings: Any) -> Cell:
    changes = {"methods": [method], "targets": [target], "seeds": [seed]}
    (found,) = expand(preset(**changes, settings=SMALL | settings))
    return found


def test_every_method_of_the_registry_takes_part_with_its_defaults() -> None:
    kind = load_kind("adaptation")
    assert set(kind.methods) == {*METHODS, *RIVALS, *VARIED}
    chosen = {"auto", "weighted_boosting", "catboost"}  # only where all methods choose by one rule
    archived = {*METHODS, *RIVALS} - {"closed_form"}  # which came after the archived runs
    assert set(preset().methods) == archived - chosen
    assert set(changed("protocol-adaptation").methods) == archived
    whole = preset(methods=list(METHODS)).methods
    for name in METHODS:
        made = adaptation._make(name, whole[name], 7, None).get_params()
        assert made == METHODS[name].make(**late(name)).get_params() | {"random_state": 7}
        assert "random_state" not in kind.methods[name].options.model_fields


@pytest.mark.skipif(not ARCHIVED.exists(), reason="archived results are not in the distribution")
def test_archived_cells_keep_their_names_though_options_were_removed() -> None:
    cells = pq.read_table(ARCHIVED, columns=["method", "hyper"]).to_pylist()
    for method, hyper in {(cell["method"], cell["hyper"]) for cell in cells}:
        own, given = load_kind("adaptation").methods[method], json.loads(hyper)
        named = own.named(dict(own.options(**given)))
        assert json.loads(json.dumps(named)) == given


def test_catboost_sees_the_sources_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Recorder:
        options: dict[str, Any]
        x: Any
        y: Any

        def __init__(self, **options: Any) -> None:
            type(self).options = options

        def fit(self, x: Any, y: Any) -> Self:
            type(self).x, type(self).y = x, y
            return self

        def predict(self, x: Any) -> Any:
            return np.asarray(x)[:, 0]

    monkeypatch.setitem(sys.modules, "catboost", SimpleNamespace(CatBoostRegressor=Recorder))
    own = cell("catboost", seed=3)
    rows = adaptation.problem(own)
    found = adaptation._fit(own, rows, None)
    assert Recorder.options["random_seed"] == 3
    np.testing.assert_array_equal(Recorder.x, np.vstack([x for x, _ in rows.sources.values()]))
    np.testing.assert_array_equal(Recorder.y, rows.labels)
    np.testing.assert_array_equal(found.predicted, rows.x_test[:, 0])


def test_catboost_that_is_missing_is_an_error_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "catboost", None)
    own = cell("catboost")
    with pytest.raises(PresetError, match=r"methods\.catboost.*lab\[bench\]"):
        adaptation._fit(own, adaptation.problem(own), None)


def test_the_ablation_leads_from_the_paper_to_ours_and_takes_cells_from_the_big_table() -> None:
    ablation, kind = changed("mdd-ablation"), load_kind("adaptation")
    varied = {name for name in VARIED if name.startswith(("align", "mdd"))} - {"mdd_published"}
    assert set(ablation.methods) == {"source_only", "source_only_5", "align", "mdd_paper", *varied}
    for name in VARIED:
        base, options = adaptation.VARIANTS[name]
        own, plain = (dict(kind.methods[of].options()) for of in (name, base))
        assert {k: v for k, v in own.items() if v != plain[k]} == options
    shared: dict[str, Any] = {"methods": ["align", "mdd_paper"], "seeds": [0]}
    shared["settings"] = {"data": "synthetic"}
    keys = [
        {c.key for c in expand(changed(name, **shared))} for name in ("mdd-ablation", "adaptation")
    ]
    assert keys[0] == keys[1]


@pytest.mark.parametrize("method", load_kind("adaptation").methods)
def test_every_method_gives_finite_errors_in_both_units(method: str) -> None:
    if method == "catboost":
        pytest.importorskip("catboost")  # in the extra `bench`
    found = cell(method)
    row = final(found)
    labels = np.concatenate([y for _, y in adaptation.problem(found).sources.values()])
    assert row["mae_raw"] == pytest.approx(row["mae"] * labels.std())
    assert row["rmse_raw"] == pytest.approx(row["rmse"] * labels.std())
    assert row["rmse"] >= row["mae"] > 0


def test_constant_is_the_median_of_the_sources() -> None:
    found = cell("constant", rows=0)
    domains = load("synthetic")
    y = np.concatenate([domains[name][1] for name in domains if name != "s2"])
    error = np.abs(domains["s2"][1] - np.median(y)).mean()
    assert final(found)["mae_raw"] == pytest.approx(error)


def test_all_methods_and_seeds_get_the_same_rows() -> None:
    one, other = (
        adaptation.problem(cell(method, seed=seed)) for method, seed in (("darn", 0), ("dann", 3))
    )
    assert list(one.sources) == ["s1", "s3", "s4", "s5", "s6"]
    for name, (x, y) in one.sources.items():
        assert len(y) == 40
        np.testing.assert_array_equal(x, other.sources[name][0])
        np.testing.assert_array_equal(y, other.sources[name][1])
    np.testing.assert_array_equal(one.x, other.x)
    assert one.x_test is one.x


def test_held_out_rows_are_not_among_those_seen() -> None:
    rows = adaptation.problem(cell("darn", held_out=0.25))
    assert (len(rows.y), len(rows.y_test)) == (30, 10)
    whole = adaptation.problem(cell("darn"))
    together = np.concatenate([rows.x, rows.x_test])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(whole.x, axis=0))
    assert final(cell("oracle", held_out=0.25))["mae"] > 0


@pytest.mark.parametrize("method", ["source_only", "mdd_paper", "source_only_5"])
def test_the_responses_of_the_target_are_read_for_the_score_alone(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = cell(method, history=True)
    clean = final(found)
    domains = dict(load("synthetic"))
    x, y = domains["s2"]
    domains["s2"] = x, y + 1e6
    monkeypatch.setattr(adaptation, "_domains", lambda data: Domains(data, domains))
    shifted = final(found)
    errors = {"mae", "rmse", "mae_raw", "rmse_raw"}
    assert {k: v for k, v in shifted.items() if k not in errors} == {
        k: v for k, v in clean.items() if k not in errors
    }
    # every prediction stays below the shifted responses, so the error is a mean difference
    assert shifted["mae_raw"] == pytest.approx(1e6, rel=1e-3)


class Memory(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Knows the response of each row it was trained on, and 0 for all others."""

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> Self:
        self.known_ = {row.tobytes(): value for row, value in zip(X, y, strict=True)}
        self.step_times_ = StepTimes()
        return self

    def predict(self, X: Any) -> Any:
        return np.array([self.known_.get(row.tobytes(), 0.0) for row in X])


@pytest.mark.parametrize("held_out", [0.0, 0.5])
@pytest.mark.parametrize("folds", [2, 5])
def test_the_oracle_is_never_scored_on_rows_it_was_trained_on(
    held_out: float, folds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, "source_only", AdaptationMethod(Memory, "memory"))  # type: ignore[arg-type]
    found = replace(cell("oracle", held_out=held_out), hyper={"folds": folds})
    y = adaptation.problem(found).y_test
    assert final(found)["mae_raw"] == pytest.approx(np.abs(y).mean())
    own = Memory().fit(*(rows := adaptation.problem(found)).sources["s1"])
    assert np.abs(own.predict(rows.sources["s1"][0]) - rows.sources["s1"][1]).max() == 0


def test_the_ensemble_is_the_mean_of_five_networks() -> None:
    found = cell("source_only_5")
    rows = adaptation.problem(found)
    x, y, domain = stack(rows.sources, target=rows.x)
    batched = METHODS["source_only"].make(epochs=1, members=5, random_state=0)
    together = batched.fit(x, y, domain).predict(rows.x)
    assert final(found)["mae_raw"] == pytest.approx(np.abs(together - rows.y).mean())


def test_history_holds_every_epoch_and_weights_on_the_simplex() -> None:
    settings = {"history": True, "common.epochs": 3}
    rows = compute(cell("mdd_paper", **settings)).rows
    weights: dict[int, list[float]] = {}
    for step, name, value in rows:
        if name.startswith("weight/"):
            weights.setdefault(step, []).append(value)
    assert sorted(weights) == [1, 2, 3]
    assert all(len(w) == 5 and sum(w) == pytest.approx(1) for w in weights.values())
    assert {step for step, name, _ in rows if name == "loss"} == {1, 2, 3}
    assert {step for step, name, _ in rows if name == "mae"} == {3}
    short = compute(cell("mdd_paper", **settings | {"history": False})).rows
    assert {step for step, _, _ in short} == {3}
    same = {name: value for step, name, value in rows if step == 3}
    assert {name: same[name] for _, name, _ in short} == {n: v for _, n, v in short}


@pytest.mark.parametrize(
    ("weights", "learned"),
    [([0.5, 0.5], 0.0), ([0.25, 0.75], 0.0), ([0.4, 0.6], 1.0)],
)
def test_weights_that_only_count_rows_are_not_learned(weights: list[float], learned: float) -> None:
    x = np.zeros((4, 1))
    sources = {"a": (x[:1], np.zeros(1)), "b": (x[:3], np.zeros(3))}
    rows = adaptation.CellRows(sources, x, x[:, 0], x, x[:, 0])
    model = SimpleNamespace(source_weights_=dict(zip("ab", weights, strict=True)))
    record = adaptation.weight_record(model, rows)
    assert record == {
        "weight/a": weights[0],
        "weight/b": weights[1],
        "learned_weights": learned,
    }


def test_what_a_method_chose_is_recorded() -> None:
    assert adaptation.selection_record(object()) == {}
    for shares, adapted in (([0.6, 0.4], 0.0), ([0.4, 0.6], 1.0), ([0.5, 0.5], 0.0)):
        names = ("source_only", "trade_off=1")
        selection = SimpleNamespace(candidates=names, shares=dict(zip(names, shares, strict=True)))
        assert adaptation.selection_record(SimpleNamespace(selection_=selection)) == {
            "share/source_only": shares[0],
            "share/trade_off=1": shares[1],
            "adapted": adapted,
        }


def test_a_mean_of_learners_adapted_if_alignment_is_most_of_it() -> None:
    names = ("boosting", "ridge", "source_only", "align")
    for shares, adapted in (
        ((1, 0, 0, 0), 0.0),
        ((0.3, 0, 0.7, 0), 0.0),
        ((0.4, 0, 0, 0.6), 1.0),
    ):
        selection = AutoSelection(candidates=names, shares=dict(zip(names, shares, strict=True)))
        found = adaptation.selection_record(SimpleNamespace(selection_=selection))
        assert found["adapted"] == adapted


def test_a_sharpness_that_was_taken_is_recorded() -> None:
    for taken, adapted in ((0.0, 0.0), (3.0, 1.0)):
        selection = SimpleNamespace(candidates=(0.0, 3.0), sharpness=taken)
        assert adaptation.selection_record(SimpleNamespace(selection_=selection)) == {
            "share/sharpness=0": 1 - adapted,
            "share/sharpness=3": adapted,
            "adapted": adapted,
        }
    fixed = SimpleNamespace(candidates=(), sharpness=1.0)
    assert adaptation.selection_record(SimpleNamespace(selection_=fixed)) == {}


class Tuned(Memory):
    """An estimator whose numbers have words in their place."""

    def __init__(
        self, rate: float | None = None, alpha: float | str = "auto", net: object = None
    ) -> None:
        self.rate, self.alpha, self.net = rate, alpha, net


def test_words_stand_for_numbers_that_an_estimator_chooses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(METHODS, "tuned", AdaptationMethod(Tuned, "tuned"))  # type: ignore[arg-type]
    options = schema(**adaptation.options_of("tuned"))
    assert resolve(options, {}, "tuned") == {"rate": "none", "alpha": "auto"}
    assert resolve(options, {"rate": 2}, "tuned")["rate"] == 2.0
    given = {"rate": "none", "alpha": 0.5}
    model = adaptation._make("tuned", given, seed=0, checkpoint=None)
    assert (model.rate, model.alpha) == (None, 0.5)


def test_seeds_differ_and_repeat() -> None:
    errors = [final(cell("darn", seed=seed))["mae"] for seed in (0, 1, 0)]
    assert errors[0] == errors[2] != errors[1]


def test_data_that_has_no_domains_is_refused() -> None:
    with pytest.raises(PresetError, match=r"two domains.*'2dplanes'"):
        expand(preset(settings={"data": "2dplanes"}))


def test_sparse_rows_are_read_and_told_apart(real: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VNT_DATA", str(real))
    settings = SMALL | {"data": "amazon4"}
    changes = {"methods": ["constant", "darn", "oracle"], "targets": ["dvd"], "seeds": 1}
    found = expand(preset(**changes, settings=settings))
    assert len({c.data_hash for c in found}) == 1
    assert found[0].data_hash != cell("darn").data_hash
    for c in found:
        row = final(c)
        assert 0 < row["mae"] < 3
        assert {k for k in row if k.startswith("weight/")} == (
            {"weight/books", "weight/electronics", "weight/kitchen"}
            if c.method == "darn"
            else set()
        )


def test_common_options_go_to_those_that_have_them_and_own_ones_win() -> None:
    changed = preset(settings={"common.lr": 0.5, "common.trade_off": 0.25, "methods.darn.lr": 2})
    assert changed.methods["constant"] == {}
    assert changed.methods["source_only"]["lr"] == changed.methods["dann"]["lr"] == 0.5
    assert (changed.methods["darn"]["lr"], changed.methods["darn"]["trade_off"]) == (2.0, 0.25)
    assert "trade_off" not in changed.methods["source_only"]
    auto = preset(settings={"common.trade_off": "auto"})
    assert auto.methods["darn"]["trade_off"] == "auto"
    with pytest.raises(PresetError, match=r"common: .*'epoch'.*'epochs'"):
        preset(settings={"common.epoch": 1})
    with pytest.raises(PresetError, match=r"darn.trade_off: .*auto.*'x'"):
        preset(settings={"methods.darn.trade_off": "x"})
    with pytest.raises(PresetError, match=r"methods: .*'darm'.*'darn'"):
        preset(settings={"methods.darm.lr": 1})


def paper_rows(name: str) -> Iterator[tuple[str, dict[str, float]]]:
    for targets in changed(name).paper["values"].values():
        for target, row in targets.items():
            yield target, {method: next(iter(numbers.values())) for method, numbers in row.items()}


@pytest.mark.parametrize(
    ("name", "count", "mean"),
    [("amazon", 49, 0.73594), ("yearpredictionmsd", 33, 16.21818), ("ct_slices", 30, 7.45567)],
)
def test_the_papers_numbers_are_what_its_text_says_of_them(
    name: str, count: int, mean: float
) -> None:
    rows = dict(paper_rows(name))
    best = {target for target, row in rows.items() if min(row, key=lambda m: row[m]) == "mdd_paper"}
    assert set(rows) - best == ({"dom3"} if name == "yearpredictionmsd" else set())
    numbers = [number for row in rows.values() for number in row.values()]
    assert len(numbers) == count
    assert np.mean(numbers) == pytest.approx(mean, abs=1e-5)
