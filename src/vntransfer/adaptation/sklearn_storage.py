"""Fitted scikit-learn parts as files, without pickle: only types that are known are read."""

import copy
import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.tree._tree import Tree

from vntransfer._version import __version__
from vntransfer.adaptation._base import DomainRegressor
from vntransfer.errors import ArgumentError, DataError
from vntransfer.storage.files import atomic_write

MODEL, RECORD, NETWORK = "model.skops", "model.json", "network"
NUMBERS = "model.safetensors"
FORMAT = 1

SCHEMA = "schema.json"
"""The part of a file of skops that names types."""

MOVED = {"vntransfer.adaptation._guard": "vntransfer.adaptation.guarded_choice"}
"""Modules whose types are in files of versions before 0.1."""

TRUSTED = frozenset(
    {
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.tree._tree.Tree",
        "vntransfer.adaptation.guarded_choice.Guarded",
        "vntransfer.adaptation._learners.ColumnBins",
        "vntransfer.adaptation._learners.DenseScaler",
        "vntransfer.adaptation._learners.SparseReducer",
        "vntransfer.adaptation._learners.TiedBoosting",
        "vntransfer.adaptation.ahd.AHDRegressor",
        "vntransfer.adaptation.alignment.MomentAlignmentRegressor",
        "vntransfer.adaptation.coral.DeepCORALRegressor",
        "vntransfer.adaptation.dann.DANNRegressor",
        "vntransfer.adaptation.dare_gram.DAREGRAMRegressor",
        "vntransfer.adaptation.darn.DARNRegressor",
        "vntransfer.adaptation.mdan.MDANRegressor",
        "vntransfer.adaptation.mdd.MDDRegressor",
        "vntransfer.adaptation.pooled.PooledRegressor",
        "vntransfer.adaptation.source_only.SourceOnlyRegressor",
        "vntransfer.adaptation.weighted.SharpnessSelection",
        "vntransfer.adaptation.weighted.WeightedSourceClassifier",
        "vntransfer.adaptation.weighted.WeightedSourceRegressor",
    }
)
"""What is read beside the types that skops knows; trees are checked node by node.

Of networks only the options: a fitted one holds torch's types, which are not among these.
"""


def save(model: Any, folder: str | Path) -> None:
    """Write a fitted model into a folder: ``model.skops`` and ``model.json``.

    If the estimator inside is a network of this package it is saved as networks are, in a folder
    ``network`` beside them.

    Parameters
    ----------
    model
        `PooledRegressor`, `WeightedSourceRegressor` or `WeightedSourceClassifier` with a
        scikit-learn estimator or a network inside, or a scikit-learn estimator itself. Networks as
        steps of a pipeline or with modules of your own, estimators of other packages,
        own classes and boosting with categorical columns (which keeps functions) cannot be saved:
        reading them back would mean to run code that the file names.
    folder
        Made if absent.

    Examples
    --------
    >>> import tempfile
    >>> from vntransfer import PooledRegressor
    >>> X = np.arange(10.0)[:, None]
    >>> model = PooledRegressor("ridge").fit(X, 2 * X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, folder)
    ...     same = load(folder).predict(X) == model.predict(X)
    >>> bool(same.all())
    True
    """
    skops = need_skops()
    inner, rest = getattr(model, "estimator_", None), model
    network = inner if isinstance(inner, DomainRegressor) else None
    if network is not None:
        rest = copy.copy(model)
        del rest.estimator_
    try:
        content = skops.dumps(rest)
        unknown = set(skops.get_untrusted_types(data=content)) - TRUSTED
    except Exception as error:  # skops raises whatever the object's own methods raise
        raise _refusal(model, f"of {type(getattr(model, 'estimator_', model)).__name__}") from error
    if unknown:
        raise _refusal(model, ", ".join(sorted(unknown)))
    record = {
        "format": FORMAT,
        "class": type(model).__name__,
        "vntransfer": __version__,
        "scikit-learn": sklearn.__version__,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    own = Path(folder, NETWORK)
    past = [Path(folder, NUMBERS)]  # of another model that was here
    if network is None:
        past += [Path(own, NUMBERS), Path(own, RECORD)]
    else:
        network.save(own)
        record[NETWORK] = hashlib.sha256(Path(own, RECORD).read_bytes()).hexdigest()
    # what was here stays until both files are whole
    with atomic_write(Path(folder, MODEL)) as one, atomic_write(Path(folder, RECORD), "w") as two:
        one.write(content)
        two.write(json.dumps(record, indent=2) + "\n")
    for file in past:
        file.unlink(missing_ok=True)


def load(folder: str | Path, load_network: Callable[[Path], Any] | None = None) -> Any:
    """Read what `save` wrote; a file that names any other type is refused unread.

    Parameters
    ----------
    folder
        The folder.
    load_network
        Reads a network from its folder, for models that have one inside.
    """
    skops = need_skops()
    try:
        record = json.loads(Path(folder, RECORD).read_text(encoding="utf-8"))
        content = Path(folder, MODEL).read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"folder: {folder} holds no saved model ({error.filename})") from None
    except ValueError as error:
        raise DataError(f"folder: {RECORD} in {folder} is damaged ({error})") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DataError(
            f"folder: {folder} was not written by this version of vntransfer; expected format "
            f"{FORMAT} in {RECORD}"
        )
    if hashlib.sha256(content).hexdigest() != record.get("sha256"):
        raise DataError(f"folder: {MODEL} in {folder} is damaged; it does not match {RECORD}")
    try:
        content = _renamed(content)
        found = set(skops.get_untrusted_types(data=content))
        if unknown := found - TRUSTED:
            raise DataError(
                f"folder: {MODEL} in {folder} names {', '.join(sorted(unknown))}; only "
                f"scikit-learn's and vntransfer's own types are read"
            )
        model = skops.loads(content, trusted=sorted(found))
    except DataError:
        raise
    except Exception as error:  # a damaged archive fails in many ways
        raise DataError(f"folder: {MODEL} in {folder} is damaged ({error!r:.200})") from error
    for tree, width in _trees(model):
        _check_tree(tree, width, folder)
    if NETWORK in record:
        model.estimator_ = _network(Path(folder, NETWORK), record[NETWORK], load_network)
    return model


