"""Cells of csv and parquet files: columns by name, in pieces of some thousand rows."""

import csv
import glob
import gzip
import math
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import ArgumentError, DataError

Stored = Literal["text", "number", "boolean", "date"]

CHUNK = 10_000
DELIMITERS = ";\t|,"


@dataclass(frozen=True, eq=False)
class Column:
    """Cells as a file stores them: csv knows text alone, parquet has types.

    Parameters
    ----------
    stored
        "text", "number", "boolean" or "date".
    values
        Texts without surrounding blanks, "" where empty; numbers and booleans (1, 0) as float64,
        NaN where empty; dates as datetime64[us], NaT where empty.
    arrow
        The Arrow array that it was made of, for copies that lose nothing; None elsewhere.
    """

    stored: Stored
    values: NDArray[Any]
    arrow: Any = None

    def __len__(self) -> int:
        return len(self.values)

    def empty(self) -> NDArray[np.bool_]:
        """Where nothing is written.

        Examples
        --------
        >>> Column("text", np.array(["a", ""], dtype=object)).empty()
        array([False,  True])
        """
        if self.stored == "text":
            return np.asarray(self.values == "", dtype=bool)
        return np.asarray(np.isnat(self.values) if self.stored == "date" else np.isnan(self.values))

    def numbers(self) -> NDArray[np.float64]:
        """As numbers: NaN where empty, infinity where something else is written.

        Examples
        --------
        >>> Column("text", np.array(["1.5", "", "many"], dtype=object)).numbers()
        array([1.5, nan, inf])
        """
        if self.stored == "date":
            return np.where(self.empty(), math.nan, math.inf)
        if self.stored != "text":
            return np.asarray(self.values, dtype=np.float64)
        filled = [cell or "nan" for cell in self.values]
        try:
            if not any("_" in cell for cell in filled):
                return np.array(filled, dtype=np.float64)
        except ValueError:
            pass
        return np.array([_number(cell) for cell in filled])

    def texts(self) -> NDArray[Any]:
        """As texts, "" where empty; whole numbers have no decimal point.

        Examples
        --------
        >>> Column("number", np.array([1.0, 2.5, np.nan])).texts().tolist()
        ['1', '2.5', '']
        """
        if self.stored == "text":
            return self.values
        if self.rounded:
            return _texts(["" if cell is None else str(cell) for cell in self.arrow.to_pylist()])
        pairs = zip(self.values, self.empty(), strict=True)
        return _texts(["" if empty else self._text(value) for value, empty in pairs])

    def copies(self) -> NDArray[Any]:
        """As texts that lose nothing of what a parquet file holds: no digit, no zone of time.

        Examples
        --------
        >>> import pyarrow
        >>> parquet_column(Path("a"), "x", pyarrow.array([0.1, 2], pyarrow.float32())).copies()
        array(['0.1', '2'], dtype=object)
        """
        if self.arrow is None or self.stored in ("text", "boolean"):
            return self.texts()
        pairs = zip(self.arrow.cast("string").to_pylist(), self.empty(), strict=True)
        return _texts(["" if empty else text for text, empty in pairs])

    def _text(self, value: Any) -> str:
        if self.stored == "boolean":
            return "true" if value else "false"
        return str(value) if self.stored == "date" else repr(float(value)).removesuffix(".0")

    @property
    def rounded(self) -> bool:
        """Whether there are whole numbers, such as ids, that float64 rounds and `arrow` does not.

        Examples
        --------
        >>> import pyarrow
        >>> ids = parquet_column(Path("a"), "id", pyarrow.array([2**53 + 1, None]))
        >>> ids.rounded, ids.take([0, 1]).texts().tolist()
        (True, ['9007199254740993', ''])
        """
        if self.arrow is None or not str(self.arrow.type).startswith(("int", "uint")):
            return False
        return bool((np.abs(self.values) >= 2**53).any())

    def take(self, rows: Any) -> "Column":
        """Keep some of the rows."""
        kept = self.arrow.take(np.arange(len(self))[rows]) if self.rounded else None
        return Column(self.stored, self.values[rows], kept)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive rows of a file: their numbers (the header is row 1) and columns by name."""

    rows: Sequence[int]
    columns: dict[str, Column]


def expand(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """Files named by one or several paths or patterns, each once."""
    several = [path] if isinstance(path, str | Path) else list(path)
    found: list[Path] = []
    for item in several:
        if Path(item).is_file():
            found.append(Path(item))
            continue
        matches = sorted(Path(match) for match in glob.glob(str(item), recursive=True))
        found += (files := [match for match in matches if match.is_file()])
        if not files:
            raise DataError(f"path: no file {str(item)!r}; give a csv or parquet file or a pattern")
    if not found:
        raise ArgumentError("path: got an empty list; give at least one file")
    return list(dict.fromkeys(found))


def as_delimiter(text: str) -> str:
    r"""Read a delimiter as people type it: a tab is hard to type.

    Examples
    --------
    >>> as_delimiter("tab") == as_delimiter("\\t") == "\t"
    True
    """
    return "\t" if text in ("tab", "\\t") else text


def is_parquet(file: Path) -> bool:
    """Whether a file is parquet, by its name."""
    return file.suffix.lower() in (".parquet", ".pq")


def header(file: Path, delimiter: str = ",") -> list[str]:
    """Names of a file's columns; each must be there once."""
    if is_parquet(file):
        with open_parquet(file) as opened:
            names = list(opened.schema_arrow.names)
    else:
        first = next(_csv_rows(file, delimiter), None)
        if not first:
            what = "is empty" if first is None else "begins with an empty line"
            raise DataError(f"{file}: {what}; expected a line with the names of the columns")
        names = [name.strip() for name in first]
        _check_delimiter(file, names, delimiter)
    if repeated := [column for column in dict.fromkeys(names) if names.count(column) > 1]:
        raise DataError(f"{file}: column {repeated[0]!r} is there twice; rename one")
    return names


