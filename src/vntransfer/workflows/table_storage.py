"""A table's model as a folder: `model.json`, `model.safetensors`, a folder per estimator.

Nothing in it is code. `model.json` has the hash of every other file; all are checked before any
is used.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from safetensors import SafetensorError
from safetensors.numpy import load as read_arrays
from safetensors.numpy import save as write_arrays

from vntransfer._version import __version__
from vntransfer.adaptation import load_model
from vntransfer.errors import ArgumentError, DataError
from vntransfer.storage.files import atomic_write, file_hash
from vntransfer.storage.folders import NUMBERS, RECORD, kind_of, read_record, replaced
from vntransfer.tables.encoder import TableEncoder
from vntransfer.workflows.continual_model import ContinualModel
from vntransfer.workflows.learn_storage import STORED, load_continual_model
from vntransfer.workflows.prediction_intervals import Calibration
from vntransfer.workflows.table_model import TableModel
from vntransfer.workflows.target_fit import TargetOutcome

FORMAT = 1
KIND = "vntransfer table model"


def save(model: TableModel, folder: str | Path) -> None:
    """Write a model; a folder that holds anything but an older model is refused."""
    with replaced(folder, KIND) as made:
        _write(model, made)


def _write(model: TableModel, folder: Path) -> None:
    arrays: dict[str, Any] = {}
    for i, name in enumerate(model.targets):
        model.estimators[name].save(folder / f"estimator{i}")
        if name in model.calibrations:
            own = model.calibrations[name]
            arrays |= {f"errors/{i}": own.errors, f"weights/{i}": own.weights}
    with atomic_write(folder / NUMBERS) as file:
        file.write(write_arrays(arrays))
    record = {
        "format": FORMAT,
        "kind": KIND,
        "versions": {
            "vntransfer": __version__,
            "scikit-learn": sklearn.__version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
        "names": list(model.names),
        "targets": model.targets,
        "schema": model.encoder.as_json(),
        "outcomes": [asdict(model.outcomes[name]) for name in model.targets],
        "provenance": dict(model.provenance),
        "notes": list(model.notes),
        "sha256": _hashes(folder),
    }
    with atomic_write(folder / RECORD, "w") as text:
        json.dump(record, text, indent=1, ensure_ascii=False)


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    names = [file.relative_to(folder).as_posix() for file in files]
    return {n: file_hash(f) for n, f in zip(names, files, strict=True) if n != RECORD}


def load_table_model(folder: str | Path) -> TableModel:
    """Read a model that was saved; version and hashes are checked first, and nothing is executed.

    Examples
    --------
    >>> import tempfile
    >>> from vntransfer.workflows.adapt import adapt
    >>> town, x = np.repeat(["A", "B", "new"], 20), np.arange(60.0) % 20
    >>> table = {"town": town, "x": x, "y": np.where(town == "new", np.nan, 2 * x)}
    >>> model = adapt(table, domain="town", response="y", target="new", method="ridge", compare=())
    >>> with tempfile.TemporaryDirectory() as place:
    ...     model.save(Path(place, "model"))
    ...     again = load_table_model(Path(place, "model"))
    >>> bool((again.predict(table).value == model.predict(table).value).all())
    True
    """
    folder = Path(folder)
    record = _record(folder)
    own = _hashes(folder)
    for name, known in record["sha256"].items():
        if name not in own:
            raise DataError(f"{folder}: {name} is missing; save the model again")
        if own[name] != known:
            raise DataError(f"{folder}: {name} does not match {RECORD}; save the model again")
    if added := sorted(set(own) - set(record["sha256"])):
        raise DataError(f"{folder}: {added[0]} is not part of the model; remove it")
    try:
        arrays = read_arrays((folder / NUMBERS).read_bytes())
        targets = [str(name) for name in record["targets"]]
        outcomes = {name: _outcome(v) for name, v in zip(targets, record["outcomes"], strict=True)}
        domain, response = map(str, record["names"])
        return TableModel(
            TableEncoder.from_json(record["schema"]),
            (domain, response),
            {name: load_model(folder / f"estimator{i}") for i, name in enumerate(targets)},
            outcomes,
            {
                name: Calibration(arrays[f"errors/{i}"], arrays[f"weights/{i}"])
                for i, name in enumerate(targets)
                if f"errors/{i}" in arrays
            },
            dict(record["provenance"]),
            tuple(map(str, record["notes"])),
        )
    except (KeyError, TypeError, ValueError, OSError, SafetensorError) as error:
        if isinstance(error, DataError | ArgumentError):
            raise
        raise DataError(f"{folder}: damaged ({error!r:.100}); save the model again") from None


def load_saved(folder: str | Path) -> TableModel | ContinualModel:
    """Read a folder of `vnt adapt` or of `vnt continual`, whichever it is."""
    if kind_of(Path(folder)) == STORED:
        return load_continual_model(folder)
    return load_table_model(folder)


def _record(folder: Path) -> dict[str, Any]:
    """Read and check `model.json`."""
    record = read_record(folder, KIND)
    if record.get("format") != FORMAT:
        raise DataError(
            f"{folder}: format {record.get('format')!r}, this is vntransfer {__version__} and "
            f"knows format {FORMAT}; update it or fit the model again"
        )
    if not isinstance(record.get("sha256"), dict) or NUMBERS not in record["sha256"]:
        raise DataError(f"{folder}: {RECORD} has no hashes; save the model again")
    return record


def _outcome(values: Mapping[str, Any]) -> TargetOutcome:
    return TargetOutcome(**{**values, "warnings": tuple(values["warnings"])})
