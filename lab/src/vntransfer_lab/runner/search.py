"""Trials of hyper-parameters with Optuna: one study per data, condition, target, method and seed.

A trial is an ordinary cell with its hyper-parameters in the identity; Optuna only says which comes
next. A study holds nothing that the store does not: what it asks follows from its seed and from
the results before, so a run that is resumed asks the same questions again and finds the answers in
the store. Trials of a study come one after another, whatever the number of workers.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from vntransfer_lab.runner.cells import Cell, canonical_json, points
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.search_space import Search, Space
from vntransfer_lab.runner.selection import best_step, missing_metric

if TYPE_CHECKING:
    import optuna

STARTUP = 4
"""Fewest trials that "tpe" draws at random before it learns from results."""

REPEATS = 20
"""Points in a row that were tried before; then the next untried one is taken."""


class Study:
    """The trials of one method on one problem.

    Parameters
    ----------
    template
        The cell with the method's fixed settings.
    search
        What to try.
    metric
        Metric of the experiment: steps without it cannot be chosen.
    known
        Finished cells by their key, None for others: `Store.outcome`.

    Attributes
    ----------
    cells : list of Cell
        The trials so far, in order; all but perhaps the last are finished.
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
            self._study.tell(self._trial, state=_failed())
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
            self._study.tell(trial, state=_failed())
        else:
            self._study.tell(trial, found[0])
        return self.ask()


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


def _failed() -> Any:
    from optuna.trial import TrialState

    return TrialState.FAIL


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
