"""Fit a method for one unlabeled place, and say what to expect of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.adaptation import METHODS, AutoTransferRegressor
from vntransfer.adaptation.candidates import attempt
from vntransfer.checks import instance
from vntransfer.display import counted, listed, one_line, plus_minus, rounded, short
from vntransfer.domains import group
from vntransfer.progress import Progress
from vntransfer.storage.skops_files import need_skops
from vntransfer.tables.problem import LABELED, Problem
from vntransfer.workflows.evidence import CONSTANT, REFERENCE, Evidence, held_out_weights
from vntransfer.workflows.prediction_intervals import Calibration
from vntransfer.workflows.response_transform import Asked, ResponseTransform, choose_transform
from vntransfer.workflows.target_place import measure_place

Floats = NDArray[np.float64]

COMPARED = ("boosting", REFERENCE)
"""What every method is compared with."""


@dataclass(frozen=True)
class TargetOutcome:
    """What came out for one target."""

    target: str
    rows: int
    reason: str  # what was chosen and why, if there was a choice
    evidence: Evidence
    transform: ResponseTransform = field(default_factory=ResponseTransform)

    @property
    def method(self) -> str:
        """The method that was asked for."""
        return self.evidence.method

    @property
    def shares(self) -> Mapping[str, float]:
        """Weights of the candidates in the prediction, if there are several."""
        return self.evidence.shares

    @property
    def source_weights(self) -> Mapping[str, float]:
        """Weights of the sources in the prediction."""
        return self.evidence.source_weights

    @property
    def errors(self) -> Mapping[str, Mapping[str, float]]:
        """Method -> held-out source -> mean absolute error."""
        return self.evidence.errors

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful about, the most important first."""
        return tuple(found.text for found in self.evidence.findings())

    def expected(self, method: str | None = None) -> tuple[float, float]:
        """Give the expected error and its standard error, see `Evidence`; NaN if unknown."""
        return self.evidence.expected(method)

    def labels_used(self) -> str:
        """Say in words whether labels of the target were used."""
        if self.target + LABELED in self.source_weights:
            return "Labeled rows of the target were used as one more source."
        return "No labels from the target were used."

    def expected_text(self, unit: str = "") -> str:
        """Say which error to expect, rounded: "expected error 18.9 ± 1.3 price"."""
        mean, spread = self.expected()
        if not np.isfinite(mean):
            return "expected error unknown"
        return f"expected error {plus_minus(mean, spread)} {short(unit)}".rstrip()

    def answer(self, unit: str = "") -> list[str]:
        """Give the answer in a sentence or two; what spoils it comes first."""
        place, mean = short(self.target, 60), self.expected()[0]
        first = [own.text for own in self.evidence.findings() if own.first]
        if not np.isfinite(mean):
            return [*first, f"{counted(self.rows, 'row')} of {place} can be predicted anyway."]
        low, high = (rounded(end) for end in self.evidence.bounds())
        how = self.expected_text(unit).removeprefix("expected error ")
        said = (
            f"Expected error at {place}: {how} (mean absolute error on held-out sources; "
            f"{low} to {high} over sources)."
        )
        return [*first, said]

    def cautions(self) -> list[str]:
        """Give the sentences that are not part of the answer."""
        return [own.text for own in self.evidence.findings() if not own.first]

    def weights_text(self) -> str:
        """Say what each source counts in the prediction."""
        if said := self.evidence.weighting():
            return said
        weights = sorted(self.source_weights.items(), key=lambda pair: -pair[1])
        shown = [f"{short(name)} {100 * weight:.0f} %" for name, weight in weights]
        return f"Weights of the sources: {listed(shown, 5, 40)}."

    def summary(self, *, unit: str = "") -> str:
        """Say in words what to expect (in units of the response), why, and from which sources."""
        reason = short(self.reason, 300).rstrip(".")
        lines = [
            *self.answer(unit),
            f"Method: {self.method}" + (f" ({reason})." if reason else "."),
            self.weights_text(),
            self.labels_used(),
            *([self.transform.reason] if self.transform.reason else []),
        ]
        return "\n".join([*lines, *(f"Warning: {short(text, 500)}" for text in self.cautions())])

    def __repr__(self) -> str:
        return one_line(
            f"TargetOutcome for {short(self.target)}: {self.expected_text()} "
            f"({short(self.method)}, {counted(len(self.source_weights), 'source')})"
        )


@dataclass(frozen=True, eq=False)
class TargetFit:
    """A fitted estimator, what to expect of it, and its errors on held-out sources."""

    estimator: Any
    outcome: TargetOutcome
    calibration: Calibration | None


def check_method(method: str) -> None:
    """Raise unless a method is in the registry."""
    METHODS[instance("method", method, str, "the id of a method")]


def check_savable(method: str) -> None:
    """Raise unless what saving a method's models takes is installed: before they are trained."""
    if not METHODS[method].neural:
        need_skops()


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
        tried = attempt(names, X, scaled, groups, random_state=random_state, progress=progress)
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
            if np.isfinite(own[rows]).any()  # of many sources some play the target
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
    return TargetFit(model, outcome, calibration)


def _constant_errors(truth: Mapping[str, Floats], sources: Iterable[str]) -> dict[str, float]:
    """Errors of the other sources' median on sources that were held out."""
    found = {}
    for source in sources:
        others = np.concatenate([own for name, own in truth.items() if name != source])
        found[source] = float(np.abs(truth[source] - np.median(others)).mean())
    return found
