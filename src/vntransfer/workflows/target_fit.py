"""Fit a method for one unlabeled place, and say what to expect of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.adaptation import METHODS, AutoTransferRegressor
from vntransfer.adaptation.candidates import attempt
from vntransfer.adaptation.guarded_choice import guard
from vntransfer.checks import instance
from vntransfer.display import counted, listed, one_line, plus_minus, short
from vntransfer.domains import group
from vntransfer.progress import Progress
from vntransfer.storage.skops_files import need_skops
from vntransfer.tables.problem import LABELED, Problem
from vntransfer.workflows.prediction_intervals import Calibration

Floats = NDArray[np.float64]

COMPARED = ("boosting", "source_only")
"""What every method is compared with."""

PLAIN = ("boosting", "ridge", "constant", "source_only")
"""Methods that do not look at the target."""

CONSTANT = "constant"


@dataclass(frozen=True)
class TargetOutcome:
    """What came out for one target."""

    target: str
    rows: int
    method: str  # as asked for
    reason: str  # what was chosen and why, if there was a choice
    shares: dict[str, float]  # of the candidates, if there were several
    source_weights: dict[str, float]
    # method -> source -> mean absolute error on that source, predicted without its responses
    errors: dict[str, dict[str, float]]
    warnings: tuple[str, ...] = ()

    def expected(self, method: str | None = None) -> tuple[float, float]:
        """Mean error over held-out sources and its standard error; NaN if none was held out."""
        own = np.array(
            list(self.errors.get(self.method if method is None else method, {}).values())
        )
        if not len(own):
            return np.nan, np.nan
        spread = own.std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else np.nan
        return float(own.mean()), float(spread)

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

    def summary(self, *, unit: str = "") -> str:
        """Say in words what to expect (in units of the response), why, and from which sources."""
        place, how = short(self.target, 60), self.expected_text(unit).removeprefix("expected error")
        lines = [
            f"Expected error at {place}:{how} (mean absolute error on held-out sources)."
            if self.errors
            else f"The error at {place} is unknown: no source could be held out."
        ]
        reason = short(self.reason, 300).rstrip(".")
        lines.append(f"Method: {self.method}" + (f" ({reason})." if reason else "."))
        weights = sorted(self.source_weights.items(), key=lambda pair: -pair[1])
        shown = [f"{short(name)} {100 * weight:.0f} %" for name, weight in weights]
        lines.append(f"Weights of the sources: {listed(shown, 5, 40)}.")
        lines.append(self.labels_used())
        return "\n".join([*lines, *(f"Warning: {short(text, 400)}." for text in self.warnings)])

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
    random_state: int = 0,
    progress: Progress | None = None,
) -> TargetFit:
    """Fit a method on the sources for one target of a table; `adapt` explains the arguments."""
    check_method(method)
    used = np.isin(problem.domain, [*problem.sources, target])
    X, y, domain = problem.X[used], problem.y[used], problem.domain[used]
    groups = group(domain, len(y), target=target)
    if method == "auto":
        model = AutoTransferRegressor(candidates, random_state=random_state)
        model.fit(X, y, domain, target, progress=progress)
        every = {"auto": model.held_out_, **model.candidates_held_out_}
        shares, reason = dict(model.selection_.shares), model.selection_.reason
    else:
        names = list(dict.fromkeys((method, *compare)))
        tried = attempt(names, X, y, groups, random_state=random_state, progress=progress)
        model, every = tried.model(method), tried.held_out
        chosen = getattr(model, "selection_", None)
        shares, reason = {}, "" if chosen is None else chosen.reason
    names = [str(name) for name in groups.sources]
    weights = dict(zip(names, map(float, model.source_weights_.values()), strict=True))
    truth = {str(name): (rows, y[rows]) for name, rows in groups.sources.items()}
    errors = {
        name: {
            source: float(np.nanmean(np.abs(own[rows] - r)))
            for source, (rows, r) in truth.items()
            if np.isfinite(own[rows]).any()  # of many sources some play the target
        }
        for name, own in every.items()
        if np.isfinite(own).any()
    }
    calibration = None
    if errors:
        errors[CONSTANT] = _constant_errors(truth, errors[method])
        gaps = {source: every[method][rows] - r for source, (rows, r) in truth.items()}
        calibration = Calibration.from_errors(gaps, weights)
    used_names = [name for name, share in shares.items() if share > 0] or [method]
    outcome = TargetOutcome(
        target,
        len(y) - len(groups.source_rows),
        method,
        reason,
        shares,
        weights,
        errors,
        tuple(_warnings(method, used_names, errors)),
    )
    return TargetFit(model, outcome, calibration)


def _constant_errors(
    truth: Mapping[str, tuple[Any, Floats]], sources: Iterable[str]
) -> dict[str, float]:
    """Errors of the other sources' median on sources that were held out."""
    found = {}
    for source in sources:
        others = np.concatenate([own for name, (_, own) in truth.items() if name != source])
        found[source] = float(np.abs(truth[source][1] - np.median(others)).mean())
    return found


def _warnings(
    method: str, used: Sequence[str], errors: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """Plain sentences on what is not to be expected."""
    if not errors:
        return [
            "there is one source: no place can be held out, so that the error at a new place is "
            "not known and there are no intervals"
        ]
    out = []
    own = np.array(list(errors[method].values()))
    compared = {
        name: np.array([gaps[source] for source in errors[method]])
        for name, gaps in errors.items()
        if set(gaps) >= set(errors[method])
    }
    if set(used) <= set(PLAIN):
        if method not in PLAIN:
            why = "promised no gain"
            if set(errors) <= {*PLAIN, method}:
                why = "were not tried" + (", which takes three sources" if len(own) < 3 else "")
            out.append(
                f"no adaptation is used: {' and '.join(used)} did best on held-out sources, and "
                f"weights or alignment {why}"
            )
    else:
        for plain in (name for name in COMPARED if name in compared and name not in used):
            other = compared[plain]
            if guard(np.stack((other, own), 1)).scores[1] < 0:
                continue
            change = 100 * (own.mean() / other.mean() - 1)
            said = f"{abs(change):.1f} % {'above' if change > 0 else 'below'}"
            out.append(
                f"{_title(plain)} is the safer choice here, because the error of {method} on "
                f"held-out sources is {said} that of {plain}, which is not better by more than a "
                f"standard error"
            )
    if own.mean() >= compared[CONSTANT].mean():
        out.append(
            "a constant (the median of the other sources) predicts held-out sources as well: what "
            "is learned at some places does not carry over to others"
        )
    return out


def _title(name: str) -> str:
    return {"source_only": "source-only", "boosting": "plain boosting"}.get(name, name)
