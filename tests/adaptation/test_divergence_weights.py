"""Source weights: the near source, laws of symmetry, nothing read that must not be."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from helpers.worlds import easy, hard
from vntransfer import DIVERGENCES, WeightedSourceRegressor, source_weights
from vntransfer.adaptation.divergence_weights import divergence_table, embed, sharpen
from vntransfer.domains import group, stack
from vntransfer.errors import ArgumentError, DomainError

PLAIN = [key for key, entry in DIVERGENCES.items() if not entry.conditional]


def test_weights_follow_the_formula() -> None:
    """Against a straight transcription: standardize, border by one, J, exponential."""
    X, y, domain = easy()
    z = (X - X.mean(0)) / X.std(0)
    M = {}
    for name in ("a", "b", "c", "target"):
        v = np.column_stack((np.ones((domain == name).sum()), z[domain == name]))
        M[name] = v.T @ v / len(v)
    epsilon = 0.01 * np.mean([np.diag(m).mean() for m in M.values()])
    M = {name: m + epsilon * np.eye(5) for name, m in M.items()}
    log = scipy.linalg.logm
    t = M["target"]
    D = np.array([np.trace((M[n] - t) @ (log(M[n]) - log(t))).real / 2 for n in "abc"])
    w = np.array([60, 50, 70]) * np.exp(-2 * (D - D.min()) / np.median(D - D.min()))
    found = source_weights(X, y, domain, sharpness=2.0)
    np.testing.assert_allclose(list(found.values()), w / w.sum(), rtol=1e-6)
    equal = source_weights(X, y, domain, sharpness=2.0, prior="equal")
    np.testing.assert_allclose(
        list(equal.values()), w / [60, 50, 70] / (w / [60, 50, 70]).sum(), rtol=1e-6
    )


@pytest.mark.parametrize("moments", ["second", "covariance"])
@pytest.mark.parametrize("divergence", PLAIN)
def test_the_near_source_weighs_most_and_weights_are_a_simplex(
    divergence: str, moments: Any
) -> None:
    rng = np.random.default_rng(0)
    spread = {"near": 1.0, "wide": 2.0, "wider": 4.0}
    parts = {name: (rng.normal(s, s, size=(100, 3)), np.zeros(100)) for name, s in spread.items()}
    world = stack(parts, target=rng.normal(1.0, 1.1, size=(80, 3)))
    model = WeightedSourceRegressor("ridge", divergence=divergence, moments=moments, sharpness=3.0)
    weights = model.fit(*world).source_weights_
    assert max(weights, key=weights.__getitem__) == "near"
    assert weights["near"] > 0.5
    assert sum(weights.values()) == pytest.approx(1)
    assert min(weights.values()) >= 0
    if moments == "second":
        assert source_weights(*world, divergence=divergence, sharpness=3.0) == weights


def test_no_sharpness_is_plain_pooling() -> None:
    weights = source_weights(*easy(), sharpness=0.0)
    assert weights == pytest.approx({"a": 60 / 180, "b": 50 / 180, "c": 70 / 180})
    equal = source_weights(*easy(), sharpness=0.0, prior="equal")
    assert equal == pytest.approx(dict.fromkeys("abc", 1 / 3))


@pytest.mark.parametrize("sparse", [False, True])
def test_permuting_sources_permutes_the_weights(sparse: bool) -> None:
    X, y, domain = easy()
    X = np.hstack((X, np.random.default_rng(0).normal(size=(len(X), 40))))  # components are needed
    if sparse:
        X = scipy.sparse.csr_array(X * (np.abs(X) > 1))
    before = source_weights(X, y, domain, sharpness=2.0)
    for names in itertools.permutations("abc"):
        new = dict(zip("abc", names, strict=True)) | {"target": "target"}
        order = np.random.default_rng(1).permutation(len(y))
        after = source_weights(
            X[order], y[order], np.array([new[n] for n in domain[order]]), sharpness=2.0
        )
        for name in "abc":
            assert after[new[name]] == pytest.approx(before[name], rel=1e-6)


def test_responses_of_the_target_are_never_read() -> None:
    X, y, domain = easy()
    poisoned = np.where(domain == "target", np.resize([1e300, -np.inf, np.nan], len(y)), y)
    assert source_weights(X, poisoned, domain) == source_weights(X, y, domain)
    assert source_weights(X, None, domain) == source_weights(X, y, domain)


def test_duplicates_get_equal_weights() -> None:
    weights = source_weights(*hard(), sharpness=3.0)
    assert weights["twice"] == weights["again"] > 0
    assert all(np.isfinite(list(weights.values())))


def test_sparse_rows_give_what_dense_rows_give() -> None:
    X, _, domain = easy()
    X = np.hstack((X, np.random.default_rng(0).normal(size=(len(X), 30)))) * (X[:, :1] > 0)
    groups = group(domain, len(X))
    dense = divergence_table(X, groups, components=5)
    for p in (X, np.hstack((X, np.zeros((len(X), 2000))))):  # the second takes the iterative way
        sparse = divergence_table(scipy.sparse.csr_matrix(p), groups, components=5)
        np.testing.assert_allclose(sparse, dense, rtol=1e-6, atol=1e-9)


def test_wide_sparse_rows_stay_sparse() -> None:
    """Densified, these rows would fill 1 GB."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((500, 250_000), density=1e-5, rng=rng, format="csr")
    assert embed(X, 3).shape == (500, 3)


def test_units_of_columns_do_not_matter() -> None:
    X, y, domain = easy()
    assert source_weights(X * [1e-3, 1, 5, 1e6], y, domain) == pytest.approx(
        source_weights(X, y, domain), rel=1e-6
    )


