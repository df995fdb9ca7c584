"""A network that has learned tasks as a folder: `model.json` and `model.safetensors`, no code."""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors
from torch import nn

from vntransfer._version import __version__
from vntransfer.continual.networks import dense
from vntransfer.errors import DataError
from vntransfer.storage.files import atomic_write, file_hash
from vntransfer.storage.folders import NUMBERS, RECORD, read_record, replaced
from vntransfer.tables.encoder import TableEncoder
from vntransfer.workflows.continual_model import ContinualModel

FORMAT, STORED = 1, "vntransfer continual model"


def save(model: ContinualModel, folder: str | Path) -> None:
    """Write a network; a folder that holds anything but an older one is refused."""
    with replaced(folder, STORED) as made:
        _write(model, made)


def _write(model: ContinualModel, folder: Path) -> None:
    numbers = {f"net/{k}": v.contiguous() for k, v in model.net.state_dict().items()}
    for name in ("center", "scale", "matrix", "initial"):
        numbers[name] = torch.from_numpy(getattr(model, name)).contiguous()
    with atomic_write(folder / NUMBERS) as file:
        file.write(write_tensors(numbers))
    record = {
        "format": FORMAT,
        "kind": STORED,
        "vntransfer": __version__,
        "schema": model.encoder.as_json(),
        "sizes": _sizes(model.net),
        "classes": list(model.classes),
        "task": model.task,
        "response": model.response,
        "unit": list(model.unit),
        "names": list(model.names),
        "method": model.method,
        "notes": list(model.notes),
        "sha256": file_hash(folder / NUMBERS),
    }
    with atomic_write(folder / RECORD, "w") as text:
        json.dump(record, text, indent=1, ensure_ascii=False)


def load_continual_model(folder: str | Path) -> ContinualModel:
    """Read what `ContinualModel.save` wrote; the hash is checked first."""
    folder = Path(folder)
    record = read_record(folder, STORED)
    try:
        if record["format"] != FORMAT:
            raise DataError(
                f"{folder}: format {record['format']!r}, this is vntransfer {__version__} and "
                f"knows format {FORMAT}; update it or learn the tasks again"
            )
        if file_hash(folder / NUMBERS) != record["sha256"]:
            raise DataError(f"{folder}: {NUMBERS} does not match {RECORD}; save it again")
        if added := sorted({file.name for file in folder.iterdir()} - {NUMBERS, RECORD}):
            raise DataError(f"{folder}: {added[0]} is not part of the model; remove it")
        numbers = read_tensors((folder / NUMBERS).read_bytes())
        if "centre" in numbers:  # as versions before 0.1 spelled it
            numbers["center"] = numbers.pop("centre")
        net = dense(record["sizes"], generator=torch.Generator())
        if record["classes"] and len(record["classes"]) != record["sizes"][-1]:
            raise ValueError("classes")
        net.load_state_dict({k[4:]: v for k, v in numbers.items() if k.startswith("net/")})
        arrays = [numbers[name].numpy() for name in ("center", "scale", "matrix", "initial")]
        center, scale, matrix, initial = arrays
        mean, spread = map(float, record["unit"])
        return ContinualModel(
            TableEncoder.from_json(record["schema"]),
            center,
            scale,
            net.eval(),
            tuple(map(str, record["classes"])),
            str(record["task"]),
            str(record["response"]),
            (mean, spread),
            tuple(map(str, record["names"])),
            matrix,
            initial,
            str(record["method"]),
            tuple(map(str, record["notes"])),
        )
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{folder}: no continual model, or damaged ({error!r:.100})") from None


def _sizes(net: nn.Module) -> list[int]:
    layers = [layer for layer in net.modules() if isinstance(layer, nn.Linear)]
    return [layers[0].in_features, *(layer.out_features for layer in layers)]
