"""Predicted responses of a table, with their intervals."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import Floats
from vntransfer.display import counted, data_frame, one_line, rounded
from vntransfer.errors import DataError
from vntransfer.tables.encoder import Findings
from vntransfer.tables.options import ReadOptions, checked


class Answers(NamedTuple):
    """Predicted columns of some rows: numbers, or texts for classes; what was unusual in them."""

    columns: Mapping[str, NDArray[Any]]
    findings: Findings


def not_finite(row: int) -> DataError:
    """Say that the prediction of a row cannot be used."""
    return DataError(
        f"row {row}: the prediction is not a finite number; check the values of this row and their "
        f"units against the training table"
    )


def later_options(trained: ReadOptions, given: ReadOptions | None) -> ReadOptions:
    """Read a later file as the training table was, but for what is given and the delimiter.

    Marks in numbers go together: with a decimal mark, that of thousands is given or there is none.

    Examples
    --------
    >>> later_options(ReadOptions(delimiter=";", decimal=","), None)
    ReadOptions(delimiter=None, decimal=',', thousands=None, encoding=None, day_first=None, units=())
    """  # noqa: E501
    given = checked(given)
    thousands = trained.thousands if given.decimal is None else None
    return given.over(replace(trained, delimiter=None, thousands=thousands))


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted responses (n,) with the ends of their intervals, NaN where there are none.

    ``findings`` says what was unusual in the rows.

    Examples
    --------
    >>> value = np.array([150.0, 300.0, 210.0])
    >>> found = Predictions(value, value - 38, value + 38)
    >>> found
    <Predictions of 3 rows: median 210, from 150 to 300, interval ± 38>
    >>> found.to_frame()
       predicted    low   high
    0      150.0  112.0  188.0
    1      300.0  262.0  338.0
    2      210.0  172.0  248.0
    """

    value: Floats
    low: Floats
    high: Floats
    findings: Findings = field(default_factory=Findings)

    def to_frame(self) -> Any:
        """Give a pandas data frame with the columns ``predicted``, ``low`` and ``high``."""
        columns = {"predicted": self.value, "low": self.low, "high": self.high}
        return data_frame("to_frame", columns)

    def summary(self) -> str:
        """Say in words what is predicted, and how wide the intervals are."""
        if not len(self.value):
            return "No rows."
        low, middle, high, half = self._rounded()
        reach = (
            f"Intervals reach ± {half} around a typical prediction."
            if half
            else "There are no intervals: no source could be held out to measure errors."
        )
        return (
            f"The median prediction is {middle}; predictions range from {low} to {high} "
            f"({counted(len(self.value), 'row')}).\n{reach}"
        )

    def _rounded(self) -> tuple[str, str, str, str]:
        """Smallest, median and largest prediction, and the median half width, "" if unknown."""
        low, middle, high = map(rounded, np.quantile(self.value, (0.0, 0.5, 1.0)).tolist())
        half = (self.high - self.low) / 2
        known = half[np.isfinite(half)]
        return low, middle, high, rounded(float(np.median(known))) if len(known) else ""

    def __repr__(self) -> str:
        said = f"Predictions of {counted(len(self.value), 'row')}"
        if len(self.value):
            low, middle, high, half = self._rounded()
            reach = f"interval ± {half}" if half else "no intervals"
            said += f": median {middle}, from {low} to {high}, {reach}"
        return one_line(said)

    def _repr_html_(self) -> str:
        from vntransfer.pages.table import MOST, fragment

        first = np.stack((self.value, self.low, self.high), 1)[:MOST].tolist()
        rows = [(str(i), *map(rounded, row)) for i, row in enumerate(first)]
        header = ("row", "predicted", "low", "high")
        return fragment(self.summary().splitlines(), header, rows, len(self.value))
