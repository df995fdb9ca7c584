"""What `adapt` found, as a page."""

import numpy as np

from vntransfer._version import __version__
from vntransfer.display import percent, plus_minus, rounded
from vntransfer.pages import Axis, Bars, Intervals, Page, Section, Series, TableCell
from vntransfer.tables.notes import grouped, heading
from vntransfer.workflows.evidence import CONSTANT, WILD
from vntransfer.workflows.table_model import TableModel
from vntransfer.workflows.target_outcome import TargetOutcome

LISTED = 200
"""Columns that a page lists; more are counted."""

NOTES = 20
"""Notes of a kind that a page lists; more are counted."""
LED = 3
"""Targets whose answers are at the head of the page."""

LEVELS = (0.5, 0.8, 0.9, 0.95)


def make_page(model: TableModel) -> Page:
    """Show the answer, errors on held-out sources, weights and columns as an HTML page."""
    page = Page(
        f"{model.names[1]} for {', '.join(model.targets)}",
        lead=" ".join(model.answers_in_words(LED)),
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
    listed = model.encoder.summary()
    part.table(("column", "kind", "treatment"), listed[:LISTED], "Column handling")
    if len(listed) > LISTED:
        part.note(f"and {len(listed) - LISTED:,} more columns")
    return page


def _target(page: Page, model: TableModel, outcome: TargetOutcome) -> None:
    part, evidence = page.section(outcome.target), outcome.evidence
    facts = [("rows", f"{outcome.rows:,}", "to predict"), ("method", outcome.method, "")]
    if outcome.errors:
        low, high = map(rounded, evidence.bounds())
        error, reach = plus_minus(*outcome.expected()), model.reach(outcome.target)
        facts.append(("expected error", error, f"{low} to {high} on held-out sources"))
        facts.append(("intervals of 90 %", reach, "around a prediction"))
    part.facts(facts)
    for found in evidence.findings():
        part.note(found.text, kind="warning", head="Warning")
    part.text(outcome.labels_used())
    for sentence in filter(None, (outcome.transform.reason, outcome.reason)):
        part.text(sentence)
    _weights(part, outcome)
    if outcome.errors:
        _errors(part, model, outcome)


def _weights(part: Section, outcome: TargetOutcome) -> None:
    """Draw what each source counts; where no weights are learned, a sentence says so."""
    if said := outcome.evidence.weighting():
        part.text(said)
        return
    weights = dict(sorted(outcome.source_weights.items(), key=lambda pair: -pair[1]))
    bars = Series("weight", list(range(len(weights))), list(weights.values()))
    part.figure(
        Bars(list(weights), [bars], y=Axis("weight", low=0.0)),
        "Weights of the sources",
        "How much each labeled place counts in the prediction; they sum to one.",
    )


def _errors(part: Section, model: TableModel, outcome: TargetOutcome) -> None:
    order = sorted(outcome.errors, key=lambda name: outcome.expected(name)[0])
    means, spreads = np.array([outcome.expected(name) for name in order]).T
    part.figure(
        Intervals(
            order,
            means,
            means - spreads,
            means + spreads,
            x=Axis("expected error"),
            highlight=outcome.method,
        ),
        "Errors on held-out sources",
        "Each source was predicted by the others once; mean by what each source counts ± standard "
        "error.",
    )
    counts, sources = outcome.evidence.counts(), list(outcome.source_weights)
    shared = bool(outcome.shares)
    rows: list[list[str | float | TableCell | None]] = []
    for name in order:
        own = outcome.errors[name]
        best = TableCell(name, tone="good") if name == outcome.method else name
        share = [outcome.shares.get(name)] if shared else []
        rows.append([best, *share, outcome.expected(name)[0], *(own.get(s) for s in sources)])
    parts = [TableCell(percent(counts[s]), counts[s]) if s in counts else None for s in sources]
    rows.append(["counts in the expected error", *([None] if shared else []), None, *parts])
    part.table(
        ("method", *(["share"] if shared else []), "expected", *sources),
        rows,
        "Mean absolute error of each method on each source",
        [
            f"{CONSTANT}: the median of the other sources.",
            "A held-out source counts by its resemblance to the target and its rows; an error "
            f"above {WILD:g} times the typical one counts as that.",
        ],
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
