"""The plain values that are saved with an estimator, and checks of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vntransfer.adaptation.blend import Bounds, Stretch
from vntransfer.errors import ArgumentError, DataError
from vntransfer.storage.record import Name, check_record, check_shares

GIVEN = ("extractor", "head")
"""Options that are code: a model that has them is loaded with them."""

REMOVED = (
    *("patience", "validation_fraction", "warm_start", "absolute", "adversary_steps"),
    *("components", "ridge"),
)
"""Options that models can have been saved with, and that only mattered for training."""

COMMON = {
    "options": dict[str, Any],
    "n_features": int,
    "feature_names": list[str] | None,
    "source_weights": dict[Name, float | dict[Name, float]],
}
CHOICE = {"candidates": list[str], "shares": dict[str, float], "reason": str}
AVERAGE = {"selection": CHOICE, "limits": tuple[float, float], "stretch": tuple[float, float]}
NETWORK = {
    **COMMON,
    "given": list[str],
    "one_column": bool,
    "targets": list[Name],
    "history": list[dict[str, Any]],
}
"""Types of what is saved."""


def check_given(record: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise unless the modules that are not saved with a network are given, and nothing else."""
    if sorted(set(given) - {"device"}) != sorted(record["given"]):
        raise ArgumentError(
            f"load: the model was fitted with your own modules for {record['given']}, which are "
            f"not saved; pass the same modules, and nothing else (got {sorted(given)})"
        )


def bounds_of(record: Mapping[str, Any]) -> Bounds:
    """Return the bounds of an average; models saved before `caution` existed have 1."""
    check_record("record", record, AVERAGE)
    (low, high), stretch = record["limits"], Stretch(*record["stretch"])
    part = record.get("caution", 1.0)
    check_record("record.caution", part, float)
    if low > high:
        raise DataError(f"record.limits: expected a lower and an upper one, got {record['limits']}")
    if stretch.factor < 1:
        raise DataError(f"record.stretch: expected a factor of at least 1, got {record['stretch']}")
    if not 0 <= part <= 1:
        raise DataError(f"record.caution: expected a number from 0 to 1, got {part}")
    return Bounds((low, high), part, stretch)


def checked_choice(chosen: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give a selection whose values are what they should be."""
    check_record("record.selection", chosen, CHOICE)
    check_shares("record.selection.shares", chosen["shares"])
    if sorted(chosen["shares"]) != sorted(chosen["candidates"]):
        raise DataError("record.selection: candidates and shares do not have the same names")
    return chosen


def check_parts(parts: Mapping[str, Any], n_features: int, shares: Mapping[str, float]) -> None:
    """Raise unless models inside an average have its columns, its names and one response."""
    own = {name: part.n_features_in_ for name, part in parts.items()}
    if {*own.values()} != {n_features} or not {*own} <= {*shares}:
        raise DataError(f"parts: {own} do not fit record.n_features or record.selection.shares")
    for name, part in parts.items():
        if (found := np.shape(part.predict(np.zeros((1, n_features))))) != (1,):
            raise DataError(f"parts.{name}: expected one response per row, got shape {found}")