@given(
    arrays(np.float64, 5, elements=st.floats(0, 1e6)),
    arrays(np.float64, 5, elements=st.floats(0.1, 1e3)),
    st.floats(0, 50),
)
def test_nearer_never_weighs_less(D: NDArray[Any], mass: NDArray[Any], a: float) -> None:
    w = sharpen(D, a, mass)
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)
    order = np.argsort(D)
    assert (np.diff((w / mass)[order]) <= 1e-12).all()


def test_ties_and_noise() -> None:
    ones = np.ones(3)
    np.testing.assert_allclose(sharpen(np.array([2.0, 2.0, 2.0]), 3.0, ones), 1 / 3)
    np.testing.assert_allclose(sharpen(np.array([0.5, 0.5 + 1e-12, 0.5]), 3.0, ones), 1 / 3)
    w = sharpen(np.array([1.0, 1.0, 3.0]), 1.0, ones)  # the median of the gaps is 0
    np.testing.assert_allclose(w, np.array([1, 1, np.exp(-1)]) / (2 + np.exp(-1)))
    w = sharpen(np.array([0.0, 1.0, 1e9]), 800.0, np.array([0.0, 1.0, 1.0]))
    np.testing.assert_allclose(w, [0, 1, 0])  # what has no mass does not count


def test_one_source_has_all_the_weight() -> None:
    assert source_weights(np.ones((3, 1))) == {0: 1.0}
    assert source_weights(np.ones((3, 1)), sample_domain=[7, 7, -1]) == {7: 1.0}


def test_conditional_divergence_sees_the_response() -> None:
    """Equal inputs, other responses: only labeled rows of the target tell the sources apart."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 200, 3))
    y = np.concatenate((x[0, :, 0], -x[1, :, 0], x[2, :, 0])) + 0.1 * rng.normal(size=600)
    X, domain = x.reshape(-1, 3), np.repeat([0, 1, -1], 200)
    labeled = np.arange(420, 500)
    poisoned = y.copy()
    poisoned[np.setdiff1d(np.flatnonzero(domain < 0), labeled)] = np.nan
    for responses in (poisoned, np.column_stack((poisoned, poisoned))):
        weights = source_weights(
            X, responses, domain, divergence="conditional_von_neumann", labeled=labeled
        )
        assert weights[0] > 0.8
    mask = np.isin(np.arange(600), labeled)
    again = source_weights(X, responses, domain, divergence="conditional_von_neumann", labeled=mask)
    assert again == weights


def test_table_is_symmetric_with_the_target_last() -> None:
    X, _, domain = easy()
    table = divergence_table(X, group(domain, len(X)))
    assert table.shape == (4, 4)
    np.testing.assert_allclose(table, table.T)
    assert table[:3, 3].argmin() == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"divergence": "euclid"}, "divergence: expected one of .*got 'euclid'"),
        ({"divergence": "conditional_von_neumann"}, "labeled="),
        ({"divergence": "conditional_von_neumann", "labeled": [0]}, "labeled: expected"),
        (
            {"divergence": "conditional_log_det", "labeled": np.arange(239) >= 230},
            r"^labeled: .*240.*\(239,\)",
        ),
        (
            {"divergence": "conditional_log_det", "labeled": [230], "y": np.zeros(9)},
            r"y: expected 240 responses .* got shape \(9,\)",
        ),
        ({"labeled": [200]}, "does not use labels"),
        ({"prior": "best"}, "prior:"),
        ({"sharpness": -1.0}, "sharpness:"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], says: str) -> None:
    X, y, domain = easy()
    with pytest.raises((ArgumentError, DomainError), match=says):
        source_weights(X, **{"y": y, "sample_domain": domain, **options})


@pytest.mark.parametrize("option", [("moments", "third"), ("divergence", "mmd")])
def test_bad_options_of_the_table_are_named(option: tuple[str, Any]) -> None:
    X, _, domain = easy()
    with pytest.raises(ArgumentError, match=f"{option[0]}: "):
        divergence_table(X, group(domain, len(X)), **dict([option]))


def test_no_target_is_named() -> None:
    with pytest.raises(DomainError, match="no target among"):
        source_weights(np.ones((4, 1)), sample_domain=[0, 1, 0, 1])
    with pytest.raises(DomainError, match="moments='second'"):
        divergence_table(np.eye(4), group([0, 1, 1, -1], 4), moments="covariance")


def test_one_target_at_a_time() -> None:
    X, _, domain = easy()
    domain = np.where(domain == "target", "new", domain)
    alone = source_weights(X, sample_domain=domain, target=np.array(["new"]))
    assert alone == source_weights(X, sample_domain=domain, target="new")
    with pytest.raises(DomainError, match="several targets"):
        source_weights(X, sample_domain=domain, target=["new", "c"])
    with pytest.raises(DomainError, match=r"no domain 'old'; sample_domain has \['a', 'b', 'c'"):
        source_weights(X, sample_domain=domain, target=["old"])


def test_labeled_rows_are_named_by_indices_or_a_mask() -> None:
    X, y, domain = easy()
    y = np.where(np.isnan(y), np.random.default_rng(0).normal(size=len(y)), y)
    known = np.flatnonzero(domain == "target")[:30]
    options: dict[str, Any] = {"divergence": "conditional_von_neumann"}
    mask = np.isin(np.arange(len(y)), known)
    weights = source_weights(X, y, domain, labeled=known, **options)
    assert weights == source_weights(X, y, domain, labeled=mask, **options)
    for bad in ([0], [10**6]):
        with pytest.raises(DomainError, match="labeled: expected at least one row"):
            source_weights(X, y, domain, labeled=bad, **options)
