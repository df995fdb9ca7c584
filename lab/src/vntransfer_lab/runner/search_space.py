"""What a preset's ``[search]`` says: values to try, how many trials, in which order.

Plain data; the trials themselves are made in `vntransfer_lab.runner.search`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vntransfer_lab.errors import PresetError
from vntransfer_lab.runner.kinds import Kind
from vntransfer_lab.runner.options import Option, Settings, check_names, table
from vntransfer_lab.runner.selection import RULES

SAMPLERS = ("grid", "random", "tpe")
PRUNERS = ("none", "median")
_MAX_TRIALS = 10_000

# option -> the values to try, or {"low": ..., "high": ..., "log": ...}
Space = dict[str, Any]


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
    pruner
        "median" stops a trial that is worse than the median of the finished ones at the same step.
    fixed
        Methods that are not searched, beside those without options.

    Examples
    --------
    >>> search = Search("grid", 2, {"ridge": {"alpha": [0.1, 10.0]}})
    >>> search.size("ridge")
    2
    """

    sampler: str
    trials: int
    space: dict[str, Space]
    seed: int = 0
    pruner: str = "none"
    fixed: tuple[str, ...] = ()

    def size(self, method: str) -> float:
        """Return the number of points in a method's space, infinite for ranges of numbers."""
        return size(self.space[method])


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


def restore_search(stored: Mapping[str, Any]) -> Search:
    """Turn what JSON made of a search back into one."""
    return Search(**{**stored, "fixed": tuple(stored["fixed"])})


def check_search(
    value: Any,
    kind: Kind,
    methods: Mapping[str, Settings],
    grids: Mapping[str, Any],
    selection: str,
    where: str,
) -> Search:
    """Check the table ``[search]`` of a preset.

    Every method gets the same number of different points, so a space that has fewer is refused,
    and so is a method that has options but neither a space nor a place in ``fixed``.

    Examples
    --------
    >>> from vntransfer_lab.runner.kinds import load_kind
    >>> smoke, methods = load_kind("smoke"), {"constant": {}, "ridge": {"alpha": 1.0}}
    >>> given = {"sampler": "grid", "space": {"ridge": {"alpha": [1, 10]}}}
    >>> check_search(given, smoke, methods, {}, "source_validation", "search").trials
    2
    >>> check_search(given, smoke, methods, {}, "oracle", "search")
    Traceback (most recent call last):
    vntransfer_lab.errors.PresetError: search: selection 'oracle' looks at the target's labels; ...
    """
    given = table(value, where)
    check_names(given, ("sampler", "trials", "seed", "pruner", "fixed", "space"), where)
    _check_rule(selection, where)
    if grids:
        raise PresetError(
            f"{where}: {', '.join(grids)} has a grid as well; move it to search.space or drop one"
        )
    sampler = Option("", choices=SAMPLERS).check(given.get("sampler", "grid"), f"{where}.sampler")
    pruner = Option("", choices=PRUNERS).check(given.get("pruner", "none"), f"{where}.pruner")
    seed = Option(0, low=0, high=2**32 - 1).check(given.get("seed", 0), f"{where}.seed")
    fixed = tuple(Option([""]).check(given["fixed"], f"{where}.fixed")) if "fixed" in given else ()
    check_names(fixed, kind.methods, f"{where}.fixed")
    fixed = tuple(name for name in fixed if name in methods)  # --methods leaves some out
    spaces = table(given.get("space", {}), f"{where}.space")
    check_names(spaces, kind.methods, f"{where}.space")
    space = {
        name: _space(content, kind.methods[name].options, f"{where}.space.{name}")
        for name, content in spaces.items()
        if name in methods
    }
    for name in methods:
        if (name in space) == (name in fixed) and kind.methods[name].options:
            raise PresetError(
                f"{where}: {name} is both searched and fixed; drop one"
                if name in fixed
                else f"{where}: {name} has no space; every method gets the same number of trials: "
                f"add [search.space.{name}], or say fixed = ['{name}'] to take its one setting"
            )
    if not space:
        raise PresetError(f"{where}: nothing to search; add [search.space.METHOD]")
    trials = _trials(given.get("trials"), sampler, space, where)
    return Search(sampler, trials, space, seed, pruner, fixed)


def _check_rule(selection: str, where: str) -> None:
    criterion = RULES[selection][0]
    if criterion == "":
        raise PresetError(
            f"{where}: selection {selection!r} looks at the target's labels; a search never does: "
            "use another rule"
        )
    if criterion is None:
        raise PresetError(
            f"{where}: selection {selection!r} cannot choose among trials; use a rule with a "
            "criterion such as 'source_validation' (continual learning searches inside its cells: "
            "give lists of candidates to the methods instead)"
        )


def _space(value: Any, options: Mapping[str, Option], where: str) -> Space:
    given = table(value, where)
    check_names(given, options, where)
    if not given:
        raise PresetError(f"{where}: names no option; known: {', '.join(options)}")
    return {key: _values(content, options[key], f"{where}.{key}") for key, content in given.items()}


def _values(value: Any, option: Option, where: str) -> Any:
    if isinstance(value, Mapping):
        return _range(value, option, where)
    if not isinstance(value, list) or not value:
        raise PresetError(
            f"{where}: expected a non-empty list of values or {{low = ..., high = ...}}, "
            f"got {value!r}"
        )
    checked = [option.check(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if any(item in checked[:i] for i, item in enumerate(checked)):
        raise PresetError(f"{where}: a value is given twice in {value}")
    return checked


def _range(value: Mapping[str, Any], option: Option, where: str) -> dict[str, Any]:
    check_names(value, ("low", "high", "log"), where)
    if not {"low", "high"} <= value.keys():
        raise PresetError(f"{where}: a range needs low and high, got {dict(value)!r}")
    low, high = (option.check(value[end], f"{where}.{end}") for end in ("low", "high"))
    log = Option(False).check(value.get("log", False), f"{where}.log")
    if any(isinstance(end, bool) or not isinstance(end, int | float) for end in (low, high)):
        raise PresetError(f"{where}: a range is of numbers; give a list of values instead")
    if low >= high or (log and low <= 0):
        below = "0 < low < high" if log else "low < high"
        raise PresetError(f"{where}: expected {below}, got low = {low}, high = {high}")
    return {"low": low, "high": high, "log": log}


def _trials(value: Any, sampler: str, space: Mapping[str, Space], where: str) -> int:
    sizes = {name: size(own) for name, own in space.items()}
    if sampler == "grid" and math.inf in sizes.values():
        names = ", ".join(name for name, n in sizes.items() if n == math.inf)
        raise PresetError(f"{where}: the grid of {names} has a range; give lists, or use 'random'")
    if value is None:
        if sampler != "grid":
            raise PresetError(f"{where}: trials is missing; say how many points {sampler!r} tries")
        value = max(map(int, sizes.values()))
    trials: int = Option(1, low=1, high=_MAX_TRIALS).check(value, f"{where}.trials")
    for name, n in sizes.items():
        if n < trials or (sampler == "grid" and n > trials):
            way = "give it as many" if n < trials else "set trials to that, or use 'random'"
            raise PresetError(
                f"{where}: the space of {name} has {n:g} points, but every method gets {trials} "
                f"trials; {way}"
            )
    return trials
