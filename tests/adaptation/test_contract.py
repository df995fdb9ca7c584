"""What every method of the registry keeps."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from helpers.saved import contents
from helpers.worlds import easy, hard
from vntransfer.adaptation import METHODS, DomainRegressor
from vntransfer.adaptation._objective import Objective, Setup
from vntransfer.divergences import DIVERGENCES
from vntransfer.errors import ArgumentError, DomainError

NEURAL = [name for name, entry in METHODS.items() if entry.neural]
every_method = pytest.mark.parametrize("method", NEURAL)
SHORT: dict[str, Any] = {"epochs": 2, "steps": 8, "batch_size": 16, "random_state": 0}
METRICS = [name for name, entry in DIVERGENCES.items() if entry.metric]
WEIGHTED = ["align", "mdd_paper", "mdan_dyn", "ahd_msda", "darn"]


def short(method: str, **options: Any) -> DomainRegressor:
    """A short fit; of the default MDD one that adapts, whatever its selection would say."""
    fixed = {"trade_off": 1.0, "members": 2} if method == "align" else {}
    return METHODS[method].make(**{**SHORT, **fixed, **options})


def parameters(model: DomainRegressor) -> bytes:
    return b"".join(p.detach().numpy().tobytes() for p in model.net_.parameters())


@every_method
def test_same_seed_same_result_and_global_state_untouched(method: str) -> None:
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    X, y, domain = easy()
    one, two = (short(method).fit(X, y, domain) for _ in range(2))
    other = short(method, random_state=1).fit(X, y, domain)
    assert parameters(one) == parameters(two) != parameters(other)
    assert one.history_ == two.history_
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002


@every_method
def test_target_responses_are_never_read(method: str) -> None:
    X, y, domain = easy()
    clean = short(method).fit(X, y, domain)
    poison = np.resize([1e300, -np.inf, 0.0, np.nan, 5.0], len(y))
    poisoned = short(method).fit(X, np.where(domain == "target", poison, y), domain)
    assert parameters(poisoned) == parameters(clean)
    assert poisoned.history_ == clean.history_


@every_method
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hard_data_stay_finite(method: str, dtype: type) -> None:
    X, y, domain = hard()
    model = short(method, epochs=4).fit(X.astype(dtype), y, domain)
    for record in model.history_:
        assert all(math.isfinite(v) for v in record.values() if isinstance(v, float))
        assert sum(record["weights"].values()) == pytest.approx(1, abs=1e-5)
    assert all(p.isfinite().all() for p in model.net_.parameters())
    assert np.isfinite(model.predict(X)).all()


@every_method
def test_weights_are_on_the_simplex_at_every_step(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[torch.Tensor] = []
    fixed = {} if method == "source_only" else {"trade_off": 1.0}
    model = METHODS[method].make(**fixed)
    kind = type(model._objective(Setup(3, 24, 1, torch.Generator())))
    after_step = kind.after_step

    def watched(self: Objective) -> None:
        after_step(self)
        seen.append(self.weights.clone())

    monkeypatch.setattr(kind, "after_step", watched)
    for world in (easy(), hard()):
        short(method, **fixed).fit(*world)
    assert len(seen) == 2 * 2 * 8
    for weights in seen:
        assert float(weights.min()) >= 0
        assert weights.sum(-1).tolist() == pytest.approx([1.0] * len(weights), abs=1e-5)


@pytest.mark.parametrize("divergence", METRICS)
@pytest.mark.parametrize("method", ["align", "mdd_paper"])
def test_metrics_align_as_well(method: str, divergence: str) -> None:
    X, y, domain = hard()
    model = short(method, divergence=divergence).fit(X, y, domain)
    assert all(0 < record["discrepancy"] < math.inf for record in model.history_)
    assert np.isfinite(model.predict(X)).all()


@every_method
def test_permuting_sources_permutes_weights(method: str) -> None:
    X, y, domain = easy()
    turned = {"a": "c", "b": "a", "c": "b", "target": "target"}
    one = short(method).fit(X, y, domain)
    two = short(method).fit(X, y, np.array([turned[name] for name in domain]))
    for name, weight in one.source_weights_.items():
        assert two.source_weights_[turned[name]] == pytest.approx(weight, abs=2e-3)
    np.testing.assert_allclose(one.predict(X), two.predict(X), atol=2e-2)


@pytest.mark.parametrize("method", WEIGHTED)
def test_equal_sources_get_equal_weights(method: str) -> None:
    X, y, domain = hard()
    weights = short(method).fit(X, y, domain).source_weights_
    assert weights["twice"] == pytest.approx(weights["again"], abs=1e-4)


@pytest.mark.parametrize("method", ["dann", "ahd_1s"])
def test_merged_sources_are_one_source(method: str) -> None:
    X, y, domain = easy()
    many = short(method).fit(X, y, domain)
    one = short(method, batch_size=3 * 16).fit(X, y, np.where(domain == "target", -1, 0))
    assert parameters(many) == parameters(one)
    assert many.source_weights_ == pytest.approx({"a": 60 / 180, "b": 50 / 180, "c": 70 / 180})


@every_method
def test_sparse_equals_dense(method: str) -> None:
    X, y, domain = easy()
    X = np.where(X > 0, X, 0.0)
    dense = short(method).fit(X, y, domain)
    sparse = short(method).fit(scipy.sparse.csr_array(X), y, domain)
    np.testing.assert_allclose(
        sparse.predict(scipy.sparse.csr_array(X)), dense.predict(X), atol=5e-2
    )


@every_method
def test_several_responses(method: str) -> None:
    X, y, domain = easy()
    model = short(method).fit(X, np.stack((y, -y), 1), domain)
    assert model.predict(X[:7]).shape == (7, 2)


@every_method
def test_without_domains_it_is_plain_regression(method: str) -> None:
    X, y, domain = easy()
    X, y = X[domain != "target"], y[domain != "target"]
    model = METHODS[method].make(random_state=0, epochs=10).fit(X, y)
    assert model.source_weights_ == {0: 1.0}
    assert model.score(X, y) > 0.9


@every_method
def test_integers_and_names_are_the_same(method: str) -> None:
    X, y, domain = easy()
    ids = {"a": 0, "b": 5, "c": 7, "target": -3}
    named = short(method).fit(X, y, domain)
    numbered = short(method).fit(X, y, [ids[name] for name in domain])
    renamed = np.where(domain == "target", "z", domain)
    told = short(method).fit(X, y, renamed, target="z")
    assert parameters(named) == parameters(numbered) == parameters(told)
    assert list(numbered.source_weights_) == [0, 5, 7]


@every_method
def test_progress_and_step_times(method: str) -> None:
    X, y, domain = easy()
    told: list[Any] = []
    model = short(method, epochs=3).fit(X, y, domain, progress=lambda *seen: told.append(seen))
    assert told == [("epochs", i + 1, 3) for i, _ in enumerate(model.history_)]
    assert model.step_times_.made == 8 * len(told)
    assert model.step_times_.timed == model.step_times_.made - 1


@every_method
def test_copies(method: str) -> None:
    X, y, domain = easy()
    model = short(method).fit(X, y, domain)
    np.testing.assert_array_equal(copy.deepcopy(model).predict(X), model.predict(X))


def test_domains_without_target_are_refused_where_one_is_needed() -> None:
    X, y, domain = easy()
    sources = domain != "target"
    with pytest.raises(DomainError, match=r"no target among \['a', 'b', 'c'\]"):
        short("coral").fit(X[sources], y[sources], domain[sources])
    short("source_only").fit(X[sources], y[sources], domain[sources])


def test_unlabeled_source_rows_are_refused() -> None:
    X, y, domain = easy()
    y[0] = np.nan
    with pytest.raises(ValueError, match="y contains NaN"):
        short("source_only").fit(X, y, domain)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("source_only", {"loss": "mae"}, "loss: expected one of"),
        ("source_only", {"epochs": 0}, "epochs: expected a whole number"),
        ("source_only", {"batch_size": 1}, "batch_size: expected a whole number"),
        ("source_only", {"lr": 0}, "lr: expected a finite number above 0"),
        ("source_only", {"average": 2}, "average: expected a number"),
        ("mdd_paper", {"weight_update": "momentum"}, "weight_update: expected one of"),
        ("mdd_paper", {"trade_off": -1}, "trade_off: expected a finite number"),
        ("mdan_max", {"index": "three"}, "index: expected one of"),
        ("ahd_msda", {"sources": "some"}, "sources: expected one of"),
        ("darn", {"sharpness": 0}, "sharpness: expected"),
        ("dare_gram", {"share": 1.0}, "share: expected a number below 1"),
    ],
)
def test_wrong_options_are_named(method: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        short(method, **options).fit(*easy())


@pytest.mark.parametrize("method", ["weighted", "ridge", "boosting", "closed_form"])
def test_classical_learners_keep_to_the_rules_too(method: str, tmp_path: Any) -> None:
    from vntransfer import load

    X, y, domain = easy()
    model = METHODS[method].make(random_state=0).fit(X, y, domain)
    poison = np.resize([1e300, -np.inf, 0.0, np.nan, 5.0], len(y))
    poisoned = METHODS[method].make(random_state=0)
    poisoned.fit(X, np.where(domain == "target", poison, y), domain)
    np.testing.assert_array_equal(model.predict(X), poisoned.predict(X))
    assert sum(model.source_weights_.values()) == pytest.approx(1)
    model.save(tmp_path / "clean")
    poisoned.save(tmp_path / "poisoned")
    assert contents(tmp_path / "clean") == contents(tmp_path / "poisoned")
    np.testing.assert_array_equal(load(tmp_path / "clean").predict(X), model.predict(X))


def test_the_whole_of_the_default_is_reproducible_and_blind_to_the_target() -> None:
    X, y, domain = easy()
    told: list[Any] = []
    poison = np.where(domain == "target", np.resize([1e300, np.nan], len(y)), y)
    make = METHODS["align"].make
    one = make(**SHORT).fit(X, y, domain, progress=lambda *seen: told.append(seen))
    two = make(**SHORT).fit(X, poison, domain)
    assert parameters(one) == parameters(two)
    assert one.selection_ == two.selection_
    assert told == [("epochs", i, 4) for i in (1, 2, 3, 4)]  # two of the selection, half each
    assert one.step_times_.made >= 4 * SHORT["steps"]


def test_the_retired_id_names_both_methods() -> None:
    for use in (lambda: METHODS["mdd"], lambda: METHODS["mdd"].make(epochs=1)):
        with pytest.raises(ArgumentError, match=r"'mdd'.*'align'.*'mdd_paper'"):
            use()
    with pytest.raises(ArgumentError, match=r"method: expected one of .*got 'nothing'"):
        METHODS["nothing"]
