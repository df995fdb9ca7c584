"""Plain explanations of the numbers, for the terminal and the page."""

from collections.abc import Iterator

import numpy as np

from vntransfer.relations.result import LEVEL, Relation

NOISE = "Differences in noise, between places or along the features, are not tested."

NULLS = {
    "relation": (
        "the response depends on the features in the same way in both places, up to a constant; "
        "the features themselves may differ"
    ),
    "joint": (
        "features and response have the same joint distribution in both places; places whose "
        "features differ count as different even if the response depends on them in the same way"
    ),
}


def verdict(found: Relation) -> Iterator[str]:
    """Sentences that answer the question."""
    upper = np.triu_indices(len(found.names), 1)
    tested = int(np.isfinite(found.p_values[upper]).sum())
    if not tested:
        yield "No pair has enough rows to be tested."
        return
    far = found.different()
    if not far:
        yield (
            f"No significant difference in any of {tested} tested pairs of places (level "
            f"{100 * LEVEL:g} %, corrected for their number). This does not prove them equal: see "
            f"the intervals."
        )
        return
    yield (
        f"{len(far)} of {tested} tested pairs of places are different (level "
        f"{100 * LEVEL:g} %, corrected for their number)."
    )
    at = [found.at(name) for name in found.labeled]
    differs = (found.p_values[np.ix_(at, at)] <= LEVEL) | np.eye(len(at), dtype=bool)
    alone = [name for name, row in zip(found.labeled, differs, strict=True) if row.all()]
    if alone and len(found.labeled) > 2:
        yield f"Different from every other place: {', '.join(alone)}."


def explanation(found: Relation) -> list[str]:
    """Explain the numbers to a reader who has never heard of a divergence."""
    own = found.settings
    name = "conditional_von_neumann"
    first = (
        "One matrix summarizes each place: how its features and its response vary together. The "
        "divergence measures how much two such matrices differ beyond what the features alone "
        "explain. 0 means no difference; compare the values with each other."
        if own["divergence"] == name
        else f"The divergence {own['divergence']} measures how much the covariance matrices of two "
        f"places differ; 0 means no difference."
    )
    return [
        "Maps and rankings show the statistic of the test: one relation is fitted to the rows of "
        "both places, and each place is compared with that fit on its own features. The statistic "
        "is near 0 if one relation fits both places, whatever their features are."
        if own["null"] == "relation"
        else "Maps and rankings show the divergence of the tested rows, in units of their pooled "
        "variance.",
        first
        + " All columns are first scaled to variance 1 over all rows, so that units do not matter. "
        "Levels are not compared: adding a constant to a column changes nothing.",
        "A large divergence alone does not prove that the response depends on the features "
        "differently, because it also grows if only the features differ. The p-value answers this "
        f"question: it is small if the data would be unusual assuming that {NULLS[own['null']]}. "
        + (NOISE if own["null"] == "relation" else "")
        + f" It comes from at most {own['n_resamples']:,} resamples per pair and is corrected for "
        "the number of pairs (Holm). A large p-value proves nothing: with few rows, or features "
        "that hardly overlap, the test cannot find a difference.",
        f"The intervals ({100 * own['level']:g} %) show how precisely the available rows determine "
        "the divergence. They treat rows as independent.",
        "Divergence and intervals describe the linear part of the dependence within each place. A "
        "response that curves upward and one that curves downward around the same center look "
        "alike.",
    ]
