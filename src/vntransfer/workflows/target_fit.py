"""Fit a method for one unlabeled place, and estimate its error."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from vntransfer.adaptation import AutoTransferRegressor
from vntransfer.adaptation.candidates import FitRows, attempt
from vntransfer.checks import Floats
from vntransfer.display import short
from vntransfer.domains import Groups, group
from vntransfer.progress import Progress
from vntransfer.tables.problem import Problem
from vntransfer.workflows.adapt_settings import AdaptSettings
from vntransfer.workflows.evidence import CONSTANT, Evidence, held_out_weights
from vntransfer.workflows.measure_place import Probe, measure_place, run_probe
from vntransfer.workflows.prediction_intervals import Calibration
from vntransfer.workflows.response_transform import Kind, ResponseTransform, shape_hint
from vntransfer.workflows.target_outcome import TargetOutcome
from vntransfer.workflows.target_sketch import TargetSketch


@dataclass(frozen=True, eq=False)
class TargetFit:
    """A fitted estimator, what to expect of it, errors on held-out sources, rows to draw."""

    estimator: Any
    outcome: TargetOutcome
    calibration: Calibration | None
    sketch: TargetSketch


def fit_target(
    problem: Problem, target: str, settings: AdaptSettings, *, progress: Progress | None = None
) -> TargetFit:
    """Fit a method on the sources for one target of a table."""
    method, random_state, n_jobs = settings.method, settings.random_state, settings.n_jobs
    used = np.isin(problem.domain, [*problem.sources, target])
    X, y, domain = problem.X[used], problem.y[used], problem.domain[used]
    groups = group(domain, len(y), target=target)
    scale, probe = choose_transform(X, y, groups, settings)
    scaled = scale.apply(y)
    if method == "auto":
        model = AutoTransferRegressor(settings.candidates, n_jobs=n_jobs, random_state=random_state)
        model.fit(X, scaled, domain, target, progress=progress)
        every = {"auto": model.held_out_, **model.candidates_held_out_}
        shares, reason = dict(model.selection_.shares), model.selection_.reason
    else:
        names = list(dict.fromkeys((method, *settings.compare)))
        tried = attempt(
            names,
            FitRows(X, scaled, groups),
            random_state=random_state,
            n_jobs=n_jobs,
            progress=progress,
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


class ChosenScale(NamedTuple):
    """The scale, and what fast learners predict on it."""

    transform: ResponseTransform
    probe: Probe | None

    def errors(self, y: Floats) -> Floats:
        """Give errors of the first fast learner on held-out sources, in the user's units."""
        assert self.probe is not None
        gaps = [
            np.abs(self.transform.undo(self.probe.held_out[name][0]) - y[rows]).mean()
            for name, rows in self.probe.rows.items()
        ]
        return np.maximum(gaps, 1e-300)


def choose_transform(X: Any, y: Floats, groups: Groups, settings: AdaptSettings) -> ChosenScale:
    """Choose the scale on which responses are learned.

    "auto" tries the logarithm only if all responses of sources are positive and skewed: a fast
    learner predicts each source from the others on both scales, and the logarithm is taken if the
    mean of log(error ratio) over held-out sources, in the user's units, is below minus its standard
    error.
    """
    known, response = y[groups.source_rows], settings.columns.response

    def on(kind: Kind, reason: str = "") -> ChosenScale:
        scale = ResponseTransform.fitted(kind, known, reason)
        probe = run_probe(
            X,
            scale.apply(y),
            groups,
            method=settings.method,
            random_state=settings.random_state,
            n_jobs=settings.n_jobs,
        )
        return ChosenScale(scale, probe)

    if settings.transform != "auto":
        said = "The response is learned on a log scale, as requested."
        return on(settings.transform, said if settings.transform == "log" else "")
    chosen, hint, why = on("none"), shape_hint(known, response), ""
    if not hint:
        return chosen
    if not (known > 0).all():
        why = " A log scale needs positive values."
    elif len(groups.sources) < 3:
        why = (
            " Whether a log scale is better cannot be judged with fewer than three sources; see "
            "--transform log."
        )
    elif (logs := on("log")).probe is not None and chosen.probe is not None:
        ratio = np.log(logs.errors(y) / chosen.errors(y))
        spread = ratio.std(ddof=1) / np.sqrt(len(ratio))
        change = 100 * np.expm1(ratio.mean())
        said = (
            f"with a fast learner the error on held-out sources is {abs(change):.1f} % "
            f"{'lower' if change < 0 else 'higher'} so."
        )
        why = f" A log scale was tried and is not clearly better: {said}"
        if ratio.mean() < -spread:
            chosen, units = logs, f"Errors and intervals are in units of {short(response)}."
            why = f" It is learned on a log scale: {said} {units}"
    return ChosenScale(replace(chosen.transform, reason=f"{hint}.{why}"), chosen.probe)
