"""The guarded choice: what is certain is taken, what is doubtful is not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vntransfer.adaptation.guarded_choice import guard
from vntransfer.errors import ArgumentError

errors = st.tuples(st.integers(2, 6), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(0, 1e6))
)


def test_scores_follow_the_formula() -> None:
    e = np.random.default_rng(0).uniform(0.5, 2.0, size=(7, 4))
    found = guard(e)
    for c in range(1, 4):
        r = [np.log(row[c] / row[0]) for row in e]
        spread = (sum((x - np.mean(r)) ** 2 for x in r) / 6) ** 0.5
        assert found.scores[c] == pytest.approx(np.mean(r) + spread / 7**0.5)
    assert found.scores[0] == 0
    assert found.shares[1] / found.shares[0] == pytest.approx(np.exp(-found.scores[1] / 0.02))


@given(errors)
def test_shares_are_a_simplex_and_the_best_has_the_largest(e: np.ndarray) -> None:
    found = guard(e)
    assert np.isfinite(found.scores).all()
    assert found.shares.min() >= 0
    assert found.shares.sum() == pytest.approx(1)
    assert found.scores[found.best] == found.scores.min() <= 0
    assert found.shares[found.best] == found.shares.max()


@given(errors, st.floats(1e-3, 1e3))
def test_scale_of_a_held_out_source_does_not_matter(e: np.ndarray, factor: float) -> None:
    scaled = e.copy()
    scaled[0] *= factor
    np.testing.assert_allclose(guard(scaled).ratios, guard(e).ratios, atol=1e-9)


def test_a_gain_on_one_target_only_is_no_gain() -> None:
    """With r = (x, 0, ..., 0) mean and standard error cancel exactly, however large the gain."""
    e = np.ones((5, 2))
    e[0, 1] = 1e-5
    assert guard(e).scores[1] == pytest.approx(0, abs=1e-12)


def test_one_held_out_source_leaves_the_fallback() -> None:
    found = guard([[1.0, 1e-9]])
    assert found.best == 0
    assert found.shares.tolist() == [1.0, 0.0]


def test_equal_candidates_leave_the_first() -> None:
    assert guard(np.ones((4, 3))).best == 0
    assert guard(np.zeros((4, 3))).best == 0


def test_failed_candidates_are_never_chosen() -> None:
    found = guard([[1.0, np.nan, 0.5], [1.0, 0.1, 0.5], [1.0, 0.1, 0.4]])
    assert found.best == 2
    assert found.shares[1] == 0
    assert found.scores[1] == np.inf


def test_a_fallback_that_failed_is_named() -> None:
    with pytest.raises(ArgumentError, match="errors:"):
        guard([[np.nan, 1.0]])
