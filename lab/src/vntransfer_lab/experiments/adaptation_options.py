"""Options of the adaptation methods that a preset can name."""

import math
from inspect import signature
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from vntransfer.adaptation import METHODS, DomainRegressor, MDDRegressor, WeightedSourceRegressor
from vntransfer_lab.runner.schema import Settings, words

NONE = "none"
"""How a preset says that an estimator chooses a number by itself: TOML has no word for None."""

REMOVED: dict[type, Settings] = {
    DomainRegressor: {"warm_start": False, "validation_fraction": 0.1},
    MDDRegressor: {"absolute": "aggregated", "adversary_steps": "simultaneous"},
    WeightedSourceRegressor: {"components": 20, "ridge": 0.01},
}
"""Options that estimators had when archived results were made; they name the cells."""


def options_of(method: str) -> dict[str, tuple[Any, Any]]:
    """Types and defaults of the options of a method that a preset can name.

    The default of an option that is younger than archived results is what these have: a preset
    keeps its meaning. One that was removed since has the only value that these have.
    """
    model = METHODS[method].make(**late(method))
    hints = signature(type(model)).parameters
    found: dict[str, tuple[Any, Any]] = {
        name: (Literal[(value,)], value) for name, value in _removed(method).items()
    }
    for name, value in model.get_params(deep=False).items():
        if name == "random_state":  # the cell's seed
            continue
        if name == "trade_off" or value == "auto":
            found[name] = Annotated[float, Field(ge=0), words("auto")], value
        elif value is None and float in get_args(hints[name].annotation):
            found[name] = Annotated[float, words(NONE)], NONE
        elif value is None and (known := _words(hints[name].annotation)):
            found[name] = Literal[(NONE, *known)], NONE
        elif isinstance(value, tuple) and value:
            item: Any = type(value[0])
            found[name] = Annotated[list[item], Field(min_length=1)], list(value)
        elif isinstance(value, bool | int | str) or (
            isinstance(value, float) and math.isfinite(value)
        ):
            found[name] = type(value), value
    return found


def make(method: str, options: Settings) -> Any:
    """Make the estimator of a method with the options that a cell has."""
    removed = _removed(method)
    known = {
        name: tuple(value) if isinstance(value, list) else None if value == NONE else value
        for name, value in options.items()
        if name not in removed
    }
    return METHODS[method].make(**late(method) | known)


def _removed(method: str) -> Settings:
    """Return options that archived results have and the estimator no longer has."""
    estimator = METHODS[method].estimator
    every = (own.items() for kind, own in REMOVED.items() if issubclass(estimator, kind))
    return dict(item for own in every for item in own)


def _words(annotation: Any) -> tuple[str, ...]:
    """Words of the literals in a union of types."""
    return tuple(w for part in get_args(annotation) for w in get_args(part) if isinstance(w, str))


def late(method: str) -> Settings:
    """Return options that are younger than archived results, with the values that these have."""
    known = METHODS[method].make().get_params(deep=False)
    given: Settings = {"input_scales": False, "ridge_per": "domain"}
    return {name: value for name, value in given.items() if name in known}
