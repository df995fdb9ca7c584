"""Fitted scikit-learn estimators as bytes, without pickle: only known types are read."""

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from vntransfer.errors import ArgumentError, DataError
from vntransfer.storage.files import most_expanded

SCHEMA = "schema.json"
"""The part of a skops file that names types."""

TRUSTED = frozenset(
    {
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.tree._tree.Tree",
        "vntransfer.adaptation._learners.DenseScaler",
    }
)
"""Types that are read besides those that skops trusts; trees are checked node by node."""


def need_skops() -> Any:
    """Import ``skops.io``, or raise an error with the command that installs it."""
    try:
        import skops.io
    except ImportError:
        raise ArgumentError(
            "saving scikit-learn estimators needs skops: run `pip install skops`"
        ) from None
    return skops.io


def write_skops(estimator: Any, owner: str) -> bytes:
    """Give a fitted scikit-learn estimator as bytes.

    Estimators of other packages, your own classes and boosting with categorical columns (which
    keeps functions) are refused: loading them would run code that the file names. Errors name the
    ``owner``, the model that holds the estimator.
    """
    skops = need_skops()
    try:
        content: bytes = skops.dumps(estimator)
        unknown = set(skops.get_untrusted_types(data=content)) - TRUSTED
    except Exception as error:  # whatever the object's own methods raise
        raise _refusal(owner, f"of {type(estimator).__name__}") from error
    if unknown:
        raise _refusal(owner, ", ".join(sorted(unknown)))
    return _canonical(content)


def _canonical(content: bytes) -> bytes:
    """Replace addresses of objects by numbers in order: equal models have equal bytes."""
    parts = unzipped(content)
    order: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return found[1] + order.setdefault(found[2], str(len(order)))

    schema = re.sub(r'("__id__": |"file": ")(\d+)', number, parts.pop(SCHEMA).decode())
    renamed = {re.sub(r"^()(\d+)", number, name): part for name, part in parts.items()}
    return zipped({**renamed, SCHEMA: schema.encode()})


def unzipped(content: bytes) -> dict[str, bytes]:
    """Give the parts of an archive by name; refuse one that expands far beyond its size."""
    most = most_expanded(len(content))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        every = archive.infolist()
        if sum(own.file_size for own in every) > most:
            raise DataError(
                f"folder: a skops file expands to more than {most >> 20} MiB, too much for its "
                f"size; use only models from people you trust"
            )
        if any(
            own.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for own in every
        ):
            raise DataError(
                "folder: a skops file is compressed in a way that skops does not use; save the "
                "model again"
            )
        parts = {}
        for own in every:
            with archive.open(own) as file:  # `archive.read` would ignore the declared size
                parts[own.filename] = file.read(own.file_size)
        return parts


def zipped(parts: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Undo `unzipped`, without dates; uncompressed if `unzipped` would refuse the result."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, part in parts.items():
            archive.writestr(zipfile.ZipInfo(name), part, method)
    content = written.getvalue()
    if sum(map(len, parts.values())) > most_expanded(len(content)):
        return zipped(parts, zipfile.ZIP_STORED)
    return content


def _refusal(owner: str, what: str) -> ArgumentError:
    return ArgumentError(
        f"model: {owner} holds parts that cannot be saved safely: {what}; use an estimator from "
        f"scikit-learn, or a network that is not a step of a pipeline"
    )


def read_skops(content: bytes) -> Any:
    """Undo `write_skops`; a file that names any other type is refused unread."""
    skops = need_skops()
    try:
        content = zipped(unzipped(content), zipfile.ZIP_STORED)  # skops expands without limits
        found = set(skops.get_untrusted_types(data=content))
        if unknown := found - TRUSTED:
            raise DataError(
                f"folder: a skops file names {', '.join(sorted(unknown))}; only types of "
                f"scikit-learn and vntransfer are loaded"
            )
        estimator = skops.loads(content, trusted=sorted(found))
    except DataError:
        raise
    except Exception as error:  # a damaged archive fails in many ways
        raise DataError(
            f"folder: a skops file is damaged ({error!r:.200}); save the model again"
        ) from error
    for tree, width in _trees(estimator):
        _check_tree(tree, width)
    return estimator


def _trees(model: Any) -> Iterator[tuple[Any, int]]:
    """Give every tree inside a model and the number of columns that its owner accepts."""
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
    from sklearn.tree._tree import Tree

    seen: set[int] = set()
    waiting: list[tuple[Any, int]] = [(model, 0)]
    while waiting:
        thing, width = waiting.pop()
        if id(thing) in seen or isinstance(thing, str | bytes | int | float | None):
            continue
        seen.add(id(thing))
        if isinstance(thing, Tree | TreePredictor):
            yield thing, width
        elif isinstance(thing, dict):
            waiting += [(value, width) for value in thing.values()]
        elif isinstance(thing, list | tuple | set):
            waiting += [(value, width) for value in thing]
        elif isinstance(thing, np.ndarray):
            waiting += [(value, width) for value in thing.flat] if thing.dtype == object else []
        elif hasattr(thing, "__dict__"):
            own = vars(thing).get("n_features_in_", width)
            waiting += [(value, own) for value in vars(thing).values()]


def _check_tree(tree: Any, width: int) -> None:
    """Raise unless every path from the root ends in a leaf and reads only columns that exist.

    Compiled code follows trees without checks.
    """
    if hasattr(tree, "nodes"):  # of histogram-based boosting
        nodes = tree.nodes
        inner = np.flatnonzero(nodes["is_leaf"] == 0)
        children = np.stack((nodes["left"], nodes["right"])).astype(np.int64)
        columns = nodes["feature_idx"]
        fine = not nodes["is_categorical"].any()  # never saved: such models hold functions
    else:
        children = np.stack((tree.children_left, tree.children_right))
        inner = np.flatnonzero(tree.children_left != -1)
        columns, fine = tree.feature, True
    own = children[:, inner]
    fine = fine and children.shape[1] > 0 and bool((own < children.shape[1]).all())
    fine = fine and bool((own > inner).all())  # scikit-learn numbers children after parents
    fine = fine and bool(((columns[inner] >= 0) & (columns[inner] < width)).all())
    if not fine:
        raise DataError(
            "folder: a skops file holds a tree with invalid links; save the model again"
        )
