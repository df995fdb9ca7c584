"""What `adapt` found, as a page."""

import numpy as np

from vntransfer._version import __version__
from vntransfer.pages import Axis, Bars, Intervals, Page, Series, TableCell
from vntransfer.workflows.table_model import TableModel
from vntransfer.workflows.target_fit import CONSTANT, TargetOutcome

LISTED = 200
"""Columns that a page lists; more are counted."""

LEVELS = (0.5, 0.8, 0.9, 0.95)


def make_page(model: TableModel) -> Page:
    """Show weights, errors on held-out sources and the treatment of columns as an HTML page."""
    domain, response = model.names
    shown = ", ".join(model.targets)
    page = Page(
        f"{response} for {shown}",
        lead=f"Learned at the places of {domain} where {response} is known; errors are those on "
        f"sources that were held out.",
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
    for note in model.notes:
        part.note(note)
    listed = model.encoder.summary()
    part.table(("column", "kind", "treatment"), listed[:LISTED], "Column handling")
    if len(listed) > LISTED:
        part.note(f"and {len(listed) - LISTED:,} more columns")
    return page


def _target(page: Page, model: TableModel, outcome: TargetOutcome) -> None:
    part = page.section(outcome.target)
    facts = [("rows", str(outcome.rows), "to predict"), ("method", outcome.method, "")]
    if outcome.errors:
        mean, spread = outcome.expected()
        facts.append(("expected error", f"{mean:.4g}", f"± {spread:.2g}, on held-out sources"))
    part.facts(facts)
    part.text(outcome.labels_used())
    for sentence in outcome.warnings:
        part.note(f"{sentence}.", kind="warning")
    if outcome.reason:
        part.text(outcome.reason)
    weights = dict(sorted(outcome.source_weights.items(), key=lambda pair: -pair[1]))
    bars = Series("weight", list(range(len(weights))), list(weights.values()))
    part.figure(
        Bars(list(weights), [bars], y=Axis("weight", low=0.0)),
        "Weights of the sources",
        "How much each labeled place counts for the target; they sum to one.",
    )
    if not outcome.errors:
        return
    order = sorted(outcome.errors, key=lambda name: outcome.expected(name)[0])
    means, spreads = np.array([outcome.expected(name) for name in order]).T
    part.figure(
        Intervals(
            order,
            means,
            means - spreads,
            means + spreads,
            x=Axis("mean absolute error"),
            highlight=outcome.method,
        ),
        "Errors on held-out sources",
        "Each source was predicted by the others once; mean over sources ± standard error.",
    )
    sources = list(outcome.source_weights)
    rows: list[list[str | float | TableCell | None]] = []
    for name in order:
        own = outcome.errors[name]
        best = TableCell(name, tone="good") if name == outcome.method else name
        share = outcome.shares.get(name)
        rows.append([best, share, outcome.expected(name)[0], *(own.get(s) for s in sources)])
    part.table(
        ("method", "share", "mean", *sources),
        rows,
        "Mean absolute error of each method on each source",
        [f"{CONSTANT}: the median of the other sources."],
    )
    half = model.calibrations[outcome.target]
    part.table(
        ("level", "half width"),
        [(f"{level:.0%}", half.half_width(level)) for level in LEVELS],
        "Prediction intervals",
        ["Quantiles of errors on held-out sources, each counting by its weight."],
    )
