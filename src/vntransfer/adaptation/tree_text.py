"""Checks of the text that LightGBM saves: its own reader trusts every number in it."""

import re

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import DataError

HEADER = {
    "version": "v4",
    "num_class": "1",
    "num_tree_per_iteration": "1",
    "label_index": "0",
}
"""What stands at the head of every model of ours."""

MOST_LEAVES = 10_000
END = "end of trees\n"


def check_trees(text: str, n_features: int) -> None:
    """Raise unless every walk from a root ends in a leaf and reads only columns that exist.

    Trees are walked by compiled code that trusts them, as are the lengths of their lists; sizes of
    trees in bytes must be those of the text.
    """
    trees, end, rest = text.partition(END)
    head, *blocks = re.split(r"^(?=Tree=)", trees, flags=re.M)
    if rest or not end or not trees.endswith("\n") or not head.startswith("tree\n"):
        raise DataError("trees.txt: is not a model of LightGBM")
    values = _values(head.removeprefix("tree\n"))
    for key, expected in {**HEADER, "max_feature_idx": str(n_features - 1)}.items():
        if values.get(key) != expected:
            raise DataError(f"trees.txt: {key}: expected {expected}, got {values.get(key)!r:.60}")
    for key in ("feature_names", "feature_infos"):
        if len(values.get(key, "").split(" ")) != n_features:
            raise DataError(f"trees.txt: {key}: expected {n_features} entries")
    sizes = [str(len(block.encode())) for block in blocks]
    if not blocks or values.get("tree_sizes", "").split(" ") != sizes:
        raise DataError("trees.txt: tree_sizes do not fit the trees")
    for i, block in enumerate(blocks):
        try:
            _check_tree(_values(block), i, n_features)
        except (KeyError, ValueError, OverflowError) as error:
            raise DataError(f"trees.txt: tree {i} is damaged ({error!r:.80})") from error


def _values(block: str) -> dict[str, str]:
    lines = [line for line in block.split("\n") if line]
    found = {key: value for key, _, value in (line.partition("=") for line in lines)}
    if len(found) < len(lines):
        raise DataError("trees.txt: a line occurs twice")
    return found


def _check_tree(tree: dict[str, str], number: int, n_features: int) -> None:
    leaves = int(tree["num_leaves"])
    linear = tree["is_linear"] == "1"
    if not 1 <= leaves <= MOST_LEAVES or tree["Tree"] != str(number) or tree["num_cat"] != "0":
        raise ValueError("Tree, num_leaves or num_cat")
    if tree["is_linear"] not in "01":
        raise ValueError("is_linear")
    inner = leaves - 1
    columns = _whole(tree["split_feature"], inner)
    if ((columns < 0) | (columns >= n_features)).any():
        raise ValueError("split_feature")
    for name in ("split_gain", "threshold", "internal_value", "internal_weight"):
        _floats(tree[name], inner, finite=name == "threshold")
    kinds = _whole(tree["decision_type"], inner)
    if ((kinds < 0) | (kinds > 15) | (kinds % 2 == 1)).any():  # odd: categories
        raise ValueError("decision_type")
    _whole(tree["internal_count"], inner)
    children = np.stack([_whole(tree[f"{side}_child"], inner) for side in ("left", "right")])
    nodes, own = children[children >= 0], children[children < 0]
    reached = np.sort(np.concatenate((nodes, inner - 1 - own)))  # leaf j is written as -1 - j
    if not np.array_equal(reached, np.arange(1, inner + leaves)[: 2 * inner]):
        raise ValueError("left_child or right_child")
    if (children > np.arange(inner)).sum() != len(nodes):  # children come later: no way back
        raise ValueError("left_child or right_child")
    _floats(tree["leaf_value"], leaves)
    for name in ("leaf_weight", "leaf_count"):
        _floats(tree[name], len(tree[name].split()) and leaves)
    _floats(tree["shrinkage"], 1)
    if linear:
        _floats(tree["leaf_const"], leaves)
        counts = _whole(tree["num_features"], leaves)
        total = int(counts.sum())
        used = _whole(tree["leaf_features"], total)
        _floats(tree["leaf_coeff"], total)
        if (counts < 0).any() or ((used < 0) | (used >= n_features)).any():
            raise ValueError("leaf_features")


def _floats(text: str, count: int, *, finite: bool = True) -> NDArray[np.float64]:
    found = np.array([float(word) for word in text.split()], dtype=np.float64)
    if len(found) != count or (finite and not np.isfinite(found).all()):
        raise ValueError(f"{count} numbers expected")
    return found


def _whole(text: str, count: int) -> NDArray[np.int64]:
    found = np.array([int(word) for word in text.split()], dtype=np.int64)
    if len(found) != count:
        raise ValueError(f"{count} whole numbers expected")
    return found
