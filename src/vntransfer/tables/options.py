"""How files are written: delimiter, encoding, and what numbers and dates look like."""

import codecs
import csv
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from vntransfer.checks import instance, one_of, texts
from vntransfer.errors import ArgumentError

DELIMITERS = ";\t|,"
"""What is tried as a delimiter. The comma is last: it also occurs inside texts and numbers."""

THOUSANDS = (",", ".", " ", "'", "’")

_COMMA = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d*),\d+")
_POINT = re.compile(r"[-+]?\d*\.\d+")
_GROUP = re.compile(r"[-+]?\d{1,3}[.,]\d{3}")


@dataclass(frozen=True)
class ReadOptions:
    r"""Format of a table. Options that are None are detected, and a note reports what was found.

    Parameters
    ----------
    delimiter
        Character between the cells of a csv file, or "tab". None: detected among semicolon, tab,
        bar and comma.
    decimal
        Decimal mark of numbers that are written as text, "." or ",". None: a comma if no other
        reading is possible, otherwise a point.
    thousands
        Mark between groups of three digits, such as "," or " ".
    encoding
        Encoding of a csv file, such as "latin-1". None: UTF-8, which is checked.
    day_first
        Whether 01/02/2020 is February 1. None: inferred from the other dates of the column; if
        they fit both, month first, or day first with points (01.02.2020).
    units
        Signs next to numbers to ignore, such as "€" or "%": 45 % is read as 45.

    Examples
    --------
    >>> ReadOptions(delimiter="tab", decimal=",").delimiter
    '\t'
    >>> ReadOptions(decimal=";")
    Traceback (most recent call last):
    vntransfer.errors.ArgumentError: decimal: expected one of '.', ',', got ';'
    """

    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    day_first: bool | None = None
    units: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.delimiter in ("tab", "\\t"):  # a tab is hard to type
            object.__setattr__(self, "delimiter", "\t")
        for name in ("delimiter", "encoding"):
            instance(name, getattr(self, name), str | None, "a text or None")
        delimiter = self.delimiter
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
            raise ArgumentError(f"delimiter: expected one character such as ; got {delimiter!r}")
        if self.decimal is not None:
            one_of("decimal", self.decimal, (".", ","))
        if self.thousands is not None:
            one_of("thousands", self.thousands, THOUSANDS)
            if self.thousands == (self.decimal or "."):
                raise ArgumentError(
                    f"thousands: {self.thousands!r} is also the decimal mark; name another one "
                    f"with --decimal (decimal=)"
                )
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except (LookupError, ValueError):
                raise ArgumentError(
                    f"encoding: unknown {self.encoding!r}; expected a name such as utf-8, latin-1 "
                    f"or cp1252"
                ) from None
        one_of("day_first", self.day_first, (True, False, None))
        if isinstance(self.units, str):
            object.__setattr__(self, "units", (self.units,))
        for sign in texts("units", self.units, "signs such as € or %"):
            if not sign.strip() or re.search(r"[\d.,+-]", sign):
                raise ArgumentError(f"units: expected signs such as € or %, got {sign!r}")
        object.__setattr__(self, "units", tuple(sign.strip() for sign in self.units))

    @property
    def plain(self) -> bool:
        """Whether numbers are written as 1234.5."""
        return self.decimal in (None, ".") and self.thousands is None and not self.units

    def over(self, others: "ReadOptions") -> "ReadOptions":
        """Fill options that are not set from other options."""
        return replace(others, **{k: v for k, v in asdict(self).items() if v not in (None, ())})


DEFAULTS = ReadOptions()


def checked(options: ReadOptions | None) -> ReadOptions:
    """Check options that were given; None: everything is detected."""
    given = DEFAULTS if options is None else options
    return instance("read_options", given, ReadOptions, "ReadOptions or None")


def detect(sample: Sequence[str], options: ReadOptions) -> tuple[ReadOptions, list[str]]:
    """Detect missing options from the first lines of a csv file, and return them with notes."""
    notes = []
    delimiter = options.delimiter
    if delimiter is None:
        delimiter = _delimiter(sample)
        if delimiter != ",":
            notes.append(
                f"cells are separated by {delimiter!r} (detected; override with --delimiter)"
            )
    decimal, thousands = options.decimal, options.thousands
    if decimal is None and delimiter != "," and thousands != ",":
        cells = [cell.strip() for row in _rows(sample, delimiter)[1:] for cell in row]
        with_comma = [cell for cell in cells if _COMMA.fullmatch(cell)]
        sure = [cell for cell in with_comma if not _GROUP.fullmatch(cell)]
        if sure and not any(
            _POINT.fullmatch(cell) and not _GROUP.fullmatch(cell) for cell in cells
        ):
            decimal = ","
            said = f"numbers such as {sure[0]!r} have a decimal comma"
            if thousands is None and (grouped := [cell for cell in sure if "." in cell]):
                thousands = "."
                said = f"numbers such as {grouped[0]!r} have a decimal comma and thousands points"
            notes.append(f"{said} (detected; override with --decimal)")
    found = replace(options, delimiter=delimiter, decimal=decimal or ".", thousands=thousands)
    return found, notes


def _rows(sample: Sequence[str], delimiter: str) -> list[list[str]]:
    """Rows of the sample, as many as are well formed; blank lines are left out."""
    rows: list[list[str]] = []
    with suppress(csv.Error):
        rows.extend(row for row in csv.reader(sample, delimiter=delimiter, strict=True) if row)
    return rows


def _delimiter(sample: Sequence[str]) -> str:
    """Find the delimiter that makes rows of equal length; else the one the header has most of."""
    widths = {mark: [len(row) for row in _rows(sample, mark)] or [1] for mark in DELIMITERS}
    equal = [mark for mark, own in widths.items() if own[0] > 1 and len(set(own)) == 1]
    split = [mark for mark, own in widths.items() if own[0] > 1]
    return max(equal or split or [","], key=lambda mark: widths[mark][0])
