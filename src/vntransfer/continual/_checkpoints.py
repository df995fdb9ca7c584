"""Checkpoints: network, method and optimizer in one file, written whole or not at all.

The file is a safetensors file; what is not a tensor (numbers, names, the structure) is json in its
header. Nothing is ever unpickled.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from vntransfer.continual._base import ContinualMethod
from vntransfer.errors import ArgumentError, DataError
from vntransfer.storage.files import atomic_write

FORMAT = "vntransfer-continual-1"
PARTS = {"model", "method", "optimizer", "position"}


def flatten(tree: Any, tensors: dict[str, Tensor], path: str = "") -> Any:
    """Move the tensors of a tree into a dict and give its json skeleton."""
    if isinstance(tree, Tensor):
        tensors[path] = tree.detach().contiguous().clone()
        return {"tensor": path}
    if isinstance(tree, dict):
        items = [[key, flatten(value, tensors, f"{path}/{key}")] for key, value in tree.items()]
        return {"dict": items}
    if isinstance(tree, list | tuple):
        return {"list": [flatten(v, tensors, f"{path}/{i}") for i, v in enumerate(tree)]}
    if tree is None or isinstance(tree, bool | int | float | str):
        return {"plain": tree}
    raise ArgumentError(
        f"state: cannot store {path.lstrip('/')!r}, a {type(tree).__name__}; a state holds "
        f"tensors, numbers, strings, None, and lists or dicts of these"
    )


def unflatten(skeleton: Any, tensors: dict[str, Tensor]) -> Any:
    """Undo `flatten`."""
    ((kind, value),) = skeleton.items()
    if kind == "tensor":
        return tensors[value]
    if kind == "dict":
        return {key: unflatten(part, tensors) for key, part in value}
    if kind == "list":
        return [unflatten(part, tensors) for part in value]
    return value


def save_checkpoint(
    path: str | Path,
    model: nn.Module,
    method: ContinualMethod,
    *,
    optimizer: torch.optim.Optimizer | None = None,
    position: dict[str, Any] | None = None,
) -> None:
    """Write everything that is needed to go on exactly where training is now.

    Parameters
    ----------
    path
        File, best named ``.safetensors``; an older one is replaced in one go.
    model, method
        The network and its method.
    optimizer
        Needed only if it has a state of its own (momentum, Adam).
    position
        Anything that json can hold: where the stream is, seeds.

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
    """Bring a network, its method (made with the same options) and optimizer to a saved state.

    Parameters
    ----------
    path
        File that `save_checkpoint` wrote.
    model, method, optimizer
        Changed in place.

    Returns
    -------
    dict
        The position that was saved. Continue a task that was under way with
        ``train(..., start=...)`` and without another ``before_task``.
    """
    header, tree = _read(path)
    if header["format"] != FORMAT:
        raise DataError(f"{path}: format {header['format']}; this version reads {FORMAT}")
    if header["id"] != method.id:
        raise DataError(
            f"{path}: holds a method {header['id']!r}, not {method.id!r}; make that one"
        )
    there, here = header.get("options", {}), method.options()
    for name in there.keys() & here.keys():
        if there[name] != here[name]:
            raise DataError(
                f"{path}: was saved with {name}={there[name]!r}, this {type(method).__name__} has "
                f"{here[name]!r}; make it with the same options"
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
            raise DataError(f"{path}: holds no optimizer; it was saved without one")
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
        raise DataError(f"{path}: no checkpoint of continual learning ({error})") from error
    return header, tree
