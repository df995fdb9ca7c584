"""The result as one HTML page: the answer, the maps, the closest places, then all numbers."""

from typing import Any

import numpy as np

from vntransfer._version import __version__
from vntransfer.display import counted, rounded
from vntransfer.pages import Heatmap, Page, TableCell
from vntransfer.pages.table import Value
from vntransfer.relations._smoother import Matrix
from vntransfer.relations.explain import explanation, verdict
from vntransfer.relations.result import LEVEL, STATISTIC, Neighbor, Relation, color_end

CLOSEST = ("closest", "second", "third")
"""Headings of the closest places in a ranking."""

NUMBERS = 15
"""Places up to which numbers are written into a heat map."""

MANY, NEAREST = 50, 10
"""Places beyond which the table of pairs has tested ones alone, and sources of a ranking."""

COLUMNS = 200
"""Columns of the table that are listed."""

SETTINGS = {
    "columns": "encoded columns",
    "level": "confidence level",
    "n_bootstrap": "bootstrap resamples",
    "n_resamples": "resamples of the test",
    "random_state": "seed",
}
"""Names of settings in words; others have their own."""

VERDICTS = {
    "≠": ("different", "bad"),
    "·": ("no significant difference", "neutral"),
    "?": ("not tested", "neutral"),
}
"""Words and tone for the marks of `Relation.mark`."""


def make_page(found: Relation, title: str) -> Page:
    """Make the page; see `Relation.to_page`."""
    own = found.settings
    answer, *reasons = verdict(found)
    page = Page(
        title,
        lead=answer,
        footer={
            "made by": f"vntransfer {__version__}, vnt relate",
            "settings": ", ".join(f"{SETTINGS.get(k, k)} {v}" for k, v in own.items()),
        },
    )
    part = page.section("Result").text(*reasons)
    for name in [name for name in found.names if name not in found.labeled][:20]:
        near = found.ranking(name)
        part.note(
            f"{name} has no responses, so its relation is unknown. By its features alone it is "
            f"closest to {near[0].name}."
        )
    _maps(found, page)
    _rankings(found, page)
    _pairs(found, page)
    _places(found, page)
    page.section("How it was done").text(*explanation(found))
    return page


def _maps(found: Relation, page: Page) -> None:
    part, response = page.section("Maps"), found.settings["response"]
    known = [name for name in found.order if name in found.labeled]
    differ = found.among(known, found.p_values) <= LEVEL
    part.figure(
        _map(known, found.among(known, found.statistics), STATISTIC, differ),
        f"How differently {response} depends on the features",
        "Statistic of the test: how far both places are from one relation fitted to both, each on "
        "its own inputs. ≠ (in small cells a dot) marks pairs found different. Places that are "
        "alike stand together.",
    )
    apart = found.among(found.order, found.features_alone)
    part.figure(
        _map(found.order, apart, "divergence of the features"),
        "How much the features alone differ",
        "In the same order, with places without responses last.",
    )


def _map(names: list[str], values: Matrix, label: str, marks: Any = None) -> Heatmap:
    """Heat map whose colors end where one outlier does not pale the rest."""
    high = color_end(values)
    written = len(names) <= NUMBERS
    return Heatmap(names, names, values, label=label, high=high, numbers=written, marks=marks)


def _rankings(found: Relation, page: Page) -> None:
    rows: list[list[Value]] = []
    heads = CLOSEST[: len(found.names) - 1]
    for target in found.names:
        known, near = target in found.labeled, found.ranking(target)
        far = [own.name for own in near if own.different]
        closest = [_shown(own, known) for own in near[: len(heads)]]
        listed = ", ".join(far[:NEAREST]) + (
            f" and {len(far) - NEAREST} more" * bool(far[NEAREST:])
        )
        basis = "relation" if known else "features alone"
        rows.append([target, *closest, *[""] * (len(heads) - len(closest)), listed, basis])
    page.section("Closest places").table(
        ["place", *heads, "different from", "compared by"],
        rows,
        "Closest to each place",
        [
            "In brackets the difference: the statistic of the test, or the divergence of the "
            "features where a place has no responses. ≠ marks places found different."
        ],
    )


def _shown(own: Neighbor, known: bool) -> str:
    value = rounded(own.statistic if known else own.features_alone, 2)
    return f"{own.name}{' ≠' if own.different else ''} ({value})"


def _pairs(found: Relation, page: Page) -> None:
    known, few = set(found.labeled), len(found.names) > MANY
    rows: list[list[Value]] = []
    for own in found.table():
        mark = found.mark(own["a"], own["b"])
        if not {own["a"], own["b"]} <= known or (few and mark == "?"):
            continue
        word, tone = VERDICTS[mark]
        ends = f"{rounded(own['low'], 2)} to {rounded(own['high'], 2)}"
        rows.append(
            [
                own["a"],
                own["b"],
                TableCell(word, None, tone),
                *(_cell(own[key]) for key in ("p_value", "statistic", "divergence")),
                ends,
                _cell(own["features_alone"]),
            ]
        )
    head = ["place", "and", "verdict", "p-value", "difference", "divergence"]
    page.section("Pairs").table(
        [*head, f"{100 * found.settings['level']:g} % interval", "features alone"],
        rows,
        "Pairs of places that were tested" if few else "All pairs of places",
        [
            "difference: statistic of the test. divergence: grows also if only the inputs differ. "
            "p-values are corrected for the number of pairs."
        ],
    )


def _cell(value: float) -> TableCell | None:
    return None if np.isnan(value) else TableCell(rounded(value, 2), value)


def _places(found: Relation, page: Page) -> None:
    part = page.section("Places and columns")
    rows: list[list[Value]] = [[name, *found.rows[name]] for name in found.names]
    head = ["place", "rows with a response", "without"]
    part.table(head, rows, "Places")
    if listed := found.treatment[:COLUMNS]:
        head = ["column", "kind", "treatment"]
        part.table(head, listed, "Columns")
        if more := len(found.treatment) - len(listed):
            part.text(f"and {counted(more, 'more column')}")
    for note in found.notes:
        part.note(note)
