"""A first look at files: some rows of each, from which one sees what the columns hold."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from vntransfer.errors import DataError
from vntransfer.tables.files import Column, chunks, is_parquet, open_parquet, parquet_column

LOOK, CELLS = 200_000, 2_000_000
"""Rows, and cells, of all files from which the kinds of the columns are found out."""


def look(
    files: Sequence[Path], names: Sequence[str], delimiter: str
) -> tuple[dict[str, Column], list[str], bool]:
    """Rows from all files (of parquet from all over), where they are, whether they are all."""
    each = max(2000, min(LOOK, CELLS // len(names)) // len(files))
    found: dict[str, list[Column]] = {name: [] for name in names}
    complete, where = True, list[str]()
    for file in files:
        seen, end = 0, f" of {file}" if len(files) > 1 else ""
        for rows, columns in _some_rows(file, names, delimiter, each):
            seen += len(rows)
            where += [f"{row}{end}" for row in rows]
            for name in names:
                found[name].append(columns[name])
            if seen >= each:
                complete = False
                break
        if is_parquet(file):
            with open_parquet(file) as opened:
                complete = complete and opened.metadata.num_rows <= seen
    if not any(map(len, found[names[0]])):
        raise DataError(f"{files[0]}: has a header but no rows; fill it")
    if len(where) == 1:
        raise DataError(f"{files[0]}: has one row; at least two places with two rows are needed")
    return {name: _join(parts) for name, parts in found.items()}, where, complete


def _some_rows(
    file: Path, names: Sequence[str], delimiter: str, each: int
) -> Iterator[tuple[Sequence[int], dict[str, Column]]]:
    if not is_parquet(file):
        for chunk in chunks(file, names, delimiter=delimiter):
            yield chunk.rows, chunk.columns
        return
    with open_parquet(file) as opened:
        groups = range(opened.metadata.num_row_groups)
        spread = groups[:: max(1, len(groups) // 8)]
        size = max(1000, each // max(1, len(spread)))
        whole = opened.metadata.num_rows <= each
        first = first_rows(opened)
        for group in groups if whole else spread:
            row = first[group]
            for batch in opened.iter_batches(size, columns=list(names), row_groups=[group]):
                yield (
                    range(row, row + batch.num_rows),
                    {name: parquet_column(file, name, batch.column(name)) for name in names},
                )
                row += batch.num_rows
                if not whole:
                    break


def first_rows(opened: Any) -> list[int]:
    """Numbers of the first rows of a parquet file's groups (as if row 1 were a header), and end."""
    held = opened.metadata
    sizes = (held.row_group(k).num_rows for k in range(held.num_row_groups))
    return list(accumulate(sizes, initial=2))


def _join(parts: Sequence[Column]) -> Column:
    """One column of several; as text where files store it differently (csv knows text alone)."""
    if len({own.stored for own in parts}) == 1:
        return Column(parts[0].stored, np.concatenate([own.values for own in parts]))
    return Column("text", np.concatenate([own.texts() for own in parts]))
