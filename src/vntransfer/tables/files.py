"""Tables in files: which ones, their columns by name, their rows in pieces of some thousand."""

import glob
import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from vntransfer.checks import meant
from vntransfer.errors import ArgumentError, DataError
from vntransfer.tables.columns import Column, from_arrow, text_column
from vntransfer.tables.csv_files import CsvFile, opened_csv
from vntransfer.tables.options import DEFAULTS, ReadOptions

CHUNK = 10_000


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


def is_parquet(file: Path) -> bool:
    """Whether a file is parquet, by its name."""
    return file.suffix.lower() in (".parquet", ".pq")


def need(table: str | Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise unless all wanted columns are among the names, each of which must be there once."""
    if repeated := [column for column, n in Counter(names).items() if n > 1]:
        raise DataError(f"{table}: column {repeated[0]!r} is there twice; rename one")
    for column in wanted:
        if column not in names:
            hint = meant(column, names) or f"; it has {', '.join(names)[:300]}"
            raise DataError(f"{table}: has no column {column!r}{hint}")


class ParquetFile:
    """A parquet file that is open: its columns, and its rows by row group.

    Parameters
    ----------
    path
        The file.
    options
        How numbers are written in its texts.
    hashed
        Whether its hash will be asked for: then it is read at once, while it is hashed.
    """

    notes: tuple[str, ...] = ()
    empty_rows = 0

    def __init__(self, path: Path, options: ReadOptions, *, hashed: bool = False) -> None:
        import pyarrow
        import pyarrow.parquet

        self.path, self.options = path, replace(options, decimal=options.decimal or ".")
        source: Any = path
        if hashed:
            content = path.read_bytes()
            self._digest = hashlib.sha256(content).hexdigest()
            source = pyarrow.BufferReader(content)
        try:
            self.file = pyarrow.parquet.ParquetFile(source)
        except (OSError, ValueError) as error:  # pyarrow.ArrowInvalid is a ValueError
            raise DataError(f"{path}: not a readable parquet file ({error})") from error
        self.names: list[str] = list(self.file.schema_arrow.names)

    def sha256(self) -> str:
        """Give the hash of the file."""
        return self._digest

    def first_rows(self) -> list[int]:
        """Numbers of the first rows of the row groups (as if row 1 were a header), and the end."""
        held = self.file.metadata
        sizes = (held.row_group(k).num_rows for k in range(held.num_row_groups))
        return list(accumulate(sizes, initial=2))

    def batches(
        self, columns: Sequence[str], size: int, groups: Sequence[int] | None = None
    ) -> Iterator[tuple[range, Any]]:
        """Give batches of some row groups, and the numbers of their rows."""
        first = self.first_rows()
        for group in range(len(first) - 1) if groups is None else groups:
            row = first[group]  # one group at a time: several at once stay in memory
            for batch in self.file.iter_batches(size, columns=list(columns), row_groups=[group]):
                yield range(row, row := row + batch.num_rows), batch


def parquet_rows(path: str | Path, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Rows of a small parquet file with columns of any type, by name; absent ones are left out.

    Parameters
    ----------
    path
        The file.
    columns
        Those to read; None: all.
    """
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        names = [n for n in file.schema_arrow.names if columns is None or n in columns]
        return list(file.read(names).to_pylist())


@contextmanager
def open_table(
    path: Path, options: ReadOptions | None = None, *, hashed: bool = False
) -> Iterator[CsvFile | ParquetFile]:
    """Open a file and check its header.

    Parameters
    ----------
    path
        A csv file, which may be packed (.gz, .bz2, .zst), or a parquet file.
    options
        How it is written; what is detected is in ``options`` and ``notes`` of the result.
    hashed
        Whether ``sha256`` of the result will be asked for.
    """
    options = options or DEFAULTS
    if is_parquet(path):
        table = ParquetFile(path, options, hashed=hashed)
        need(path, table.names, ())
        with table.file:
            yield table
    else:
        with opened_csv(path, options) as text:
            need(path, text.names, ())
            yield text


def chunks(
    table: CsvFile | ParquetFile,
    columns: Sequence[str],
    *,
    size: int = CHUNK,
    copied: Collection[str] = (),
) -> Iterator[Chunk]:
    r"""Read columns of a table piece by piece.

    Parameters
    ----------
    table
        What `open_table` gives.
    columns
        Names of those that are read.
    size
        Rows at a time.
    copied
        Columns that are only written again and may be of any type.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.csv")
    >>> _ = path.write_text("town,rooms\nA,3\nB,NA\n")
    >>> with open_table(path) as table:
    ...     for chunk in chunks(table, ["town", "rooms"]):
    ...         print(list(chunk.rows), chunk.columns["rooms"].texts())
    [2, 3] ['3' 'NA']
    """
    need(table.path, table.names, columns)
    if isinstance(table, ParquetFile):
        for rows, batch in table.batches(columns, size):
            yield Chunk(rows, parquet_columns(table, batch, copied))
        return
    for numbers, batch in _resized(table.batches(columns), size):
        yield Chunk(
            numbers.tolist(),
            {
                name: text_column(batch.column(name).combine_chunks(), table.options)
                for name in columns
            },
        )


def parquet_columns(
    table: ParquetFile, batch: Any, copied: Collection[str] = ()
) -> dict[str, Column]:
    """Make columns of a batch of a parquet file."""
    try:
        return {
            name: from_arrow(name, batch.column(name), table.options, copied=name in copied)
            for name in batch.schema.names
        }
    except DataError as error:
        raise DataError(f"{table.path}: {error}") from None


def _resized(batches: Iterator[tuple[Any, Any]], size: int) -> Iterator[tuple[Any, Any]]:
    """Cut and join batches so that all but the last have ``size`` rows."""
    import pyarrow as pa

    waiting: list[tuple[Any, Any]] = []

    def joined() -> tuple[Any, Any]:
        rows, parts = zip(*waiting, strict=True)
        return np.concatenate(rows), pa.concat_tables(parts)

    for rows, batch in batches:
        waiting.append((rows, pa.Table.from_batches([batch])))
        if sum(own.num_rows for _, own in waiting) >= size:
            numbers, whole = joined()
            full = len(numbers) - len(numbers) % size
            for at in range(0, full, size):
                yield numbers[at : at + size], whole.slice(at, size)
            waiting = [(numbers[full:], whole.slice(full))]
    if any(batch.num_rows for _, batch in waiting):
        yield joined()
