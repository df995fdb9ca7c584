"""A table of one's own in memory: its columns, as they are written in files or frames."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vntransfer.errors import DataError
from vntransfer.storage.files import file_hash
from vntransfer.tables.files import Column, Stored, chunks, expand, header, need

Pick = Callable[[str, list[str]], Sequence[str]]


@dataclass(frozen=True, eq=False)
class Frame:
    """Columns of a table by name, as they are written.

    Parameters
    ----------
    columns
        Name -> cells.
    rows
        Number of each row in its file; the header is row 1.
    sha256
        File -> hash of what was read.
    name
        For messages.
    """

    columns: dict[str, Column]
    rows: Sequence[int]
    sha256: Mapping[str, str] = field(default_factory=dict)
    name: str = "table"

    def __len__(self) -> int:
        return len(self.rows)


def read_frame(
    data: Any, *, columns: Sequence[str] | Pick | None = None, delimiter: str = ","
) -> Frame:
    """Read a table.

    Parameters
    ----------
    data
        A csv, csv.gz or parquet file, several files or a pattern; or a table in memory: a mapping
        of columns, a pandas or a polars frame.
    columns
        Those to read, or a function that picks them, given the table's name and all its columns;
        None: all. Others may be of any type.
    delimiter
        Between the cells of a csv file.

    Examples
    --------
    >>> frame = read_frame({"town": ["A", "B"], "rooms": [3, None]})
    >>> len(frame), frame.columns["rooms"].numbers()
    (2, array([ 3., nan]))
    """
    if isinstance(data, Frame):
        return data
    if isinstance(data, Mapping) or hasattr(data, "columns"):
        return _in_memory(data, columns)
    files = expand(data)
    parts: dict[str, list[Column]] = {}
    rows: list[int] = []
    for file in files:
        names = header(file, delimiter)
        wanted = list(parts) or _picked(columns, str(file), names)
        need(file, names, wanted)
        for chunk in chunks(file, wanted, delimiter=delimiter):
            rows += chunk.rows
            for name, cells in chunk.columns.items():
                parts.setdefault(name, []).append(cells)
    if not rows:
        raise DataError(f"{files[0]}: has a header but no rows; fill it")
    joined = {name: _join(name, own) for name, own in parts.items()}
    return Frame(joined, rows, {file.name: file_hash(file) for file in files}, str(files[0]))


def _picked(columns: Sequence[str] | Pick | None, table: str, every: list[str]) -> list[str]:
    if columns is None:
        return every
    return list(columns(table, every) if callable(columns) else columns)


def _join(name: str, parts: Sequence[Column]) -> Column:
    if len(stored := {own.stored for own in parts}) > 1:
        raise DataError(f"column {name!r}: {' and '.join(sorted(stored))} in different files")
    values = np.concatenate([own.values for own in parts])
    if not any(own.rounded for own in parts):
        return Column(parts[0].stored, values)
    import pyarrow

    for kind in (pyarrow.int64(), pyarrow.uint64()):
        try:
            exact = pyarrow.concat_arrays([own.arrow.cast(kind) for own in parts])
        except pyarrow.ArrowInvalid:
            continue
        return Column(parts[0].stored, values, exact)
    raise DataError(
        f"column {name!r}: whole numbers below zero beside some that 63 bits do not hold; save it "
        f"as text"
    )


def _in_memory(data: Any, columns: Sequence[str] | Pick | None) -> Frame:
    keys = list(data if isinstance(data, Mapping) else data.columns)
    names = [str(key) for key in keys]
    if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise DataError(f"table: column {repeated[0]!r} is there twice; rename one")
    wanted = _picked(columns, "table", names)
    need(Path("table"), names, wanted)
    made = {name: as_column(name, data[keys[names.index(name)]]) for name in wanted}
    sizes = {len(own) for own in made.values()}
    if len(sizes) != 1 or 0 in sizes:
        raise DataError(f"table: expected columns of one length with rows, got {sorted(sizes)}")
    return Frame(made, range(2, sizes.pop() + 2))


def as_column(name: str, values: Any) -> Column:
    """Make a column of an array, a list or a column of a frame.

    Examples
    --------
    >>> as_column("sold", np.array(["2024-03-31"], dtype="datetime64[D]")).stored
    'date'
    """
    cells = np.asarray(values)
    if cells.dtype.kind == "U" and not hasattr(values, "dtype"):  # a NaN among texts is none
        cells = np.array(list(values), dtype=object)
    if cells.ndim != 1:
        raise DataError(f"column {name!r}: expected one value per row, got shape {cells.shape}")
    if cells.dtype.kind in "biuf":
        stored: Stored = "boolean" if cells.dtype.kind == "b" else "number"
        return Column(stored, cells.astype(np.float64))
    if cells.dtype.kind == "M":
        return Column("date", cells.astype("datetime64[us]"))
    plain = [None if _missing(cell) else cell for cell in cells.tolist()]
    kinds = {type(cell) for cell in plain if cell is not None}
    if kinds and kinds <= {int, float, bool}:
        stored = "boolean" if kinds == {bool} else "number"
        return Column(stored, np.array([np.nan if c is None else float(c) for c in plain]))
    texts = np.empty(len(plain), dtype=object)
    texts[:] = ["" if cell is None else str(cell).strip() for cell in plain]
    return Column("text", texts)


def _missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, NaT or pandas' NA, which is neither equal nor unequal."""
    try:
        return cell is None or bool(cell != cell)
    except TypeError:
        return True
