"""Notes on rows: marks of missing values, responses that never vary, repeated rows."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import Floats
from vntransfer.display import listed, percent
from vntransfer.repeats import repeated, row_keys
from vntransfer.tables.notes import MANY, Note

_MARKER = re.compile(r"-?9{2,}")
LEAST, APART = 3, 3.0
"""Cells that a marker has at least, and its distance from all others, relative to their range."""

FEW = 5
"""Rows of a source below which its responses may be equal by chance."""

TELLING = 0.9
"""Smallest share of different rows with different features for which equal rows are copies; with a
few yes/no columns rows are equal by chance."""


def marker_note(name: str, values: Floats) -> Note | None:
    """Give a note on a number such as -999 that lies far from all others, or None.

    A negative one among numbers of at least 0 need not be far away.

    Examples
    --------
    >>> marker_note("age", np.array([*range(20, 60), -999, -999, -999])).text
    "'age' is -999 in 3 of 43 rows, and 20 to 59 in all others; if it marks missing values, empty \
these cells"
    >>> marker_note("age", np.arange(100.0)) is None
    True
    """
    full = values[np.isfinite(values)]
    if len(full) < 2 * LEAST:
        return None
    for end in (full.min(), full.max()):
        rest = full[full != end]
        many = len(full) - len(rest)
        if not LEAST <= many < len(full) or not _MARKER.fullmatch(f"{end:.17g}"):
            continue
        low, high = rest.min(), rest.max()
        if end < 0 <= low or min(abs(end - low), abs(end - high)) > APART * (high - low):
            text = (
                f"{name!r} is {end:g} in {many:,} of {len(values):,} rows, and {low:g} to "
                f"{high:g} in all others; if it marks missing values, empty these cells"
            )
            return Note("marker", text, name, many / len(values))
    return None


def response_notes(name: str, y: Floats, places: NDArray[Any]) -> list[Note]:
    """Give notes on responses that may mark missing ones, and on sources where they never vary.

    Examples
    --------
    >>> places = np.repeat(["a", "b"], 6)
    >>> response_notes("price", np.repeat([1.0, 2, 7], [3, 3, 6]), places)[0].text
    "'price' does not vary at 1 of 2 sources: b (7); if these responses are not real, empty them"
    """
    found = marker_note(name, y)
    notes = [found] if found else []
    sources = {place: y[places == place] for place in dict.fromkeys(places.tolist())}
    flat = [f"{k} ({v[0]:g})" for k, v in sources.items() if len(v) >= FEW and np.ptp(v) == 0]
    if flat:
        share = len(flat) / len(sources)
        said = (
            f"{name!r} does not vary at {len(flat)} of {len(sources)} sources: {listed(flat, 5)}; "
            f"if these responses are not real, empty them"
        )
        notes.append(Note("flat", said, name, share))
    return notes


def repeat_notes(X: Floats, y: Floats, places: NDArray[Any], targets: Floats) -> list[Note]:
    """Give notes on repeated rows of sources (features X, responses y) and targets.

    Rows are equal if all used columns and the response are; with a target, the columns alone.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> places = np.repeat(["A", "B", "A"], [10, 10, 20])
    >>> twice = np.vstack((X, X))
    >>> [note.text[:45] for note in repeat_notes(twice, twice[:, 0], places, X[:5])]
    ['10 of 40 rows of sources repeat another row o', '50 % of the different rows occur at two or mo', "5 of 5 rows of targets equal a source's row i"]
    """  # noqa: E501
    features = row_keys(X)
    rows = row_keys(features.astype(np.float64), y)
    code = np.unique(places.astype(str), return_inverse=True)[1].astype(np.float64)
    own = repeated(row_keys(rows.astype(np.float64), code))
    found, many = list[tuple[str, float]](), int(own.sum())
    if many:
        found.append(
            (
                f"{many:,} of {len(y):,} rows of sources repeat another row of their source; equal "
                f"rows stay on one side of every split",
                many / len(y),
            )
        )
    different = len(np.unique(rows))
    if len(np.unique(features)) >= TELLING * different:
        shared = len(y) - many - different  # rows of a source that another source has, too
        copied = int(np.isin(row_keys(targets), features).sum()) if len(targets) else 0
        share = min(shared / different, 1.0)
        if round(100 * share) > 0:
            said = f"{percent(share)} of the different rows occur at two or more sources"
            if share >= MANY:
                said += "; errors on held-out sources are too optimistic"
            found.append((said, share))
        if copied:
            found.append(
                (
                    f"{copied:,} of {len(targets):,} rows of targets equal a source's row in all "
                    f"columns; if these are the same cases, their responses are known",
                    copied / len(targets),
                )
            )
    return [Note("repeats", text, share=share) for text, share in found]
