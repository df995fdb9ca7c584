"""Tables in files: find them, and read their columns by name and their rows in pieces."""

import glob
import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from vntransfer.checks import instance, meant
from vntransfer.errors import ArgumentError, DataError, damage_named
from vntransfer.tables.columns import Frame, from_arrow
from vntransfer.tables.csv_files import CsvFile
from vntransfer.tables.options import DEFAULTS, ReadOptions

CHUNK = 10_000
"""Rows at a time."""

Piece = TypeVar("Piece")


def expand(path: str | Path | Iterable[str | Path], option: str = "path") -> list[Path]:
    """Files named by one or several paths or patterns, each once."""
    expected = "a csv or parquet file, or a list of files"
    expected += " or a table with columns" if option == "data" else ""
    one = isinstance(path, str | PathLike | bytes)
    several: list[Any] = [path] if one else list(instance(option, path, Iterable, expected))
    found: list[Path] = []
    for item in several:
        instance(option, item, str | PathLike, expected)
        if Path(item).is_file():
            found.append(Path(item))
            continue
        matches = sorted(Path(match) for match in glob.glob(str(item), recursive=True))
        found += (files := [match for match in matches if match.is_file()])
        if not files:
            raise DataError(
                f"{option}: no file {str(item)!r}; give a csv or parquet file or a pattern"
            )
    if not found:
        raise ArgumentError(f"{option}: got an empty list; give at least one file")
    return list(dict.fromkeys(found))


def is_parquet(file: Path) -> bool:
    """Whether a file is parquet, by its name."""
    return file.suffix.lower() in (".parquet", ".pq")


def need(table: str | Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise unless all wanted columns are among the names, each of which must be there once."""
    if repeated := [column for column, n in Counter(names).items() if n > 1]:
        raise DataError(f"{table}: column {repeated[0]!r} occurs twice; rename one")
    for column in wanted:
        if column not in names:
            hint = meant(column, names) or f"; it has {', '.join(names)[:300]}"
            raise DataError(f"{table}: has no column {column!r}{hint}")


class ParquetFile:
    """A parquet file that is open: its columns, and its rows by row group.

    If its hash will be asked for, it is read at once, while it is hashed.
    """

    notes: Sequence[str] = ()
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
        with damage_named(self.path, "parquet file"):
            self.file = pyarrow.parquet.ParquetFile(source, page_checksum_verification=True)
            self.names: list[str] = list(self.file.schema_arrow.names)

    def close(self) -> None:
        """Close the file."""
        self.file.close()

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
            with damage_named(self.path, "parquet file"):
                for batch in self.file.iter_batches(size, columns=[*columns], row_groups=[group]):
                    batch.validate(full=True)  # else a damaged text crashes whoever reads it
                    yield range(row, row := row + batch.num_rows), batch
                if row != first[group + 1]:
                    raise ValueError(f"row group {group} has {row - first[group]} rows")

    def frame(self, rows: range, batch: Any, copied: Collection[str] = ()) -> Frame:
        """Make columns of a batch; those that are only copied may be of any type."""
        try:
            with damage_named(self.path, "parquet file"):
                columns = {
                    name: from_arrow(name, batch.column(name), self.options, copied=name in copied)
                    for name in batch.schema.names
                }
        except DataError as error:
            if error.__cause__ is not None:
                raise
            raise DataError(f"{self.path}: {error}") from None
        return Frame(columns, rows, str(self.path), self.options)

    def frames(
        self, columns: Sequence[str], size: int, copied: Collection[str] = ()
    ) -> Iterator[Frame]:
        """Give at most ``size`` rows at a time."""
        for rows, batch in self.batches(columns, size):
            yield self.frame(rows, batch, copied)


def parquet_rows(path: str | Path) -> list[dict[str, Any]]:
    """Rows of a small parquet file with columns of any type, by name."""
    import pyarrow.parquet

    with (
        damage_named(path, "parquet file"),
        pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file,
    ):
        return list(file.read().to_pylist())


@contextmanager
def open_table(
    path: Path, options: ReadOptions | None = None, *, hashed: bool = False
) -> Iterator[CsvFile | ParquetFile]:
    """Open a csv or parquet file and check its header.

    What is detected is in ``options`` and ``notes`` of the result; its ``sha256`` can be asked for
    if the file is to be ``hashed``.
    """
    options = options or DEFAULTS
    parquet = is_parquet(path)
    table = ParquetFile(path, options, hashed=hashed) if parquet else CsvFile(path, options)
    try:
        need(path, table.names, ())
        yield table
    finally:
        table.close()


def share_read(table: CsvFile | ParquetFile, rows: int) -> float:
    """Share of a table that was read, of which these are the rows; by bytes if it is a csv file."""
    if isinstance(table, ParquetFile):
        return rows / max(rows, 1, table.first_rows()[-1] - 2)
    file = table.raw.stream
    return 1.0 if file.closed else max(1, file.tell()) / max(1, table.path.stat().st_size)


def chunks(
    table: CsvFile | ParquetFile,
    columns: Sequence[str],
    *,
    size: int = CHUNK,
    copied: Collection[str] = (),
) -> Iterator[Frame]:
    r"""Read columns of a table piece by piece; those that are only copied may be of any type.

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
    return table.frames(columns, size, copied)


@contextmanager
def ahead(pieces: Iterable[Piece]) -> Iterator[Iterator[Piece]]:
    """Give pieces in their order, while a thread gets the next one.

    An error of the reading is raised where the piece would have come. However the block ends, the
    thread has ended after it, so that the file can be closed.
    """
    coming, end = iter(pieces), object()

    def given() -> Iterator[Piece]:
        waiting = reader.submit(next, coming, end)
        while (piece := waiting.result()) is not end:
            waiting = reader.submit(next, coming, end)
            yield piece  # type: ignore[misc]  # only the end is another object

    with ThreadPoolExecutor(1) as reader:
        yield given()
