"""Columns of a file or a table in memory, and how their cells are read."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import DataError
from vntransfer.tables.options import DEFAULTS, ReadOptions

Stored = Literal["text", "number", "boolean", "date"]

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "None", "?", "-")
"""What stands for nothing among numbers, booleans and dates; among texts only "" does."""

ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]|$)")
NUMERIC_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[T ](.+))?")


@dataclass(frozen=True, eq=False)
class Column:
    """Cells as a file stores them: csv knows text alone, parquet has types.

    ``values`` is an Arrow array: texts without nulls and surrounding blanks ("" where empty), or
    numbers, booleans or times (timestamp[us]) with null or NaN where empty. ``original`` is the
    Arrow array of a parquet file that they were made of, for copies that lose nothing; ``options``
    say how numbers are written in texts.
    """

    values: Any
    original: Any = None
    options: ReadOptions = DEFAULTS

    @classmethod
    def of_texts(cls, texts: Iterable[str], options: ReadOptions | None = None) -> "Column":
        """Make a column of texts."""
        import pyarrow

        made = pyarrow.array([text.strip() for text in texts], pyarrow.large_string())
        return cls(made, options=options or DEFAULTS)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def stored(self) -> Stored:
        """What the file says that the cells are."""
        import pyarrow

        types, kind = pyarrow.types, self.values.type
        if types.is_large_string(kind):
            return "text"
        if types.is_boolean(kind):
            return "boolean"
        return "date" if types.is_timestamp(kind) else "number"

    def empty(self) -> NDArray[np.bool_]:
        """Where nothing is written."""
        import pyarrow.compute as pc

        if self.stored == "text":
            return _equal(self.values, "")
        found = pc.is_null(self.values, nan_is_null=True).to_numpy(zero_copy_only=False)
        return np.asarray(found, dtype=bool)

    def without_marks(self) -> "Column":
        """Empty the cells of a text column that stand for nothing."""
        if self.stored != "text":
            return self
        import pyarrow
        import pyarrow.compute as pc

        marks = pyarrow.array(MISSING, pyarrow.large_string())
        kept = pc.if_else(pc.is_in(self.values, value_set=marks), "", self.values)
        return replace(self, values=kept, original=None)

    def numbers(self) -> NDArray[np.float64]:
        """As numbers: NaN where empty, infinity where something else is written.

        Examples
        --------
        >>> prices = Column.of_texts(["€1.234,50", "12,345"], ReadOptions(
        ...     decimal=",", thousands=".", units=("€",)))
        >>> prices.numbers()
        array([1234.5  ,   12.345])
        """
        if self.stored == "text":
            return _numbers(self.values, self.options)
        if self.stored == "date":
            return np.where(self.empty(), math.nan, math.inf)
        return np.asarray(self.values.to_numpy(zero_copy_only=False), dtype=np.float64)

    def booleans(self) -> NDArray[np.float64]:
        """As 1 and 0: NaN where empty, infinity where something else is written."""
        if self.stored == "text":
            codes, names = self.without_marks().coded()
            return np.array([_TRUTH.get(name.lower(), np.inf) for name in names])[codes]
        values = self.numbers()
        return np.where(np.isnan(values) | np.isin(values, (0.0, 1.0)), values, np.inf)

    def days(self, *, day_first: bool = False) -> NDArray[np.float64]:
        """Dates as days since 1970 (UTC): NaN where empty, infinity where something else is."""
        if self.stored == "date":
            since = (self._times() - np.datetime64(0, "us")) / np.timedelta64(1, "D")
            return np.asarray(since, dtype=np.float64)
        if self.stored != "text":
            return np.where(self.empty(), np.nan, np.inf)
        codes, names = self.without_marks().coded()
        return np.array([_day(name, day_first) for name in names], dtype=np.float64)[codes]

    def texts(self) -> NDArray[Any]:
        """As texts, "" where empty; whole numbers have no decimal point."""
        import pyarrow

        if self.stored == "text":
            return np.asarray(self.values.to_numpy(zero_copy_only=False), dtype=object)
        if self.stored == "date":
            made: Any = self._times().astype(str)
        elif pyarrow.types.is_floating(self.values.type):
            made = [repr(value).removesuffix(".0") for value in self.numbers().tolist()]
        else:
            made = _as_objects(self.values)
        return np.where(self.empty(), "", made).astype(object)

    def coded(self) -> tuple[NDArray[np.intp], list[str]]:
        """As texts: the number of each row's text, and the texts in the order they appear."""
        own = self.values if self.stored == "text" else Column.of_texts(self.texts()).values
        found = own.dictionary_encode()
        return found.indices.to_numpy().astype(np.intp), found.dictionary.to_pylist()

    def counts(self) -> dict[str, int]:
        """As texts: how often each occurs, in the order they appear."""
        codes, texts = self.coded()
        return dict(zip(texts, np.bincount(codes, minlength=len(texts)).tolist(), strict=True))

    def comparable(self) -> NDArray[Any]:
        """As numbers that are equal where cells are."""
        if self.stored == "text":
            return self.coded()[0]
        return self._times().astype(np.int64) if self.stored == "date" else self.numbers()

    def copies(self) -> NDArray[Any]:
        """As texts that lose nothing of what a parquet file holds: no digit, no zone of time."""
        if self.original is None or self.stored in ("text", "boolean"):
            return self.texts()
        return np.where(self.empty(), "", _as_objects(self.original)).astype(object)

    def take(self, rows: Any) -> "Column":
        """Keep some of the rows: their numbers, a mask or a slice."""
        kept = self.values.take(np.arange(len(self))[rows])
        return replace(self, values=kept, original=None)

    def _times(self) -> NDArray[Any]:
        return np.asarray(self.values.to_numpy(zero_copy_only=False), dtype="datetime64[us]")


