"""Read anything that was saved: an estimator, a table's model, a network that learns tasks."""

from os import PathLike
from pathlib import Path
from typing import Any

from vntransfer.adaptation import (
    METHODS,
    BoostedTrees,
    ClosedFormClassifier,
    WeightedSourceClassifier,
)
from vntransfer.checks import instance
from vntransfer.errors import ArgumentError, DataError
from vntransfer.storage.folder import load_folder, restore
from vntransfer.workflows.continual_model import ContinualModel
from vntransfer.workflows.table_model import TableModel

OF_TABLES = (TableModel, ContinualModel)


def load(folder: str | Path, **given: Any) -> Any:
    """Read a model that was saved with ``model.save(folder)``; nothing in the folder is executed.

    Parameters
    ----------
    folder
        What `vnt adapt --save`, `vnt learn --save` or the ``save`` of an estimator wrote.
    given
        For estimators: ``extractor`` and ``head``, if they were fitted with your own modules;
        ``device``, to place the network elsewhere.

    Returns
    -------
    estimator, TableModel or ContinualModel
        Whatever was saved.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from vntransfer import SourceOnlyRegressor, load
    >>> X = np.linspace(-1, 1, 60)[:, None]
    >>> model = SourceOnlyRegressor(epochs=2, random_state=0).fit(X, X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder)
    ...     again = load(folder)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    instance("folder", folder, str | PathLike, "the path of a folder")
    saved = load_folder(folder)
    if given and saved.kind in (own.__name__ for own in OF_TABLES):
        raise ArgumentError(
            f"{next(iter(given))}: only for estimators; {folder} holds a {saved.kind}"
        )
    estimators = (entry.estimator for entry in METHODS.values())
    others = (BoostedTrees, ClosedFormClassifier, WeightedSourceClassifier)
    kinds = {own.__name__: own for own in (*estimators, *others, *OF_TABLES)}
    return restore(saved, kinds, given, folder)


def load_predictor(folder: str | Path) -> TableModel | ContinualModel:
    """Read what `vnt adapt` or `vnt learn` saved; anything else is an error."""
    model = load(folder)
    if not isinstance(model, OF_TABLES):
        raise DataError(
            f"{folder}: holds a {type(model).__name__}, which takes arrays; name a folder that "
            f"`vnt adapt --save` or `vnt learn --save` wrote"
        )
    return model
