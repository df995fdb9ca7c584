"""Notes on repeated rows: within a source, across sources, in a source and a target."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.repeats import repeated, row_keys
from vntransfer.tables.notes import Note

Floats = NDArray[np.float64]

TELLING = 0.9
"""Smallest share of different rows with different features for which equal rows are copies; with a
few yes/no columns rows are equal by chance."""


def repeat_notes(X: Floats, y: Floats, places: NDArray[Any], targets: Floats) -> list[Note]:
    """Give notes on repeated rows of sources (features X, responses y) and targets.

    Rows are equal if all used columns and the response are; with a target, the columns alone.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> places = np.repeat(["A", "B", "A"], [10, 10, 20])
    >>> twice = np.vstack((X, X))
    >>> [note.text[:45] for note in repeat_notes(twice, twice[:, 0], places, X[:5])]
    ['10 of 40 rows of sources repeat another row o', '50% of the different rows occur at two or mor', "5 of 5 rows of targets equal a source's row i"]
    """  # noqa: E501
    features = row_keys(X)
    rows = row_keys(features.astype(np.float64), y)
    code = np.unique(places.astype(str), return_inverse=True)[1].astype(np.float64)
    own = repeated(row_keys(rows.astype(np.float64), code))
    notes, n = [], len(y)
    if own.any():
        many = int(own.sum())
        notes.append(
            Note(
                "repeats",
                f"{many:,} of {n:,} rows of sources repeat another row of their source; equal rows "
                f"stay on one side of every split",
                share=many / n,
            )
        )
    different = len(np.unique(rows))
    if len(np.unique(features)) < TELLING * different:
        return notes
    shared = int((~own).sum()) - different  # rows of a source that another source has, too
    if shared:
        share = shared / different
        notes.append(
            Note(
                "repeats",
                f"{min(share, 1):.0%} of the different rows occur at two or more sources; "
                f"errors on held-out sources are too optimistic",
                share=min(share, 1.0),
            )
        )
    if len(targets) and (found := int(np.isin(row_keys(targets), features).sum())):
        notes.append(
            Note(
                "repeats",
                f"{found:,} of {len(targets):,} rows of targets equal a source's row in all "
                f"columns; if these are the same cases, their responses are known",
                share=found / len(targets),
            )
        )
    return notes
