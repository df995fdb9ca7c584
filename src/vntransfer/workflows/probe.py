"""A second opinion: two fast learners that predict held-out sources and the target."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vntransfer.adaptation.candidates import FitRows, attempt
from vntransfer.domains import Groups, Rows
from vntransfer.workflows.prediction_intervals import Disagreement

Floats = NDArray[np.float64]

LEARNERS, OF_MANY = ("closed_form", "boosting", "ridge"), ("ridge", "boosting", "closed_form")
"""The first two are used that are not the method itself: a smooth function, and trees."""

MANY = 20
"""Sources from which on the cheapest learner comes first."""

ROWS, LEAST, TOTAL = 1000, 50, 20_000
"""Rows of a place that they see at most, evenly spaced; fewer (but 50) if there are many places."""


class PlacesSample(NamedTuple):
    """Some rows of every place: where they are in the table, and as a table of their own."""

    rows: dict[str, Rows]  # of each source, in the whole table
    target_rows: Rows
    X: Any
    groups: Groups  # rows of `X`

    @classmethod
    def of(cls, X: Any, groups: Groups) -> Self:
        """Take at most `ROWS` rows of each source and of the target, evenly spaced."""
        assert groups.target is not None
        domains = [*groups.sources.values(), groups.target]
        most = max(LEAST, min(ROWS, TOTAL // len(domains)))
        few = [rows[:: max(1, -(-len(rows) // most))] for rows in domains]
        ends = np.cumsum([len(rows) for rows in few])
        own = [np.arange(end - len(rows), end) for end, rows in zip(ends, few, strict=True)]
        names = [str(name) for name in groups.sources]
        return cls(
            dict(zip(names, few[:-1], strict=True)),
            few[-1],
            X[np.concatenate(few)],
            Groups(dict(zip(names, own[:-1], strict=True)), {"": own[-1]}),
        )


@dataclass(frozen=True, eq=False)
class Probe:
    """What L fast learners predict, within the range of the sources' responses."""

    rows: dict[str, Rows]  # of each source that was held out, those that were predicted
    held_out: dict[str, Floats]  # source -> predictions (L, n) of these rows by other sources
    target_rows: Rows
    target: Floats  # (L, m)

    def disagreement(self, held_out: Floats, predict: Callable[[Rows], Floats]) -> Disagreement:
        """Give the spread of all predictions, with those (n,) of a model on held-out sources."""

        def spread(own: Floats, others: Floats) -> Floats:
            return np.vstack((own, others)).std(0)

        return Disagreement(
            {name: spread(held_out[rows], self.held_out[name]) for name, rows in self.rows.items()},
            spread(predict(self.target_rows), self.target),
        )


def run_probe(
    X: Any, y: Floats, groups: Groups, *, method: str = "", random_state: int = 0
) -> Probe | None:
    """Predict each source from the others, and the target from all; None if that fails.

    Responses are on the scale on which they are learned; those of the target are not read.
    """
    if len(groups.sources) < 2 or groups.target is None:
        return None
    order = OF_MANY if len(groups.sources) > MANY else LEARNERS
    names = [name for name in order if name != method][:2]
    some = PlacesSample.of(X, groups)
    labels = np.concatenate([*(y[rows] for rows in some.rows.values()), y[some.target_rows]])
    known = labels[: -len(some.target_rows)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are a second opinion, and not what is predicted
            tried = attempt(names, FitRows(some.X, labels, some.groups), random_state=random_state)
            target = [tried.model(name).predict(some.X[some.groups.target]) for name in names]
    except (ArithmeticError, ValueError):
        return None
    low, high = known.min(), known.max()
    found = np.array([np.clip(tried.held_out[name], low, high) for name in names])
    own = {str(key): found[:, rows] for key, rows in some.groups.sources.items()}
    held = {key: values for key, values in own.items() if np.isfinite(values).all()}
    if not held:
        return None
    rows = {key: some.rows[key] for key in held}
    return Probe(rows, held, some.target_rows, np.clip(target, low, high))
