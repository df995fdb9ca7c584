"""Values beyond the range of the sources: cut, told of, cut alike when a source plays target."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from vntransfer import load
from vntransfer.adaptation import MomentAlignmentRegressor, SourceOnlyRegressor
from vntransfer.adaptation._data import Data
from vntransfer.adaptation._scaler import Scaler
from vntransfer.domains import stack
from vntransfer.errors import DataWarning

SHORT: dict[str, Any] = {"epochs": 3, "random_state": 0}


def world(unseen: float) -> Any:
    """Third column: constant in the sources, something else in the target."""
    rng = np.random.default_rng(0)

    def table(n: int, last: float) -> Any:
        x = rng.normal(size=(n, 3))
        x[:, 2] = last
        return x

    sources = {name: table(80, 1.0) for name in "ab"}
    target = table(60, unseen)
    X, y, domain = stack({k: (x, x[:, 0]) for k, x in sources.items()}, target=target)
    return X, y, domain, target


def test_what_no_source_has_does_not_matter() -> None:
    found = []
    for unseen in (1.0, 5.0, -40.0):
        X, y, domain, target = world(unseen)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            model = MomentAlignmentRegressor(**SHORT, members=1).fit(X, y, domain)
        found.append(model.predict(target))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_without_clipping_it_does() -> None:
    found = []
    for unseen in (1.0, 5.0):
        X, y, domain, target = world(unseen)
        model = SourceOnlyRegressor(**SHORT, clip_inputs=False).fit(X, y, domain)
        found.append(model.predict(target))
    assert np.abs(found[0] - found[1]).max() > 1e-3


def test_it_is_told_of() -> None:
    X, y, domain, _ = world(5.0)
    with pytest.warns(DataWarning, match="33 % of the values of the target"):
        SourceOnlyRegressor(**SHORT).fit(X, y, domain)


@pytest.mark.parametrize("sparse", [False, True])
def test_range_is_saved(tmp_path: Path, sparse: bool) -> None:
    X, y, domain, target = world(1.0)
    X, target = (scipy.sparse.csr_matrix(v) if sparse else v for v in (X, target))
    model = SourceOnlyRegressor(**SHORT).fit(X, y, domain)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(9 * target), model.predict(9 * target))


def test_rows_of_weight_zero_have_no_range() -> None:
    X, y, domain, _ = world(5.0)
    X[0, 2] = 5.0
    weights = np.ones(len(X))
    weights[0] = 0
    with pytest.warns(DataWarning, match="33 %"):
        SourceOnlyRegressor(**SHORT).fit(X, y, domain, sample_weight=weights)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_virtual_target_is_seen_within_the_range_of_the_others(sparse: bool) -> None:
    x = np.array([[0.0, 1.0], [2.0, 3.0], [1.0, 9.0], [5.0, 2.0]])
    domains = [np.array([0, 1]), np.array([2, 3])]
    data = Data(
        scipy.sparse.csr_matrix(x) if sparse else x,
        Scaler(np.zeros(2), np.full(2, 2.0)),
        torch.arange(4.0)[:, None],
        weights=np.arange(4.0) + 1,
    )
    whole, places = data.limited(domains)
    # the first domain within [1, 5] x [2, 9], the second within [0, 2] x [1, 3]
    wanted = np.array([[0.0 if sparse else 1.0, 2.0], [2.0, 3.0], [1.0, 3.0], [2.0, 2.0]])
    np.testing.assert_allclose(whole.inputs(np.concatenate(places)), wanted / 2)
    np.testing.assert_allclose(whole.inputs(np.arange(4)), x / 2)
    assert whole.responses(places[1]).ravel().tolist() == [2.0, 3.0]
    assert whole.mass(places[0]).tolist() == [1.0, 2.0]
    assert data.x.shape[0] == 4


def test_nothing_is_cut_where_there_is_no_range(monkeypatch: pytest.MonkeyPatch) -> None:
    clip = np.clip

    def strict(x: Any, low: Any, high: Any) -> Any:
        assert low is not None  # numpy below 2.1 refuses to clip between None and None
        return clip(x, low, high)

    monkeypatch.setattr(np, "clip", strict)
    x = np.array([[1.0, 5.0], [3.0, 5.0]])
    np.testing.assert_array_equal(Scaler.fit(x).transform(x), [[-1.0, 0.0], [1.0, 0.0]])
