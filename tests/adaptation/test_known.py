"""Cases with a known answer."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from worlds import World

from vntransfer.adaptation import METHODS, MatrixDiscrepancyRegressor, SourceOnlyRegressor
from vntransfer.domains import stack

SMALL: dict[str, Any] = {
    "hidden": (8,),
    "width": 4,
    "dropout": 0.0,
    "weight_decay": 0.1,
    "epochs": 10,
}


def response(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.sin(2 * x[:, 0]) * x[:, 1] + 0.5 * x[:, 2] ** 2)


def one_near(seed: int, n: int = 200) -> World:
    """Covariate shift: the target's inputs have the law of "near", other sources are away."""
    rng = np.random.default_rng((seed, 5))
    parts = {}
    for name, centre in (("near", 0.0), ("far", 2.5), ("farther", 4.0)):
        x = rng.normal(centre, 0.7, size=(n, 4))
        parts[name] = (x, response(x) + 0.05 * rng.normal(size=n))
    return stack(parts, target=rng.normal(0.0, 0.7, size=(n, 4)))


def test_mdd_finds_the_source_that_is_like_the_target() -> None:
    found = 0
    for seed in range(10):
        model = MatrixDiscrepancyRegressor(**SMALL, random_state=seed).fit(*one_near(seed))
        weights = model.source_weights_
        found += max(weights, key=weights.__getitem__) == "near"
    assert found >= 9


def test_jeffreys_loss_gets_its_mean_back() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    y = 100 + x @ [1.0, -2.0, 0.5]
    model = SourceOnlyRegressor(loss="jeffreys", epochs=15, random_state=0).fit(x, y)
    assert abs(model.predict(x).mean() - y.mean()) < 0.05
    assert model.score(x, y) > 0.9


def test_domain_losses_stay_where_they_belong() -> None:
    """Neither reversal forgotten nor raw scores: cross-entropies are positive, features bounded."""
    world = one_near(0)
    for method in ("dann", "mdan_max", "mdan_dyn"):
        model = METHODS[method].make(**SMALL, trade_off=1.0, random_state=0).fit(*world)
        losses = [record["domain"] for record in model.history_]
        assert min(losses) > 0
        assert max(losses) < 20


@pytest.mark.parametrize("update", ["clamp", "l1"])
def test_other_updates_of_weights(update: Any) -> None:
    world = one_near(0)
    model = MatrixDiscrepancyRegressor(
        **{**SMALL, "epochs": 3}, weight_update=update, random_state=0
    ).fit(*world)
    weights = np.array(list(model.source_weights_.values()))
    assert np.abs(weights).sum() == pytest.approx(1, abs=1e-5)
    if update == "clamp":
        assert weights.min() > 0
