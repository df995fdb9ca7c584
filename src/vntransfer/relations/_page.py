"""The result as one HTML page."""

from dataclasses import replace

import numpy as np

from vntransfer._version import __version__
from vntransfer.pages import Axis, Dendrogram, Heatmap, Intervals, Page, TableCell
from vntransfer.pages.table import Value
from vntransfer.relations._bootstrap import of_features
from vntransfer.relations._smoother import Matrix
from vntransfer.relations.explain import explanation, verdict
from vntransfer.relations.result import LEVEL, STATISTIC, Relation

NUMBERS = 15
"""Places up to which numbers are written into a heat map."""

SHOWN = 8
"""Places that get a ranking as a chart; the tables have all."""

MANY, NEAREST = 50, 10
"""Places beyond which the tables have tested pairs alone, and so many sources of each target."""

VERDICTS = {
    "≠": ("different", "bad"),
    "·": ("no significant difference", "neutral"),
    "?": ("not tested", "neutral"),
}
"""Words and tone for the marks of `Relation.mark`."""


def make_page(found: Relation, title: str) -> Page:
    """Make the page; see `Relation.to_page`."""
    own = found.settings
    page = Page(
        title,
        lead=(
            f"How {own['response']} depends on the other columns in {len(found.names)} places "
            f"({own['domain']})."
        ),
        footer={
            "made by": f"vntransfer {__version__}, vnt relate",
            "settings": ", ".join(f"{key} {value}" for key, value in own.items()),
        },
    )
    _answer(found, page)
    _maps(found, page)
    _pairs(found, page)
    _rankings(found, page)
    _places(found, page)
    page.section("What the numbers mean").text(*explanation(found))
    return page


def _answer(found: Relation, page: Page) -> None:
    part = page.section("Result")
    part.text(*verdict(found))
    without = [name for name in found.names if name not in found.labeled]
    for name in without[:20]:
        near = found.ranking(name)
        part.note(
            f"{name} has no responses, so its relation is unknown. By its features alone it is "
            f"closest to {near[0].name}."
        )


def _maps(found: Relation, page: Page) -> None:
    part = page.section("Maps")
    known, every = found.labeled, list(found.names)
    at = [found.at(name) for name in known]
    divergence: str = found.settings["divergence"]
    own = np.ix_(at, at)
    chart = _clustered(known, found.statistics[own], STATISTIC, found.linkage())
    part.figure(
        replace(chart, marks=found.p_values[own] <= LEVEL),
        "How differently the response depends on the features",
        "The statistic of the test: how far both places are from one relation fitted to both, each "
        "on its own inputs. ≠ marks different pairs. The tree joins the closest places first.",
    )
    tree = found.linkage(features=True)
    part.figure(
        _clustered(every, found.features_alone, of_features(divergence), tree),
        "How much the features alone differ",
        "This map includes places without responses.",
    )


def _clustered(names: list[str], values: Matrix, label: str, tree: Matrix) -> Heatmap:
    written = len(names) <= NUMBERS
    merges = Dendrogram(names, tree)
    return Heatmap(names, names, values, label=label, numbers=written, tree=merges)


def _pairs(found: Relation, page: Page) -> None:
    part = page.section("All pairs")
    known, few = set(found.labeled), len(found.names) > MANY
    rows: list[list[Value]] = []
    for own in found.table():
        mark = found.mark(own["a"], own["b"])
        if not {own["a"], own["b"]} <= known or (few and mark == "?"):
            continue
        word, tone = VERDICTS[mark]
        p_values = (own["p_value"], own["raw_p_value"])
        shown = [TableCell("" if np.isnan(p) else f"{p:.4f}", p) for p in p_values]
        statistic = None if np.isnan(own["statistic"]) else own["statistic"]
        ends = (statistic, own["divergence"], own["low"], own["high"])
        verdict_cell = TableCell(word, None, tone)
        rows.append([own["a"], own["b"], verdict_cell, *ends, *shown, own["features_alone"]])
    head = ["place", "and", "verdict", "difference", "divergence", "from", "to", "p-value"]
    part.table(
        [*head, "uncorrected", "features alone"],
        rows,
        "Pairs of places that were tested" if few else "Pairs of places",
        [
            "difference: statistic of the test. divergence: also grows if only the inputs differ; "
            f"with a {100 * found.settings['level']:g} % interval. Click a heading to sort."
        ],
    )


def _rankings(found: Relation, page: Page) -> None:
    part, few = page.section("Closest sources"), len(found.names) > MANY
    for target in found.names[:SHOWN]:
        near = found.ranking(target)[: NEAREST if few else None]
        own = target in found.labeled
        j = [found.at(n.name) for n in near]
        i = found.at(target)
        ends = found.features_intervals
        part.figure(
            Intervals(
                [f"{n.name} ≠" if n.different else n.name for n in near],
                [n.divergence if own else n.features_alone for n in near],
                [n.low for n in near] if own else ends.low[i, j].tolist(),
                [n.high for n in near] if own else ends.high[i, j].tolist(),
                Axis("divergence" if own else "divergence of the features alone", low=0.0),
                reference=0.0,
            ),
            f"For {target}",
            "Ordered by the statistic of the test; ≠ marks different places. The chart shows the "
            "divergence, which also grows if only the inputs differ."
            if own
            else "Ordered by the features alone, because this place has no responses.",
        )
    ranked: list[list[Value]] = [
        [
            target,
            rank,
            n.name,
            VERDICTS[found.mark(target, n.name)][0],
            None if np.isnan(n.statistic) else n.statistic,
            None if np.isnan(n.divergence) else n.divergence,
            n.features_alone,
        ]
        for target in found.names
        for rank, n in enumerate(found.ranking(target)[: NEAREST if few else None], 1)
    ]
    head = ["target", "rank", "source", "verdict", "difference", "divergence", "features alone"]
    part.table(head, ranked, f"The {NEAREST} closest sources" if few else "All rankings")


def _places(found: Relation, page: Page) -> None:
    part = page.section("Places and columns")
    rows: list[list[Value]] = [[name, *found.rows[name]] for name in found.names]
    part.table(["place", "rows with a response", "without"], rows, "Places")
    if found.treatment:
        part.table(["column", "kind", "treatment"], found.treatment[:200], "Columns")
        if len(found.treatment) > 200:
            part.note(f"and {len(found.treatment) - 200:,} more columns")
    for note in found.notes:
        part.note(note)
