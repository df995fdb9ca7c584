"""The target's place among the sources, and the disagreement of two fast learners there."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from vntransfer.adaptation.candidates import FitRows, attempt
from vntransfer.adaptation.divergence_weights import divergence_table, input_moments, sharpen
from vntransfer.checks import Floats
from vntransfer.domains import Groups, Rows
from vntransfer.workflows.evidence import held_out_weights
from vntransfer.workflows.prediction_intervals import Calibration, Disagreement
from vntransfer.workflows.target_place import LEVEL, TargetPlace

LEARNERS, OF_MANY = ("closed_form", "boosting", "ridge"), ("ridge", "boosting", "closed_form")
"""The first two are used that are not the method itself: a smooth function, and trees."""

MANY = 20
"""Sources from which on the cheapest learner comes first."""

PARTS = 10
"""Random parts of the nearest source that are compared with its rest."""

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
    X: Any,
    y: Floats,
    groups: Groups,
    *,
    method: str = "",
    random_state: int = 0,
    n_jobs: int | None = None,
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
            rows = FitRows(some.X, labels, some.groups)
            tried = attempt(names, rows, random_state=random_state, n_jobs=n_jobs)
            target = [tried.model(name).predict(some.X[some.groups.target]) for name in names]
    except (ArithmeticError, ValueError):
        return None
    low, high = known.min(), known.max()
    found = np.array([np.clip(tried.held_out[name], low, high) for name in names])
    own = {str(key): found[:, rows] for key, rows in some.groups.sources.items()}
    held = {key: values for key, values in own.items() if np.isfinite(values).all()}
    if not held:
        return None
    seen = {key: some.rows[key] for key in held}
    return Probe(seen, held, some.target_rows, np.clip(target, low, high))


class Measured(NamedTuple):
    """Resemblance of each source to the target (1: the nearest), and where the target lies."""

    resemblance: dict[str, float]
    place: TargetPlace


def measure_place(
    X: Any,
    groups: Groups,
    gaps: Mapping[str, Floats],
    errors: Mapping[str, float],
    disagreement: float = 0.0,
) -> Measured:
    """Compare the target with the sources, and each held-out source with the others.

    ``gaps`` are differences of predictions and responses on the rows of held-out sources, on the
    scale of the intervals, ``errors`` mean absolute ones in the user's units.
    """
    some = PlacesSample.of(X, groups)
    table, moments = divergence_table(some.X, some.groups), input_moments(some.X, some.groups)
    names, target = list(some.rows), len(some.rows)
    apart = table.copy()
    np.fill_diagonal(apart, np.inf)
    reach = [beyond(moments[i], moments[own[:target].argmin()]) for i, own in enumerate(apart)]
    near = _resemblance(table[:target, target])
    known = [v for v, name in enumerate(names) if name in errors]
    rows = {name: len(own) for name, own in gaps.items()}  # a few rows say little
    ratios, covered = {}, {}
    if len(known) > 1:
        for v in known:
            others = [u for u in known if u != v]
            weights = _resemblance(table[others, v])
            mean = weights @ [errors[names[u]] for u in others] / weights.sum()
            ratios[names[v]] = float(errors[names[v]] / mean) if mean > 0 else 1.0
            rest = {names[u]: gaps[names[u]] for u in others}
            half = Calibration.from_errors(rest, held_out_weights(rest, {}, rows)).half_width(LEVEL)
            own = np.abs(gaps[names[v]])
            covered[names[v]] = float((own[np.isfinite(own)] <= half).mean())
    sizes = held_out_weights(errors, {}, rows)
    w = np.array([near[v] * sizes[names[v]] for v in known])
    place = TargetPlace(
        reach[target],
        _noise(some, int(table[target, :target].argmin())),
        _outside(some),
        dict(zip(names, reach, strict=False)) if target > 1 else {},
        ratios,
        covered,
        float(w @ [covered[names[v]] for v in known] / w.sum()) if covered else LEVEL,
        disagreement,
    )
    return Measured(dict(zip(names, near.tolist(), strict=True)), place)


def _resemblance(distances: Floats) -> Floats:
    """Weights of `source_weights` with sharpness 1, of which the largest is one."""
    weights = sharpen(distances.copy(), 1.0, np.ones(len(distances)))
    return np.asarray(weights / weights.max())


def beyond(place: Floats, source: Floats) -> float:
    """How far a place reaches beyond a source, given their second moments.

    Σ ½(λ + 1/λ) - 1 over the eigenvalues λ > 1 of source⁻¹ place: the Jeffreys divergence, but for
    the directions in which the place varies less. A model that has learned the source does not
    extrapolate there.

    Examples
    --------
    >>> beyond(np.diag([4.0, 1.0]), np.eye(2)), beyond(np.diag([0.01, 1.0]), np.eye(2))
    (1.125, 0.0)
    """
    from scipy.linalg import eigvalsh  # only here: it is slow to import

    own = np.maximum(eigvalsh(place, source), 1.0)
    return float(((own + 1 / own) / 2 - 1).sum())


def _noise(some: PlacesSample, nearest: int) -> float:
    """Largest distance of random parts of the nearest source, of the target's size, from its rest.

    If that takes more than half of the source, it is scaled from halves: noise falls with 1/rows.
    """
    rows = list(some.groups.sources.values())[nearest]
    size = min(len(some.target_rows), len(rows) // 2)
    if size < 1:
        return 0.0
    rng, found = np.random.default_rng(0), []
    for _ in range(PARTS):
        mixed = rng.permutation(rows)
        parts = Groups({0: np.sort(mixed[size:])}, {-1: np.sort(mixed[:size])})
        source, part = input_moments(some.X, parts)
        found.append(beyond(part, source))
    return max(found) * size / len(some.target_rows)


def _outside(some: PlacesSample) -> float:
    """Share of the target's rows with a value outside the range of the sources."""
    own, sources = some.X[some.groups.target], some.X[some.groups.source_rows]
    beyond = (own < sources.min(0)) | (own > sources.max(0))
    return float(np.asarray(beyond).any(1).mean())
