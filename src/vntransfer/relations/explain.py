"""Plain explanations of the numbers, for the terminal and the page."""

import math
from collections.abc import Iterator

import numpy as np

from vntransfer.display import counted, short
from vntransfer.relations.result import LEVEL, Relation

NOISE = "Differences in noise, between places or along the features, are not tested."

PAIRS = 3
"""Pairs that the answer names; more are counted."""


def verdict(found: Relation) -> Iterator[str]:
    """Return the answer in a sentence, then its basis."""
    if not (tested := len(found.tested)):
        yield "No pair of places has enough rows to be tested."
        return
    response, far = short(found.settings["response"]), found.different()
    checked = f"The level is {100 * LEVEL:g} %, corrected for {counted(tested, 'tested pair')}."
    if not far:
        if tested > LEVEL * ((n := found.settings["n_resamples"]) + 1):
            yield (
                f"The test could not find any difference between places: {n:,} resamples are too "
                f"few for {tested:,} pairs; use at least {round(tested / LEVEL) - 1:,}."
            )
            return
        every = math.comb(len(found.labeled), 2)
        pairs = f"{tested:,} of {every:,} pairs" if tested < every else counted(tested, "pair")
        yield (
            f"No significant difference between places in how {response} depends on the features "
            f"({pairs} tested)."
        )
        yield f"{checked} This does not prove places equal: see the intervals."
        return
    p = found.among(found.labeled, found.p_values)
    differs = (p <= LEVEL) | np.eye(len(p), dtype=bool)
    alone = [name for name, row in zip(found.labeled, differs, strict=True) if row.all()]
    named = ", ".join(f"{short(one)} – {short(other)}" for one, other in far[:PAIRS])
    yield (
        f"In {len(far)} of {counted(tested, 'tested pair')} of places, {response} depends on the "
        f"features differently{f': {named}' if len(far) <= PAIRS else ''}."
    )
    if alone and len(found.labeled) > 2:
        yield f"Different from every other place: {', '.join(alone)}."
    others = " The other pairs may also differ, but by less than the data can show."
    yield f"{checked}{others if len(far) < tested else ''}"


def explanation(found: Relation) -> list[str]:
    """Explain the numbers to a reader who has never heard of a divergence."""
    own = found.settings
    divergence = own["divergence"].replace("_", " ").replace("neumann", "Neumann")
    return [
        "Columns are scaled to variance 1 over all rows, so units do not matter, and constants "
        "added to a column change nothing. For each pair of places, one flexible relation is "
        "fitted to the rows of both, and each place is compared with that fit on its own features. "
        "The difference is near 0 if one relation fits both, whatever the features are.",
        "The p-value is small if the data would be unusual assuming that the response depends on "
        "the features in the same way in both places, up to a constant. It comes from at most "
        f"{own['n_resamples']:,} resamples per pair and is corrected for the number of pairs "
        "(Holm). A large p-value proves nothing: with few rows, or features that hardly overlap, "
        f"the test cannot find a difference. {NOISE}",
        f"The divergence ({divergence}) compares the covariance matrices "
        "of two places. It also grows if only the features differ, so it proves nothing alone. Its "
        f"{100 * own['level']:g} % interval shows how precisely the rows determine it; rows are "
        "treated as independent. It describes the linear part of the dependence.",
    ]
