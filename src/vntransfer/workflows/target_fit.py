"""Fit a method for one unlabeled place, and estimate its error."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.adaptation import METHODS, AutoTransferRegressor
from vntransfer.adaptation.candidates import FitRows, attempt
from vntransfer.checks import instance
from vntransfer.domains import group
from vntransfer.progress import Progress
from vntransfer.tables.problem import Problem
from vntransfer.workflows.choose_transform import choose_transform
from vntransfer.workflows.evidence import CONSTANT, REFERENCE, Evidence, held_out_weights
from vntransfer.workflows.measure_place import measure_place
from vntransfer.workflows.prediction_intervals import Calibration
from vntransfer.workflows.response_transform import Asked
from vntransfer.workflows.target_outcome import TargetOutcome
from vntransfer.workflows.target_sketch import TargetSketch

Floats = NDArray[np.float64]

COMPARED = ("boosting", REFERENCE)
"""What every method is compared with."""


@dataclass(frozen=True, eq=False)
class TargetFit:
    """A fitted estimator, what to expect of it, errors on held-out sources, rows to draw."""

    estimator: Any
    outcome: TargetOutcome
    calibration: Calibration | None
    sketch: TargetSketch


def check_method(method: str) -> None:
    """Raise unless a method is in the registry."""
    METHODS[instance("method", method, str, "the id of a method")]


def fit_target(
    problem: Problem,
    target: str,
    *,
    method: str = "auto",
    candidates: Sequence[str] | None = None,
    compare: Sequence[str] = COMPARED,
    transform: Asked = "auto",
    random_state: int = 0,
    progress: Progress | None = None,
) -> TargetFit:
    """Fit a method on the sources for one target of a table; `adapt` explains the arguments."""
    check_method(method)
    used = np.isin(problem.domain, [*problem.sources, target])
    X, y, domain = problem.X[used], problem.y[used], problem.domain[used]
    groups = group(domain, len(y), target=target)
    scale, probe = choose_transform(
        transform,
        X,
        y,
        groups,
        response=problem.names[1],
        method=method,
        random_state=random_state,
    )
    scaled = scale.apply(y)
    if method == "auto":
        model = AutoTransferRegressor(candidates, random_state=random_state)
        model.fit(X, scaled, domain, target, progress=progress)
        every = {"auto": model.held_out_, **model.candidates_held_out_}
        shares, reason = dict(model.selection_.shares), model.selection_.reason
    else:
        names = list(dict.fromkeys((method, *compare)))
        tried = attempt(
            names, FitRows(X, scaled, groups), random_state=random_state, progress=progress
        )
        model, every = tried.model(method), tried.held_out
        chosen = getattr(model, "selection_", None)
        shares, reason = {}, "" if chosen is None else chosen.reason
    names = [str(name) for name in groups.sources]
    weights = dict(zip(names, map(float, model.source_weights_.values()), strict=True))
    own_rows = {str(name): rows for name, rows in groups.sources.items()}
    errors = {
        name: {
            source: float(np.nanmean(np.abs(scale.undo(own[rows]) - y[rows])))
            for source, rows in own_rows.items()
            if np.isfinite(own[rows]).any()  # of many sources only some are held out
        }
        for name, own in every.items()
        if np.isfinite(own).any()
    }
    numbers, calibration = Evidence(method, {}, weights, shares), None
    if errors:
        truth = {source: y[rows] for source, rows in own_rows.items()}
        errors[CONSTANT] = _constant_errors(truth, errors[method])
        gap = scale.bounded(every[method]) - scaled
        gaps = {source: gap[rows] for source, rows in own_rows.items() if source in errors[method]}
        counts = {source: len(rows) for source, rows in own_rows.items()}
        calibrated, factors, unusual = gaps, None, 0.0
        if probe is not None:
            apart = probe.disagreement(
                scale.bounded(every[method]), lambda rows: scale.bounded(model.predict(X[rows]))
            )
            calibrated = {source: gap[rows] for source, rows in probe.rows.items()}
            factors, unusual = apart.factors(), apart.unusual()
        calibration = Calibration.from_errors(
            calibrated, held_out_weights(calibrated, {}, counts), factors=factors
        )
        found = measure_place(X, groups, gaps, errors[method], unusual)
        numbers = Evidence(method, errors, weights, shares, counts, found.resemblance, found.place)
    outcome = TargetOutcome(target, len(y) - len(groups.source_rows), reason, numbers, scale)
    held_out = scale.undo(every[method]) if errors else np.full(len(y), np.nan)
    sketch = TargetSketch.of(X, y, groups, held_out, lambda rows: scale.undo(model.predict(rows)))
    return TargetFit(model, outcome, calibration, sketch)


def _constant_errors(truth: Mapping[str, Floats], sources: Iterable[str]) -> dict[str, float]:
    """Errors of the other sources' median on sources that were held out."""
    found = {}
    for source in sources:
        others = np.concatenate([own for name, own in truth.items() if name != source])
        found[source] = float(np.abs(truth[source] - np.median(others)).mean())
    return found
