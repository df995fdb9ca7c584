"""Folders of 0.1.0.dev0 (format 1), in which every kind of model had a layout of its own."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as read_arrays

from vntransfer.errors import DataError
from vntransfer.storage.places import RECORD
from vntransfer.storage.record import SavedModel, unpack
from vntransfer.storage.skops_files import SCHEMA, read_skops, unzipped, write_skops, zipped

TABLE, TASKS = "vntransfer table model", "vntransfer continual model"
AUTO = "AutoTransferRegressor"
NUMBERS, SKOPS, NETWORK = "model.safetensors", "model.skops", "network"

MOVED = {"vntransfer.adaptation._guard": "vntransfer.adaptation.guarded_choice"}
"""Modules whose types are named in files of skops, and where they are today."""

ADVERSARIAL = (
    "weight_update",
    "predictor_sees_discrepancy",
    "absolute",
    "adversary_steps",
    "anchor",
)
"""Options that `MDDRegressor` has and `MomentAlignmentRegressor` has not."""


def read_old(folder: Path) -> SavedModel:
    """Read a folder of 0.1.0.dev0 as what would be saved of the same model today."""
    record = unpack(json.loads((folder / RECORD).read_text(encoding="utf-8")))
    if "class" in record:
        return _learner(folder, record)
    if record.get("estimator") == AUTO:
        return _auto(folder, record)
    if record.get("kind") == TABLE:
        return _table(folder, record)
    arrays = _arrays(folder, record["sha256"])
    if record.get("kind") == TASKS:
        if "centre" in arrays:
            arrays["center"] = arrays.pop("centre")
        return SavedModel("ContinualModel", record, arrays)
    return SavedModel(*_renamed_method(record), arrays)


def _checked(folder: Path, name: str, digest: Any) -> bytes:
    data = (folder / name).read_bytes()
    if hashlib.sha256(data).hexdigest() != digest:
        raise DataError(f"{folder}: {name} does not match {RECORD}; save the model again")
    return data


def _arrays(folder: Path, digest: Any) -> dict[str, NDArray[Any]]:
    arrays = read_arrays(_checked(folder, NUMBERS, digest))
    return {name: np.array(value) for name, value in arrays.items()}


def _table(folder: Path, record: dict[str, Any]) -> SavedModel:
    for name, digest in record["sha256"].items():
        _checked(folder, name, digest)
    parts = {name: read_old(folder / f"estimator{i}") for i, name in enumerate(record["targets"])}
    arrays = _arrays(folder, record["sha256"][NUMBERS])
    return SavedModel("TableModel", record, arrays, parts=parts)


def _auto(folder: Path, record: dict[str, Any]) -> SavedModel:
    for name, digest in record["sha256"].items():
        _checked(folder, name, digest)
    chosen = record["selection"]
    chosen["candidates"] = [_candidate(name) for name in chosen["candidates"]]
    chosen["shares"] = {_candidate(name): share for name, share in chosen["shares"].items()}
    parts = {_candidate(n): read_old(folder / f"part{i}") for i, n in enumerate(record["parts"])}
    return SavedModel(AUTO, record, parts=parts)


def _candidate(name: str) -> str:
    """Give the name that a candidate has today: alignment was "mdd"."""
    return "align" if name == "mdd" else name


def _renamed_method(record: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Give the class and the record of a network today: the one MDD was two methods."""
    if record["estimator"] != "MatrixDiscrepancyRegressor":
        return record["estimator"], record
    options = dict(record["options"])
    paper = options.pop("adversary")
    if options["weight_rate"] is None:
        options["weight_rate"] = 0.05 if paper else 0.04
    options["standardize"] = options.pop("standardise")
    gone = ("weight_pull", "standardize") if paper else ADVERSARIAL
    options = {name: value for name, value in options.items() if name not in gone}
    return "MDDRegressor" if paper else "MomentAlignmentRegressor", {**record, "options": options}


def _learner(folder: Path, record: dict[str, Any]) -> SavedModel:
    """Read a model that skops wrote as a whole, apart from a network inside it."""
    model = read_skops(_renamed_types(_checked(folder, SKOPS, record["sha256"])))
    kind = type(model).__name__
    if NETWORK not in record:
        files = {"estimator.skops": write_skops(model.estimator_, kind)}
        return SavedModel(kind, model.fitted_record(), files=files)
    _checked(folder / NETWORK, RECORD, record[NETWORK])
    return SavedModel(kind, model.fitted_record(), parts={"estimator": read_old(folder / NETWORK)})


def _renamed_types(content: bytes) -> bytes:
    """Bring the modules that a file of skops names to today's names."""
    parts = unzipped(content)
    for old, new in MOVED.items():
        parts[SCHEMA] = parts[SCHEMA].replace(f'"{old}"'.encode(), f'"{new}"'.encode())
    return zipped(parts)
