"""Ensembles, selection without target labels, several targets, later targets, own modules."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from worlds import easy

from vntransfer.adaptation import (
    METHODS,
    DeepCORALRegressor,
    MatrixDiscrepancyRegressor,
    SourceOnlyRegressor,
)
from vntransfer.adaptation._objective import Setup
from vntransfer.domains import stack
from vntransfer.errors import ArgumentError, DomainError

SHORT: dict[str, Any] = {"epochs": 2, "steps": 8, "batch_size": 16, "random_state": 0}
AUTO = ["mdd", "mdd_paper", "dann", "mdan_max", "mdan_dyn", "ahd_1s", "ahd_msda", "darn", "coral"]
AUTO += ["dare_gram"]


def test_members_differ_and_their_mean_is_predicted() -> None:
    X, y, domain = easy()
    model = SourceOnlyRegressor(members=3, bounded=False, **SHORT).fit(X, y, domain)
    scaled = torch.from_numpy(model._x_scaler.transform(X))[None]
    with torch.no_grad():
        every = model.net_(scaled)[:, 0, :, 0].double().numpy()
    assert np.abs(every[0] - every[1]).max() > 0.01
    mean = every.mean(0) * model._y_scaler.scale[0] + model._y_scaler.mean[0]
    np.testing.assert_allclose(model.predict(X), mean, rtol=1e-6)


@pytest.mark.parametrize("method", AUTO)
def test_every_method_selects_among_as_many_candidates(method: str) -> None:
    X, y, domain = easy()
    model = METHODS[method].make(trade_off="auto", **{**SHORT, "members": 1}).fit(X, y, domain)
    selection = model.selection_
    assert len(selection.candidates) == 5
    assert selection.candidates[0] == "source_only"
    assert sum(selection.shares.values()) == pytest.approx(1)
    assert set(selection.ratios) == {"a", "b", "c"}
    assert selection.scores["source_only"] == 0
    assert selection.reason
    assert sum(model.source_weights_.values()) == pytest.approx(1)
    assert len(model.net_.head.weight) == sum(share > 0 for share in selection.shares.values())


def test_selection_does_not_see_the_target() -> None:
    """The choice is made on the sources alone: another target leaves it as it is."""
    X, y, domain = easy()
    other = np.where((domain == "target")[:, None], X * [1, 1, 1, 1], X)
    one, two = (DeepCORALRegressor(trade_off="auto", **SHORT).fit(x, y, domain) for x in (X, other))
    assert one.selection_ == two.selection_


def test_selection_prefers_what_helps_and_refuses_what_hurts() -> None:
    """Where alignment removes what the response depends on, source-only is kept."""
    rng = np.random.default_rng(0)
    parts = {}
    for name, slope in (("a", 1.0), ("b", 2.0), ("c", 3.0), ("d", 4.0)):
        x = rng.normal(slope, 0.3, size=(200, 3))
        parts[name] = (x, 3 * x[:, 0])  # the response is in the shift itself
    X, y, domain = stack(parts, target=rng.normal(2.5, 0.3, size=(200, 3)))
    model = MatrixDiscrepancyRegressor(members=1, epochs=6, random_state=0).fit(X, y, domain)
    shares = model.selection_.shares
    assert shares["trade_off=10"] < 0.5
    assert model.selection_.scores["trade_off=10"] > -0.1


def test_one_source_is_source_only() -> None:
    X, y, domain = easy()
    keep = np.isin(domain, ["a", "target"])
    model = MatrixDiscrepancyRegressor(**SHORT).fit(X[keep], y[keep], domain[keep])
    assert model.selection_.chosen == "source_only"
    assert "one source" in model.selection_.reason
    plain = SourceOnlyRegressor(members=5, **SHORT).fit(X[keep], y[keep], domain[keep])
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))


@pytest.mark.parametrize("method", ["mdd", "ahd_msda", "dann"])
def test_several_targets_have_their_own_weights_and_networks(method: str) -> None:
    X, y, domain = easy()
    both = np.where(domain == "c", "other", domain)
    y = np.where(both == "other", np.nan, y)
    options = {**SHORT, "trade_off": 0.1, "members": 2}
    model = METHODS[method].make(**options).fit(X, y, both, target=["target", "other"])
    assert set(model.source_weights_) == {"target", "other"}
    for weights in model.source_weights_.values():
        assert set(weights) == {"a", "b"}
        assert sum(weights.values()) == pytest.approx(1)
    one, two = (model.predict(X, target=name) for name in ("target", "other"))
    assert np.abs(one - two).max() > 1e-4
    with pytest.raises(ArgumentError, match="say whose rows these are"):
        model.predict(X)
    with pytest.raises(ArgumentError, match="expected one of"):
        model.predict(X, target="a")
    numbers = np.select([both == "a", both == "b", both == "target"], [0, 1, -1], -2)
    again = METHODS[method].make(**options).fit(X, y, numbers)
    assert list(again.source_weights_) == [-1, -2]


def test_several_targets_are_as_if_each_were_alone() -> None:
    """Networks of different targets do not touch each other: equal rows, equal networks."""
    X, y, domain = easy()
    own = domain == "target"
    X = np.concatenate((X, X[own]))
    y = np.concatenate((y, y[own]))
    both = np.concatenate((domain, np.full(own.sum(), "twin")))
    options = {**SHORT, "dropout": 0.0, "trade_off": 1.0}
    model = METHODS["coral"].make(**options).fit(X, y, both, target=["target", "twin"])
    one, two = (model.predict(X, target=name) for name in ("target", "twin"))
    np.testing.assert_allclose(one, two, atol=1e-4)


@pytest.mark.parametrize("method", ["mdd", "mdd_paper", "coral"])
def test_target_given_later(method: str) -> None:
    X, y, domain = easy()
    sources = domain != "target"
    model = METHODS[method].make(**{**SHORT, "trade_off": 1.0})
    model.fit(X[sources], y[sources], domain[sources], target=[])
    first = model.net_.head.weight.detach().clone()
    assert set(model.source_weights_.values()) == {1 / 3}
    model.adapt(X[~sources])
    assert not torch.equal(first, model.net_.head.weight)
    assert set(model.source_weights_) == {"a", "b", "c"}
    assert np.isfinite(model.predict(X[~sources])).all()


def test_later_target_starts_from_the_trained_networks() -> None:
    X, y, domain = easy()
    sources = domain != "target"
    options: dict[str, Any] = {"random_state": 0, "trade_off": 0.01, "average": 0.0}
    model = DeepCORALRegressor(epochs=15, **options)
    model.fit(X[sources], y[sources], domain[sources], target=[])
    model.set_params(epochs=1)
    scratch = DeepCORALRegressor(epochs=1, **options).fit(X, y, domain)
    model.adapt(X[~sources])
    assert model.history_[0]["loss"] < 0.5 * scratch.history_[0]["loss"]


def test_warm_start_goes_on() -> None:
    X, y, domain = easy()
    model = DeepCORALRegressor(epochs=10, random_state=0, warm_start=True).fit(X, y, domain)
    first = model.history_[-1]["loss"]
    model.set_params(epochs=1).fit(X, y, domain)
    assert model.history_[0]["loss"] < 2 * first
    model.set_params(hidden=(8,))
    with pytest.raises(ArgumentError, match="another shape"):
        model.fit(X, y, domain)


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("made", [False, True])
def test_modules_of_your_own(members: int, made: bool) -> None:
    X, y, domain = easy()

    def extractor(p: int) -> nn.Module:
        return nn.Sequential(nn.Linear(p, 7), nn.Dropout(0.2), nn.ReLU())

    def head(d: int, m: int) -> nn.Module:
        return nn.Sequential(nn.Linear(d, 5), nn.Tanh(), nn.Linear(5, m))

    given = {"extractor": extractor, "head": head}
    if not made:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            given = {"extractor": extractor(4), "head": head(7, 1)}
    before = torch.get_rng_state()
    options = {**SHORT, "epochs": 10, "steps": 20, "members": members, "trade_off": 0.1}
    options["weight_decay"] = 0.01
    one, two = (DeepCORALRegressor(**options, **given).fit(X, y, domain) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    known = domain != "target"
    assert one.score(X[known], y[known]) > 0.5


def test_wrong_modules_are_named() -> None:
    X, y, domain = easy()
    with pytest.raises(ArgumentError, match="head: expected a module from"):
        SourceOnlyRegressor(head=nn.Linear(24, 3), **SHORT).fit(X, y, domain)
    with pytest.raises(ArgumentError, match="extractor: expected a torch module"):
        SourceOnlyRegressor(extractor="resnet", **SHORT).fit(X, y, domain)


def test_rows_of_weight_zero_are_never_drawn() -> None:
    X, y, domain = easy()
    bad = np.zeros(len(y), dtype=bool)
    bad[::3] = True
    wrong = np.where(bad, 50.0, y)
    options: dict[str, Any] = {"random_state": 0, "epochs": 8, "bounded": False}
    weighted = SourceOnlyRegressor(**options).fit(X, wrong, domain, sample_weight=~bad)
    plain = SourceOnlyRegressor(**options).fit(X, wrong, domain)
    known = (domain != "target") & ~bad
    gaps = [np.abs(model.predict(X[known]) - y[known]).mean() for model in (weighted, plain)]
    assert gaps[0] < 0.3 * gaps[1]
    with pytest.raises(ArgumentError, match="weights of domain 'a' are all zero"):
        SourceOnlyRegressor(**SHORT).fit(X, y, domain, sample_weight=(domain != "a"))
    with pytest.raises(ArgumentError, match="at least 0"):
        SourceOnlyRegressor(**SHORT).fit(X, y, domain, sample_weight=np.full(len(y), -1.0))


def test_adapting_a_model_without_its_sources_is_refused(tmp_path: Any) -> None:
    from vntransfer import load_model

    X, y, domain = easy()
    DeepCORALRegressor(**SHORT).fit(X, y, domain).save(tmp_path)
    with pytest.raises(DomainError, match="rows of the sources are not saved"):
        load_model(tmp_path).adapt(X)


def test_options_of_members_are_their_own() -> None:
    setup = Setup(2, 3, 1, torch.Generator(), [{"trade_off": 0.5}, {}])
    assert setup.option(DeepCORALRegressor(trade_off=2.0), "trade_off").tolist() == [0.5, 2.0]
