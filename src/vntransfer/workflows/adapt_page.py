"""What `adapt` found, as a page: the answer, why, figures, tables, how it was done."""

import numpy as np

from vntransfer._version import __version__
from vntransfer.display import counted, percent, plus_minus, rounded, short
from vntransfer.pages import (
    MUTED,
    Axis,
    Intervals,
    Page,
    Panels,
    Scatter,
    Section,
    Series,
    TableCell,
    histogram,
)
from vntransfer.pages.table import Value, aligned
from vntransfer.tables.notes import grouped, heading
from vntransfer.workflows.evidence import CONSTANT, WILD
from vntransfer.workflows.table_model import TableModel
from vntransfer.workflows.target_outcome import TargetOutcome
from vntransfer.workflows.target_sketch import TargetSketch

LISTED, NOTES, LED = 200, 20, 3
"""Columns, notes of a kind, and targets at the head of the page; more are counted."""

ROWS, PANELS, DOTS = 25, 6, 24
"""Rows from which on a table is folded, panels of held-out sources, and sources of a chart."""

LEVELS = (0.5, 0.8, 0.9, 0.95)

TITLES = {
    "auto": "this model",
    "source_only": "plain ensemble of networks",
    "linear_trees": "boosted linear trees",
    "ridge": "ridge regression",
    "boosting": "boosted trees",
    "closed_form": "ridge on random features",
    "align": "alignment of moments",
    CONSTANT: "one constant (median)",
}
"""What methods are called on the page; others by their own name."""


def make_page(model: TableModel) -> Page:
    """Show the answer, errors on held-out sources, weights and columns as an HTML page."""
    page = Page(
        f"{model.names[1]} for {', '.join(model.targets)}",
        lead=" ".join(verdict(model, own) for own in [*model.outcomes.values()][:LED]),
        footer={
            "made by": f"vntransfer {__version__}",
            "method": str(model.provenance.get("method", "")),
            "seed": str(model.provenance.get("random_state", "")),
            **{f"sha256 of {k}": v for k, v in model.provenance.get("files", {}).items()},
        },
    )
    for outcome in model.outcomes.values():
        _target(page, model, outcome)
    part = page.section("Columns")
    for name, notes in grouped(model.details).items():
        part.text(f"{heading(name, notes)}:")
        for note in notes[:NOTES]:
            part.note(f"{note.text}.", kind="warning" if note.warning else "neutral", head="")
        if len(notes) > NOTES:
            part.text(f"and {len(notes) - NOTES:,} more")
    columns = model.encoder.summary()
    head = ("column", "kind", "treatment")
    part.table(head, columns[:LISTED], "Column handling", fold=len(columns) > ROWS)
    if len(columns) > LISTED:
        part.note(f"and {len(columns) - LISTED:,} more columns")
    return page


def verdict(model: TableModel, outcome: TargetOutcome) -> str:
    """Answer in a sentence or two; what spoils the answer comes first."""
    response, place = short(model.names[1]), short(outcome.target, 60)
    first = [own.text for own in outcome.evidence.findings() if own.first]
    mean, spread = outcome.expected()
    if not np.isfinite(mean):
        return " ".join([*first, f"{counted(outcome.rows, 'row')} of {place} can be predicted."])
    if outcome.evidence.unlike:
        error = plus_minus(mean, spread)
        said = f"Predictions of {response} on held-out sources were off by {error} on average"
        return " ".join([*first, f"{said}; the error at {place} may be much larger."])
    said = f"Predictions of {response} for {place} should be off by {plus_minus(mean, spread)}"
    constant = outcome.expected(CONSTANT)[0]
    than = f"; one constant for all rows would be off by {rounded(constant, 2)}"
    return " ".join([*first, f"{said} on average{than if np.isfinite(constant) else ''}."])


def title(method: str) -> str:
    """Name a method in words."""
    return TITLES.get(method, method.replace("_", " "))


