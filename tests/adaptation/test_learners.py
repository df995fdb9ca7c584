"""Learners of scikit-learn as this package uses them."""

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from vntransfer import PooledRegressor, load
from vntransfer.adaptation._learners import TiedBoosting

RESPONSES = {
    "amounts that are mostly zero": lambda x: 10 * np.maximum(x - 0.2, 0),
    "classes": lambda x: (x > 0.2).astype(float),
    "counts": lambda x: np.floor(2 * np.clip(x, 0, 1.9)),
    "signs and zeros": lambda x: np.sign(x) * (abs(x) > 0.9),
}


def boosted(kind: Any, x: Any, y: Any, weights: Any = None) -> Any:
    model = kind(loss="absolute_error", early_stopping=False, random_state=0)
    return model.fit(x, y, sample_weight=weights).predict(x)


@pytest.mark.parametrize("relation", RESPONSES.values(), ids=RESPONSES)
def test_boosting_learns_where_half_of_the_responses_are_equal(
    relation: Any, tmp_path: Any
) -> None:
    x = np.random.default_rng(0).normal(size=(600, 2))
    y = relation(x[:, 0])
    middle = np.abs(np.median(y) - y).mean()
    model = PooledRegressor("boosting", 0).fit(x, y)
    error = np.abs(model.predict(x) - y).mean()
    assert error < 0.2 * middle
    assert error < 0.5 * np.abs(boosted(HistGradientBoostingRegressor, x, y) - y).mean()
    model.save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path).predict(x), model.predict(x))


def test_other_responses_are_learned_as_scikit_learn_does() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    for y in (x[:, 0], np.round(x[:, 0]), np.where(x[:, 0] < -0.4, 0.0, x[:, 0]), np.zeros(300)):
        expected = boosted(HistGradientBoostingRegressor, x, y)
        np.testing.assert_array_equal(boosted(TiedBoosting, x, y), expected)


def test_ties_are_counted_by_weight() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = np.maximum(x[:, 0] - 0.2, 0)
    weights = np.where(y > 0, 10.0, 1.0)
    expected = boosted(HistGradientBoostingRegressor, x, y, weights)
    np.testing.assert_array_equal(boosted(TiedBoosting, x, y, weights), expected)
    weights = np.where(y > 0, 0.1, 1.0)
    assert np.ptp(boosted(HistGradientBoostingRegressor, x, y, weights)) == 0
    assert np.ptp(boosted(TiedBoosting, x, y, weights)) > 0.5
