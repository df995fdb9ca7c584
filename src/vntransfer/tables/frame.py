"""A table in memory: its columns, as they are written in files or frames."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vntransfer.errors import DataError
from vntransfer.tables.columns import Column, Stored, join
from vntransfer.tables.files import chunks, expand, need, open_table
from vntransfer.tables.options import DEFAULTS, ReadOptions

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
    options
        How it was read.
    notes
        Sentences on what was detected.
    """

    columns: dict[str, Column]
    rows: Sequence[int]
    sha256: Mapping[str, str] = field(default_factory=dict)
    name: str = "table"
    options: ReadOptions = DEFAULTS
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)


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
    options = options or DEFAULTS
    if isinstance(data, Frame):
        return data
    if isinstance(data, Mapping) or hasattr(data, "columns"):
        return _in_memory(data, columns, options)
    files = expand(data)
    parts: dict[str, list[Column]] = {}
    rows: list[int] = []
    hashes, notes = dict[str, str](), list[str]()
    for file in files:
        with open_table(file, options, hashed=True) as table:
            options = table.options
            wanted = list(parts) or _picked(columns, str(file), table.names)
            for chunk in chunks(table, wanted):
                rows += chunk.rows
                for name, cells in chunk.columns.items():
                    parts.setdefault(name, []).append(cells)
            hashes[file.name] = table.sha256()
            notes += table.notes
            if table.empty_rows:
                notes.append(f"{table.empty_rows} empty rows of {file.name} are left out")
    if not rows:
        raise DataError(f"{files[0]}: has a header but no rows; fill it")
    joined = {name: join(name, own) for name, own in parts.items()}
    return Frame(joined, rows, hashes, str(files[0]), options, tuple(notes))


def _picked(columns: Sequence[str] | Pick | None, table: str, every: list[str]) -> list[str]:
    if columns is None:
        return every
    return list(columns(table, every) if callable(columns) else columns)


def _in_memory(data: Any, columns: Sequence[str] | Pick | None, options: ReadOptions) -> Frame:
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
    return Column.of_texts(["" if cell is None else str(cell) for cell in plain], options)


def _missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, NaT or pandas' NA, which is neither equal nor unequal."""
    try:
        return cell is None or bool(cell != cell)
    except TypeError:
        return True
