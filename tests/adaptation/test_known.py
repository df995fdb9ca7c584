"""Cases with a known answer."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers.worlds import World
from vntransfer.adaptation import METHODS, MomentAlignmentRegressor, SourceOnlyRegressor
from vntransfer.domains import stack

SMALL: dict[str, Any] = {
    "hidden": (6,),
    "width": 3,
    "dropout": 0.0,
    "weight_decay": 0.1,
    "batch_size": 32,
    "epochs": 12,
}


def response(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.sin(2 * x[:, 0]) + np.abs(x[:, 1]) * np.cos(x[:, 0] + x[:, 1]))


def one_near(seed: int, n: int = 150) -> World:
    """Covariate shift: the target's inputs have the law of "near", four other sources are away."""
    rng = np.random.default_rng((seed, 5))
    parts = {}
    for i, center in enumerate([(0, 0), (4, 4), (-4, 4), (4, -4), (-4, -4)]):
        x = rng.normal(center, 0.8, size=(n, 2))
        parts["near" if i == 0 else f"far{i}"] = (x, response(x) + 0.05 * rng.normal(size=n))
    return stack(parts, target=rng.normal(0, 0.8, size=(n, 2)))


def test_mdd_finds_the_source_that_is_like_the_target_and_gains_by_it() -> None:
    """Like for like: source-only has the same loss and networks, which cannot fit all sources."""
    found, ratios = 0, []
    for seed in range(10):
        world = one_near(seed)
        X, _, domain = world
        new = X[domain == "target"]
        mdd = MomentAlignmentRegressor(**SMALL, members=1, trade_off=0.1, random_state=seed)
        plain = SourceOnlyRegressor(**SMALL, random_state=seed)
        gaps = [np.abs(m.fit(*world).predict(new) - response(new)).mean() for m in (mdd, plain)]
        ratios.append(np.log(gaps[0] / gaps[1]))
        found += max(mdd.source_weights_, key=mdd.source_weights_.__getitem__) == "near"
    assert found >= 9
    assert np.mean(ratios) + 2 * np.std(ratios, ddof=1) / 10**0.5 < 0


def test_jeffreys_loss_gets_its_mean_back() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    y = 100 + x @ [1.0, -2.0, 0.5]
    model = SourceOnlyRegressor(loss="jeffreys", epochs=15, random_state=0).fit(x, y)
    assert abs(model.predict(x).mean() - y.mean()) < 0.05
    assert model.score(x, y) > 0.9


def test_jeffreys_as_the_first_term_gets_its_mean_back() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    y = 100 + x @ [1.0, -2.0, 0.5]
    y[400:] = np.nan
    domain = np.repeat(["a", "b", "new"], 200)
    options: dict[str, Any] = {"first_term": "jeffreys", "epochs": 15, "random_state": 0}
    model = METHODS["mdd_paper"].make(**options).fit(x, y, domain, target="new")
    assert abs(model.predict(x[:400]).mean() - y[:400].mean()) < 0.02


def test_domain_losses_stay_where_they_belong() -> None:
    """No raw scores where log-probabilities belong: cross-entropies are positive and bounded."""
    world = one_near(0)
    for method in ("dann", "mdan_max", "mdan_dyn"):
        model = METHODS[method].make(**SMALL, trade_off=1.0, random_state=0).fit(*world)
        losses = [record["domain"] for record in model.history_]
        assert min(losses) > 0
        assert max(losses) < 20


@pytest.mark.parametrize("update", ["clamp", "l1"])
def test_other_updates_of_weights(update: Any) -> None:
    world = one_near(0)
    options = {**SMALL, "epochs": 3, "weight_update": update}
    model = METHODS["mdd_paper"].make(**options, random_state=0).fit(*world)
    weights = np.array(list(model.source_weights_.values()))
    assert np.abs(weights).sum() == pytest.approx(1, abs=1e-5)
    if update == "clamp":
        assert weights.min() > 0


def test_adam_leaves_weights_of_ahd_uniform_where_plain_steps_tell_sources_apart() -> None:
    """Adam undoes differences in the size of gradients, and those of all sources have one sign."""
    spread = {}
    for update, rate in (("simplex", 0.05), ("adam", 0.001)):
        options = {**SMALL, "weight_update": update, "weight_rate": rate}
        model = METHODS["ahd_msda"].make(**options, random_state=0).fit(*one_near(0))
        weights = np.array(list(model.source_weights_.values()))
        assert weights.sum() == pytest.approx(1, abs=1e-5)
        spread[update] = float(np.ptp(weights))
    assert spread["adam"] < 0.2 * spread["simplex"]
