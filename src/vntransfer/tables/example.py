"""The small table that comes with the package."""

from pathlib import Path
from typing import Literal

from vntransfer.checks import one_of

FOLDER = Path(__file__).with_name("examples")
FILES = {"houses": "houses.csv", "answers": "houses_saltby.csv"}


def example_table(which: Literal["houses", "answers"] = "houses") -> Path:
    """Return the path of a small table: invented houses in seven towns, one without prices.

    1190 rows of town, kind, area, rooms, garden, year built, distance to the water, income of the
    neighborhood, energy label, day of the listing, and price in thousands. Years and energy labels
    are missing in some rows. Four towns lie inland and three on the coast, where prices follow
    other rules. One of these, Saltby, has no prices. ``tools/make_example.py`` made it.

    Parameters
    ----------
    which
        "houses", or "answers": the rows of Saltby with the prices that were withheld.

    Examples
    --------
    >>> from vntransfer.tables import read_frame
    >>> frame = read_frame(example_table())
    >>> len(frame), sorted(set(frame.columns["town"].texts()))[-2:]
    (1190, ['Saltby', 'Thornbury'])
    """
    return FOLDER / FILES[one_of("which", which, FILES)]
