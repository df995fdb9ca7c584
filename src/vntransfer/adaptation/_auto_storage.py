"""A choice among several models as a folder: one folder per model, and a record of the choice."""

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vntransfer._version import __version__
from vntransfer.adaptation._network_storage import pack, unpack
from vntransfer.adaptation.auto import AutoSelection, AutoTransferRegressor
from vntransfer.errors import DataError
from vntransfer.storage.files import atomic_write, file_hash

FORMAT, RECORD = 1, "model.json"
KIND = "AutoTransferRegressor"


def save_auto(model: AutoTransferRegressor, folder: str | Path) -> None:
    """Write the models that have a share, then the record of the choice with their hashes.

    They are written beside those of a model that was there, and take their place when all are
    whole.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".parts-", dir=folder) as place:
        hashes: dict[str, str] = {}
        for i, own in enumerate(model.models_.values()):
            part = Path(place, f"part{i}")
            own.save(part)
            hashes |= {f"{part.name}/{file.name}": file_hash(file) for file in part.iterdir()}
        text = json.dumps(pack(_record(model, dict(sorted(hashes.items())))), indent=1)
        for name in _files(folder) - set(hashes):  # of another model that was here
            Path(folder, name).unlink(missing_ok=True)
        for name in hashes:
            Path(folder, name).parent.mkdir(exist_ok=True)
            Path(place, name).replace(folder / name)
        with atomic_write(folder / RECORD, "w") as file:
            file.write(text)


def _files(folder: Path) -> set[str]:
    """Files of the parts that a record in this folder names."""
    if not is_auto(folder):
        return set()
    named = json.loads((folder / RECORD).read_text(encoding="utf-8")).get("sha256")
    return {name for name in named or () if re.fullmatch(r"part\d+/[\w.]+", name)}


def _record(model: AutoTransferRegressor, hashes: dict[str, str]) -> dict[str, Any]:
    options = model.get_params(deep=False)
    seed = options["random_state"]
    options["random_state"] = seed if isinstance(seed, int | np.integer) else None
    names = getattr(model, "feature_names_in_", None)
    return {
        "format": FORMAT,
        "vntransfer": __version__,
        "estimator": KIND,
        "options": options,
        "parts": list(model.models_),
        "sha256": hashes,
        "n_features": model.n_features_in_,
        "feature_names": None if names is None else names.tolist(),
        "selection": vars(model.selection_),
        "source_weights": model.source_weights_,
    }


def is_auto(folder: str | Path) -> bool:
    """Whether a folder holds a choice among models."""
    try:
        record = json.loads(Path(folder, RECORD).read_text(encoding="utf-8"))
        return isinstance(record, dict) and record.get("estimator") == KIND
    except (OSError, ValueError):
        return False


def _today(name: str) -> str:
    """Give the name that a candidate has today: versions before 0.1 called alignment "mdd"."""
    return "align" if name == "mdd" else name


def load_auto(folder: str | Path, load: Callable[[Path], Any]) -> AutoTransferRegressor:
    """Read what `save_auto` wrote; ``load`` reads each part."""
    folder = Path(folder)
    try:
        record = unpack(json.loads((folder / RECORD).read_text(encoding="utf-8")))
        if record["format"] != FORMAT or record["estimator"] != KIND:
            raise DataError(
                f"{folder}: format {record['format']!r} of vntransfer {record['vntransfer']!r}; "
                f"this is {__version__} and knows format {FORMAT}"
            )
        parts, hashes = [_today(name) for name in record["parts"]], dict(record["sha256"])
        for i in range(len(parts)):
            for file in sorted((folder / f"part{i}").iterdir()):
                if hashes.pop(f"part{i}/{file.name}", None) != file_hash(file):
                    raise DataError(f"{file}: does not match {RECORD}; save the model again")
        if hashes:
            raise DataError(f"{folder}: {next(iter(hashes))} is missing; save the model again")
        model = AutoTransferRegressor(**record["options"])
        chosen = record["selection"]
        chosen["candidates"] = tuple(_today(name) for name in chosen["candidates"])
        chosen["shares"] = {_today(name): share for name, share in chosen["shares"].items()}
        model.selection_ = AutoSelection(**chosen)
        model.source_weights_ = record["source_weights"]
        model.n_features_in_ = int(record["n_features"])
        if record["feature_names"] is not None:
            model.feature_names_in_ = np.array(record["feature_names"], dtype=object)
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{folder}: {RECORD} is damaged ({error!r:.100}); save it again") from None
    model.models_ = {name: load(folder / f"part{i}") for i, name in enumerate(parts)}
    return model