_TRUTH = {
    "": math.nan,
    **dict.fromkeys(("true", "yes", "t", "y", "1"), 1.0),
    **dict.fromkeys(("false", "no", "f", "n", "0"), 0.0),
}


@dataclass(frozen=True, eq=False)
class Frame:
    """Columns of a table, or of some of its rows, by name, as they are written."""

    columns: dict[str, Column]
    rows: Sequence[int]  # number of each row in its file; the header is row 1
    name: str = "table"  # for messages
    options: ReadOptions = DEFAULTS  # how it was read
    notes: tuple[str, ...] = ()  # on what was detected, and left out
    sha256: Mapping[str, str] = field(default_factory=dict)  # file -> hash of what was read

    def __len__(self) -> int:
        return len(self.rows)


def join(name: str, parts: Sequence[Column]) -> Column:
    """Put the pieces of a column together; as text if files store it differently."""
    import pyarrow

    if len(parts) == 1:
        return parts[0]
    if len({own.stored for own in parts}) > 1:
        parts = [own if own.stored == "text" else Column.of_texts(own.texts()) for own in parts]
    cells = [own.values for own in parts]
    if len({own.type for own in cells}) > 1:
        cells = _as_one_type(name, cells)
    return replace(parts[0], values=pyarrow.concat_arrays(cells), original=None)


def _as_one_type(name: str, cells: Sequence[Any]) -> list[Any]:
    """Cast arrays of numbers to a type that holds all of them; ids keep their digits."""
    import pyarrow

    for kind in (pyarrow.int64(), pyarrow.uint64(), pyarrow.float64()):
        with suppress(pyarrow.ArrowInvalid):
            return [own.cast(kind) for own in cells]
    raise DataError(
        f"column {name!r}: whole numbers above 53 bits are mixed with numbers of another type; "
        f"store the column as text"
    )


def from_arrow(
    name: str, cells: Any, options: ReadOptions | None = None, *, copied: bool = False
) -> Column:
    """Make a column of an Arrow array; of any type, as text, if it is only copied."""
    import pyarrow

    types, whole = pyarrow.types, cells
    if types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    kind, options = cells.type, options or DEFAULTS
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return Column(cells, cells)
    if types.is_decimal(kind):
        return Column(cells.cast(pyarrow.float64()), cells)
    if types.is_date(kind) or types.is_timestamp(kind):
        return Column(cells.cast(pyarrow.timestamp("us"), safe=False), cells)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind):
        return replace(text_column(cells, options), original=whole)
    if copied:
        made = Column.of_texts(["" if cell is None else str(cell) for cell in cells.to_pylist()])
        return replace(made, original=whole)
    raise DataError(
        f"column {name!r} has the type {kind}; expected numbers, text, booleans or dates: convert "
        f"it or leave it out"
    )


