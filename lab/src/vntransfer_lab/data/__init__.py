"""Data sets: ``load(name)`` gives `Domains` or a `TaskStream` with its provenance."""

from pathlib import Path
from typing import Any

from vntransfer.progress import Progress
from vntransfer_lab.data.base import Domains, Provenance, StreamTask, TaskStream
from vntransfer_lab.data.regression import mixture_noise
from vntransfer_lab.data.tabular import kmeans_domains

__all__ = [
    "Domains",
    "Provenance",
    "StreamTask",
    "TaskStream",
    "kmeans_domains",
    "load",
    "mixture_noise",
]


def load(
    name: str,
    *,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Domains | TaskStream:
    """Load a data set by its name in the registry (``vnt data list``).

    Parameters
    ----------
    name
        For example "synthetic", "amazon4", "mnistP".
    folder
        Where the files are, in the official layout or in a compact form; by default the
        environment variable ``VNT_DATA`` and the user's cache folder.
    progress
        Called while a large file is read, with its name, how much is done and how much there is.
    parameters
        Those of the set: ``vnt data show NAME`` lists them.

    Returns
    -------
    Domains or TaskStream
        With ``provenance`` that names the files that were read.

    Examples
    --------
    >>> load("synthetic", n_samples=100)
    <Domains synthetic: 6 domains, 600 rows x 12 features>
    """
    from dataclasses import replace

    from vntransfer_lab.data.files import require, trace
    from vntransfer_lab.data.registry import lookup

    entry = lookup(name)
    found = require(entry, folder)
    paths = {item.remote.name: item.path for item in found}
    loaded = entry.call(paths, progress=progress, **parameters)
    return replace(loaded, name=name, provenance=trace(entry, found, loaded.provenance))
