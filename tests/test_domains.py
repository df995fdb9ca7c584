"""Domains: who is source, who is target, and batches to which all give alike."""

from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from vntransfer.domains import balanced, group, stack
from vntransfer.errors import ArgumentError, DomainError


def test_stack_and_group_are_inverse() -> None:
    rng = np.random.default_rng(0)
    parts = {
        name: (rng.normal(size=(n, 3)), rng.normal(size=n)) for name, n in (("b", 4), ("a", 5))
    }
    target = rng.normal(size=(2, 3))
    X, y, domain = stack(parts, target=target)
    groups = group(domain, len(X))
    assert list(groups.sources) == ["a", "b"]
    for name, (x, labels) in parts.items():
        np.testing.assert_array_equal(X[groups.sources[name]], x)
        np.testing.assert_array_equal(y[groups.sources[name]], labels)
    assert groups.target is not None
    np.testing.assert_array_equal(X[groups.target], target)
    assert np.isnan(y[groups.target]).all()
    assert groups.merged().sources[0].tolist() == list(range(9))


def test_sparse_stays_sparse() -> None:
    x = scipy.sparse.random_array((4, 3), density=0.5, format="csc", rng=0)
    X, _, _ = stack({"a": (x, np.zeros(4)), "b": (np.ones((2, 3)), np.zeros(2))}, target=x)
    assert scipy.sparse.issparse(X)
    assert X.format == "csr"
    np.testing.assert_array_equal(X[4:6].toarray(), 1)


def test_several_columns_of_response() -> None:
    _, y, _ = stack({"a": (np.ones((2, 3)), np.zeros((2, 4)))}, target=np.ones((1, 3)))
    assert y.shape == (3, 4)


@pytest.mark.parametrize(
    ("ids", "target", "message"),
    [
        ([0, 1], None, "one entry per row"),
        ([-1, -1, -1], None, "all 3 rows are the target's"),
        ([0, -1, -2], None, "several targets"),
        ([0, 1, -1], "a", "needs names"),
        (["a", "b", "a"], "c", "no domain 'c'"),
        (["a", "a", "a"], "a", "all 3 rows"),
        ([0.0, 1.0, -1.0], None, "got float"),
        (None, "a", "needs sample_domain"),
    ],
)
def test_wrong_domains_are_named(ids: Any, target: str | None, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        group(ids, 3, target=target)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({}, "empty"),
        ({"target": (np.ones((2, 3)), np.ones(2))}, "rename"),
        ({"a": (np.ones((2, 3)), np.ones(3))}, "2 rows but y"),
        ({"a": (np.ones((2, 3)), [1.0, np.nan])}, "1 values that are not finite"),
        ({"a": (np.ones((2, 4)), np.ones(2))}, "numbers of columns differ"),
        ({"a": (np.ones(3), np.ones(3))}, "rows and columns"),
        ({"a": (np.ones((0, 3)), np.ones(0))}, "rows and columns"),
        ({"a": (np.ones((1, 3)), [1]), "b": (np.ones((1, 3)), [[1, 2]])}, "shapes of y differ"),
    ],
)
def test_wrong_parts_are_named(sources: Any, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        stack(sources, target=np.ones((2, 3)))


def test_batches_pass_through_every_row_before_any_comes_again() -> None:
    rows = [np.arange(12), np.arange(12, 15)]
    seen = np.stack(list(islice(balanced(rows, 4, random_state=1), 6)))
    assert seen.shape == (6, 2, 4)
    large, small = seen[:, 0].ravel(), seen[:, 1].ravel()
    assert sorted(large[:12]) == sorted(large[12:]) == list(range(12))
    assert np.bincount(small - 12).tolist() == [8, 8, 8]
    assert not np.array_equal(large[:12], large[12:])


def test_permuting_domains_permutes_batches() -> None:
    rows = [np.arange(5), np.arange(5, 12), np.arange(12, 20)]
    one = next(balanced(rows, 4, random_state=3))
    two = next(balanced([rows[2], rows[0], rows[1]], 4, random_state=3))
    np.testing.assert_array_equal(one[[2, 0, 1]], two)


def test_size_must_be_positive() -> None:
    with pytest.raises(ArgumentError, match="size"):
        next(balanced([np.arange(2)], 0, random_state=0))


def test_batches_need_a_row_of_every_domain() -> None:
    with pytest.raises(DomainError, match=r"rows: expected at least one .*, got \[2, 0\]"):
        next(balanced([np.arange(2), np.arange(0)], 4, random_state=0))


ONE = [["b"], ("b",), np.array(["b"]), np.array(["b"], dtype=object), {"b"}, iter(["b"])]


@pytest.mark.parametrize("target", ONE, ids=lambda own: type(own).__name__)
def test_a_target_may_come_in_a_list(target: Any) -> None:
    found = group(["a", "b", "a"], 3, target=target)
    assert list(found.targets) == ["b"]
    assert list(found.sources) == ["a"]


def test_several_targets_where_they_make_sense() -> None:
    for names in (["c", "b"], ("b", "c"), np.array(["b", "c"])):
        assert list(group(["a", "b", "c"], 3, target=names, several=True).targets) == ["b", "c"]
        with pytest.raises(DomainError, match=r"several targets \['b', 'c'\]"):
            group(["a", "b", "c"], 3, target=names)
    with pytest.raises(DomainError, match=r"no domain 'z'; sample_domain has \['a', 'b'\]"):
        group(["a", "b"], 2, target=["b", "z"], several=True)


@pytest.mark.parametrize("target", [3, ["a", 3], [None], b"a", [["a"]], np.array(3)])
def test_a_target_is_a_name(target: Any) -> None:
    with pytest.raises(DomainError, match=r"^target: .*name"):
        group(["a", "b"], 2, target=target)