def text_column(cells: Any, options: ReadOptions) -> Column:
    """Make a column of an Arrow array of texts."""
    import pyarrow
    import pyarrow.compute as pc

    texts = pc.fill_null(cells.cast(pyarrow.large_string()), "")
    return Column(pc.utf8_trim_whitespace(texts), options=options)


def _as_objects(cells: Any) -> NDArray[Any]:
    """Texts of an Arrow array, None where it is null."""
    return np.asarray(cells.cast("string").to_numpy(zero_copy_only=False), dtype=object)


def _equal(texts: Any, text: str) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    return np.asarray(pc.equal(texts, text).to_numpy(zero_copy_only=False), dtype=bool)


def _numbers(texts: Any, options: ReadOptions) -> NDArray[np.float64]:
    """Read all cells at once; one by one, but equal ones only once, if some are not numbers."""
    import pyarrow
    import pyarrow.compute as pc

    if not options.plain:
        texts = _as_plain(texts, options)
    filled = pc.if_else(pc.equal(texts, ""), None, texts)
    try:
        cells = filled.cast(pyarrow.float64())
    except pyarrow.ArrowInvalid:
        found = texts.dictionary_encode()
        values = np.array([_number(cell) for cell in found.dictionary.to_pylist()])
        return np.asarray(values[found.indices.to_numpy()])
    values = np.array(cells.to_numpy(zero_copy_only=False), dtype=np.float64)
    odd = np.flatnonzero(np.isnan(values) & ~_equal(texts, ""))  # Arrow takes nan(1) for NaN
    values[odd] = [_number(cell) for cell in texts.take(odd).to_pylist()]
    return values


def _as_plain(texts: Any, options: ReadOptions) -> Any:
    """Write numbers as 1234.5; what is not written as the options say is marked as no number."""
    import pyarrow.compute as pc

    if options.units:
        sign = f"(?:{'|'.join(map(re.escape, options.units))})"
        around = rf"^([-+]?)\s*{sign}?\s*([-+]?[0-9.,].*?)\s*{sign}?$"
        texts = pc.replace_substring_regex(texts, around, r"\1\2")
    point, whole = re.escape(options.decimal or "."), "[0-9]+"
    if options.thousands is not None:
        # a blank between thousands is often one that does not break
        blank = options.thousands == " "
        group = r"[ \x{a0}\x{2009}\x{202f}]" if blank else re.escape(options.thousands)
        whole = f"(?:[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+|[0-9]+)"  # 0.763 is not 763
    fits = pc.match_substring_regex(
        texts, rf"^[-+]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][-+]?[0-9]+)?$"
    )
    made = texts
    if options.thousands is not None:
        made = pc.replace_substring_regex(made, group, "")
    if options.decimal == ",":
        made = pc.replace_substring(made, ",", ".")
    return pc.if_else(fits, made, pc.if_else(pc.equal(texts, ""), "", "not a number"))


def _number(cell: str) -> float:
    """Read a number as people write it: an underscore belongs to a code."""
    try:
        return math.nan if not cell else math.inf if "_" in cell else float(cell)
    except ValueError:
        return math.inf


def _day(cell: str, day_first: bool) -> float:
    if not cell:
        return math.nan
    if found := NUMERIC_DATE.fullmatch(cell):
        first, _, second, year, time = found.groups()
        day, month = (first, second) if day_first else (second, first)
        cell = f"{year}-{month:0>2}-{day:0>2}" + (f"T{time}" if time else "")
    try:
        when = datetime.fromisoformat(cell) if ISO.match(cell) else None
    except ValueError:
        when = None
    if when is None:
        return math.inf
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when
    return (when - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86400