def need(file: Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise unless all wanted columns are among the names."""
    for column in wanted:
        if column not in names:
            close = get_close_matches(str(column), names, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(names)[:300]}"
            raise DataError(f"{file}: has no column {column!r}; {hint}")


def chunks(
    file: Path,
    columns: Sequence[str],
    *,
    delimiter: str = ",",
    size: int = CHUNK,
    copied: Collection[str] = (),
) -> Iterator[Chunk]:
    r"""Read columns of a file piece by piece.

    Parameters
    ----------
    file
        A csv, csv.gz or parquet file.
    columns
        Names of those that are read.
    delimiter
        Of a csv file.
    size
        Rows at a time.
    copied
        Columns that are only written again and may be of any type.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.csv")
    >>> _ = path.write_text("town,rooms\nA,3\nB,\n")
    >>> [(list(c.rows), c.columns["rooms"].numbers()) for c in chunks(path, ["rooms"])]
    [([2, 3], array([ 3., nan]))]
    """
    need(file, header(file, delimiter), columns)
    if is_parquet(file):
        return _parquet_chunks(file, columns, size, copied)
    return _csv_chunks(file, columns, delimiter, size)


def _check_delimiter(file: Path, names: Sequence[str], delimiter: str) -> None:
    if len(names) == 1:
        other = max(DELIMITERS, key=names[0].count)
        if names[0].count(other):
            raise DataError(
                f"{file}: the header is one cell, {names[0][:60]!r}; is {other!r} the delimiter, "
                f"not {delimiter!r}?"
            )


def _csv_rows(file: Path, delimiter: str) -> Iterator[list[str]]:
    """Rows of cells; errors of encoding and quoting name the place."""
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ArgumentError(f"delimiter: expected one character such as ; got {delimiter!r}")
    opened = gzip.open if file.suffix.lower() == ".gz" else open
    with opened(file, "rt", encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            yield from reader
        except UnicodeDecodeError as error:
            raise DataError(
                f"{file}: not UTF-8 text (byte {error.object[error.start]:#04x} after row "
                f"{reader.line_num}); save it as UTF-8"
            ) from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"{file}: damaged gzip ({error}); get it again") from error
        except csv.Error as error:
            raise DataError(f"{file}: malformed csv near row {reader.line_num}: {error}") from error


def _csv_chunks(file: Path, columns: Sequence[str], delimiter: str, size: int) -> Iterator[Chunk]:
    rows = _csv_rows(file, delimiter)
    names = [name.strip() for name in next(rows)]
    at = [names.index(column) for column in columns]
    first = 2
    while chunk := list(islice(rows, size)):
        for row, line in enumerate(chunk, start=first):
            if len(line) != len(names) and line:
                raise DataError(
                    f"{file}: row {row} has {len(line)} cells, the header {len(names)}; is "
                    f"{delimiter!r} the delimiter?"
                )
        full = [(row, line) for row, line in enumerate(chunk, start=first) if line]
        first += len(chunk)
        yield Chunk(
            [row for row, _ in full],
            {
                column: Column("text", _texts([line[i].strip() for _, line in full]))
                for column, i in zip(columns, at, strict=True)
            },
        )


def _texts(cells: Sequence[str]) -> NDArray[Any]:
    values = np.empty(len(cells), dtype=object)
    values[:] = cells
    return values


def _number(cell: str) -> float:
    """Read a number as people write it: an underscore belongs to a code."""
    try:
        return math.inf if "_" in cell else float(cell)
    except ValueError:
        return math.inf


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(
            "path: parquet files need pyarrow: run `pip install 'vntransfer[tables]'` or save the "
            "table as csv"
        ) from error
    return pyarrow.parquet


def open_parquet(file: Path) -> Any:
    """Open a parquet file for reading in pieces."""
    try:
        return _parquet().ParquetFile(file)
    except (OSError, ValueError) as error:  # pyarrow.ArrowInvalid is a ValueError
        raise DataError(f"{file}: not a readable parquet file ({error})") from error


def _parquet_chunks(
    file: Path, columns: Sequence[str], size: int, copied: Collection[str]
) -> Iterator[Chunk]:
    first = 2  # as in a csv file, whose header is row 1
    with open_parquet(file) as opened:
        for group in range(opened.num_row_groups):  # all at once stay in memory as they are read
            for batch in opened.iter_batches(size, columns=list(columns), row_groups=[group]):
                made = {
                    name: parquet_column(file, name, batch.column(name), copied=name in copied)
                    for name in columns
                }
                yield Chunk(range(first, first + batch.num_rows), made)
                first += batch.num_rows


def parquet_column(file: Path, name: str, cells: Any, *, copied: bool = False) -> Column:
    """Make a column of an Arrow array; of any type, as text, if it is only copied."""
    import pyarrow

    types, whole = pyarrow.types, cells
    if types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    kind = cells.type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        stored: Stored = "boolean" if types.is_boolean(kind) else "number"
        return Column(stored, cells.to_numpy(zero_copy_only=False).astype(np.float64), cells)
    if types.is_decimal(kind):
        numbers = cells.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        return Column("number", numbers, cells)
    if types.is_date(kind) or types.is_timestamp(kind):
        dates = cells.cast(pyarrow.timestamp("us"), safe=False)
        return Column("date", dates.to_numpy(zero_copy_only=False).astype("datetime64[us]"), cells)
    if copied or types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind):
        texts = ["" if cell is None else str(cell).strip() for cell in cells.to_pylist()]
        return Column("text", _texts(texts), whole)
    raise DataError(
        f"{file}: column {name!r} has the type {kind}; expected numbers, text, booleans or dates: "
        f"convert it or leave it out"
    )
