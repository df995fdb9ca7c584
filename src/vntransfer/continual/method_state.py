"""State of methods and their parts, as checkpoints and saved models contain it."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from vntransfer.errors import ArgumentError


class Stateful:
    """Something with a state that checkpoints hold, and options that they must agree with.

    ``saved`` and ``fixed`` name the attributes. A state holds tensors, numbers, strings, None,
    lists or dicts of these, generators, and parts that are stateful themselves.
    """

    saved: ClassVar[tuple[str, ...]] = ()
    fixed: ClassVar[tuple[str, ...]] = ()

    def options(self) -> dict[str, Any]:
        """Options that a checkpoint must agree with."""
        return {name: getattr(self, name) for name in self.fixed}

    def names_of_state(self) -> tuple[str, ...]:
        """Names of the attributes that make up the state."""
        return self.saved

    def state(self) -> dict[str, Any]:
        """Everything that a checkpoint must hold; references, not copies."""
        state = {}
        for name in self.names_of_state():
            value = getattr(self, name)
            if isinstance(value, torch.Generator):
                value = value.get_state()
            state[name] = value.state() if isinstance(value, Stateful) else value
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state of another object of this class with the same options."""
        if set(state) != (expected := set(self.names_of_state())):
            raise ArgumentError(
                f"state: expected {sorted(expected)} for {type(self).__name__}, got "
                f"{sorted(state)}; it belongs to another method or version"
            )
        for name, value in state.items():
            own = getattr(self, name)
            if isinstance(own, torch.Generator):
                own.set_state(value)
            elif isinstance(own, Stateful):
                own.load_state(value)
            else:
                setattr(self, name, value)
        self.restored()

    def restored(self) -> None:
        """Rebuild what the state does not hold; it keeps tuples as lists."""


def tensors_of(tree: Any) -> list[Tensor]:
    """All tensors of a state."""
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    if not isinstance(tree, list | tuple):
        return []
    return [tensor for part in tree for tensor in tensors_of(part)]


def flatten(tree: Any, tensors: dict[str, Tensor], path: str = "") -> Any:
    """Copy the tensors of a tree into a dict, and give the rest of the tree, fit for JSON."""
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


def unflatten(structure: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Undo `flatten`."""
    ((kind, value),) = structure.items()
    if kind == "tensor":
        return tensors[value]
    if kind == "dict":
        return {key: unflatten(part, tensors) for key, part in value}
    if kind == "list":
        return [unflatten(part, tensors) for part in value]
    return value
