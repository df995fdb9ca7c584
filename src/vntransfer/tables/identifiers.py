"""Columns that identify rows instead of describing them, even if rows repeat."""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import Floats
from vntransfer.repeats import Keys, row_keys
from vntransfer.tables.schema import FEW

Codes = NDArray[np.intp]

UNIQUE = 0.99
"""Smallest ratio of different values to different rows of an id."""

DENSE = 3
"""Largest range of consecutive numbers, per different one."""

LEAST = 50
"""Rows below which whole numbers may differ by chance."""

_NAMED = re.compile(r"(?:^|[^a-z])(?:id|ids|uuid|guid|key|index|idx|nr|no|row|serial)$|[a-z]I[dD]$")


class Identifier(NamedTuple):
    """A column of whole numbers that looks like an id."""

    why: str
    row_number: bool = False  # it rises by one from row to row
    sure: bool = True  # or it could be a measurement


def may_identify(values: Floats, places: Codes) -> bool:
    """Whether a sample of a column has whole numbers, many of which differ within their place."""
    if len(values) < LEAST or not (values % 1 == 0).all() or len(np.unique(values)) < FEW:
        return False
    return len(np.unique(row_keys(values, places))) >= 0.2 * len(values)


def identifier(name: str, values: Floats, places: Codes, rows: Keys) -> Identifier | None:
    """Explain why a column of whole numbers is a row number or an id; None if it is neither.

    In each place it has nearly as many different values as different ``rows``, given by their keys.
    The numbers must be nearly consecutive, in the table or in each place, or the column must be
    named like an id.

    Examples
    --------
    >>> places, rows = np.repeat([0, 1], 60), np.arange(120, dtype=np.uint64) // 3
    >>> identifier("customer", np.arange(120.0) // 3 + 5000, places, rows).why
    'numbers 5000 to 5039, different in nearly all different rows'
    >>> sizes = np.random.default_rng(0).integers(20, 90, 120).astype(float)
    >>> identifier("size", sizes, places, np.arange(120, dtype=np.uint64)) is None
    True
    """
    if not (values % 1 == 0).all():
        return None
    dense = []
    for place in np.unique(places):
        own = values[places == place]
        different = len(np.unique(own))
        if different < UNIQUE * len(np.unique(rows[places == place])):
            return None
        dense.append(np.ptp(own) < DENSE * different)
    total = len(np.unique(values))
    if total < FEW:
        return None
    low, high = int(values.min()), int(values.max())
    why = f"numbers {low} to {high}, different in nearly all different rows"
    if np.mean(dense) > 0.5 or high - low < DENSE * total:
        inside = places[1:] == places[:-1]
        by_one = (np.diff(values)[inside] == 1).mean() if inside.any() else 0.0
        return Identifier(why, row_number=bool(by_one >= 0.95))
    return Identifier(why, sure=_NAMED.search(name.lower()) is not None or name.endswith("Id"))
