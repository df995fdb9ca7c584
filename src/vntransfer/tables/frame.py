"""Whole tables, from files or memory; for large files, a sample of rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import DataError
from vntransfer.tables.columns import Column, Frame, join
from vntransfer.tables.files import ParquetFile, chunks, expand, is_parquet, need, open_table
from vntransfer.tables.options import ReadOptions, checked

STRETCHES = 16
"""Places of large parquet files from which rows are read that stand for all."""

FEWEST = 1000
"""Rows of such places below which the first ones of the files are read instead."""

Pick = Callable[[str, list[str]], Sequence[str]]


def read_frame(
    data: Any, *, columns: Sequence[str] | Pick | None = None, options: ReadOptions | None = None
) -> Frame:
    """Read a table.

    Parameters
    ----------
    data
        A csv or parquet file, several files or a pattern (csv may be packed: .gz, .bz2, .zst); or
        a table in memory: a mapping of columns, a pandas or a polars frame.
    columns
        Those to read, or a function that picks them, given the table's name and all its columns;
        None: all. Others may be of any type.
    options
        How it is written. What the first file leaves open is detected, for all files.

    Examples
    --------
    >>> frame = read_frame({"town": ["A", "B"], "rooms": [3, None]})
    >>> len(frame), frame.columns["rooms"].numbers()
    (2, array([ 3., nan]))
    """
    options = checked(options)
    if isinstance(data, Frame):
        return data
    if in_memory(data):
        return _from_memory(data, columns, options)
    parts = list[Frame]()
    for file in expand(data, "data"):
        with open_table(file, options, hashed=True) as table:
            options = table.options
            wanted = list(parts[0].columns) if parts else _picked(columns, str(file), table.names)
            part = _part(table, wanted, chunks(table, wanted))
            parts.append(replace(part, sha256={file.name: table.sha256()}))
    return joined(parts)


def in_memory(data: Any) -> bool:
    """Whether a table is in memory, not in files."""
    return isinstance(data, Frame | Mapping) or hasattr(data, "columns")


def read_some(
    files: Sequence[Path], columns: Sequence[str], options: ReadOptions, rows: int
) -> tuple[list[Frame], bool]:
    """Read some rows of each file as `read_fixed` does, and say if these are all."""
    parts, complete = list[Frame](), True
    for file in files:
        options = parts[-1].options if parts else options
        found, whole = read_fixed([file], columns, options, rows, _any_row)
        parts, complete = parts + found, complete and whole
    return parts, complete


def _any_row(frame: Frame) -> NDArray[np.bool_]:
    return np.ones(len(frame), dtype=bool)


def read_fixed(
    files: Sequence[Path],
    columns: Sequence[str],
    options: ReadOptions,
    rows: int,
    keep: Callable[[Frame], NDArray[np.bool_]],
) -> tuple[list[Frame], bool]:
    """Read rows that do not depend on where a table is cut into files, and say if these are all.

    The first ``rows`` that ``keep`` accepts; of parquet files with more rows, those it accepts of
    `STRETCHES` stretches that are evenly spaced over all files, unless they are very few.
    """
    if all(map(is_parquet, files)):
        found = _stretches(files, columns, options, rows, keep)
        if sum(map(len, found)) >= FEWEST:
            return found, False
    parts, left = list[Frame](), rows
    for file in files:
        with open_table(file, options) as table:
            options = table.options
            pieces = list[Frame]()
            for piece in chunks(table, columns):
                pieces.append(_rows(piece, np.flatnonzero(keep(piece))[:left]))
                left -= len(pieces[-1])
                if not left:
                    break
            parts.append(_part(table, columns, pieces))
        if not left:
            return parts, False
    return parts, True


def _stretches(
    files: Sequence[Path],
    columns: Sequence[str],
    options: ReadOptions,
    rows: int,
    keep: Callable[[Frame], NDArray[np.bool_]],
) -> list[Frame]:
    """Rows of evenly spaced stretches of parquet files; none if there are at most ``rows``."""
    sizes = list[int]()
    for file in files:
        with open_table(file, options) as table:
            sizes.append(table.first_rows()[-1] - 2 if isinstance(table, ParquetFile) else 0)
    total, length = sum(sizes), rows // STRETCHES
    if total <= rows:
        return []
    starts = [k * total // STRETCHES for k in range(STRETCHES)]
    found, before = list[Frame](), 0
    for file, size in zip(files, sizes, strict=True):
        # numbers of the file's own rows, of which the first is 2
        wanted = [(s - before + 2, s - before + 2 + length) for s in starts]
        before += size
        with open_table(file, options) as table:
            assert isinstance(table, ParquetFile)
            need(file, table.names, columns)
            groups = [
                group
                for group, (low, high) in enumerate(pairwise(table.first_rows()))
                if any(a < high and b > low for a, b in wanted)
            ]
            pieces = list[Frame]()
            for numbers, batch in table.batches(columns, 10_000, groups):
                at = np.asarray(numbers)
                inside = np.any([(at >= a) & (at < b) for a, b in wanted], axis=0)
                if inside.any():
                    piece = _rows(table.frame(numbers, batch), np.flatnonzero(inside))
                    pieces.append(_rows(piece, np.flatnonzero(keep(piece))))
            found.append(_part(table, columns, pieces))
    return found


def _rows(frame: Frame, rows: NDArray[np.intp]) -> Frame:
    """Keep some rows of a frame."""
    columns = {name: own.take(rows) for name, own in frame.columns.items()}
    return replace(frame, columns=columns, rows=np.asarray(frame.rows)[rows].tolist())


def row_names(parts: Sequence[Frame]) -> list[int | str]:
    """Numbers of all rows, with the names of their files if there are several."""
    if len(parts) == 1:
        return [*parts[0].rows]
    return [f"{row} of {part.name}" for part in parts for row in part.rows]


def joined(parts: Sequence[Frame]) -> Frame:
    """Put the rows of several files together; all are read as the last one was."""
    first, full = parts[0], [part for part in parts if len(part)]
    if not full:
        raise DataError(f"{first.name}: has a header but no rows; fill it")
    return Frame(
        {name: join(name, [part.columns[name] for part in full]) for name in first.columns},
        [row for part in full for row in part.rows],
        first.name,
        parts[-1].options,
        tuple(note for part in parts for note in part.notes),
        {name: value for part in parts for name, value in part.sha256.items()},
    )


def _part(table: Any, columns: Sequence[str], found: Iterable[Frame]) -> Frame:
    """Put pieces of a file together; of one without rows, the columns are empty texts."""
    pieces = list(found)
    notes = list(table.notes)
    if table.empty_rows:
        notes.append(f"{table.empty_rows} empty rows of {table.path.name} are ignored")
    cells = {name: [piece.columns[name] for piece in pieces] for name in columns}
    return Frame(
        {name: join(name, own) if own else Column.of_texts([]) for name, own in cells.items()},
        [row for piece in pieces for row in piece.rows],
        str(table.path),
        table.options,
        tuple(notes),
    )


def _picked(columns: Sequence[str] | Pick | None, table: str, every: list[str]) -> list[str]:
    if columns is None:
        return every
    return list(columns(table, every) if callable(columns) else columns)


def _from_memory(data: Any, columns: Sequence[str] | Pick | None, options: ReadOptions) -> Frame:
    keys = list(data if isinstance(data, Mapping) else data.columns)
    names = [str(key) for key in keys]
    need("table", names, ())
    wanted = _picked(columns, "table", names)
    need("table", names, wanted)
    options = replace(options, decimal=options.decimal or ".")
    made = {name: as_column(name, data[keys[names.index(name)]], options) for name in wanted}
    sizes = {len(own) for own in made.values()}
    if len(sizes) != 1 or 0 in sizes:
        raise DataError(f"table: expected columns of one length with rows, got {sorted(sizes)}")
    return Frame(made, range(2, sizes.pop() + 2), options=options)


def as_column(name: str, values: Any, options: ReadOptions | None = None) -> Column:
    """Make a column of an array, a list or a column of a frame."""
    import pyarrow

    cells = np.asarray(values)
    if cells.dtype.kind == "U" and not hasattr(values, "dtype"):  # a NaN among texts is none
        cells = np.array(list(values), dtype=object)
    if cells.ndim != 1:
        raise DataError(f"column {name!r}: expected one value per row, got shape {cells.shape}")
    if cells.dtype.kind in "biuf":
        kind = np.float64 if cells.dtype.kind == "f" else cells.dtype.newbyteorder("=")
        return Column(pyarrow.array(cells.astype(kind)))
    if cells.dtype.kind == "M":
        return Column(pyarrow.array(cells.astype("datetime64[us]")))
    plain = [None if _missing(cell) else cell for cell in cells.tolist()]
    kinds = {type(cell) for cell in plain if cell is not None}
    if kinds == {bool}:
        return Column(pyarrow.array(plain))
    if kinds and kinds <= {int, float, bool}:
        return Column(pyarrow.array([np.nan if c is None else float(c) for c in plain]))
    return Column.of_texts(["" if cell is None else str(cell) for cell in plain], options)


def _missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, NaT or pandas' NA, which is neither equal nor unequal."""
    try:
        return cell is None or bool(cell != cell)
    except TypeError:
        return True
