"""Ensembles, selection without target labels, several targets, own modules."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from helpers.worlds import easy
from vntransfer.adaptation import (
    METHODS,
    DeepCORALRegressor,
    DomainRegressor,
    MomentAlignmentRegressor,
    Selection,
    SourceOnlyRegressor,
)
from vntransfer.adaptation._objective import Batch, Setup, Step, support
from vntransfer.adaptation.coral import CovarianceAlignment
from vntransfer.domains import stack
from vntransfer.errors import ArgumentError, DomainError, VnError
from vntransfer.networks import Net

SHORT: dict[str, Any] = {"epochs": 2, "steps": 8, "batch_size": 16, "random_state": 0}
AUTO = ["align", "mdd_paper", "dann", "mdan_max", "mdan_dyn", "ahd_1s", "ahd_msda", "darn", "coral"]
AUTO += ["dare_gram"]


def test_members_differ_and_their_mean_is_predicted() -> None:
    X, y, domain = easy()
    model = SourceOnlyRegressor(members=3, bounded=False, **SHORT).fit(X, y, domain)
    state = model._values
    scaled = torch.from_numpy(state.x_scaler.transform(X))[None]
    with torch.no_grad():
        every = model.net_(scaled)[:, 0, :, 0].double().numpy()
    assert np.abs(every[0] - every[1]).max() > 0.01
    mean = every.mean(0) * state.y_scaler.scale[0] + state.y_scaler.mean[0]
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


def test_selection_does_not_read_responses_of_the_target() -> None:
    X, y, domain = easy()
    poisoned = np.where(domain == "target", np.resize([1e300, np.nan, -np.inf], len(y)), y)
    make = METHODS["coral"].make
    one, two = (make(trade_off="auto", **SHORT).fit(X, v, domain) for v in (y, poisoned))
    assert one.selection_ == two.selection_


def twins(seed: int = 0, n: int = 150) -> Any:
    """Four places with two sources each, and a network too small for all: weights help."""
    rng = np.random.default_rng(seed)
    parts = {}
    for i, center in enumerate([(4, 4), (-4, 4), (4, -4), (-4, -4)]):
        for twin in "ab":
            x = rng.normal(center, 0.8, size=(n, 2))
            parts[f"{twin}{i}"] = (x, np.sin(2 * x[:, 0]) + np.abs(x[:, 1]) * np.cos(x.sum(1)))
    return stack(parts, target=rng.normal((4, 4), 0.8, size=(n, 2)))


def test_selection_takes_what_helps() -> None:
    """If every held-out source has a twin among the sources, learned weights win."""
    options: dict[str, Any] = {"hidden": (6,), "width": 3, "dropout": 0.0, "weight_decay": 0.1}
    options |= {"members": 1, "epochs": 16, "batch_size": 32, "random_state": 0}
    model = MomentAlignmentRegressor(**options)
    X, y, domain = twins()
    selection = model.fit(X, y, domain).selection_
    assert selection.scores["trade_off=0"] < -0.1
    assert selection.shares["source_only"] < 0.05
    near = model.source_weights_["a0"] + model.source_weights_["b0"]
    assert near > 0.3  # of eight, where 0.25 would be equal


def test_selection_refuses_what_hurts() -> None:
    """The response is in the shift itself, which alignment removes."""
    rng = np.random.default_rng(0)
    parts = {}
    for name, center in (("a", 1.0), ("b", 2.0), ("c", 3.0), ("d", 4.0)):
        x = rng.normal(center, 0.1, size=(200, 3))
        parts[name] = (x, 3 * x.sum(1))
    X, y, domain = stack(parts, target=rng.normal(2.5, 0.1, size=(200, 3)))
    model = MomentAlignmentRegressor(members=1, epochs=10, random_state=0)
    selection = model.fit(X, y, domain).selection_
    assert selection.scores["trade_off=10"] > 0.05
    assert selection.shares["trade_off=10"] < 0.05


class Breaking(CovarianceAlignment):
    """Loses the members whose trade-off is above 1."""

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        for names, loss in super().forward(net, batch):
            yield names, loss * torch.where(self.trade_off > 1, torch.nan, 1.0)


class BreakingRegressor(DeepCORALRegressor):
    _steps = Breaking


def test_a_candidate_that_fails_is_left_out() -> None:
    X, y, domain = easy()
    model = BreakingRegressor(trade_off="auto", **SHORT).fit(X, y, domain)
    selection = model.selection_
    assert [name for name, score in selection.scores.items() if score == np.inf] == [
        "trade_off=10",
        "trade_off=100",
    ]
    assert selection.shares["trade_off=10"] == selection.shares["trade_off=100"] == 0
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(VnError, match="not finite in epoch 0"):
        BreakingRegressor(trade_off=10.0, **SHORT).fit(X, y, domain)


def test_one_source_is_source_only() -> None:
    X, y, domain = easy()
    keep = np.isin(domain, ["a", "target"])
    model = MomentAlignmentRegressor(**SHORT).fit(X[keep], y[keep], domain[keep])
    assert model.selection_.chosen == "source_only"
    assert "at least two sources" in model.selection_.reason
    plain = SourceOnlyRegressor(members=5, **SHORT).fit(X[keep], y[keep], domain[keep])
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))


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


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=9))
def test_only_sources_of_few_rows_count_less(rows: list[int]) -> None:
    found = support(torch.tensor([rows], dtype=torch.float32))[0]
    assert float(found.mean()) == pytest.approx(1, rel=1e-5)
    if min(rows) >= 20:
        assert found.tolist() == [1.0] * len(rows)
    for n, counts in zip(rows, found.tolist(), strict=True):
        assert counts / max(found.tolist()) == pytest.approx(min(n, 20) / min(max(rows), 20))


@pytest.mark.parametrize("method", ["source_only", "align"])
def test_three_wrong_rows_do_not_count_as_much_as_a_source(method: str) -> None:
    rng = np.random.default_rng(0)
    sources = {name: rng.normal(size=(60, 2)) for name in ("a", "b")}
    known = {name: (x, x @ [1.0, 2.0]) for name, x in sources.items()}
    new, three = rng.normal(size=(60, 2)), rng.normal(size=(3, 2))
    found = {}
    for label, wrong in (("none", {}), ("three", {"c": (three, -9 * (three @ [1.0, 2.0]))})):
        X, y, domain = stack({**known, **wrong}, target=new)
        model = METHODS[method].make(random_state=0, members=1, bounded=False).fit(X, y, domain)
        found[label] = np.abs(model.predict(new) - new @ [1.0, 2.0]).mean()
        if wrong:
            assert model.source_weights_["c"] < 0.08
            assert sum(model.source_weights_.values()) == pytest.approx(1)
    assert found["three"] < found["none"] + 0.5


def test_options_of_members_are_their_own() -> None:
    setup = Setup(2, 3, 1, torch.Generator(), [{"trade_off": 0.5}, {}])
    assert setup.option(DeepCORALRegressor(trade_off=2.0), "trade_off").tolist() == [0.5, 2.0]


def test_history_does_not_depend_on_the_share_of_source_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Losses are those of the adapted members, whatever part of the prediction they have."""
    X, y, domain = easy()
    losses = []
    for safe in (0.0, 0.9):
        chosen = Selection(
            candidates=("source_only", "trade_off=1"),
            options=({}, {"trade_off": 1.0}),
            shares={"source_only": safe, "trade_off=1": 1 - safe},
        )
        given = f"{DomainRegressor.__module__}.select"
        monkeypatch.setattr(given, lambda *_, own=chosen: (own, None))
        model = MomentAlignmentRegressor(**{**SHORT, "members": 1}).fit(X, y, domain)
        losses.append(model.history_[0]["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_statistics_of_normalizing_layers_are_averaged_with_the_parameters() -> None:
    X, y, domain = easy()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        own = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU())
    options = {**SHORT, "epochs": 30, "steps": 6, "lr": 0.05}
    model = SourceOnlyRegressor(extractor=own, bounded=False, **options).fit(X, y, domain)
    known = domain != "target"
    gap = (model.predict(X[known]) - y[known]) / y[known].std()
    assert np.sqrt((gap**2).mean()) < 2 * model.history_[-1]["loss"] + 0.1


def test_frozen_parameters_stay() -> None:
    X, y, domain = easy()
    own = nn.Linear(4, 6)
    own.weight.requires_grad_(False)
    model = SourceOnlyRegressor(extractor=own, **SHORT).fit(X, y, domain)
    assert torch.equal(model.net_.extractor.weight[0], own.weight)
    assert not torch.equal(model.net_.extractor.bias[0], own.bias)


def test_an_interrupted_fit_leaves_the_old_model() -> None:
    X, y, domain = easy()
    model = SourceOnlyRegressor(**SHORT).fit(X, y, domain)
    before = model.predict(X)

    def stop(what: str, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(100 * X, 100 * y, domain, progress=stop)
    np.testing.assert_array_equal(model.predict(X), before)


def test_rows_of_weight_zero_do_not_shift_predictions() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    y = x @ [1.0, -2.0, 0.5]
    bad = np.arange(400) % 4 == 0
    model = SourceOnlyRegressor(loss="jeffreys", epochs=8, random_state=0)
    model.fit(x, np.where(bad, y + 8, y), sample_weight=~bad)
    assert abs((model.predict(x[~bad]) - y[~bad]).mean()) < 0.1


def test_selection_is_forgotten_by_a_fit_without_one() -> None:
    X, y, domain = easy()
    model = MomentAlignmentRegressor(**{**SHORT, "members": 1}).fit(X, y, domain)
    assert hasattr(model, "selection_")
    assert not hasattr(model.set_params(trade_off=1.0).fit(X, y, domain), "selection_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"members": 0}, "members: expected a whole number"),
        ({"members": 2.0}, "members: expected a whole number"),
        ({"hidden": 64}, "hidden: expected sizes of"),
        ({"dropout": 1}, "dropout: expected a number below 1"),
        ({"steps": 1.5}, r"^steps: .*1\.5"),
        ({"betas": (2, 3)}, r"^betas: .*\(2, 3\)"),
        ({"betas": (0.9,)}, "betas: expected two numbers below 1"),
        ({"betas": 0.9}, "betas: expected two numbers below 1"),
        ({"device": "gpu"}, "device: 'gpu' cannot be used"),
        ({"checkpoint": "x", "random_state": None}, "random_state: expected a whole number"),
    ],
)
def test_impossible_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        SourceOnlyRegressor(**{**SHORT, **options}).fit(*easy())


def test_other_mistakes_are_named() -> None:
    X, y, domain = easy()
    with pytest.raises(DomainError, match="target: expected a name"):
        SourceOnlyRegressor(**SHORT).fit(X, y, domain, target=-1)
    with pytest.raises(ArgumentError, match="sample_weight: expected 240 numbers"):
        SourceOnlyRegressor(**SHORT).fit(X, y, domain, sample_weight=[1.0, 2.0])


def test_modules_with_nothing_to_train() -> None:
    X, y, domain = easy()
    known = nn.Linear(4, 6)
    known.unused = nn.Parameter(torch.zeros(3))
    SourceOnlyRegressor(extractor=known, **SHORT).fit(X, y, domain)
    METHODS["ahd_msda"].make(extractor=nn.Identity(), **SHORT).fit(X, y, domain)
