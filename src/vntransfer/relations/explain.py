"""What the numbers mean, in plain words; for the terminal and the page."""

from collections.abc import Iterator

import numpy as np

from vntransfer.relations.result import LEVEL, Relation

NOISE = "Noise of different size, between places or along the features, is not tested."

NULLS = {
    "relation": (
        "the response depends on the features in the same way in both places, up to a constant; "
        "the features themselves may differ"
    ),
    "joint": (
        "features and response together are distributed alike in both places; places whose "
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
            f"None of {tested} tested pairs of places is shown to be different (level "
            f"{100 * LEVEL:g} %, corrected for their number). That does not prove them equal: see "
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
    """Paragraphs for somebody who has never heard of a divergence."""
    own = found.settings
    name = "conditional_von_neumann"
    first = (
        "Each place is summed up by one matrix: how its features and its response vary together. "
        "The divergence says how far two such matrices are apart after taking away what is due to "
        "the features alone; 0 means the same, and what counts is which places are nearer than "
        "others."
        if own["divergence"] == name
        else f"The divergence {own['divergence']} says how far the covariance matrices of two "
        f"places are apart; 0 means the same."
    )
    return [
        "The difference that maps and rankings go by is the statistic of the test: one relation is "
        "fitted to the rows of both places, and each place is compared with that fit on its own "
        "features. It is near 0 where one relation fits both, whatever their features are."
        if own["null"] == "relation"
        else "The difference that maps and rankings go by is the divergence of the rows that are "
        "tested, in units of their pooled variance.",
        first
        + " All columns are first brought to variance 1 over all rows together, so that units do "
        "not matter. Levels are not compared: adding a constant to a column changes nothing.",
        "A large divergence alone does not prove that the response depends on the features "
        "differently: it also grows if only the features spread differently. The p-value answers "
        f"that: it is small if the data would be unusual supposing that {NULLS[own['null']]}. "
        + (NOISE if own["null"] == "relation" else "")
        + f" It comes from at most {own['n_resamples']:,} resamples per pair and is corrected for "
        "the number of pairs (Holm). A large p-value proves nothing: few rows, or places whose "
        "features hardly overlap, cannot be told apart.",
        f"The intervals ({100 * own['level']:g} %) say how well the rows at hand determine the "
        "divergence. They treat rows as independent of each other.",
        "Both look at the linear part of the dependence within each place; a place where the "
        "response bends upwards and one where it bends downwards, around the same middle, look "
        "alike.",
    ]
