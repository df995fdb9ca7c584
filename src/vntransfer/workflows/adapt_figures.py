"""Figures of the page of `adapt`: errors on held-out sources, where the target lies, weights."""

import numpy as np

from vntransfer.checks import Floats
from vntransfer.display import percent, rounded, short
from vntransfer.pages import MUTED, Axis, Intervals, Panels, Scatter, Section, Series, histogram
from vntransfer.workflows.evidence import CONSTANT
from vntransfer.workflows.table_model import TableModel
from vntransfer.workflows.target_outcome import TargetOutcome
from vntransfer.workflows.target_sketch import TargetSketch

PANELS, DOTS = 6, 24
"""Panels of held-out sources, and sources of a chart; more are folded or counted."""

BINS = 20
"""Bars of a histogram."""

TITLES = {
    "auto": "this model",
    "source_only": "plain ensemble",
    "linear_trees": "boosted linear trees",
    "ridge": "ridge regression",
    "boosting": "boosted trees",
    "closed_form": "ridge on random features",
    "weighted": "ridge with weighted sources",
    "align": "alignment of moments",
    CONSTANT: "one constant (median)",
}
"""What methods are called on the page; others by their own name."""


def title(method: str) -> str:
    """Name a method in words."""
    return TITLES.get(method, method.replace("_", " "))


def error_figures(part: Section, outcome: TargetOutcome) -> None:
    """Draw the error on each held-out source, and that of each method."""
    own = outcome.errors[outcome.method]
    order, what = sorted(own, key=lambda name: own[name]), "mean absolute error"
    note = "Dotted: their weighted mean."
    if len(order) > DOTS:
        half = DOTS // 2
        note += f" Of {len(order)} sources, the {half} smallest and {half} largest errors."
        order = [*order[:half], *order[-half:]]
    part.figure(
        Intervals(
            order,
            [own[name] for name in order],
            x=Axis(what, low=0.0),
            reference=outcome.expected()[0],
        ),
        "Error on each held-out source",
        note,
    )
    methods = outcome.evidence.ranked()
    if len(methods) < 2:
        return
    means, spreads = np.array([outcome.expected(name) for name in methods]).T
    spreads = np.nan_to_num(spreads)
    part.figure(
        Intervals(
            [title(name) for name in methods],
            means,
            means - spreads,
            means + spreads,
            x=Axis(what),
            highlight=title(outcome.method),
        ),
        "Compared with other methods",
        f"Weighted mean over held-out sources ± standard error; lower is better."
        f"{_average(outcome)}",
    )


def _average(outcome: TargetOutcome) -> str:
    """Say why an average is used although one of its parts has a lower error."""
    own = outcome.expected()[0]
    used = [name for name, share in outcome.shares.items() if share > 0]
    if len(used) < 2 or all(outcome.expected(name)[0] >= own for name in used):
        return ""
    return " The best of several looks better than it is, so this model remains an average of them."


def sketch_figures(
    part: Section, model: TableModel, outcome: TargetOutcome, sketch: TargetSketch
) -> None:
    """Draw predictions beside responses, where the target lies, and what is predicted."""
    response = model.names[1]
    if len(sketch.held_out):
        _held_out(part, outcome, sketch, response)
    places, points = sketch.inputs[:, 0], sketch.inputs[:, 1:]
    series = [
        Series(name, points[own, 0], points[own, 1], color=color)
        for name, own, color in (
            ("sources", places >= 0, MUTED),
            (short(outcome.target, 60), places < 0, 1),
        )
    ]
    overlap = sketch.overlap()
    said = "" if np.isnan(overlap) else f"{percent(overlap)} of its rows lie among the sources'. "
    first, second = (percent(share) for share in sketch.shares[0])
    part.figure(
        Scatter(
            series,
            Axis(f"first principal component ({first} of the variance)"),
            Axis(f"second ({second})"),
        ),
        f"Where {outcome.target} lies",
        f"{said}One dot per row of a sample, by its feature columns.",
    )
    known, predicted = sketch.distributions.T
    if np.isfinite(predicted).all():
        low, high, log = _span(sketch.distributions, outcome)
        edges = np.geomspace(low, high, BINS + 1) if log else np.linspace(low, high, BINS + 1)
        part.figure(
            histogram(
                {
                    "responses of sources": known,
                    f"predicted for {short(outcome.target)}": predicted,
                },
                bins=edges,
                x=Axis(response, log=log),
                y=Axis("share of rows", low=0.0),
            ),
            "Distribution of the predictions",
        )


def _span(values: Floats, outcome: TargetOutcome) -> tuple[float, float, bool]:
    """Return the ends of an axis of responses, and whether it is a log scale as in training."""
    low, high = float(values.min()), float(values.max())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    return low, high, outcome.transform.kind == "log" and low > 0


def _held_out(part: Section, outcome: TargetOutcome, sketch: TargetSketch, response: str) -> None:
    """One panel per held-out source, those that count most and the worst one first."""
    names, counts = list(outcome.source_weights), outcome.evidence.counts()
    own = outcome.errors[outcome.method]
    worst = max(own, key=lambda name: own[name])
    order = sorted(own, key=lambda name: (name != worst, -counts.get(name, 0.0)))
    low, high, log = _span(sketch.held_out[:, 1:], outcome)
    texts = (f"actual {short(response)}", "predicted")
    x, y = (Axis(text, low=low, high=high, log=log) for text in texts)
    panels = []
    for name in order[: PANELS + DOTS]:
        rows = sketch.held_out[sketch.held_out[:, 0] == names.index(name)]
        label = f"{name}: error {rounded(own[name])}"
        dots = Series("row", rows[:, 1], rows[:, 2])
        panels.append(Scatter([dots], x, y, label, diagonal=True))
    part.figure(
        Panels(panels[:PANELS]),
        "Predicted and actual on held-out sources",
        "Dots on the line are predicted exactly. The source with the largest error comes first, "
        "then those that count most.",
    )
    if rest := panels[PANELS:]:
        left = len(own) - PANELS
        more = f"{len(rest)} of {left}" if len(rest) < left else f"{left}"
        part.figure(Panels(rest), f"{more} further held-out sources", fold=True)


def weight_figure(part: Section, outcome: TargetOutcome) -> None:
    """Draw what each source counts, unless a sentence says it or there is only one."""
    if outcome.evidence.weighting() or len(outcome.source_weights) < 2:
        return
    weights = sorted(outcome.source_weights.items(), key=lambda pair: -pair[1])
    more = f" The {DOTS} largest of {len(weights)}." if len(weights) > DOTS else ""
    names, values = zip(*weights[:DOTS], strict=True)
    part.figure(
        Intervals(names, values, x=Axis("weight", low=0.0, high=1.05 * max(values))),
        "Weights of the sources",
        f"How much each source counts in the prediction; the sum is 1.{more}",
    )
