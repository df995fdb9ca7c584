"""The saved form of a model: plain values, arrays, files and the models inside it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from math import isclose, isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import one_of
from vntransfer.errors import ArgumentError, DataError

PAIRS = "__pairs__"

Score = Annotated[float, "infinite or NaN"]
"""A number that may be infinite or NaN, such as an error that could not be measured."""

Name = str | int | None
"""Name of a domain; None: any."""

Made = TypeVar("Made")


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
            check_record(PAIRS, value[PAIRS], list[tuple[Name | float | list[Any], Any]])
            return {key: unpack(item) for key, item in value[PAIRS]}
        return {key: unpack(item) for key, item in value.items()}
    return [unpack(item) for item in value] if isinstance(value, list) else value


def check_record(at: str, value: Any, kind: Any) -> None:
    """Raise unless a plain value has a type; the error names where it stands in the record.

    Types are those of Python with lists for tuples, dicts that name the keys that a dict must have,
    and lists that hold the type of their items. Floats are finite.
    """
    inside, base = get_args(kind), get_origin(kind) or kind
    if inside[1:] == (...,):
        inside, base = inside[:1], list
    if base is Literal:
        one_of(at, value, kind, error=DataError)
    elif isinstance(kind, dict):
        _require(at, value, isinstance(value, Mapping), "values by name")
        for key, own in kind.items():
            _require(f"{at}.{key}", "nothing", key in value, "a value")
            check_record(f"{at}.{key}", value[key], own)
    elif base is UnionType:
        _require(at, value, any(_fits(value, own) for own in inside), _said(kind))
    elif base in (dict, Mapping):
        _require(at, value, isinstance(value, Mapping), "values by name")
        for key, item in value.items():
            check_record(f"{at}: name", key, inside[0])
            check_record(f"{at}.{key!s:.60}", item, inside[1])
    elif base in (list, tuple) or isinstance(kind, list):
        inside, fixed = inside or kind, len(inside) if base is tuple else None
        fine = isinstance(value, list | tuple) and fixed in (None, len(value))
        _require(at, value, fine, "a list" if fixed is None else f"a list of {fixed}")
        for i, item in enumerate(value):
            check_record(f"{at}[{i}]", item, inside[i if fixed else 0])
    elif kind in (float, Score):
        fine = type(value) in (int, float) and (kind is Score or isfinite(value))
        _require(at, value, fine, "a number" if kind is Score else "a finite number")
    elif kind is not Any:
        _require(at, value, type(value) is kind, _said(kind))


def from_record(kind: type[Made], at: str, values: Any) -> Made:
    """Make a dataclass of what `asdict` gave, each value checked by its annotation.

    Annotations may be dataclasses, also in a tuple or or-ed with None.
    """
    types = get_type_hints(kind, include_extras=True)
    check_record(at, values, dict.fromkeys(types, Any))
    _require(at, sorted(values), set(values) == set(types), f"the names {', '.join(types)}")
    made = {name: _made(own, f"{at}.{name}", values[name]) for name, own in types.items()}
    try:
        return kind(**made)
    except ArgumentError as error:
        raise DataError(f"{at}: {error}") from None


def _made(kind: Any, at: str, value: Any) -> Any:
    """Make what an annotation of a dataclass describes."""
    inside: Any = next((own for own in (kind, *get_args(kind)) if is_dataclass(own)), None)
    if inside is not None and get_origin(kind) is tuple:
        check_record(at, value, list[Any])
        return tuple(from_record(inside, f"{at}[{i}]", own) for i, own in enumerate(value))
    if inside is not None:
        return None if value is None and inside is not kind else from_record(inside, at, value)
    check_record(at, value, kind)
    return tuple(value) if isinstance(value, list) else value


def check_shares(at: str, shares: Mapping[str, float]) -> None:
    """Raise unless weights are at least 0 and add up to 1."""
    fine = min(shares.values(), default=-1) >= 0 and isclose(sum(shares.values()), 1, abs_tol=1e-6)
    _require(at, dict(shares), fine, "weights that add up to 1")


def _fits(value: Any, kind: Any) -> bool:
    try:
        check_record("", value, kind)
    except DataError:
        return False
    return True


def _require(at: str, value: Any, fine: bool, expected: str) -> None:
    if not fine:
        raise DataError(f"{at}: expected {expected}, got {value!r:.60}")


def _said(kind: Any) -> str:
    if get_origin(kind) is UnionType:
        return " or ".join(map(_said, get_args(kind)))
    said = {str: "text", int: "a whole number", bool: "true or false", float: "a finite number"}
    said |= {NoneType: "null", dict: "values by name", list: "a list"}
    return said[get_origin(kind) or kind]
