"""The relation test: who is rejected, who is not, and what the p-values are made of."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers.relation_worlds import domain
from vntransfer import relation_test
from vntransfer.divergences import pairwise, response_divergence
from vntransfer.errors import (
    ArgumentError,
    DomainError,
    NotPositiveDefiniteError,
    NumericalWarning,
)
from vntransfer.relations._matrices import between, divergences
from vntransfer.relations._pair_statistic import (
    Bordered,
    RelationPair,
    Sample,
    all_statistics,
    common_penalty,
    on_same_features,
    p_value,
)
from vntransfer.relations._smoother import Basis, choose_penalty, penalized

FAST = {"n_resamples": 99}


def rejections(first: dict, second: dict, times: int = 40, **options) -> float:
    hits = 0
    for seed in range(times):
        pair = [domain(2 * seed, **first), domain(2 * seed + 1, **second)]
        tested = relation_test(pair, random_state=seed, **{**FAST, **options})
        hits += tested.raw_p_values[0, 1] <= 0.05
    return hits / times


# At a true level of 5 %, more than 6 of 40 have a probability of 0.3 %.
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"scale": 1.5}),
        ({"bend": 1.0}, {"bend": 1.0, "scale": 2.0}),
        ({"bend": 1.0}, {"bend": 1.0, "shift": 1.5}),
        ({"rows": 60}, {"rows": 400, "scale": 1.5}),
        ({}, {"scale": 1.5, "noise": 3.0}),
    ],
    ids=["wider", "bent and wider", "bent and shifted", "unequal sizes", "other noise"],
)
def test_different_inputs_alone_are_not_rejected(first: dict, second: dict) -> None:
    assert rejections(first, second) <= 6 / 40


@pytest.mark.parametrize(
    ("rows", "columns", "noise"), [(30, 16, 1.0), (35, 20, 0.3), (25, 14, 0.3)]
)
def test_few_rows_and_many_columns_are_not_taken_for_a_difference(
    rows: int, columns: int, noise: float
) -> None:
    # Linear terms that are penalized are biased, and rejected 45 to 100 % of such pairs.
    found = []
    for flipped in (False, True):
        hits = 0
        for seed in range(20):
            rng = np.random.default_rng([seed, columns])
            pair = []
            for turned in (False, flipped):
                x = rng.standard_normal((rows, columns))
                slopes = np.ones(columns)
                slopes[0] = -3.0 if turned else 1.0
                pair.append((x, x @ slopes + noise * rng.standard_normal(rows)))
            hits += relation_test(pair, random_state=seed, **FAST).raw_p_values[0, 1] <= 0.05
        found.append(hits)
    assert found[0] <= 4
    assert found[1] >= 15


def test_a_bend_among_many_features_is_not_taken_for_a_difference() -> None:
    # Too smooth a fit follows no bend with so few rows, and rejects 11 % (measured).
    hits = 0
    for seed in range(30):
        rng = np.random.default_rng([seed, 5])
        pair = []
        for scale in (1.0, 2.0):
            x = scale * rng.standard_normal((200, 8))
            pair.append((x, np.sin(x[:, 0]) + x[:, 1] + rng.standard_normal(200)))
        hits += relation_test(pair, random_state=seed, **FAST).raw_p_values[0, 1] <= 0.05
    assert hits <= 4


@pytest.mark.parametrize("slope", [1.2, 2.8])
def test_another_slope_is_found_whichever_way_it_differs(slope: float) -> None:
    assert rejections({}, {"scale": 1.5, "slope": slope}, times=15) >= 0.9


def test_order_of_domains_and_units_do_not_matter_to_the_statistic() -> None:
    pairs = {name: domain(k, slope=k) for k, name in enumerate("abc")}
    one = relation_test(pairs, random_state=0, **FAST)
    scaled = {n: (x * [3.0, 0.1] + 7, 50 * y - 3) for n, (x, y) in reversed(pairs.items())}
    other = relation_test(scaled, random_state=0, **FAST)
    assert other.names == ("c", "b", "a")
    # knots and landmarks are drawn again: fits change slightly, the statistic hardly
    np.testing.assert_allclose(other.statistics[::-1, ::-1], one.statistics, rtol=0.2)
    np.testing.assert_array_equal(one.p_values, one.p_values.T)
    assert (np.diagonal(one.p_values) == 1).all()


def test_same_seed_same_p_values_and_global_state_untouched() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    pairs = [domain(k) for k in range(3)]
    one, two = (relation_test(pairs, random_state=5, **FAST) for _ in range(2))
    np.testing.assert_array_equal(one.raw_p_values, two.raw_p_values)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("divergence", ["conditional_log_det", "bures_wasserstein", "von_neumann"])
def test_every_divergence_serves(divergence: str) -> None:
    pairs = [domain(0), domain(1, slope=-2.0)]
    tested = relation_test(pairs, divergence=divergence, random_state=0, **FAST)
    assert tested.different() == [("0", "1")]


def test_shared_feature_kernel_is_that_of_samples_and_of_matrices() -> None:
    x, a = domain(0)
    b = domain(1)[1]
    centered = x - x.mean(0)

    def border(y):
        c = y - y.mean()
        parts = (centered.T @ centered, (c @ centered)[None], np.array([c @ c]))
        return Bordered(*(part / (len(x) - 1) for part in parts))

    (ours,) = on_same_features(border(a), border(b), 1e-3, "conditional_von_neumann")
    samples = float(response_divergence(x, a, b, ridge=1e-3))
    matrices = border(a).matrices(1e-3), border(b).matrices(1e-3)
    (full,) = between(*matrices, "conditional_von_neumann")
    assert ours == pytest.approx(samples, rel=1e-9)
    assert ours == pytest.approx(full, rel=1e-9)


@pytest.mark.parametrize("name", ["conditional_von_neumann", "jeffreys"])
def test_divergences_without_torch_are_those_with_it(name: str) -> None:
    rng = np.random.default_rng(0)
    stack = np.stack([np.cov(rng.standard_normal((4, 30)) * scale) for scale in (1, 1, 1e-4, 50)])
    expected = pairwise(stack, divergence=name)
    np.testing.assert_allclose(divergences(stack, name), expected, rtol=1e-8, atol=1e-12)
    one = stack[:, :1, :1]  # a single feature
    expected = pairwise(one, divergence="jeffreys")
    np.testing.assert_allclose(divergences(one, "jeffreys"), expected, rtol=1e-8)
    with pytest.raises(NotPositiveDefiniteError, match="ridge"):
        divergences(np.ones((2, 3, 3)), name)


def test_relate_does_not_import_torch(tmp_path: Path) -> None:
    code = "import sys, vntransfer as v; v.relate(v.example_table(), domain='town', "
    code += "response='price', n_resamples=19, n_bootstrap=20); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=tmp_path)


def test_out_of_fold_residuals_are_those_of_refits_without_the_row() -> None:
    rng = np.random.default_rng(0)
    (x, y), (z, w) = domain(0, rows=30), domain(1, rows=25)
    basis = Basis.choose(np.vstack((x, z)), rng)
    one, two = Sample.of(x, y, basis), Sample.of(z, w, basis)
    pair = RelationPair.of(one, two, basis, divergence="jeffreys", ridge=1e-3)
    theta = pair.P @ (one.g + two.g)
    ours = pair._out_of_fold(one, theta)
    penalty = np.linalg.inv(pair.P) - one.G - two.G
    Phi = np.vstack((basis.columns(x), basis.columns(z)))
    level = np.repeat(np.eye(2), (30, 25), axis=0)
    D, r = np.hstack((Phi, level)), np.concatenate((y, w))
    L = np.zeros((D.shape[1],) * 2)
    L[:-2, :-2] = penalty
    for k in (0, 7, 29):
        kept = np.arange(55) != k
        refit = np.linalg.solve(D[kept].T @ D[kept] + L, D[kept].T @ r[kept])
        assert ours[k] == pytest.approx(r[k] - D[k] @ refit, rel=1e-4)


def test_fit_follows_lines_bends_and_products() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 3))
    basis = Basis.choose(X, rng)
    for f in (X[:, 0] - X[:, 1], np.abs(X[:, 0]) * 2, X[:, 0] * X[:, 2], np.sin(2 * X[:, 1])):
        s = Sample.of(X, f + 0.3 * rng.standard_normal(800), basis)
        penalty = choose_penalty(s.G, s.g, float(s.y @ s.y), 800, 1, basis)
        theta = np.linalg.solve(penalized(s.G, 800, 1, basis, penalty), s.g)
        error = s.Phi @ theta - (f - f.mean())
        assert np.sqrt(np.mean(error**2)) < 0.15


def test_p_values_count_the_observed_one_and_stop_early() -> None:
    assert p_value(1.0, [np.zeros(99)]) == 0.01
    endless = (np.ones(250) for _ in iter(int, 1))
    assert p_value(1.0, endless) == 1.0  # the 50th of 50
    alternating = (np.tile([0.0, 2.0], 125) for _ in iter(int, 1))
    assert p_value(1.0, alternating) == 0.5


def test_many_features_and_few_rows_do_not_reject() -> None:
    hits = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        pair = [(s * rng.standard_normal((40, 60)), rng.standard_normal(40)) for s in (1.0, 1.5)]
        hits += relation_test(pair, random_state=0, **FAST).raw_p_values[0, 1] <= 0.05
    assert hits <= 2


def test_too_few_resamples_for_all_pairs_are_told() -> None:
    with pytest.warns(NumericalWarning, match="at least 59 are needed"):
        relation_test([domain(k) for k in range(3)], n_resamples=19, random_state=0)


@pytest.mark.parametrize(
    ("domains", "options", "message"),
    [
        ([domain(0)], {}, "at least two"),
        (7, {}, "domains: expected .*got int"),
        ([domain(0), domain(1, rows=5)], {}, "'1': has 5 rows, a test needs 10"),
        ([domain(0), (domain(1)[0][:, :1], domain(1)[1])], {}, "numbers of columns differ"),
        ([domain(0), (domain(1)[0], domain(1)[1] * np.nan)], {}, "200 values are not finite"),
        ([domain(0), (domain(1)[0], None)], {}, "200 values are not finite"),
        ([(np.ones((20, 2)), np.arange(20.0))] * 2, {}, "all columns of X are constant"),
        ([(domain(0)[0], np.ones(200))] * 2, {}, "y is 1 everywhere"),
        ([domain(0), domain(1)], {"n_resamples": 0}, "n_resamples: expected a whole number"),
        ([domain(0), domain(1)], {"divergence": "kl"}, "divergence: .*got 'kl'"),
        ([domain(0), domain(1)], {"ridge": 0}, "^ridge: "),
    ],
)
def test_mistakes_are_named(domains, options: dict, message: str) -> None:
    with pytest.raises((ArgumentError, DomainError), match=message):
        relation_test(domains, **options)


def test_some_pairs_are_chosen_by_features_alone_and_counted_alone() -> None:
    domains = {f"{k}": domain(k, rows=20, slope=3.0 if k % 2 else -3.0) for k in range(6)}
    tested = relation_test(domains, n_pairs=4, n_resamples=399, random_state=0)
    assert len(tested.tested) == 4
    assert np.isfinite(tested.statistics).all()
    raw = sorted(tested.raw_p_values[pair] for pair in tested.tested)
    assert min(tested.p_values[pair] for pair in tested.tested) == pytest.approx(min(1, 4 * raw[0]))
    for i, j in tested.tested:
        assert ((i - j) % 2 == 1) == (tested.p_values[i, j] <= 0.05)
    # other responses leave the choice as it is: p-values stay valid
    shuffled = {name: (x, y[::-1]) for name, (x, y) in domains.items()}
    other = relation_test(shuffled, n_pairs=4, n_resamples=99, random_state=0)
    assert other.tested == tested.tested
    with pytest.raises(ArgumentError, match="n_pairs"):
        relation_test(domains, n_pairs=0)


def test_statistics_of_all_pairs_at_once_are_those_of_single_pairs() -> None:
    rng = np.random.default_rng(0)
    rows = [domain(k, rows=15 + 5 * k) for k in range(4)]
    basis = Basis.choose(np.vstack([x for x, _ in rows]), rng, radial=30)
    samples = [Sample.of(x, y, basis) for x, y in rows]
    penalty = common_penalty(samples, basis)
    for divergence in ("conditional_von_neumann", "log_det"):
        options = {"divergence": divergence, "ridge": 1e-3, "penalty": penalty}
        every = all_statistics(samples, basis, **options)
        for i, j in [(0, 1), (1, 3), (2, 3)]:
            pair = RelationPair.of(samples[i], samples[j], basis, **options)
            assert every[i, j] == every[j, i] == pytest.approx(pair.observed(), rel=1e-6)
