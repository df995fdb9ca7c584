"""The state of training after each epoch, from which it resumes with the same numbers."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import nn

from vntransfer.errors import DataError
from vntransfer.storage.files import atomic_write
from vntransfer.storage.pacing import Paced


class Checkpoint:
    """One file of safetensors, history in its header, written atomically after an epoch.

    The key is a hash of everything that the result depends on: a file with another key is
    refused. The state of the random generators belongs to that of the training.
    """

    def __init__(self, place: Paced, key: str, generators: dict[str, torch.Generator]) -> None:
        self.path, self.pace = place.path, place.pace
        self.key, self.generators = key, generators
        self.parts: dict[str, nn.Module] = {}

    def watch(self, **parts: nn.Module) -> None:
        """Name the modules (network, objective, optimizers) whose state is kept."""
        self.parts = parts

    def save(self, history: list[dict[str, Any]], *, last: bool) -> None:
        """Write the state after an epoch, if it is time to, or after the last one."""
        if not self.pace.due(last=last):
            return
        tensors = {f"generator/{name}": g.get_state() for name, g in self.generators.items()}
        for name, part in self.parts.items():
            tensors |= {f"{name}/{key}": value for key, value in part.state_dict().items()}
        header = {"key": self.key, "history": json.dumps(history)}
        whole = save({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, header)
        with atomic_write(self.path) as file:
            file.write(whole)

    def resume(self) -> list[dict[str, Any]]:
        """Take up the state of the file, if there is one, and give the history so far."""
        if not self.path.exists():
            return []
        with _open(self.path) as file:
            header = file.metadata() or {}
            if header.get("key") != self.key:
                raise DataError(
                    f"checkpoint: {self.path} belongs to another fit (other data, options or "
                    f"versions); remove it or name another folder"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        for name, generator in self.generators.items():
            generator.set_state(tensors[f"generator/{name}"])
        for name, part in self.parts.items():
            start = f"{name}/"
            own = {k[len(start) :]: v for k, v in tensors.items() if k.startswith(start)}
            part.load_state_dict(own)
        history: list[dict[str, Any]] = json.loads(header["history"])
        return history


def _open(path: Path) -> Any:
    try:
        return safe_open(path, "pt")
    except Exception as error:
        raise DataError(f"checkpoint: {path} is damaged ({error}); remove it") from error
