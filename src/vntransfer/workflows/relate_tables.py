"""Tables of any size become summaries: read once, piece by piece, here or on several workers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import DataError
from vntransfer.progress import Progress, silent
from vntransfer.relations import RelateSettings
from vntransfer.relations.summaries import Summaries
from vntransfer.tables import Findings, Frame, TableEncoder, read_frame
from vntransfer.tables.files import (
    Column,
    chunks,
    expand,
    header,
    is_parquet,
    need,
    open_parquet,
    parquet_column,
)
from vntransfer.tables.prefetch import ahead
from vntransfer.tables.preview import first_rows, look
from vntransfer.tables.problem import choose_features, read_places, read_responses
from vntransfer.tables.schema import MISSING

ROWS, STEP = 65_536, 4_000_000
"""Rows, and cells, per step."""

PART = 4_000_000
"""Rows of a parquet file that make a part: what one worker does at a time."""

MOST = 200
"""Places from which on the column is hardly the one that was meant."""

_FAST_CSV = 32 * 2**20
_CSV_BLOCK = 2 * 2**20  # Arrow reads many ahead: with 16 MiB each they alone hold half a GB


@dataclass(frozen=True)
class ReadingPlan:
    """What is read of every file, and how its columns become numbers."""

    domain: str
    response: str
    encoder: TableEncoder
    delimiter: str
    random_state: int

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
    first: int = 2


def read_table(
    data: Any,
    settings: RelateSettings,
    *,
    delimiter: str = ",",
    progress: Progress | None = None,
) -> tuple[Summaries, TableEncoder, list[str]]:
    """Summaries of the domains of a table, how its columns were encoded, and notes.

    See `relate` for the arguments; the settings name the columns of domains and responses.
    """
    domain, response = settings.domain or "", settings.response or ""
    features, drop, category = settings.features, settings.drop, settings.category
    random_state, report = settings.random_state, progress or silent
    if isinstance(data, Frame) or hasattr(data, "columns") or hasattr(data, "keys"):
        frame = read_frame(data)
        names = choose_features(frame.name, list(frame.columns), domain, response, features, drop)
        encoder = TableEncoder.fit(
            {name: frame.columns[name] for name in names},
            wanted=features or (),
            category=category,
        )
        plan = ReadingPlan(domain, response, encoder, delimiter, random_state)
        made = Summaries(len(encoder.names))
        _add(
            made,
            plan,
            Path(frame.name),
            frame.rows,
            frame.columns,
            np.random.default_rng(random_state),
        )
        return made, encoder, _notes(made, encoder)
    files = expand(data)
    first = header(files[0], delimiter)
    names = choose_features(str(files[0]), first, domain, response, features, drop)
    for file in files[1:]:
        need(file, header(file, delimiter), [*names, response, domain])
    looked, rows, all_seen = look(files, names, delimiter)
    encoder = TableEncoder.fit(
        looked,
        rows,
        wanted=features or (),
        category=category,
        called="rows" if all_seen else "rows that were looked at",
    )
    plan = ReadingPlan(domain, response, encoder, delimiter, random_state)
    parts = _parts(files)
    if settings.engine == "dask":
        from vntransfer.workflows.relate_dask import over_workers

        made = over_workers(plan, parts, settings.scheduler)
    else:
        made = Summaries(len(encoder.names))
        for part in parts:
            report(part.file.name, part.number, len(parts))
            made.merge(summarize(plan, part))
        report(files[-1].name, len(parts), len(parts))
    notes = _notes(made, encoder)
    if not all_seen:
        notes.append(
            f"what the columns hold was judged by {len(rows):,} rows from all over the files"
        )
    return made, encoder, notes


def _parts(files: Sequence[Path]) -> list[FilePart]:
    """Cut files into parts, the same ones for every engine: so are the numbers."""
    parts: list[FilePart] = []
    for file in files:
        if not is_parquet(file):
            parts.append(FilePart(file, None, len(parts)))
            continue
        with open_parquet(file) as opened:
            first = first_rows(opened)
        groups: list[int] = []
        for k in range(len(first) - 1):
            groups.append(k)
            if first[k + 1] - first[groups[0]] >= PART or k == len(first) - 2:
                parts.append(FilePart(file, tuple(groups), len(parts), first[groups[0]]))
                groups = []
    return parts


def summarize(plan: ReadingPlan, part: FilePart) -> Summaries:
    """Read one part once. Runs wherever its file can be read."""
    made = Summaries(len(plan.encoder.names))
    rng = np.random.default_rng([plan.random_state, part.number])
    if part.groups is not None:
        with open_parquet(part.file) as opened:
            batches = (
                batch
                for group in part.groups  # one at a time: several at once are held in memory
                for batch in opened.iter_batches(
                    plan.rows, columns=plan.columns, row_groups=[group]
                )
            )
            _add_batches(made, plan, part, batches, rng)
        return made
    if plan.plain and part.file.suffix == ".csv" and part.file.stat().st_size > _FAST_CSV:
        quick = _quick_csv(plan, part)
        if quick is not None:
            return quick
    for chunk in chunks(part.file, plan.columns, delimiter=plan.delimiter, size=plan.rows):
        _add(made, plan, part.file, chunk.rows, chunk.columns, rng)
    return made


def _quick_csv(plan: ReadingPlan, part: FilePart) -> Summaries | None:
    """Read a large csv of numbers by Arrow; None if a cell does not fit: `chunks` says which."""
    try:
        import pyarrow as pa
        import pyarrow.csv
    except ImportError:
        return None
    types = dict.fromkeys(plan.columns, pa.float64()) | {plan.domain: pa.string()}
    made = Summaries(len(plan.encoder.names))
    rng = np.random.default_rng([plan.random_state, part.number])
    try:
        reader = pa.csv.open_csv(
            part.file,
            read_options=pa.csv.ReadOptions(block_size=_CSV_BLOCK),
            parse_options=pa.csv.ParseOptions(delimiter=plan.delimiter),
            convert_options=pa.csv.ConvertOptions(
                column_types=types, include_columns=plan.columns, null_values=list(MISSING)
            ),
        )
        _add_batches(made, plan, part, reader, rng)
    except (pa.ArrowInvalid, KeyError):  # a KeyError: blanks around the names of columns
        return None
    return made


def _add_batches(
    made: Summaries,
    plan: ReadingPlan,
    part: FilePart,
    batches: Iterable[Any],
    rng: np.random.Generator,
) -> None:
    """Take in Arrow batches, the next ones being read meanwhile."""
    row = part.first
    with ahead(batches) as coming:
        for batch in coming:
            _add_batch(made, plan, part.file, row, batch, rng)
            row += batch.num_rows


def _add_batch(
    made: Summaries, plan: ReadingPlan, file: Path, row: int, batch: Any, rng: np.random.Generator
) -> None:
    """Take in an Arrow batch; numbers go straight into a matrix, everything else is encoded."""
    import pyarrow

    numeric = [*plan.encoder.needed, plan.response]
    types = [batch.column(name).type for name in numeric]
    fits = pyarrow.types.is_floating, pyarrow.types.is_integer
    if plan.plain and all(any(fit(kind) for fit in fits) for kind in types):
        Z = [batch.column(name).to_numpy(zero_copy_only=False) for name in numeric]
        if any(own.dtype != np.float32 for own in Z):
            Z = [own.astype(np.float64, copy=False) for own in Z]
        with np.errstate(invalid="ignore", over="ignore"):
            clean = all(np.isfinite(own.sum()) for own in Z[:-1]) and not np.isinf(Z[-1]).any()
        if clean:
            codes, names = _codes(batch.column(plan.domain))
            if "" not in names:
                _into(made, plan, codes, names, Z, rng)
                return
    columns = {name: parquet_column(file, name, batch.column(name)) for name in plan.columns}
    _add(made, plan, file, range(row, row + batch.num_rows), columns, rng)


def _codes(cells: Any) -> tuple[NDArray[np.intp], list[str]]:
    """Places as numbers and their names, "" for an empty cell."""
    import pyarrow

    if not pyarrow.types.is_dictionary(cells.type):
        cells = cells.dictionary_encode()
    values = parquet_column(Path(), "", cells.dictionary).texts()
    codes = cells.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    names = [str(value) for value in values] + ([""] if cells.null_count else [])
    distinct = list(dict.fromkeys(names))
    same = np.array([distinct.index(name) for name in names], dtype=np.intp)
    return same[codes], distinct


def _add(
    made: Summaries,
    plan: ReadingPlan,
    file: Path,
    rows: Sequence[int],
    columns: dict[str, Column],
    rng: np.random.Generator,
) -> None:
    """Encode rows of any kind and take them in."""
    frame = Frame(columns, rows, name=str(file))
    places, y = read_places(frame, plan.domain), read_responses(frame, plan.response)
    findings = Findings()
    try:
        X = plan.encoder.transform(columns, list(rows), findings)
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    for name, n in findings.filled.items():
        _count(made, f"{name!r}: missing values, filled with the middle of the others", n)
    for name, counts in findings.unseen.items():
        _count(
            made,
            f"{name!r}: rows of rare categories, counted as none of the columns",
            counts.total(),
        )
    names, codes = np.unique(places.astype(str), return_inverse=True)
    order = {name: k for k, name in enumerate(dict.fromkeys(places.tolist()))}
    ranks = np.array([order[name] for name in names])
    _into(made, plan, ranks[codes], list(order), np.vstack((X.T, y)), rng)


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
