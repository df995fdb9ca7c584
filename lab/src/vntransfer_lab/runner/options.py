"""Options: what a setting may be, and errors that say which one is wrong and what is allowed."""

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vntransfer_lab.errors import PresetError

Settings = dict[str, Any]

_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}


@dataclass(frozen=True)
class Option:
    """One setting: its default (which fixes its type), and the values that are allowed.

    Parameters
    ----------
    default
        A bool, int, float, string, or a non-empty list of one of these.
    choices
        The allowed values; empty for any.
    low, high
        Bounds of a number (both included).
    words
        What may stand in place of a number; the default may be one of them.

    Examples
    --------
    >>> Option(1.0, low=0).check(2, "alpha")
    2.0
    >>> Option("auto", words=("auto",)).check(2, "alpha")
    2.0
    >>> Option("y", choices=("x", "y")).check("z", "noise_on")
    Traceback (most recent call last):
    vntransfer_lab.errors.PresetError: noise_on: expected one of x, y, got 'z'
    """

    default: Any
    choices: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    words: tuple[str, ...] = ()

    def check(self, value: Any, where: str) -> Any:
        """Return the value in the type of the default, or say what is wrong with it."""
        if isinstance(value, str) and value in self.words:
            return value
        if not isinstance(self.default, list):
            kind = float if self.default in self.words else type(self.default)
            return self._check_one(value, kind, where)
        if not isinstance(value, list) or not value:
            raise PresetError(f"{where}: expected a non-empty list, got {value!r}")
        kind = type(self.default[0])
        return [self._check_one(item, kind, f"{where}[{i}]") for i, item in enumerate(value)]

    def _check_one(self, value: Any, kind: type[Any], where: str) -> Any:
        if kind is float and type(value) is int and abs(value) <= 2**53:
            value = float(value)
        if value.__class__ is not kind:
            words = "".join(f" or {word!r}" for word in self.words)
            raise PresetError(f"{where}: expected {_NAMES[kind]}{words}, got {value!r}")
        if kind is float and not math.isfinite(value):
            raise PresetError(f"{where}: expected a finite number, got {value!r}")
        if self.choices and value not in self.choices:
            allowed = ", ".join(map(str, self.choices))
            raise PresetError(f"{where}: expected one of {allowed}, got {value!r}")
        if self.low is not None and value < self.low:
            raise PresetError(f"{where}: expected at least {self.low:g}, got {value!r}")
        if self.high is not None and value > self.high:
            raise PresetError(f"{where}: expected at most {self.high:g}, got {value!r}")
        return value


def resolve(options: Mapping[str, Option], given: Mapping[str, Any], where: str) -> Settings:
    """All options with the given values in place of their defaults, each checked.

    Examples
    --------
    >>> resolve({"alpha": Option(1.0), "rows": Option(10)}, {"rows": 5}, "settings")
    {'alpha': 1.0, 'rows': 5}
    """
    check_names(given, options, where)
    checked = {name: options[name].check(given[name], f"{where}.{name}") for name in given}
    return {name: checked.get(name, option.default) for name, option in options.items()}


def check_names(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """Say which name is unknown, what was probably meant and what is known.

    Examples
    --------
    >>> check_names(["rige"], ["ridge", "boosting"], "methods")
    Traceback (most recent call last):
    vntransfer_lab.errors.PresetError: methods: unknown 'rige' (did you mean 'ridge'?); known: boosting, ridge
    """  # noqa: E501
    known = sorted(known)
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            listed = ", ".join(known) or "nothing"
            raise PresetError(f"{where}: unknown {name!r}{hint}; known: {listed}")


def table(value: Any, where: str) -> dict[str, Any]:
    """Copy of a table of the file, or say what stands in its place.

    Examples
    --------
    >>> table(3, "settings")
    Traceback (most recent call last):
    vntransfer_lab.errors.PresetError: settings: expected a table, got 3
    """
    if not isinstance(value, Mapping):
        raise PresetError(f"{where}: expected a table, got {value!r}")
    return dict(value)
