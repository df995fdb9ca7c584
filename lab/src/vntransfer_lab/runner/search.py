"""Searches of hyper-parameters with Optuna: one study per data, condition, target, method, seed.

A trial is an ordinary cell with its hyper-parameters in the identity; Optuna only says which comes
next. A study holds nothing that the store does not: what it asks follows from its seed and from
the results before, so a run that is resumed asks the same questions again and finds the answers in
the store. Trials of a study come one after another, whatever the number of workers.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from vntransfer.checks import one_of
from vntransfer_lab.errors import PresetError
from vntransfer_lab.runner.cells import Cell, canonical_json, points
from vntransfer_lab.runner.kinds import Kind
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.schema import Schema, listed, parse, resolve
from vntransfer_lab.runner.selection import RULES, best_step, missing_metric

if TYPE_CHECKING:
    import optuna

STARTUP = 4
"""Fewest trials that "tpe" draws at random before it learns from results."""

REPEATS = 20
"""Points in a row that were tried before; then the next untried one is taken."""

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
    """A checked search."""

    # "grid" tries all points of the space, "random" draws some, "tpe" (Optuna's tree-structured
    # Parzen estimator) draws where earlier trials were good
    sampler: str
    trials: int  # different points that every method gets
    space: dict[str, Space]
    seed: int = 0  # of the sampler; each repetition (seed of the cells) draws its own points
    fixed: tuple[str, ...] = ()  # methods that are not searched, beside those without options


def size(space: Space) -> float:
    """Count the points of a space."""
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

    Every method gets the same number of different points, so a space that has fewer is refused, and
    so is a method that has options but neither a space nor a place in ``fixed``.
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
    space = {}
    for method in (one for one in given.space if one in methods):
        options, place = kind.methods[method].options, (name, "search", "space", method)
        if not given.space[method]:
            raise PresetError(
                f"{where}.space.{method}: names no option; known: {', '.join(options.model_fields)}"
            )
        space[method] = {k: _values(k, v, options, *place) for k, v in given.space[method].items()}
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


class Study:
    """The trials of one method on one problem, whose ``template`` has the method's fixed settings.

    ``known`` gives finished cells by their key, None for others; steps without ``metric`` cannot be
    chosen. ``cells`` are the trials so far, all but perhaps the last finished.
    """

    def __init__(
        self,
        template: Cell,
        search: Search,
        metric: str,
        known: Callable[[str], CellOutcome | None] = lambda key: None,
    ) -> None:
        self.template, self.search, self.metric = template, search, metric
        self.space = search.space[template.method]
        self.cells: list[Cell] = []
        self._study = _start(search, self.space, template.seed)
        self._trial: optuna.trial.Trial | None = None
        cell = self.ask()
        while cell is not None and (outcome := known(cell.key)) is not None:
            cell = self.tell(outcome)

    def __len__(self) -> int:
        return self.search.trials

    @property
    def pending(self) -> Cell | None:
        """The trial that waits for its result."""
        return self.cells[-1] if self._trial is not None else None

    def ask(self) -> Cell | None:
        """Draw the next trial, a point that was not tried before; None after the last."""
        if len(self.cells) == self.search.trials:
            return None
        tried = {canonical_json(cell.hyper) for cell in self.cells}
        for _ in range(REPEATS):
            self._trial = self._study.ask(_distributions(self.space))
            hyper = self.template.hyper | _decode(self.space, self._trial.params)
            if canonical_json(hyper) not in tried:
                break
            self._fail(self._trial)
        else:
            hyper = next(
                point
                for point in points(self.template.hyper, _listed(self.space))
                if canonical_json(point) not in tried
            )
            self._study.enqueue_trial(_encode(self.space, hyper))
            self._trial = self._study.ask(_distributions(self.space))
        self.cells.append(replace(self.template, hyper=hyper))
        return self.cells[-1]

    def tell(self, outcome: CellOutcome) -> Cell | None:
        """Take in the result of the last trial and draw the next one."""
        trial, self._trial = self._trial, None
        metrics: dict[str, dict[int, float]] = {}
        for step, name, value in outcome.rows:
            metrics.setdefault(name, {})[step] = value
        found = best_step(metrics, self.template.selection, self.metric)
        if not outcome.error and found is None:
            raise missing_metric(self.template.selection, self.template.method, metrics)
        if len(self.cells) == self.search.trials or trial is None:
            return None  # nobody asks any more, and a grid refuses to hear of its last point
        if found is None:
            self._fail(trial)
        else:
            self._study.tell(trial, found[0])
        return self.ask()

    def _fail(self, trial: "optuna.trial.Trial") -> None:
        from optuna.trial import TrialState

        self._study.tell(trial, state=TrialState.FAIL)


def _start(search: Search, space: Space, seed: int) -> "optuna.study.Study":
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    drawn = int(np.random.SeedSequence([search.seed, seed]).generate_state(1)[0])
    sampler: optuna.samplers.BaseSampler
    if search.sampler == "grid":
        indices = {name: list(range(len(values))) for name, values in space.items()}
        sampler = optuna.samplers.GridSampler(indices, seed=drawn)
    elif search.sampler == "random":
        sampler = optuna.samplers.RandomSampler(seed=drawn)
    else:
        first = max(STARTUP, min(10, search.trials // 4))  # at random
        sampler = optuna.samplers.TPESampler(seed=drawn, n_startup_trials=first)
    return optuna.create_study(sampler=sampler, direction="minimize")


def _distributions(space: Space) -> dict[str, Any]:
    """Optuna's words for a space; a list stands for the indices of its values.

    Values in rising order are told as whole numbers, so that neighbors are neighbors.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    found: dict[str, Any] = {}
    for name, values in space.items():
        if isinstance(values, list):
            rising = all(isinstance(value, int | float) for value in values) and all(
                a < b for a, b in pairwise(values)
            )
            n = len(values)
            found[name] = IntDistribution(0, n - 1) if rising else CategoricalDistribution(range(n))
        else:
            kind = IntDistribution if isinstance(values["low"], int) else FloatDistribution
            found[name] = kind(values["low"], values["high"], log=values["log"])
    return found


def _decode(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: values[params[name]] if isinstance(values, list) else params[name]
        for name, values in space.items()
    }


def _encode(space: Space, hyper: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: values.index(hyper[name]) if isinstance(values, list) else hyper[name]
        for name, values in space.items()
    }


def _listed(space: Space) -> dict[str, list[Any]]:
    """Finite spaces only: an infinite one does not repeat itself."""
    return {
        name: values if isinstance(values, list) else list(range(values["low"], values["high"] + 1))
        for name, values in space.items()
    }
