"""Tables of any size become summaries: read once, piece by piece, here or on several workers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import DataError
from vntransfer.progress import Progress, reporter
from vntransfer.relations import RelateSettings
from vntransfer.relations.reduction import check_width, summarized
from vntransfer.relations.summaries import Summaries
from vntransfer.tables import Frame, ReadOptions, TableColumns, TableEncoder, read_frame
from vntransfer.tables.columns import MISSING, from_arrow
from vntransfer.tables.csv_files import CsvFile
from vntransfer.tables.files import ParquetFile, ahead, chunks, expand, is_parquet, open_table
from vntransfer.tables.frame import joined, read_some
from vntransfer.tables.problem import read_places, read_responses

ROWS, STEP = 65_536, 4_000_000
"""Rows, and cells, per step."""

PART = 4_000_000
"""Rows of a parquet file that make a part: what one worker does at a time."""

MOST = 200
"""Places from which on the column is hardly the one that was meant."""

LOOK, CELLS = 200_000, 2_000_000
"""Rows, and cells, of all files from which the kinds of the columns are found out."""

_FAST_CSV = 32 * 2**20


@dataclass(frozen=True)
class ReadingPlan:
    """What is read of every file, and how its columns become numbers."""

    domain: str
    response: str
    encoder: TableEncoder
    options: ReadOptions
    random_state: int
    into: Summaries  # what rows are taken into; empty

    @property
    def columns(self) -> list[str]:
        """Columns that are read."""
        return [*self.encoder.needed, self.response, self.domain]

    @property
    def rows(self) -> int:
        """Rows that are read at once."""
        return max(1000, min(ROWS, STEP // len(self.columns)))

    @property
    def plain(self) -> bool:
        """Whether all features are numbers that are used as they are."""
        used = [own for own in self.encoder.fields if own.kind != "left out"]
        return all(own.kind == "number" and not own.missing and own.low < own.high for own in used)


@dataclass(frozen=True)
class FilePart:
    """Some row groups of a parquet file, or a whole csv file."""

    file: Path
    groups: tuple[int, ...] | None
    number: int


def read_table(
    data: Any,
    settings: RelateSettings,
    *,
    options: ReadOptions | None = None,
    progress: Progress | None = None,
) -> tuple[Summaries, TableEncoder, list[str]]:
    """Summaries of the domains of a table, how its columns were encoded, and notes.

    See `relate` for the arguments; the settings name the columns of domains and responses.
    """
    columns = TableColumns(
        settings.domain or "",
        settings.response or "",
        settings.features,
        settings.drop,
        settings.category,
    )
    random_state, report = settings.random_state, reporter(progress)
    if isinstance(data, Frame) or hasattr(data, "columns") or hasattr(data, "keys"):
        frame = read_frame(data, options=options)
        names = columns.choose(frame.name, list(frame.columns))
        check_width(len(names))
        encoder = TableEncoder.fit(
            {name: frame.columns[name] for name in names},
            wanted=columns.features or (),
            category=columns.category,
        )
        plan = ReadingPlan(
            columns.domain, columns.response, encoder, frame.options, random_state, Summaries(0)
        )

        def add_all(made: Summaries) -> Summaries:
            _add(made, plan, frame, np.random.default_rng(random_state))
            return made

        made = summarized(len(encoder.names), add_all)
        return made, encoder, _notes(made, encoder)
    files = expand(data, "data")
    with open_table(files[0], options) as first:
        names = columns.choose(str(files[0]), first.names)
    check_width(len(names))
    wanted = [*names, columns.domain, columns.response]
    each = max(2000, min(LOOK, CELLS // len(names)) // len(files))
    frames, complete = read_some(files, wanted, options or ReadOptions(), each)
    seen = joined(frames)
    if len(seen) == 1:
        raise DataError(f"{files[0]}: has one row; at least two places with two rows are needed")
    several = len(files) > 1
    encoder = TableEncoder.fit(
        {name: seen.columns[name] for name in names},
        [f"{row} of {own.name}" if several else row for own in frames for row in own.rows],
        category=columns.category,
        wanted=columns.features or (),
        called="rows" if complete else "rows that were looked at",
    )
    parts = _parts(files)
    held = {own.name: own for own in frames} if complete else {}

    def read_all(into: Summaries) -> Summaries:
        plan = ReadingPlan(
            columns.domain, columns.response, encoder, seen.options, random_state, into
        )
        if settings.engine == "dask":
            from vntransfer.workflows.relate_dask import over_workers

            return over_workers(plan, parts, settings.scheduler)
        made = into.empty()
        for part in parts:
            report(part.file.name, part.number, len(parts))
            made.merge(summarize(plan, part, held.get(str(part.file))))
        report(files[-1].name, len(parts), len(parts))
        return made

    made = summarized(len(encoder.names), read_all)
    notes = [*seen.notes, *_notes(made, encoder)]
    if not complete:
        notes.append(
            f"what the columns hold was judged by {len(seen):,} rows from all over the files"
        )
    return made, encoder, notes


def _parts(files: Sequence[Path]) -> list[FilePart]:
    """Cut files into parts, the same ones for every engine: so are the numbers."""
    parts: list[FilePart] = []
    for file in files:
        if not is_parquet(file):
            parts.append(FilePart(file, None, len(parts)))
            continue
        with open_table(file) as table:
            assert isinstance(table, ParquetFile)
            first = table.first_rows()
        groups: list[int] = []
        for k in range(len(first) - 1):
            groups.append(k)
            if first[k + 1] - first[groups[0]] >= PART or k == len(first) - 2:
                parts.append(FilePart(file, tuple(groups), len(parts)))
                groups = []
    return parts


def summarize(plan: ReadingPlan, part: FilePart, held: Frame | None = None) -> Summaries:
    """Read one part once, unless its rows are held; runs wherever its file can be read."""
    made = plan.into.empty()
    rng = np.random.default_rng([plan.random_state, part.number])
    if part.groups is not None:
        with open_table(part.file, plan.options) as table:
            assert isinstance(table, ParquetFile)
            batches = table.batches(plan.columns, plan.rows, part.groups)
            with ahead(batches) as coming:  # the next ones are read meanwhile
                for rows, batch in coming:
                    if not _add_numbers(made, plan, batch, rng):
                        _add(made, plan, table.frame(rows, batch), rng)
        return made
    if held is not None:
        for at in range(0, len(held), plan.rows):
            some = slice(at, at + plan.rows)
            columns = {name: held.columns[name].take(some) for name in plan.columns}
            _add(made, plan, replace(held, columns=columns, rows=held.rows[some]), rng)
        return made
    large = part.file.suffix == ".csv" and part.file.stat().st_size > _FAST_CSV
    if large and plan.plain and plan.options.thousands is None and not plan.options.units:
        quick = _quick_csv(plan, part)
        if quick is not None:
            return quick
    with open_table(part.file, plan.options) as table:
        for frame in chunks(table, plan.columns, size=plan.rows):
            _add(made, plan, frame, rng)
    return made


def _quick_csv(plan: ReadingPlan, part: FilePart) -> Summaries | None:
    """Let Arrow convert a large csv of numbers; None if a cell does not fit."""
    import pyarrow as pa

    types = dict.fromkeys(plan.columns, pa.float64()) | {plan.domain: pa.string()}
    made = plan.into.empty()
    rng = np.random.default_rng([plan.random_state, part.number])
    with open_table(part.file, plan.options) as file:
        assert isinstance(file, CsvFile)
        try:
            with ahead(file.number_batches(types, MISSING)) as coming:
                for batch in coming:
                    if not _add_numbers(made, plan, batch, rng):
                        return None
        except (pa.ArrowException, OSError, UnicodeError):
            return None
    return made


def _add_numbers(made: Summaries, plan: ReadingPlan, batch: Any, rng: np.random.Generator) -> bool:
    """Take in an Arrow batch of numbers as a matrix; False if a cell has to be encoded."""
    import pyarrow

    numeric = [*plan.encoder.needed, plan.response]
    types = [batch.column(name).type for name in numeric]
    fits = pyarrow.types.is_floating, pyarrow.types.is_integer
    if not plan.plain or not all(any(fit(kind) for fit in fits) for kind in types):
        return False
    Z = [batch.column(name).to_numpy(zero_copy_only=False) for name in numeric]
    if any(own.dtype != np.float32 for own in Z):
        Z = [own.astype(np.float64, copy=False) for own in Z]
    with np.errstate(invalid="ignore", over="ignore"):
        clean = all(np.isfinite(own.sum()) for own in Z[:-1]) and not np.isinf(Z[-1]).any()
    if not clean:
        return False
    codes, names = _codes(batch.column(plan.domain))
    if "" in names:
        return False
    _into(made, plan, codes, names, Z, rng)
    return True


def _codes(cells: Any) -> tuple[NDArray[np.intp], list[str]]:
    """Places as numbers and their names, "" for an empty cell."""
    import pyarrow

    if not pyarrow.types.is_dictionary(cells.type):
        cells = cells.dictionary_encode()
    values = from_arrow("", cells.dictionary).texts()
    codes = cells.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    names = [str(value) for value in values] + ([""] if cells.null_count else [])
    distinct = list(dict.fromkeys(names))
    same = np.array([distinct.index(name) for name in names], dtype=np.intp)
    return same[codes], distinct


def _add(made: Summaries, plan: ReadingPlan, frame: Frame, rng: np.random.Generator) -> None:
    """Encode rows of any kind and take them in."""
    places, y = read_places(frame, plan.domain), read_responses(frame, plan.response)
    try:
        X, findings = plan.encoder.encode(frame.columns, list(frame.rows))
    except DataError as error:
        raise DataError(f"{frame.name}: {error}") from None
    for name, n in findings.filled.items():
        _count(made, f"{name!r}: missing values, filled with the middle of the others", n)
    for name, counts in findings.unseen.items():
        _count(
            made,
            f"{name!r}: rows of rare categories, counted as none of the columns",
            counts.total(),
        )
    order = {name: k for k, name in enumerate(dict.fromkeys(places.tolist()))}
    codes = np.array([order[name] for name in places.tolist()], dtype=np.intp)
    _into(made, plan, codes, list(order), np.vstack((X.T, y)), rng)


def _into(
    made: Summaries,
    plan: ReadingPlan,
    codes: NDArray[np.intp],
    names: list[str],
    Z: Sequence[NDArray[Any]] | NDArray[np.float64],
    rng: np.random.Generator,
) -> None:
    if len(made.domains.keys() | set(names)) > MOST:
        raise DataError(
            f"column {plan.domain!r}: has more than {MOST} places; is it the column that says "
            f"where a row comes from? Group them into fewer"
        )
    made.add(codes, names, Z, rng)


def _count(made: Summaries, note: str, n: int) -> None:
    made.notes[note] = made.notes.get(note, 0) + n


def _notes(made: Summaries, encoder: TableEncoder) -> list[str]:
    notes = [f"{n:,} x {note}" for note, n in made.notes.items()]
    return [
        f"{name!r}: left out, {why}" for name, kind, why in encoder.summary() if kind == "left out"
    ] + notes
