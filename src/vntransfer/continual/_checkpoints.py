"""Checkpoints: network, method and optimizer in one safetensors file, written atomically.

What is not a tensor (numbers, names, the structure) is JSON in its header; nothing is unpickled.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from vntransfer.continual._base import ContinualMethod
from vntransfer.continual.method_state import flatten, unflatten
from vntransfer.errors import DataError
from vntransfer.storage.files import atomic_write

FORMAT = "vntransfer-continual-1"
PARTS = {"model", "method", "optimizer", "position"}


def save_checkpoint(
    path: str | Path,
    model: nn.Module,
    method: ContinualMethod,
    *,
    optimizer: torch.optim.Optimizer | None = None,
    position: dict[str, Any] | None = None,
) -> None:
    """Write everything that is needed to resume training exactly where it is now.

    Parameters
    ----------
    path
        File, usually named ``.safetensors``; an existing one is replaced atomically.
    model, method
        Network and method.
    optimizer
        Needed only if it has its own state (momentum, Adam).
    position
        Anything that JSON can hold: place in the stream, seeds.

    Examples
    --------
    >>> import tempfile
    >>> from vntransfer.continual import EWC
    >>> model = nn.Linear(2, 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_checkpoint(Path(folder, "a.safetensors"), model, EWC(model), position={"task": 3})
    ...     load_checkpoint(Path(folder, "a.safetensors"), model, EWC(model))
    {'task': 3}
    """
    tensors: dict[str, Tensor] = {}
    tree = {
        "model": dict(model.state_dict()),
        "method": method.state(),
        "optimizer": None if optimizer is None else optimizer.state_dict(),
        "position": position or {},
    }
    header = {
        "format": FORMAT,
        "id": method.id,
        "options": method.options(),
        "tree": flatten(tree, tensors),
    }
    content = save(tensors, metadata={"vntransfer": json.dumps(header)})
    with atomic_write(path) as file:
        file.write(content)


def load_checkpoint(
    path: str | Path,
    model: nn.Module,
    method: ContinualMethod,
    *,
    optimizer: torch.optim.Optimizer | None = None,
) -> dict[str, Any]:
    """Restore a network, its method (made with the same options) and optimizer.

    Parameters
    ----------
    path
        File that `save_checkpoint` wrote.
    model, method, optimizer
        Objects to restore, in place.

    Returns
    -------
    dict
        The saved position. Continue an unfinished task with ``steps(..., start=...)``, without
        calling ``before_task`` again.
    """
    header, tree = _read(path)
    if header["format"] != FORMAT:
        raise DataError(f"{path}: format {header['format']}; this version reads {FORMAT}")
    if header["id"] != method.id:
        raise DataError(
            f"{path}: holds a method {header['id']!r}, not {method.id!r}; create that one"
        )
    there, here = header.get("options", {}), method.options()
    for name in there.keys() & here.keys():
        if there[name] != here[name]:
            raise DataError(
                f"{path}: was saved with {name}={there[name]!r}, but this {type(method).__name__} "
                f"has {here[name]!r}; create it with the same options"
            )
    saved = {name: tuple(value.shape) for name, value in tree["model"].items()}
    own = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    if saved != own:  # before anything is changed
        differ = sorted(name for name in saved | own if saved.get(name) != own.get(name))
        raise DataError(
            f"{path}: does not fit the network: {differ[0]} has shape {saved.get(differ[0])} there "
            f"and {own.get(differ[0])} here ({len(differ)} differ)"
        )
    if optimizer is not None:
        if tree["optimizer"] is None:
            raise DataError(f"{path}: was saved without an optimizer; load it without one")
        optimizer.load_state_dict(tree["optimizer"])
    model.load_state_dict(tree["model"])
    method.load_state(tree["method"])  # second: it may depend on the parameters
    position: dict[str, Any] = tree["position"]
    return position


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and tree of a checkpoint file."""
    try:
        with safe_open(str(path), framework="pt") as file:
            header = json.loads((file.metadata() or {})["vntransfer"])
            # Copies: the last bits of a product depend on where in memory its factors begin, and
            # those of the file do not begin where torch's own do.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        tree = unflatten(header["tree"], tensors)
        if not {"format", "id"} <= set(header) or set(tree) != PARTS:
            raise KeyError("parts are missing")
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not a checkpoint of continual learning ({error})") from error
    return header, tree
