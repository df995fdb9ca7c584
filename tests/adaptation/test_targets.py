"""Several targets, and one target given as a list."""

from typing import Any

import numpy as np
import pytest

from helpers.worlds import easy
from vntransfer.adaptation import (
    METHODS,
    WeightedSourceClassifier,
)
from vntransfer.errors import ArgumentError, DomainError

SHORT: dict[str, Any] = {"epochs": 2, "steps": 8, "batch_size": 16, "random_state": 0}


@pytest.mark.parametrize("method", ["align", "ahd_msda", "dann"])
def test_several_targets_have_their_own_weights_and_networks(method: str) -> None:
    X, y, domain = easy()
    both = np.where(domain == "c", "other", domain)
    y = np.where(both == "other", np.nan, y)
    options = {**SHORT, "trade_off": 0.1, "members": 2}
    model = METHODS[method].make(**options).fit(X, y, both, target=["target", "other"])
    assert set(model.source_weights_) == {"target", "other"}
    for weights in model.source_weights_.values():
        assert set(weights) == {"a", "b"}
        assert sum(weights.values()) == pytest.approx(1)
    one, two = (model.predict(X, target=name) for name in ("target", "other"))
    assert np.abs(one - two).max() > 1e-4
    with pytest.raises(ArgumentError, match="name the target of these rows"):
        model.predict(X)
    with pytest.raises(ArgumentError, match="expected one of"):
        model.predict(X, target="a")
    numbers = np.select([both == "a", both == "b", both == "target"], [0, 1, -1], -2)
    again = METHODS[method].make(**options).fit(X, y, numbers)
    assert list(again.source_weights_) == [-1, -2]


def test_several_targets_are_as_if_each_were_alone() -> None:
    """Networks of different targets do not touch each other: equal rows, equal networks."""
    X, y, domain = easy()
    own = domain == "target"
    X = np.concatenate((X, X[own]))
    y = np.concatenate((y, y[own]))
    both = np.concatenate((domain, np.full(own.sum(), "twin")))
    options = {**SHORT, "dropout": 0.0, "trade_off": 1.0}
    model = METHODS["coral"].make(**options).fit(X, y, both, target=["target", "twin"])
    one, two = (model.predict(X, target=name) for name in ("target", "twin"))
    np.testing.assert_allclose(one, two, atol=1e-4)


SINGLE = {
    "weighted": {"estimator": "ridge", "sharpness": 1.0},
    "auto": {"candidates": ["ridge"], "random_state": 0},
    "ridge": {},
    "source_only": SHORT,
    "coral": {**SHORT, "trade_off": 1.0},
}


@pytest.mark.parametrize("method", SINGLE)
@pytest.mark.parametrize("pack", [list, tuple, np.array], ids=["list", "tuple", "array"])
def test_a_list_of_one_target_is_that_target(method: str, pack: Any) -> None:
    X, y, domain = easy()
    domain = np.where(domain == "target", "new", domain)
    one, same = (
        METHODS[method].make(**SINGLE[method]).fit(X, y, domain, target=target)
        for target in ("new", pack(["new"]))
    )
    np.testing.assert_array_equal(one.predict(X), same.predict(X))
    assert one.source_weights_ == same.source_weights_
    with pytest.raises(DomainError, match=r"target: no domain 'old'; sample_domain has \['a', 'b'"):
        METHODS[method].make(**SINGLE[method]).fit(X, y, domain, target=["old"])


def test_a_classifier_takes_a_list_of_one_target() -> None:
    X, y, domain = easy()
    labels = np.where(np.isnan(y), 0, y > 1)
    one, same = (
        WeightedSourceClassifier(sharpness=1.0).fit(X, labels, domain, target=target)
        for target in ("target", ["target"])
    )
    assert one.source_weights_ == same.source_weights_


def test_several_targets_where_they_are_passed_over_or_refused() -> None:
    X, y, domain = easy()
    pooled = METHODS["ridge"].make().fit(X, y, domain, target=["target", "c"])
    assert set(pooled.source_weights_) == {"a", "b"}
    for method in ("weighted", "auto"):
        with pytest.raises(DomainError, match=r"several targets \['c', 'target'\]; fit one model"):
            METHODS[method].make().fit(X, y, domain, target=["target", "c"])


def test_rows_to_predict_are_of_one_target() -> None:
    X, y, domain = easy()
    options = {**SHORT, "trade_off": 1.0}
    model = METHODS["coral"].make(**options).fit(X, y, domain, target=np.array(["target", "c"]))
    for packed in (["c"], ("c",), np.array(["c"])):
        np.testing.assert_array_equal(model.predict(X, target=packed), model.predict(X, "c"))
    for bad in (["c", "target"], []):
        with pytest.raises(ArgumentError, match=r"target: expected one of \['c', 'target'\]"):
            model.predict(X, target=bad)
    numbers = np.select([domain == "target", domain == "c"], [-1, -2], 0)
    model = METHODS["coral"].make(**options).fit(X, y, numbers)
    np.testing.assert_array_equal(model.predict(X, target=[-2]), model.predict(X, target=-2))
