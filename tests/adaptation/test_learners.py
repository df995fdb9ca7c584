"""Boosted trees: where half of the responses are equal, sparse rows, seeds, saved text."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from vntransfer import DataError, PooledRegressor, load
from vntransfer.adaptation.boosted_trees import FILE, BoostedTrees
from vntransfer.adaptation.tree_text import read_trees
from vntransfer.storage.record import SavedModel

RESPONSES = {
    "amounts that are mostly zero": lambda x: 10 * np.maximum(x - 0.2, 0),
    "classes": lambda x: (x > 0.2).astype(float),
    "counts": lambda x: np.floor(2 * np.clip(x, 0, 1.9)),
    "signs and zeros": lambda x: np.sign(x) * (abs(x) > 0.9),
}


@pytest.mark.parametrize("relation", RESPONSES.values(), ids=RESPONSES)
@pytest.mark.parametrize("learner", ["boosting", "linear_trees"])
def test_boosting_learns_where_half_of_the_responses_are_equal(
    relation: Any, learner: str, tmp_path: Any
) -> None:
    x = np.random.default_rng(0).normal(size=(600, 2))
    y = relation(x[:, 0])
    middle = np.abs(np.median(y) - y).mean()
    model = PooledRegressor(learner, 0).fit(x, y)
    assert np.abs(model.predict(x) - y).mean() < 0.2 * middle
    model.save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path).predict(x), model.predict(x))
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".txt"}  # no skops


def test_linear_leaves_follow_a_slope_and_constant_ones_do_not() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    far = np.array([[4.0]])
    flat, linear = (BoostedTrees(linear=own).fit(x, 2 * x[:, 0]) for own in (False, True))
    assert linear.predict(far)[0] > x.max() * 2 > flat.predict(far)[0]


def test_sparse_rows_are_learned_as_dense_ones_are() -> None:
    rng = np.random.default_rng(0)
    x = scipy.sparse.random_array((400, 20), density=0.3, rng=rng, format="csr")
    y = x[:, [0]].toarray().ravel() + x[:, [1]].toarray().ravel()
    sparse, dense = BoostedTrees().fit(x, y), BoostedTrees().fit(x.toarray(), y)
    np.testing.assert_allclose(sparse.predict(x), dense.predict(x.toarray()))


def test_units_and_seeds_do_not_matter_and_rows_without_weight_are_absent() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    y = np.sin(x[:, 0])
    plain = BoostedTrees().fit(x, y).predict(x)
    np.testing.assert_allclose(BoostedTrees().fit(x, 1e60 * y).predict(x), 1e60 * plain)
    np.testing.assert_array_equal(BoostedTrees(random_state=3).fit(x, y).predict(x), plain)
    w = (x[:, 1] > 0).astype(float)
    weighted = BoostedTrees().fit(x, y, 5 * w).predict(x)
    np.testing.assert_array_equal(weighted, BoostedTrees().fit(x[w > 0], y[w > 0]).predict(x))
    assert np.ptp(BoostedTrees().fit(x, np.full(300, 7.0)).predict(x)) == 0


def saved(linear: bool) -> SavedModel:
    x = np.random.default_rng(0).normal(size=(120, 3))
    return BoostedTrees(linear).fit(x, x[:, 0] + x[:, 1] * x[:, 2])._saved()


SAVED = {linear: saved(linear) for linear in (False, True)}


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("split_feature=0", "split_feature=9"),
        ("left_child=1 ", "left_child=0 "),
        ("left_child=1 ", "left_child=99 "),
        ("num_leaves=", "num_leaves=1"),
        ("num_cat=0", "num_cat=1"),
        ("max_feature_idx=2", "max_feature_idx=7"),
        ("decision_type=2", "decision_type=1"),
        ("leaf_value=", "leaf_value=nan "),
        ("tree_sizes=", "tree_sizes=1 "),
        ("Tree=3", "Tree=4"),
        ("end of trees", "end"),
    ],
)
def test_forged_trees_are_refused(linear: bool, old: str, new: str) -> None:
    text = SAVED[linear].files[FILE].decode()
    if old.startswith("split_feature"):
        first = text.index("split_feature=")
        text = f"{text[:first]}split_feature=9{text[first + 15 :]}"
    else:
        assert old in text
        text = text.replace(old, new, 1)
    with pytest.raises(DataError, match=r"trees\.txt"):
        read_trees(text, 3)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_changed_text_predicts_or_is_refused(data: st.DataObject) -> None:
    """Compiled code that trusts a tree would end the process."""
    linear = data.draw(st.booleans())
    before = SAVED[linear]
    text = bytearray(before.files[FILE])
    end = text.index(b"end of trees")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, end))
        text[place] = data.draw(st.sampled_from(list(b"0123456789- .=e\n")))
    forged = SavedModel(before.kind, before.record, files={FILE: bytes(text)})
    try:
        model = BoostedTrees._restored(forged, {}, {})
    except DataError:
        return
    model.predict(np.random.default_rng(0).normal(size=(50, 3)))
