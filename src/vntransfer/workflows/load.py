"""Read anything that was saved: an estimator, a table's model, a network that learns tasks."""

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from vntransfer.adaptation.predictors import predictor_kind
from vntransfer.checks import instance
from vntransfer.errors import ArgumentError, DataError
from vntransfer.storage.folder import load_folder, restore
from vntransfer.storage.record import SavedModel

OF_TABLES = {
    "ContinualModel": "vntransfer.workflows.continual_model",
    "TableModel": "vntransfer.workflows.table_model",
}
"""Models of tables, and the modules that define them."""


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
    if given and saved.kind in OF_TABLES:
        raise ArgumentError(
            f"{next(iter(given))}: only for estimators; {folder} holds a {saved.kind}"
        )
    return restore(saved, _kind, given, folder)


def load_predictor(folder: str | Path) -> Any:
    """Read what `vnt adapt` or `vnt learn` saved, for predicting only; nothing else is read.

    The estimators of a `TableModel` come from `vntransfer.adaptation.predictors`: they
    predict the same, up to rounding, and torch need not be imported.
    """
    saved = load_folder(folder)
    if saved.kind not in OF_TABLES and _kind(saved) is not None:
        raise DataError(
            f"{folder}: holds a {saved.kind}, which takes arrays; name a folder that "
            f"`vnt adapt --save` or `vnt learn --save` wrote"
        )
    return restore(saved, light_kind, {}, folder)


def light_kind(saved: SavedModel) -> Any:
    """Give the class of what was saved for predicting only; None if it is none that may be read."""
    return _table_kind(saved) or predictor_kind(saved)


def _table_kind(saved: SavedModel) -> Any:
    home = OF_TABLES.get(saved.kind)
    return None if home is None else getattr(import_module(home), saved.kind)


def _kind(saved: SavedModel) -> Any:
    """Give the class of what was saved; None if it is none that may be read."""
    if (own := _table_kind(saved)) is not None:
        return own
    from vntransfer import adaptation

    others = (
        adaptation.BoostedTrees,
        adaptation.ClosedFormClassifier,
        adaptation.LogisticLearner,
        adaptation.MedianLearner,
        adaptation.ScaledRidge,
        adaptation.WeightedSourceClassifier,
    )
    every = (*(entry.estimator for entry in adaptation.METHODS.values()), *others)
    return {own.__name__: own for own in every}.get(saved.kind)