def _renamed(content: bytes) -> bytes:
    """Bring the modules that a file of a version before 0.1 names to today's names."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    schema = parts[SCHEMA]
    for old, new in MOVED.items():
        schema = schema.replace(f'"{old}"'.encode(), f'"{new}"'.encode())
    if schema == parts[SCHEMA]:
        return content
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, part in {**parts, SCHEMA: schema}.items():
            archive.writestr(name, part)
    return written.getvalue()


def _network(folder: Path, digest: str, load_network: Callable[[Path], Any] | None) -> Any:
    """Read the network inside a model, if it is the one that was saved with it."""
    if load_network is None:
        raise ArgumentError(f"folder: {folder} holds a network; read it with load_model")
    found = Path(folder, RECORD)
    if not found.exists() or hashlib.sha256(found.read_bytes()).hexdigest() != digest:
        raise DataError(f"folder: {folder} is not the network of this model; save it again")
    return load_network(folder)


def _refusal(model: Any, what: str) -> ArgumentError:
    return ArgumentError(
        f"model: {type(model).__name__} holds parts that cannot be saved safely: {what}; most of "
        f"scikit-learn's own estimators can be saved, and networks that are no step of a pipeline"
    )


def need_skops() -> Any:
    """Give ``skops.io``; an error says what to install."""
    try:
        import skops.io
    except ImportError:
        raise ArgumentError(
            "saving scikit-learn estimators needs skops: run `pip install 'vntransfer[models]'`"
        ) from None
    return skops.io


def _trees(model: Any) -> Iterator[tuple[Any, int]]:
    """Give every tree within a model and the number of columns that its owner accepts."""
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


def _check_tree(tree: Any, width: int, folder: str | Path) -> None:
    """Raise unless every walk from the root ends in a leaf and reads only columns that exist.

    Trees are walked by compiled code that trusts them.
    """
    if isinstance(tree, TreePredictor):
        nodes = tree.nodes
        inner = np.flatnonzero(nodes["is_leaf"] == 0)
        children = np.stack((nodes["left"], nodes["right"])).astype(np.int64)
        columns = nodes["feature_idx"]
        fine = not nodes["is_categorical"].any()  # such models are not saved: they hold functions
    else:
        children = np.stack((tree.children_left, tree.children_right))
        inner = np.flatnonzero(tree.children_left != -1)
        columns, fine = tree.feature, True
    own = children[:, inner]
    fine = fine and children.shape[1] > 0 and bool((own < children.shape[1]).all())
    fine = fine and bool((own > inner).all())  # as scikit-learn numbers them: no way back
    fine = fine and bool(((columns[inner] >= 0) & (columns[inner] < width)).all())
    if not fine:
        raise DataError(f"folder: {MODEL} in {folder} holds a tree that leads nowhere; refused")
