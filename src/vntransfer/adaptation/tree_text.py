"""Trees from LightGBM's text: checked, because its own reader trusts every number."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import DataError

FILE = "trees.txt"
TREES_RECORD = {
    "linear": bool,
    "random_state": int | None,
    "n_features": int,
    "center": float,
    "scale": float,
}
"""Types of what is saved beside it."""

HEADER = {
    "version": "v4",
    "num_class": "1",
    "num_tree_per_iteration": "1",
    "label_index": "0",
}
"""What stands at the head of every model of ours."""

MOST_LEAVES, MOST_COLUMNS = 10_000, 64
"""Leaves of a tree, and features of a linear leaf; ours have at most 31 and 14."""

END = "end of trees\n"

CHUNK = 4096
"""Rows that are predicted at once."""


class Forest(NamedTuple):
    """Trees with constant or linear leaves, as arrays over all of them; their outputs add up.

    The output of a leaf is c + Σ_i b_i x_i over its columns. A leaf is a node that is its own
    child, so that a walk of as many steps as the deepest tree has ends in the leaf of every row and
    tree. The inner nodes of a tree come before its leaves.
    """

    column: NDArray[np.int64]  # of each node of all trees
    threshold: NDArray[np.float64]
    children: NDArray[np.int64]  # (2, nodes): where x <= threshold, and elsewhere
    constant: NDArray[np.float64]  # c
    used: NDArray[np.int64]  # (nodes, most columns of a leaf)
    coefficient: NDArray[np.float64]  # b, the same shape, zeros after the last column of a leaf
    roots: NDArray[np.int64]

    @classmethod
    def join(cls, trees: Sequence["Forest"]) -> "Forest":
        """Make one of several."""
        sizes = [len(own.column) for own in trees]
        roots = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        most = max(own.used.shape[1] for own in trees)

        def wide(a: NDArray[Any]) -> NDArray[Any]:
            return np.pad(a, ((0, 0), (0, most - a.shape[1])))

        return cls(
            np.concatenate([own.column for own in trees]),
            np.concatenate([own.threshold for own in trees]),
            np.hstack([root + own.children for root, own in zip(roots, trees, strict=True)]),
            np.concatenate([own.constant for own in trees]),
            np.concatenate([wide(own.used) for own in trees]),
            np.concatenate([wide(own.coefficient) for own in trees]),
            roots,
        )

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up the outputs (n,) of all trees for rows (n, p) without gaps."""
        pieces = [self._predict(X[at : at + CHUNK]) for at in range(0, len(X), CHUNK)]
        return np.concatenate(pieces)

    def _predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = np.arange(len(X))[:, None]
        at, before = np.tile(self.roots, (len(X), 1)), None
        while before is None or not np.array_equal(at, before):
            right = X[rows, self.column[at]] > self.threshold[at]
            at, before = self.children[right.astype(np.int64), at], at
        found = self.constant[at].sum(1)
        for k in range(self.used.shape[1]):
            found += (self.coefficient[at, k] * X[rows, self.used[at, k]]).sum(1)
        return np.asarray(found)


def read_trees(text: str, n_features: int) -> Forest:
    """Read trees; every walk from a root ends in a leaf and reads only columns that exist.

    LightGBM walks trees by compiled code that trusts them, as are the lengths of their lists; sizes
    of trees in bytes must be those of the text.
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
    found = []
    for i, block in enumerate(blocks):
        try:
            found.append(_read_tree(_values(block), i, n_features))
        except (KeyError, ValueError, OverflowError) as error:
            raise DataError(f"trees.txt: tree {i} is damaged ({error!r:.80})") from error
    return Forest.join(found)


def _values(block: str) -> dict[str, str]:
    lines = [line for line in block.split("\n") if line]
    found = {key: value for key, _, value in (line.partition("=") for line in lines)}
    if len(found) < len(lines):
        raise DataError("trees.txt: a line occurs twice")
    return found


def _read_tree(tree: dict[str, str], number: int, n_features: int) -> Forest:
    leaves = int(tree["num_leaves"])
    linear = tree["is_linear"] == "1"
    if not 1 <= leaves <= MOST_LEAVES or tree["Tree"] != str(number) or tree["num_cat"] != "0":
        raise ValueError("Tree, num_leaves or num_cat")
    if tree["is_linear"] not in "01":
        raise ValueError("is_linear")
    inner, nodes = leaves - 1, 2 * leaves - 1
    columns = _whole(tree["split_feature"], inner)
    if ((columns < 0) | (columns >= n_features)).any():
        raise ValueError("split_feature")
    for name in ("split_gain", "internal_value", "internal_weight"):
        _floats(tree[name], inner, finite=False)
    thresholds = _floats(tree["threshold"], inner)
    kinds = _whole(tree["decision_type"], inner)
    if not np.isin(kinds, (0, 2)).all():  # others: categories, or gaps, which rows do not have
        raise ValueError("decision_type")
    _whole(tree["internal_count"], inner)
    below = np.stack([_whole(tree[f"{side}_child"], inner) for side in ("left", "right")])
    below = np.where(below < 0, inner - 1 - below, below)  # leaf j is written as -1 - j
    every_node_once = np.array_equal(np.sort(below, axis=None), np.arange(1, nodes))
    if not every_node_once or (below <= np.arange(inner)).any():  # no way back
        raise ValueError("left_child or right_child")
    constants = _floats(tree["leaf_value"], leaves)
    for name in ("leaf_weight", "leaf_count"):
        _floats(tree[name], len(tree[name].split()) and leaves)
    _floats(tree["shrinkage"], 1)
    counts, used = np.zeros(leaves, dtype=np.int64), np.zeros(0, dtype=np.int64)
    coefficients = np.zeros(0)
    if linear:
        constants = _floats(tree["leaf_const"], leaves)
        counts = _whole(tree["num_features"], leaves)
        used = _whole(tree["leaf_features"], total := int(counts.sum()))
        coefficients = _floats(tree["leaf_coeff"], total)
        if ((counts < 0) | (counts > MOST_COLUMNS)).any():
            raise ValueError("num_features")
        if ((used < 0) | (used >= n_features)).any():
            raise ValueError("leaf_features")
    children = np.tile(np.arange(nodes), (2, 1))
    children[:, :inner] = below
    own = np.arange(counts.max()) < counts[:, None]
    columns_of_leaves, slopes = np.zeros(own.shape, dtype=np.int64), np.zeros(own.shape)
    columns_of_leaves[own], slopes[own] = used, coefficients
    return Forest(
        np.pad(columns, (0, leaves)),
        np.pad(thresholds, (0, leaves)),
        children,
        np.pad(constants, (inner, 0)),
        np.pad(columns_of_leaves, ((inner, 0), (0, 0))),
        np.pad(slopes, ((inner, 0), (0, 0))),
        np.zeros(1, dtype=np.int64),
    )


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
