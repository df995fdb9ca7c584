"""What `adapt` found, as a page: the answer, why, figures, tables, how it was done."""

import numpy as np

from vntransfer._version import __version__
from vntransfer.display import counted, listed, percent, plus_minus, rounded, short
from vntransfer.pages import Page, Section, TableCell
from vntransfer.pages.table import Value, aligned
from vntransfer.tables.notes import grouped, heading
from vntransfer.workflows.adapt_figures import error_figures, sketch_figures, title, weight_figure
from vntransfer.workflows.evidence import CONSTANT, WILD
from vntransfer.workflows.table_model import TableModel
from vntransfer.workflows.target_outcome import TargetOutcome

LISTED, NOTES, LED = 200, 20, 3
"""Columns, notes of a kind, and targets at the head of the page; more are counted."""

LEVELS = (0.5, 0.8, 0.9, 0.95)


def make_page(model: TableModel) -> Page:
    """Show the answer, errors on held-out sources, weights and columns as an HTML page."""
    outcomes = [*model.outcomes.values()]
    page = Page(
        f"{model.names[1]} for {listed(model.targets, LED, 60)}",
        lead=leaks(model) + (overview(model) if len(outcomes) > 1 else verdict(model, outcomes[0])),
        footer={
            "made by": f"vntransfer {__version__}",
            "method": str(model.provenance.get("method", "")),
            "seed": str(model.provenance.get("random_state", "")),
            **{f"sha256 of {k}": v for k, v in model.provenance.get("files", {}).items()},
        },
    )
    if len(outcomes) > 1:
        _targets(page.section("All targets"), model)
    for outcome in outcomes:
        _target(page, model, outcome, alone=len(outcomes) == 1)
    part = page.section("Columns")
    for name, notes in grouped(model.details).items():
        part.text(f"{heading(name, notes)}:")
        for note in notes[:NOTES]:
            part.note(f"{note.text}.", kind="warning" if note.warning else "neutral", head="")
        if len(notes) > NOTES:
            part.text(f"and {len(notes) - NOTES:,} more")
    columns = model.encoder.summary()
    head = ("column", "kind", "treatment")
    part.table(head, columns[:LISTED], "Column handling")
    if len(columns) > LISTED:
        part.note(f"and {len(columns) - LISTED:,} more columns")
    part = page.section("How it was done")
    if any(outcome.errors for outcome in outcomes):
        part.text(
            "Each source is held out once: it is predicted from the others, and its own responses "
            "are used only to measure the error. A held-out source counts by its resemblance to "
            f"the target and its rows; an error above {WILD:g} times the typical one counts as "
            "that."
        )
    used = {outcome.target: outcome.labels_used() for outcome in outcomes}
    alike = len({*used.values()}) == 1
    part.text(*({*used.values()} if alike else (f"{k}: {v}" for k, v in used.items())))
    return page


def leaks(model: TableModel) -> str:
    """Name columns that spoil every number of the page if they follow from the response."""
    notes = [note for note in model.details if note.kind == "determines" and note.done == "kept"]
    if not notes:
        return ""
    verb, pronoun = ("determines", "it is") if len(notes) == 1 else ("determine", "they are")
    response = short(model.names[1])
    return (
        f"{listed([note.column for note in notes], LED, 60)} nearly {verb} {response}: unless "
        f"{pronoun} known before {response}, the numbers below are far too good. "
    )


def overview(model: TableModel) -> str:
    """Answer for several targets in a sentence or two."""
    outcomes = [*model.outcomes.values()]
    means = [own.expected()[0] for own in outcomes]
    known = [mean for mean in means if np.isfinite(mean)]
    if not known:
        return f"The errors at all {len(outcomes)} targets are unknown."
    ends = dict.fromkeys(rounded(end, 2) for end in (min(known), max(known)))
    said = f"Predictions of {short(model.names[1])} for {len(outcomes)} places should be off by "
    said += f"{' to '.join(ends)} on average."
    if far := [own.target for own in outcomes if own.evidence.unlike]:
        verb = "resembles" if len(far) == 1 else "resemble"
        said += f" {listed(far)} {verb} no source: errors there may be much larger."
    return said


def _targets(part: Section, model: TableModel) -> None:
    rows: list[list[Value]] = []
    careful = any(own.evidence.unlike for own in model.outcomes.values())
    for own in model.outcomes.values():
        mean, spread = own.expected()
        error = TableCell(plus_minus(mean, spread), mean) if np.isfinite(mean) else "unknown"
        reach = model.reach(own.target) if own.errors else ""
        care = TableCell("resembles no source" if own.evidence.unlike else "", tone="warning")
        rows.append([own.target, own.rows, error, reach, *[care] * careful])
    head = ("target", "rows", "expected error", "90 % interval", *["take care"] * careful)
    part.table(head, rows, "Expected error at each target")


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


def _target(page: Page, model: TableModel, outcome: TargetOutcome, *, alone: bool) -> None:
    """Show one target; the page has already said what comes first if there is no other one."""
    part, evidence = page.section(outcome.target), outcome.evidence
    facts = [("rows to predict", f"{outcome.rows:,}", "")]
    if outcome.errors:
        low, high = map(rounded, evidence.bounds())
        error = plus_minus(*outcome.expected())
        if evidence.unlike:
            facts.append(("error on held-out sources", error, f"{low} to {high}; more to expect"))
        else:
            facts.append(("expected error", error, f"{low} to {high} on held-out sources"))
        reach = model.reach(outcome.target)
        facts.append(("90 % interval", reach, "around a prediction"))
    part.facts(facts)
    for found in evidence.findings():
        if not (alone and found.first):
            part.note(found.text, kind="warning", head="Warning")
    if outcome.errors:
        own = outcome.errors[outcome.method]
        best, worst = min(own, key=lambda s: own[s]), max(own, key=lambda s: own[s])
        part.text(
            f"Each of {counted(len(own), 'source')} was held out and predicted from the others. "
            f"Errors range from {rounded(own[best])} ({short(best)}) to {rounded(own[worst])} "
            f"({short(worst)})."
        )
    part.text(*filter(None, (outcome.reason, outcome.transform.reason, evidence.weighting())))
    if outcome.errors:
        error_figures(part, outcome)
    if (sketch := model.sketches.get(outcome.target)) is not None:
        sketch_figures(part, model, outcome, sketch)
    weight_figure(part, outcome)
    if outcome.errors:
        _tables(part, model, outcome)


def _tables(part: Section, model: TableModel, outcome: TargetOutcome) -> None:
    methods, counts = outcome.evidence.ranked(), outcome.evidence.counts()
    rows: list[list[Value]] = []
    for name in methods:
        mean, spread = outcome.expected(name)
        tone = "good" if name == outcome.method else "neutral"
        row: list[Value] = [TableCell(title(name), tone=tone)]
        row.append(TableCell(plus_minus(mean, spread), mean))
        if outcome.shares:
            share = outcome.shares.get(name)
            row.append(None if share is None else TableCell(percent(share), share))
        rows.append(row)
    part.table(
        ("method", "expected error", *["weight in this model"] * bool(outcome.shares)),
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
        (
            "held-out source",
            *map(title, methods),
            "counts in expected error",
            "weight in the prediction",
        ),
        each,
        "Error on each source",
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
