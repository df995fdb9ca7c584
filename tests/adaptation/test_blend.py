"""The rule: weights from held-out sources, an anchor, and the middle of the predictions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vntransfer.adaptation.blend import (
    ANCHORED,
    Stretch,
    blend,
    blend_weights,
    caution,
    cautious_average,
    find_stretch,
    middle_average,
)

EVEN = np.full(3, 1 / 3)


def noisy(scales: Any, n: int = 4, rows: int = 200) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(0)
    truth = [rng.normal(size=rows) for _ in range(n)]
    return [y + np.array(scales)[:, None] * rng.normal(size=(3, rows)) for y in truth], truth


def test_equal_and_independent_errors_have_equal_weights() -> None:
    predicted, truth = noisy((1, 1, 1))
    found = blend(predicted, truth, EVEN)
    np.testing.assert_allclose(found.weights, EVEN, atol=0.06)
    assert found.ratio < np.log(0.8)  # an average of three has a lower error than one
    assert found.standard_error < 0.1


def test_weights_have_the_least_error_on_the_simplex() -> None:
    predicted, truth = noisy((1, 2, 0.7))
    anchor = np.array([1.0, 0, 0])
    w = (blend_weights(predicted, truth, anchor) - ANCHORED * anchor) / (1 - ANCHORED)
    spread = np.array([np.abs(y - np.median(y)).mean() for y in truth])
    counts = np.minimum(1, spread / spread.mean())

    def risk(w: Any) -> float:
        pairs = zip(predicted, truth, counts, strict=True)
        least = [np.abs(p - y).mean(1).min() for p, y in zip(predicted, truth, strict=True)]
        gaps = [c * np.abs(w @ p - y).mean() for p, y, c in pairs]
        return float(np.sum(np.array(gaps) / least))

    grid = [
        np.array([a, b, 1 - a - b])
        for a in np.linspace(0, 1, 21)
        for b in np.linspace(0, 1 - a, 21)
    ]
    assert risk(w) <= min(map(risk, grid)) + 2e-2


def test_the_anchor_always_has_its_part() -> None:
    predicted, truth = noisy((5, 0.1, 5))
    weights = blend_weights(predicted, truth, np.array([0.5, 0, 0.5]))
    np.testing.assert_allclose(weights, [ANCHORED / 2, 1 - ANCHORED, ANCHORED / 2], atol=0.02)


def test_a_source_whose_responses_hardly_vary_does_not_decide() -> None:
    predicted, truth = noisy((0.5, 2, 2))
    flat = np.zeros(200) + 1e-3 * np.arange(200) / 200
    misleading = np.stack((flat + 3, flat + 1e-4, flat + 3))  # a constant is best there
    weights = blend_weights([*predicted, misleading], [*truth, flat], EVEN)
    assert weights[0] > 0.6
    assert np.isfinite(blend_weights([misleading, misleading], [flat * 0, flat * 0], EVEN)).all()


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6),
    st.integers(0, 10**6),
)
def test_the_middle_lies_between_the_predictions(values: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(len(values)))
    column = np.array(values)[:, None]
    found = middle_average(column, weights)[0]
    assert min(values) - 1e-6 <= found <= max(values) + 1e-6
    order = rng.permutation(len(values))
    assert middle_average(column[order], weights[order])[0] == pytest.approx(found, abs=1e-6)


def test_one_wild_candidate_with_little_weight_is_cut() -> None:
    predicted = np.array([[1.0], [2.0], [1e9]])
    assert middle_average(predicted, np.array([0.4, 0.4, 0.2]))[0] <= 2
    assert middle_average(predicted, np.array([0.0, 0.0, 1.0]))[0] == 1e9
    np.testing.assert_allclose(middle_average(predicted[:2], np.array([1.0, 1.0])), 1.5)


def shy(pull: float, ends: bool, n: int = 4) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(1)
    draw = (lambda: rng.choice([1.0, 5.0], size=300)) if ends else (lambda: rng.normal(3, 1, 300))
    truth = [draw() for _ in range(n)]
    return [3 + pull * (y - 3) + rng.normal(0, 0.5, size=300) for y in truth], truth


def test_predictions_between_two_ends_are_stretched() -> None:
    predicted, truth = shy(0.4, ends=True)
    best, *others = find_stretch(predicted, truth)
    assert best.factor > 1.5
    assert len(others) == 4
    before, after = (
        np.abs(own - truth[0]).mean() for own in (predicted[0], others[0](predicted[0], (1, 5)))
    )
    assert after < 0.8 * before


def test_no_stretch_without_proof() -> None:
    assert {*find_stretch(*shy(0.8, ends=False))} == {Stretch()}  # noise: a stretch adds to it
    assert {*find_stretch(*shy(0.4, ends=True, n=2))} == {Stretch()}  # too few sources
    flat = [np.zeros(5)] * 3
    assert {*find_stretch(flat, flat)} == {Stretch()}


@given(st.floats(1, 3), st.floats(-5, 5), st.lists(st.floats(-10, 10), min_size=1))
def test_a_stretch_is_monotone_and_stays_within_limits(
    factor: float, center: float, values: list[float]
) -> None:
    p = np.sort(np.array(values))
    found = Stretch(factor, center)(np.clip(p, -2, 3), (-2.0, 3.0))
    assert (np.diff(found) >= 0).all()
    assert found.min() >= -2
    assert found.max() <= 3


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 100))
def test_the_step_at_the_target_is_bounded_by_that_on_held_out_sources(
    seed: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    held, weights = rng.normal(size=(5, 3, 20)), rng.dirichlet(np.ones(3))
    here = scale * rng.normal(size=(3, 20))
    part = caution(list(held), here, weights)
    usual = np.quantile([np.abs(middle_average(p, weights) - p[0]).mean() for p in held], 0.25)
    step = np.abs(cautious_average(here, weights, part) - here[0]).mean()
    assert 0 <= part <= 1
    assert step <= usual * (1 + 1e-9)
    if part == 1:
        np.testing.assert_array_equal(
            cautious_average(here, weights, part), middle_average(here, weights)
        )
    else:
        assert step == pytest.approx(usual)


def test_held_out_errors_are_those_of_the_cautious_average() -> None:
    predicted, truth = noisy((1, 0.5, 1))
    predicted[0][0] += 4  # on the first source the reference is far from the others
    found = blend(predicted, truth, EVEN)
    assert found.cautions[0] < 0.5
    own = cautious_average(predicted[0], found.held_out[0], found.cautions[0])
    assert found.errors[0] == pytest.approx(np.abs(own - truth[0]).mean())
