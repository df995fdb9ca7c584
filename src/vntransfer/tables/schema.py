"""The contents of a column, recorded as plain values for JSON."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from vntransfer.display import percent
from vntransfer.errors import DataError
from vntransfer.tables.columns import ISO, NUMERIC_DATE, Column
from vntransfer.tables.options import ReadOptions

Kind = Literal["number", "boolean", "date", "category", "dropped"]

KEPT = 30
"""Categories with a column of their own, the most frequent ones; the others share one."""

MANY = 1000
"""Distinct texts from which on a column is refused, unless it is an id or prose."""

FEW = 20
"""Distinct texts up to which a column is one of categories however few rows there are."""

_DATE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}")
_CODE = re.compile(r"0\d+")
_UNIT = re.compile(r"[-+]?\d[\d.,]*\s*([^\s\d.,+-][^\d]{0,9})")
_ALMOST = re.compile(
    r"[-+]?(\d*[.,]\d+|\d{1,3}(,\d{3})+(\.\d+)?|\d{1,3}(\.\d{3})+,\d+|\d[\d.,]*\s?[%$€£¥]"
    r"|[$€£¥]\s?[-+]?\d[\d.,]*)"
)


class TooManyTextsError(DataError):
    """A column has more different texts than categories may be."""

    def __init__(self, message: str, column: str, texts: int) -> None:
        super().__init__(message)
        self.column, self.texts = column, texts


@dataclass(frozen=True)
class Field:
    """A column of the table, and how it becomes numbers; learned from the training rows."""

    name: str
    kind: Kind
    fill: float = 0.0  # for missing values: the median (dates: days since 1970)
    low: float = 0.0
    high: float = 0.0
    missing: bool = False  # whether values were missing, which a column marks
    categories: tuple[str, ...] = ()  # those with a column of their own, by frequency
    others: tuple[str, ...] = ()  # those that share a column
    parts: tuple[str, ...] = ()  # columns made of dates
    note: str = ""  # what was done, in words; of a dropped column, why
    day_first: bool = False  # how dates such as 01/02/2020 were read

    def outputs(self) -> list[str]:
        """Name the columns of numbers that it becomes."""
        if self.kind == "category":
            names = [*self.categories, *(["(other)"] if self.others else [])]
            out = [f"{self.name}={name}" for name in names]
        elif self.kind == "date":
            out = [f"{self.name}: {part}" for part in self.parts]
        else:
            out = [self.name] if self.kind != "dropped" and self.low < self.high else []
        return [*out, f"{self.name} is missing"] if self.missing else out


def almost_number(text: str) -> bool:
    """Whether a text is a number to people: with a decimal mark, commas at thousands, a sign.

    Examples
    --------
    >>> [almost_number(text) for text in ("1,3", "-12,345.6", "1.234,5", "45 %", "1.5", "1,2,3")]
    [True, True, True, True, True, False]
    """
    return _ALMOST.fullmatch(text) is not None


def remedy(cell: str, options: ReadOptions, otherwise: str = "fix it") -> str:
    """Say what to do about a cell that is not read as a number, but may be one to people."""
    if not almost_number(cell):
        unit = unit_of(cell)
        return f"declare its unit with --unit {unit!r} (ReadOptions)" if unit else otherwise
    how = "write numbers as 1234.5, without commas and %"
    if options.decimal == ",":
        how = "numbers are read with a decimal comma: write them so"
    return f"{how}, or declare their format with --decimal, --thousands or --unit (ReadOptions)"


def unit_of(text: str) -> str:
    """Give what stands behind a number, or "".

    Examples
    --------
    >>> [unit_of(text) for text in ("9.5 EUR", "9.5", "person 1", "2 of 3", "2020-01-01")]
    ['EUR', '', '', '', '']
    """
    found = _UNIT.fullmatch(text)
    return found[1] if found else ""


PERIODS = {"season": 365.2425, "weekday": 7.0, "hour": 1.0}


def date_parts(t: NDArray[np.float64], parts: tuple[str, ...]) -> list[NDArray[np.float64]]:
    """Columns made of days since 1970: time in years, and places on circles."""
    out = []
    for part in parts:
        period, _, wave = part.partition(" ")
        angle = 2 * np.pi * t / PERIODS.get(period, 365.2425)
        out.append({"sin": np.sin, "cos": np.cos}[wave](angle) if wave else t / 365.2425)
    return out


ALL_PARTS = ("years", *(f"{period} {wave}" for period in PERIODS for wave in ("sin", "cos")))


def describe(
    name: str,
    column: Column,
    rows: Any,
    *,
    wanted: bool = False,
    category: bool = False,
    called: str = "rows",
) -> Field:
    """Find out what a column holds, given the numbers of its rows in the file.

    If it is ``wanted`` by name, it is dropped only if it is constant. It can be said to hold
    categories whatever it looks like. ``called`` names the rows in messages.
    """
    marked = column.without_marks()
    if bool(marked.empty().all()):
        raise DataError(
            f"column {name!r}: empty in all {len(column)} {called}; fill it, or leave it out "
            f"with --drop {name!r} (drop=)"
        )
    if category or column.stored == "text":
        field = None if category else _typed(name, marked, rows, wanted)
        return field or _categories(name, column, wanted or category)
    if column.stored == "date":
        return _dates(name, column.days())
    values = column.numbers()
    if np.isinf(values).any():
        row = rows[int(np.isinf(values).argmax())]
        raise DataError(f"row {row}, column {name!r}: infinite; fix it")
    return _numbers(name, values, column.stored == "boolean", wanted)


def _typed(name: str, marked: Column, rows: Any, wanted: bool) -> Field | None:
    """Numbers, booleans or dates written as text; None if it is text."""
    values = marked.numbers()
    full = ~marked.empty()
    fine = np.isfinite(values[full])
    codes, names = marked.coded()
    if fine.all():
        if any(map(_CODE.fullmatch, names)):  # 01234 is the name of something
            return None
        return _numbers(name, values, False, wanted)
    if fine.mean() >= 0.5:
        _refuse(name, marked, rows, full, fine, "a number")
    plain = fine | np.array([almost_number(text) for text in names])[codes[full]]
    if plain.mean() >= 0.5:
        at = int(np.flatnonzero(full)[(plain & ~fine).argmax()])
        raise DataError(
            f"row {rows[at]}, column {name!r}: {names[codes[at]][:40]!r} is not read as a number; "
            f"{remedy(names[codes[at]], marked.options)}; or declare the column as categories "
            f"with --category {name!r} (category=)"
        )
    flags = marked.booleans()
    if np.isfinite(flags[full]).all():
        return _numbers(name, flags, True, False)
    if any(ISO.match(text) or NUMERIC_DATE.fullmatch(text) for text in names):
        day_first, how = _date_order(names, marked.options.day_first)
        when = marked.days(day_first=day_first)
        fine = np.isfinite(when[full])
        if fine.all():
            return _dates(name, when, day_first, how)
        if fine.mean() >= 0.5:
            _refuse(name, marked, rows, full, fine, "a date such as 2024-03-31")
    return None


def _date_order(texts: Sequence[str], asked: bool | None) -> tuple[bool, str]:
    """Decide by the dates of a column, unless it is said, whether the day comes first; say so."""
    found = [match for text in texts if (match := NUMERIC_DATE.fullmatch(text))]
    if not found:
        return False, ""
    first, second = ([int(match[k]) for match in found] for k in (1, 3))
    votes = sum(part > 12 for part in first), sum(part > 12 for part in second)
    if asked is not None or any(votes):
        day_first = votes[0] > votes[1] if asked is None else asked
        return day_first, f"; read {'day' if day_first else 'month'} first"
    day_first = found[0][2] == "."
    return day_first, (
        f"; {found[0].string!r} could be read either way and is read "
        f"{'day' if day_first else 'month'} first (override with "
        f"--{'month' if day_first else 'day'}-first)"
    )


def _refuse(
    name: str, marked: Column, rows: Any, full: NDArray[Any], fine: NDArray[Any], what: str
) -> NoReturn:
    """Name the first cell that is not what most of a column are."""
    at = int(np.flatnonzero(full)[(~fine).argmax()])
    raise DataError(
        f"row {rows[at]}, column {name!r}: {marked.texts()[at][:40]!r} is not {what}, "
        f"{int(fine.sum())} others of the column are; fix it, or declare the column as categories "
        f"with --category {name!r} (category=)"
    )


def _numbers(name: str, values: NDArray[np.float64], boolean: bool, wanted: bool) -> Field:
    seen = values[~np.isnan(values)]
    gaps = len(values) - len(seen)
    low, high, fill = float(seen.min()), float(seen.max()), float(np.median(seen))
    if boolean:
        fill = float(seen.mean() > 0.5)
    if low == high and not gaps:
        return Field(name, "dropped", note=f"constant, {low:g} everywhere")
    counts = len(seen) > FEW and not gaps and high - low < 3 * len(seen)
    if counts and not wanted and (seen % 1 == 0).all() and (np.diff(seen) > 0).all():
        return Field(name, "dropped", note="row numbers; name it in features to use it")
    what = "yes or no as 1 or 0" if boolean else f"number from {low:g} to {high:g}"
    filled = f"; {gaps} missing filled with {fill:g} and marked in a column" if gaps else ""
    kind: Kind = "boolean" if boolean else "number"
    return Field(name, kind, fill, low, high, bool(gaps), note=what + filled)


def _dates(name: str, t: NDArray[np.float64], day_first: bool = False, how: str = "") -> Field:
    seen = t[~np.isnan(t)]
    gaps = len(t) - len(seen)
    varies = np.ptp(np.array(date_parts(seen, ALL_PARTS)), axis=1) > 1e-6
    parts = tuple(part for part, own in zip(ALL_PARTS, varies, strict=True) if own)
    first, last = (np.datetime64(int(v), "D") for v in (seen.min(), seen.max()))
    if not parts and not gaps:
        return Field(name, "dropped", note=f"constant, {first} everywhere")
    filled = "; missing ones filled with the median and marked in a column" if gaps else ""
    note = f"date from {first} to {last}, as {', '.join(parts)}{filled}{how}"
    return Field(
        name,
        "date",
        float(np.median(seen)),
        float(seen.min()),
        float(seen.max()),
        bool(gaps),
        parts=parts,
        note=note,
        day_first=day_first,
    )


def _categories(name: str, column: Column, wanted: bool) -> Field:
    counts = column.counts()
    n, gaps = len(column), counts.pop("", 0)
    first = next(iter(counts))
    hint = ""
    if _DATE.match(first) and not ISO.match(first):
        hint = f" ({first[:20]!r} looks like a date: write dates as 2024-03-31)"
    elif (unit := unit_of(first)) and all(unit_of(text) == unit for text in counts):
        hint = f" ({first[:20]!r} looks like a number: name its unit with --unit)"
    if len(counts) > max(FEW, n / 2) and not wanted:
        note = f"{len(counts)} different texts in {n} rows: an id or prose{hint}"
        return Field(name, "dropped", note=note)
    if len(counts) > MANY and not wanted:
        raise TooManyTextsError(
            f"column {name!r}: {len(counts)} different texts, such as {first[:40]!r}{hint}; more "
            f"than {MANY} are too many: group them, leave the column out with --drop "
            f"{name!r} (drop=), or keep the {KEPT} most frequent with --category {name!r}",
            name,
            len(counts),
        )
    if len(counts) == 1 and not gaps:
        return Field(name, "dropped", note=f"constant, {first[:40]!r} everywhere")
    order = sorted(counts, key=lambda text: (-counts[text], text))
    kept, others = tuple(order[:KEPT]), tuple(order[KEPT:])
    note = f"{len(order)} categories, one column each"
    if others:
        share = sum(counts[text] for text in kept) / sum(counts.values())
        note = f"the {KEPT} most frequent of {len(order)} categories ({percent(share)} of rows), "
        note += "one column each, and one for the others"
    note += f"; {gaps} missing, marked in a column{hint}" if gaps else hint
    return Field(name, "category", missing=bool(gaps), categories=kept, others=others, note=note)
