"""What a preset's ``[search]`` says: values to try, how many trials, in which order.

Plain data; the trials themselves are made in `vntransfer_lab.runner.search`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from vntransfer.checks import one_of
from vntransfer_lab.errors import PresetError
from vntransfer_lab.runner.kinds import Kind
from vntransfer_lab.runner.schema import Schema, listed, parse, resolve
from vntransfer_lab.runner.selection import RULES

# option -> the values to try, or {"low": ..., "high": ..., "log": ...}
Space = dict[str, Any]


class SearchTable(Schema):
    """The table ``[search]`` as it is written."""

    sampler: Literal["grid", "random", "tpe"] = "grid"
    trials: int | None = Field(None, ge=1, le=10_000)
    seed: int = Field(0, ge=0, le=2**32 - 1)
    fixed: list[str] = Field(default_factory=list)
    space: dict[str, dict[str, Any]] = Field(default_factory=dict)


class _Range(Schema):
    """Numbers between two ends, which have the type of the option."""

    low: Any
    high: Any
    log: bool = False


@dataclass(frozen=True)
class Search:
    """A checked search.

    Parameters
    ----------
    sampler
        "grid" tries all points of the space, "random" draws some, "tpe" (Optuna's tree-structured
        Parzen estimator) draws where earlier trials were good.
    trials
        Different points that every method gets.
    space
        Method -> option -> values.
    seed
        Of the sampler; each repetition (seed of the cells) draws its own points.
    fixed
        Methods that are not searched, beside those without options.
    """

    sampler: str
    trials: int
    space: dict[str, Space]
    seed: int = 0
    fixed: tuple[str, ...] = ()


def size(space: Space) -> float:
    """Count the points of a space.

    Examples
    --------
    >>> size({"lr": [0.1, 0.2], "depth": {"low": 1, "high": 3, "log": False}})
    6
    >>> size({"lr": {"low": 0.001, "high": 0.1, "log": True}})
    inf
    """
    return math.prod(
        len(values)
        if isinstance(values, list)
        else values["high"] - values["low"] + 1
        if isinstance(values["low"], int)
        else math.inf
        for values in space.values()
    )


def check_search(
    given: SearchTable, kind: Kind, methods: Sequence[str], selection: str, name: str
) -> Search:
    """Check what the table ``[search]`` of a preset says of the methods of a kind.

    Every method gets the same number of different points, so a space that has fewer is refused,
    and so is a method that has options but neither a space nor a place in ``fixed``.

    Examples
    --------
    >>> from vntransfer_lab.runner.kinds import load_kind
    >>> smoke, methods = load_kind("smoke"), ["constant", "ridge"]
    >>> given = SearchTable(space={"ridge": {"alpha": [1, 10]}})
    >>> check_search(given, smoke, methods, "source_validation", "mine").trials
    2
    >>> check_search(given, smoke, methods, "oracle", "mine")
    Traceback (most recent call last):
    vntransfer_lab.errors.PresetError: mine: search: selection 'oracle' looks at the target's ...
    """
    where = f"{name}: search"
    if RULES[selection][0] == "":
        raise PresetError(
            f"{where}: selection {selection!r} looks at the target's labels; a search never does: "
            "use another rule"
        )
    if RULES[selection][0] is None:
        raise PresetError(
            f"{where}: selection {selection!r} cannot choose among trials; use a rule with a "
            "criterion such as 'source_validation' (continual learning searches inside its cells: "
            "give lists of candidates to the methods instead)"
        )
    for method in (*given.fixed, *given.space):
        one_of(where, method, kind.methods, error=PresetError)
    # --methods may leave some out
    fixed = tuple(method for method in given.fixed if method in methods)
    space = {
        method: _space(content, kind.methods[method].options, name, "search", "space", method)
        for method, content in given.space.items()
        if method in methods
    }
    for method in methods:
        if (method in space) == (method in fixed) and kind.methods[method].options.model_fields:
            raise PresetError(
                f"{where}: {method} is both searched and fixed; drop one"
                if method in fixed
                else f"{where}: {method} has no space; every method gets the same number of "
                f"trials: add [search.space.{method}], or say fixed = ['{method}'] to take its one "
                "setting"
            )
    if not space:
        raise PresetError(f"{where}: nothing to search; add [search.space.METHOD]")
    return Search(given.sampler, _trials(given, space, where), space, given.seed, fixed)


def _space(given: Mapping[str, Any], options: type[Schema], name: str, *place: str) -> Space:
    if not given:
        raise PresetError(
            f"{name}: {'.'.join(place)}: names no option; known: {', '.join(options.model_fields)}"
        )
    return {key: _values(key, value, options, name, *place) for key, value in given.items()}


def _values(key: str, given: Any, options: type[Schema], name: str, *place: str) -> Any:
    where = f"{name}: {'.'.join(place)}.{key}"
    if not isinstance(given, Mapping):
        values = listed(options, {key: given}, name, *place)[key]
        if any(value in values[:i] for i, value in enumerate(values)):
            raise PresetError(f"{where}: a value is given twice in {given}")
        return values
    ends = parse(_Range, given, name, *place, key)
    low, high = (resolve(options, {key: x}, name, *place)[key] for x in (ends.low, ends.high))
    if any(isinstance(end, bool) or not isinstance(end, int | float) for end in (low, high)):
        raise PresetError(f"{where}: a range is of numbers; give a list of values instead")
    if low >= high or (ends.log and low <= 0):
        below = "0 < low < high" if ends.log else "low < high"
        raise PresetError(f"{where}: expected {below}, got low = {low}, high = {high}")
    return {"low": low, "high": high, "log": ends.log}


def _trials(given: SearchTable, space: Mapping[str, Space], where: str) -> int:
    sizes = {method: size(own) for method, own in space.items()}
    if given.sampler == "grid" and math.inf in sizes.values():
        names = ", ".join(method for method, n in sizes.items() if n == math.inf)
        raise PresetError(f"{where}: the grid of {names} has a range; give lists, or use 'random'")
    trials = given.trials
    if trials is None:
        if given.sampler != "grid":
            raise PresetError(
                f"{where}: trials is missing; say how many points {given.sampler!r} tries"
            )
        trials = max(map(int, sizes.values()))
    for method, n in sizes.items():
        if n < trials or (given.sampler == "grid" and n > trials):
            way = "give it as many" if n < trials else "set trials to that, or use 'random'"
            raise PresetError(
                f"{where}: the space of {method} has {n:g} points, but every method gets {trials} "
                f"trials; {way}"
            )
    return trials
