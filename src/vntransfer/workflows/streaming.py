"""Read tables of any size once, piece by piece, in this process or on workers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import LARGEST
from vntransfer.errors import DataError
from vntransfer.progress import Progress, silent
from vntransfer.relations.summaries import Summaries
from vntransfer.tables import Frame, ReadOptions, TableEncoder
from vntransfer.tables.columns import MISSING, from_arrow
from vntransfer.tables.csv_files import CsvFile
from vntransfer.tables.files import ParquetFile, ahead, chunks, is_parquet, open_table, share_read
from vntransfer.tables.problem import read_places, read_responses

if TYPE_CHECKING:  # it needs torch
    from vntransfer.workflows.moment_stream import MomentStream

LOOK, CELLS = 200_000, 2_000_000
"""Rows, and cells, from which kinds, categories and scales of the columns are taken."""

ROWS, STEP = 65_536, 4_000_000
"""Rows, and cells, per step."""

PART = 4_000_000
"""Rows of a parquet file that make a part: what one worker does at a time."""

MOST = 200
"""Places from which on the column is hardly the one that was meant."""

_FAST_CSV = 32 * 2**20


Into = TypeVar("Into", Summaries, "MomentStream")
"""What rows are taken into; those of parts of a table merge into that of the whole."""


@dataclass(frozen=True)
class ReadingPlan(Generic[Into]):
    """What is read of every file, and how its columns become numbers."""

    domain: str
    response: str
    encoder: TableEncoder
    options: ReadOptions
    random_state: int
    into: Into  # what rows are taken into; empty
    unread: tuple[str, ...] = ()  # places whose responses may be anything

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
        used = [own for own in self.encoder.fields if own.kind != "dropped"]
        return all(own.kind == "number" and not own.missing and own.low < own.high for own in used)


def look(columns: int) -> int:
    """Rows from which kinds, categories and scales of so many columns are taken."""
    return max(2000, min(LOOK, CELLS // columns))


@dataclass(frozen=True)
class FilePart:
    """Some row groups of a parquet file, or a whole csv file."""

    file: Path
    groups: tuple[int, ...] | None
    number: int


def cut(files: Sequence[Path]) -> list[FilePart]:
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


def read_files(
    plan: ReadingPlan[Into],
    files: Sequence[Path],
    *,
    engine: Literal["local", "dask"] | None = None,
    scheduler: str | None = None,
    held: Mapping[Path, Frame] | None = None,
    report: Progress = silent,
) -> Into:
    """Read files once, part by part, here or on the workers of a Dask cluster.

    Rows of files that are ``held`` are not read again. The rows that there are in all are estimated
    from those that have passed.
    """
    parts = cut(files)
    if engine == "dask":
        from vntransfer.workflows.dask_workers import over_workers

        return over_workers(plan, parts, scheduler, report=report)
    made, passed = plan.into.empty(), 0

    def moved(before: int, done: int, rows: int, share: float) -> None:
        nonlocal passed
        passed = before + rows
        report("rows", passed, max(passed, round(passed * len(parts) / (done + share))))

    for part in parts:
        own = (held or {}).get(part.file)
        made.merge(summarize(plan, part, own, partial(moved, passed, part.number)))
    return made


def summarize(
    plan: ReadingPlan[Into],
    part: FilePart,
    held: Frame | None = None,
    moved: Callable[[int, float], None] = lambda rows, share: None,
) -> Into:
    """Read one part once, unless its rows are held; runs wherever its file can be read.

    ``moved`` is called with the number of rows since the last call, and their share of all.
    """
    made, passed = plan.into.empty(), 0
    rng = np.random.default_rng([plan.random_state, part.number])
    if part.groups is not None:
        with open_table(part.file, plan.options) as table:
            assert isinstance(table, ParquetFile)
            first = table.first_rows()
            every = max(1, first[part.groups[-1] + 1] - first[part.groups[0]])
            batches = table.batches(plan.columns, plan.rows, part.groups)
            with ahead(batches) as coming:  # the next ones are read meanwhile
                for rows, batch in coming:
                    if not _add_numbers(made, plan, batch, rng):
                        add_frame(made, plan, table.frame(rows, batch), rng)
                    passed += len(rows)
                    moved(passed, passed / every)
        return made
    if held is not None:
        for at in range(0, len(held), plan.rows):
            some = slice(at, at + plan.rows)
            columns = {name: held.columns[name].take(some) for name in plan.columns}
            add_frame(made, plan, replace(held, columns=columns, rows=held.rows[some]), rng)
            passed = min(at + plan.rows, len(held))
            moved(passed, passed / len(held))
        return made
    large = part.file.suffix == ".csv" and part.file.stat().st_size > _FAST_CSV
    if large and plan.plain and plan.options.thousands is None and not plan.options.units:
        quick = _quick_csv(plan, part, moved)
        if quick is not None:
            return quick
    with open_table(part.file, plan.options) as table:
        for frame in chunks(table, plan.columns, size=plan.rows):
            add_frame(made, plan, frame, rng)
            passed += len(frame)
            moved(passed, share_read(table, passed))
    return made


def _quick_csv(
    plan: ReadingPlan[Into], part: FilePart, moved: Callable[[int, float], None]
) -> Into | None:
    """Let Arrow convert a large csv of numbers; None if a cell does not fit."""
    import pyarrow as pa

    types = dict.fromkeys(plan.columns, pa.float64()) | {plan.domain: pa.string()}
    made, passed = plan.into.empty(), 0
    rng = np.random.default_rng([plan.random_state, part.number])
    with open_table(part.file, plan.options) as file:
        assert isinstance(file, CsvFile)
        try:
            with ahead(file.number_batches(types, MISSING)) as coming:
                for batch in coming:
                    if not _add_numbers(made, plan, batch, rng):
                        return None
                    passed += batch.num_rows
                    moved(passed, share_read(file, passed))
        except (pa.ArrowException, OSError, UnicodeError):
            return None
    return made


def _add_numbers(made: Into, plan: ReadingPlan[Into], batch: Any, rng: np.random.Generator) -> bool:
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
    in_range = (own.max(initial=0) <= LARGEST and own.min(initial=0) >= -LARGEST for own in Z[:-1])
    if not all(in_range) or (np.abs(Z[-1]) > LARGEST).any():  # a NaN among features is not
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


def add_frame(made: Into, plan: ReadingPlan[Into], frame: Frame, rng: np.random.Generator) -> None:
    """Encode rows of any kind and take them in."""
    places = read_places(frame, plan.domain)
    y = read_responses(frame, plan.response, np.isin(places, plan.unread) if plan.unread else None)
    try:
        X, findings = plan.encoder.encode(frame.columns, list(frame.rows))
    except DataError as error:
        raise DataError(f"{frame.name}: {error}") from None
    for name, n in findings.filled.items():
        made.notes[f"{name!r}: missing values, filled with the median of the others"] += n
    for name, counts in findings.unseen.items():
        rare = "rows with rare categories, encoded as none of the known ones"
        made.notes[f"{name!r}: {rare}"] += counts.total()
    order = {name: k for k, name in enumerate(dict.fromkeys(places.tolist()))}
    codes = np.array([order[name] for name in places.tolist()], dtype=np.intp)
    _into(made, plan, codes, list(order), np.vstack((X.T, y)), rng)


def _into(
    made: Into,
    plan: ReadingPlan[Into],
    codes: NDArray[np.intp],
    names: list[str],
    Z: Sequence[NDArray[Any]] | NDArray[np.float64],
    rng: np.random.Generator,
) -> None:
    if len(made.domains.keys() | set(names)) > MOST:
        raise DataError(
            f"column {plan.domain!r}: has more than {MOST} places; is it the column of places? "
            f"If so, group them"
        )
    made.add(codes, names, Z, rng)