def _target(page: Page, model: TableModel, outcome: TargetOutcome) -> None:
    part, evidence = page.section(outcome.target), outcome.evidence
    facts = [("rows to predict", f"{outcome.rows:,}", "")]
    if outcome.errors:
        low, high = map(rounded, evidence.bounds())
        error = plus_minus(*outcome.expected())
        facts.append(("expected error", error, f"{low} to {high} on held-out sources"))
        reach = model.reach(outcome.target)
        facts.append(("90 % interval", reach, "around a prediction"))
    part.facts(facts)
    for found in evidence.findings():
        part.note(found.text, kind="warning", head="Warning")
    if outcome.errors:
        own = outcome.errors[outcome.method]
        best, worst = min(own, key=lambda s: own[s]), max(own, key=lambda s: own[s])
        part.text(
            f"The expected error comes from {counted(len(own), 'held-out source')}: each was "
            f"predicted from the others. Errors range from {rounded(own[best])} ({short(best)}) to "
            f"{rounded(own[worst])} ({short(worst)})."
        )
    for sentence in filter(None, (outcome.reason, outcome.transform.reason)):
        part.text(sentence)
    if outcome.errors:
        _error_figures(part, outcome)
    if (sketch := model.sketches.get(outcome.target)) is not None:
        _sketch_figures(part, model, outcome, sketch)
    _weights(part, outcome)
    if outcome.errors:
        _tables(part, model, outcome)
    part.text(
        "Each source is held out once: it is predicted from the others, and its own responses "
        "are used only to measure the error. A held-out source counts by its resemblance to the "
        f"target and its rows; an error above {WILD:g} times the typical one counts as that.",
        outcome.labels_used(),
    )


def _error_figures(part: Section, outcome: TargetOutcome) -> None:
    """Draw the error on each held-out source, and that of each method."""
    own = outcome.errors[outcome.method]
    order, what = sorted(own, key=lambda name: own[name]), "mean absolute error"
    note = "Dotted: the expected error at the target."
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


def _sketch_figures(
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
        part.figure(
            histogram(
                {
                    "responses of sources": known,
                    f"predicted for {short(outcome.target)}": predicted,
                },
                bins=20,
                x=Axis(response),
                y=Axis("share of rows", low=0.0),
            ),
            "Distribution of the predictions",
        )


def _held_out(part: Section, outcome: TargetOutcome, sketch: TargetSketch, response: str) -> None:
    """One panel per held-out source, those that count most and the worst one first."""
    names, counts = list(outcome.source_weights), outcome.evidence.counts()
    own = outcome.errors[outcome.method]
    worst = max(own, key=lambda name: own[name])
    order = sorted(own, key=lambda name: (name != worst, -counts.get(name, 0.0)))
    low, high = (float(end(sketch.held_out[:, 1:])) for end in (np.min, np.max))
    texts = (f"actual {short(response)}", "predicted")
    x, y = (Axis(text, low=low, high=high) for text in texts)
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


def _weights(part: Section, outcome: TargetOutcome) -> None:
    """Draw what each source counts; where no weights are learned, a sentence says so."""
    if said := outcome.evidence.weighting():
        part.text(said)
        return
    weights = sorted(outcome.source_weights.items(), key=lambda pair: -pair[1])
    more = f" The {DOTS} largest of {len(weights)}." if len(weights) > DOTS else ""
    names, values = zip(*weights[:DOTS], strict=True)
    part.figure(
        Intervals(names, values, x=Axis("weight", low=0.0)),
        "Weights of the sources",
        f"How much each source counts in the prediction; the sum is 1.{more}",
    )


def _tables(part: Section, model: TableModel, outcome: TargetOutcome) -> None:
    methods, counts = outcome.evidence.ranked(), outcome.evidence.counts()
    rows: list[list[Value]] = []
    for name in methods:
        mean, spread = outcome.expected(name)
        share = outcome.shares.get(name)
        tone = "good" if name == outcome.method else "neutral"
        rows.append(
            [
                TableCell(title(name), tone=tone),
                TableCell(plus_minus(mean, spread), mean),
                None if share is None else TableCell(percent(share), share),
            ]
        )
    part.table(
        ("method", "expected error", "weight in this model"),
        rows,
        "Expected error of each method",
        [f"{title(CONSTANT)}: the median of the other sources."],
    )
    weights = outcome.source_weights
    columns = [[outcome.errors[method].get(name) for name in weights] for method in methods]
    cells = [aligned(errors) for errors in columns]
    each: list[list[Value]] = []
    for name, *errors in zip(weights, *cells, strict=True):
        known, weight = counts.get(name), weights[name]
        counted_as = None if known is None else TableCell(percent(known), known)
        each.append([name, *errors, counted_as, TableCell(percent(weight), weight)])
    part.table(
        ("held-out source", *map(title, methods), "counts in expected error", "weight"),
        each,
        "Error on each source",
        fold=len(each) > ROWS,
    )
    part.table(
        ("level", "reach"),
        [(percent(level), model.reach(outcome.target, level)) for level in LEVELS],
        "Prediction intervals",
        [
            "Quantiles of errors on held-out sources; rows on which models disagree as they do at "
            "the target count more.",
        ],
    )
