"""A first look at files: some rows of each, from which one sees what the columns hold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vntransfer.errors import DataError
from vntransfer.tables.columns import Column, join
from vntransfer.tables.files import Chunk, ParquetFile, chunks, open_table, parquet_columns
from vntransfer.tables.frame import Frame
from vntransfer.tables.options import ReadOptions

LOOK, CELLS = 200_000, 2_000_000
"""Rows, and cells, of all files from which the kinds of the columns are found out."""


@dataclass(frozen=True, eq=False)
class Preview:
    """Rows of some files.

    Parameters
    ----------
    columns
        Their columns, all files together.
    where
        Where each row is, for messages.
    frames
        The rows of each file.
    complete
        Whether these are all rows.
    options
        How the files are written.
    notes
        Sentences on what was detected.
    """

    columns: dict[str, Column]
    where: list[str]
    frames: list[Frame]
    complete: bool
    options: ReadOptions
    notes: tuple[str, ...]


def look(
    files: Sequence[Path], features: Sequence[str], roles: Sequence[str], options: ReadOptions
) -> Preview:
    """Read rows from all files, of parquet from all over the file."""
    names = [*features, *roles]
    each = max(2000, min(LOOK, CELLS // len(features)) // len(files))
    frames, notes, complete = list[Frame](), list[str](), True
    for file in files:
        with open_table(file, options) as table:
            options = table.options
            notes += table.notes
            found, rows = list[Chunk](), 0
            pieces = _spread(table, names, each) if isinstance(table, ParquetFile) else None
            for chunk in pieces or chunks(table, names):
                found.append(chunk)
                rows += len(chunk.rows)
                if rows >= each:
                    complete = False
                    break
            if isinstance(table, ParquetFile):
                complete = complete and table.file.metadata.num_rows <= rows
            if table.empty_rows:
                notes.append(f"{table.empty_rows} empty rows of {file.name} are left out")
        if found:
            columns = {name: join(name, [own.columns[name] for own in found]) for name in names}
            frames.append(
                Frame(columns, [row for own in found for row in own.rows], name=str(file))
            )
    if not sum(map(len, frames)):
        raise DataError(f"{files[0]}: has a header but no rows; fill it")
    if sum(map(len, frames)) == 1:
        raise DataError(f"{files[0]}: has one row; at least two places with two rows are needed")
    end = {own.name: f" of {own.name}" if len(files) > 1 else "" for own in frames}
    return Preview(
        {name: join(name, [own.columns[name] for own in frames]) for name in names},
        [f"{row}{end[own.name]}" for own in frames for row in own.rows],
        frames,
        complete,
        options,
        tuple(notes),
    )


def _spread(table: ParquetFile, names: Sequence[str], each: int) -> Iterator[Chunk]:
    """Rows of a parquet file: all, or the first ones of some row groups."""
    groups = range(table.file.metadata.num_row_groups)
    whole = table.file.metadata.num_rows <= each
    spread = groups[:: max(1, len(groups) // 8)]
    size = max(1000, each // max(1, len(spread)))
    for group in groups if whole else spread:
        for rows, batch in table.batches(names, size, [group]):
            yield Chunk(rows, parquet_columns(table, batch))
            if not whole:
                break
