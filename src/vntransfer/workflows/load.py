"""Read anything that was saved: an estimator, a table's model, a network that learns tasks."""

from pathlib import Path
from typing import Any

from vntransfer.adaptation import load_model
from vntransfer.errors import ArgumentError
from vntransfer.storage.folders import kind_of
from vntransfer.workflows.continual_model import ContinualModel
from vntransfer.workflows.learn_storage import STORED, load_continual_model
from vntransfer.workflows.table_model import TableModel
from vntransfer.workflows.table_storage import KIND, load_table_model


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
    kind = kind_of(Path(folder))
    if kind not in (KIND, STORED):
        return load_model(folder, **given)
    if given:
        raise ArgumentError(f"{next(iter(given))}: only for estimators; {folder} holds a {kind}")
    return load_predictor(folder)


def load_predictor(folder: str | Path) -> TableModel | ContinualModel:
    """Read what `vnt adapt` or `vnt learn` saved; anything else is an error."""
    if kind_of(Path(folder)) == STORED:
        return load_continual_model(folder)
    return load_table_model(folder)
