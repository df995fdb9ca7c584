"""What is saved of a model: plain values, arrays, files and the models inside it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAIRS = "__pairs__"


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A model as plain data, between the object and its folder."""

    kind: str  # name of the class
    record: Mapping[str, Any]  # plain values: numbers, texts, lists and dicts of them (see `pack`)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # no name begins with "part"
    # what a library writes in a form of its own: name, such as "estimator.skops", -> bytes
    files: Mapping[str, bytes] = field(default_factory=dict)
    parts: Mapping[str, "SavedModel"] = field(default_factory=dict)  # models inside this one

    def walk(self, prefix: str = "") -> Iterator[tuple[str, "SavedModel"]]:
        """Give this model and all inside it, each with the prefix of its arrays."""
        yield prefix, self
        for i, part in enumerate(self.parts.values()):
            yield from part.walk(f"{prefix}part{i}/")


def pack(value: Any) -> Any:
    """Make a value fit for JSON: arrays become lists, mappings whose keys are not texts pairs."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: pack(item) for key, item in value.items()}
        return {PAIRS: [[pack(key), pack(item)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return [pack(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def unpack(value: Any) -> Any:
    """Undo `pack`; what was a tuple or an array stays a list."""
    if isinstance(value, dict):
        if set(value) == {PAIRS}:
            return {key: unpack(item) for key, item in value[PAIRS]}
        return {key: unpack(item) for key, item in value.items()}
    return [unpack(item) for item in value] if isinstance(value, list) else value
