"""Numbers that may not be measurements: marks of missing values, and responses that never vary."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.display import listed
from vntransfer.tables.notes import Note

Floats = NDArray[np.float64]

_MARKER = re.compile(r"-?9{2,}")
LEAST, APART = 3, 3.0
"""Cells that a marker has at least, and its distance from all others, relative to their range."""

FEW = 5
"""Rows of a source below which its responses may be equal by chance."""


def marker_note(name: str, values: Floats) -> Note | None:
    """Give a note on a number such as -999 that lies far from all others, or None.

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
        if min(abs(end - low), abs(end - high)) > APART * (high - low):
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
