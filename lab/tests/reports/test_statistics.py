"""The statistics against straight transcriptions and against resampling by brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vntransfer.errors import ArgumentError
from vntransfer.holm import holm
from vntransfer_lab.reports.statistics import difference, estimate, verdict


def table(values: np.ndarray) -> dict[str, dict[int, float]]:
    return {f"t{k}": dict(enumerate(row)) for k, row in enumerate(values)}


def zeros(values: np.ndarray) -> dict[str, dict[int, float]]:
    return table(np.zeros_like(values))


def test_estimate_is_mean_and_standard_error() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=7)
    found = estimate(list(values))
    assert found.mean == pytest.approx(values.mean())
    assert found.error == pytest.approx(stats.sem(values))
    assert estimate([2.0]).error is None


@pytest.mark.parametrize(("targets", "seeds"), [(6, 5), (4, 3), (12, 2)])
def test_the_error_is_that_of_the_hierarchical_bootstrap(targets: int, seeds: int) -> None:
    rng = np.random.default_rng(0)
    d = rng.normal(0.3, 1, size=(targets, 1)) + rng.normal(0, 0.7, size=(targets, seeds))
    drawn_targets = rng.integers(targets, size=(20_000, targets, 1))
    drawn_seeds = rng.integers(seeds, size=(20_000, targets, seeds))
    means = d[drawn_targets, drawn_seeds].mean((1, 2))
    found = difference(table(d), zeros(d))
    assert found is not None
    assert found.low is not None
    width = stats.t.ppf(0.975, targets - 1) * np.sqrt(targets / (targets - 1)) * np.std(means)
    assert found.mean == pytest.approx(d.mean(axis=1).mean())
    assert found.mean - found.low == pytest.approx(width, rel=0.03)


def test_targets_may_have_different_numbers_of_seeds() -> None:
    rng = np.random.default_rng(1)
    d = {"a": rng.normal(1, 2, 2), "b": rng.normal(0, 1, 5), "c": rng.normal(2, 0.3, 9)}
    method = {name: dict(enumerate(own)) for name, own in d.items()}
    means = []
    for _ in range(20_000):
        chosen = rng.choice(list(d), 3)
        means.append(np.mean([rng.choice(d[name], len(d[name])).mean() for name in chosen]))
    found = difference(method, {name: dict.fromkeys(own, 0.0) for name, own in method.items()})
    assert found is not None
    assert found.low is not None
    width = stats.t.ppf(0.975, 2) * np.sqrt(3 / 2) * np.std(means)
    assert found.mean - found.low == pytest.approx(width, rel=0.03)


def test_one_target_is_the_paired_t_test_over_seeds() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(1, 1, size=(1, 8)), rng.normal(size=(1, 8))
    found, expected = difference(table(a), table(b)), stats.ttest_rel(a[0], b[0])
    assert found is not None
    assert found.p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_one_seed_is_the_paired_t_test_over_targets() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(1, 1, size=(8, 1))
    found = difference(table(a), zeros(a))
    assert found is not None
    assert found.p == pytest.approx(stats.ttest_1samp(a[:, 0], 0).pvalue)


def test_only_common_pairs_count_and_targets_weigh_the_same() -> None:
    method = {"a": {0: 1.0, 1: 3.0, 2: 100.0}, "b": {0: 5.0}, "c": {0: 9.0}}
    base = {"a": {0: 0.0, 1: 0.0}, "b": {0: 6.0, 1: 0.0}}
    found = difference(method, base)
    assert found is not None
    assert found.mean == pytest.approx((2.0 - 1.0) / 2)
    assert (found.won, found.lost) == (1, 1)
    assert difference({"c": {0: 1.0}}, base) is None


def test_few_pairs_and_equal_values_have_defined_answers() -> None:
    for seeds in (1, 2):
        few = difference({"a": dict.fromkeys(range(seeds), 1.0)}, {"a": {0: 0.0, 1: 0.0}})
        assert few is not None
        assert (few.low, few.p) == (None, None)
        assert verdict(few, None) == "too few runs"
    rounded = difference({"a": {0: 0.1 + 0.2}}, {"a": {0: 0.3}})
    assert rounded is not None
    assert (rounded.won, rounded.lost) == (0, 0)
    ones = np.ones((3, 2))
    same, shifted = difference(table(ones), table(ones)), difference(table(ones), zeros(ones))
    assert same is not None
    assert shifted is not None
    assert (same.p, same.won, same.lost) == (1.0, 0, 0)
    assert (shifted.p, shifted.low, shifted.high) == (0.0, 1.0, 1.0)


def test_values_that_are_not_finite_are_no_win() -> None:
    with pytest.raises(ArgumentError, match="finite"):
        difference({"a": {0: float("nan"), 1: 1.0, 2: 1.0}}, {"a": {0: 1.0, 1: 1.0, 2: 1.0}})


def test_direction_decides_wins_and_verdict() -> None:
    d = np.array([[1.0, 1.1], [1.2, 0.9]])
    low = difference(table(d), zeros(d))
    high = difference(table(d), zeros(d), higher_is_better=True)
    assert low is not None
    assert high is not None
    assert (low.won, low.lost, high.won, high.lost) == (0, 2, 2, 0)
    assert verdict(low, 0.01) == "worse"
    assert verdict(high, 0.01, higher_is_better=True) == "better"
    assert verdict(low, 0.06) == "no difference"


@settings(max_examples=200)
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_is_its_definition(p: list[float]) -> None:
    """Reject in order of p while p_(i) <= level / (m - i): the same set for every level."""
    corrected = holm(p)
    for level in (0.01, 0.05, 0.2):
        rejected = set()
        for rank, i in enumerate(np.argsort(p, kind="stable")):
            if p[i] * (len(p) - rank) > level:
                break
            rejected.add(int(i))
        assert {i for i, value in enumerate(corrected) if value <= level} == rejected
    assert all(value <= c <= 1 for c, value in zip(corrected, p, strict=True))
