"""Measure where a target lies among the sources, and held-out sources among the others."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vntransfer.adaptation.divergence_weights import divergence_table, sharpen
from vntransfer.domains import Groups
from vntransfer.workflows.evidence import held_out_weights
from vntransfer.workflows.prediction_intervals import Calibration
from vntransfer.workflows.probe import PlacesSample
from vntransfer.workflows.target_place import LEVEL, TargetPlace

Floats = NDArray[np.float64]


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
    table = divergence_table(some.X, some.groups)
    names, target = list(some.rows), len(some.rows)
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
        float(table[:target, target].min()),
        _noise(some, int(table[:target, target].argmin())),
        _outside(some),
        {
            name: float(np.delete(table[v, :target], v).min())
            for v, name in enumerate(names)
            if target > 1
        },
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


def _noise(some: PlacesSample, nearest: int) -> float:
    """Distance of a part of the nearest source, of the target's size, from its rest."""
    rows = list(some.groups.sources.values())[nearest]
    size = min(len(some.target_rows), len(rows) // 2)
    if size < 1:
        return 0.0
    mixed = np.random.default_rng(0).permutation(rows)
    parts = Groups({0: np.sort(mixed[size:])}, {-1: np.sort(mixed[:size])})
    return float(divergence_table(some.X, parts)[0, 1])


def _outside(some: PlacesSample) -> float:
    """Share of the target's rows with a value outside the range of the sources."""
    own, sources = some.X[some.groups.target], some.X[some.groups.source_rows]
    beyond = (own < sources.min(0)) | (own > sources.max(0))
    return float(np.asarray(beyond).any(1).mean())
