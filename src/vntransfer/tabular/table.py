"""A table of one's own, and who is who in it: sources with a response, targets without."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.data.cells import Column, Stored, chunks, expand, header, need
from vntransfer.errors import ArgumentError, DataError, DomainError
from vntransfer.io import file_hash
from vntransfer.tabular.encoder import Findings, TableEncoder
from vntransfer.tabular.schema import without_marks

LEAST = 10
"""Labelled rows that are needed at least."""

LABELLED = " (labelled)"
"""Ends the name of the source that a target's labelled rows make."""

Floats = NDArray[np.float64]


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


def read_frame(data: Any, *, columns: Sequence[str] | None = None, delimiter: str = ",") -> Frame:
    """Read a table.

    Parameters
    ----------
    data
        A csv, csv.gz or parquet file, several files or a pattern; or a table in memory: a mapping
        of columns, a pandas or a polars frame.
    columns
        Those to read; None: all.
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
        wanted = names if columns is None and not parts else list(columns or parts)
        need(file, names, wanted)
        for chunk in chunks(file, wanted, delimiter=delimiter):
            rows += chunk.rows
            for name, cells in chunk.columns.items():
                parts.setdefault(name, []).append(cells)
    if not rows:
        raise DataError(f"{files[0]}: has a header but no rows; fill it")
    joined = {name: _join(name, own) for name, own in parts.items()}
    return Frame(joined, rows, {file.name: file_hash(file) for file in files}, str(files[0]))


def _join(name: str, parts: Sequence[Column]) -> Column:
    if len(stored := {own.stored for own in parts}) > 1:
        raise DataError(f"column {name!r}: {' and '.join(sorted(stored))} in different files")
    return Column(parts[0].stored, np.concatenate([own.values for own in parts]))


def _in_memory(data: Any, columns: Sequence[str] | None) -> Frame:
    keys = list(data if isinstance(data, Mapping) else data.columns)
    names = [str(key) for key in keys]
    if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise DataError(f"table: column {repeated[0]!r} is there twice; rename one")
    wanted = names if columns is None else list(columns)
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


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of sources and targets, encoded; what ``fit`` of an estimator takes.

    Parameters
    ----------
    X
        Encoded rows (n, p).
    y
        Responses (n,), NaN in rows of targets.
    domain
        Place of each row, (n,).
    targets
        Places without a response; none if all are known.
    encoder
        How the columns became numbers.
    findings
        What is unusual in the rows of the targets.
    notes
        Sentences on rows that were left out, and on what was not used.
    names
        The columns of place and response.
    sha256
        Of the files.
    """

    X: Floats
    y: Floats
    domain: NDArray[Any]
    targets: tuple[str, ...]
    encoder: TableEncoder
    findings: Findings
    notes: tuple[str, ...]
    names: tuple[str, str]
    sha256: Mapping[str, str]

    @property
    def sources(self) -> list[str]:
        """Places with a response, in their order in the table."""
        return [name for name in dict.fromkeys(self.domain.tolist()) if name not in self.targets]

    def items(self) -> Iterator[tuple[str, tuple[Floats, Floats]]]:
        """Give the sources as name, (X, y)."""
        for name in self.sources:
            own = self.domain == name
            yield name, (self.X[own], self.y[own])


def read_problem(
    data: Any,
    *,
    domain: str,
    response: str,
    targets: Sequence[str] = (),
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    category: Sequence[str] = (),
    use_target_labels: bool = False,
    delimiter: str = ",",
) -> Problem:
    """Read a table and encode its columns, learning the encoding from labelled rows alone.

    Parameters
    ----------
    data, delimiter
        See `read_frame`.
    domain, response
        Columns that say where a row comes from, and what is to be predicted.
    targets
        Places to predict for; their responses are not read.
    features
        Columns to predict from; None: all others.
    drop
        Columns to leave out.
    category
        Columns that hold categories even if they look like numbers.
    use_target_labels
        Whether rows of targets that have a response become a source, "NAME (labelled)".

    Examples
    --------
    >>> town = ["A"] * 6 + ["B"] * 6 + ["C"] * 3
    >>> rooms, price = [*range(1, 16)], [*range(10, 22), None, None, None]
    >>> table = {"town": town, "rooms": rooms, "garden": [True, False, True] * 5, "price": price}
    >>> problem = read_problem(table, domain="town", response="price", targets=["C"])
    >>> problem.sources, problem.targets, problem.encoder.names, problem.X.shape
    (['A', 'B'], ('C',), ['rooms', 'garden'], (15, 2))
    """
    frame = read_frame(data, delimiter=delimiter)
    names = choose_features(frame.name, list(frame.columns), domain, response, features, drop)
    places, y = read_places(frame, domain), read_responses(frame, response)
    notes: list[str] = []
    _check_targets(frame, places, targets)
    aimed = np.isin(places, targets)
    known = ~np.isnan(y)
    if use_target_labels:
        own = aimed & known
        for name in targets:
            if not (aimed & ~known & (places == name)).any():
                raise DomainError(
                    f"target: all rows of {name!r} have a response, none is left to predict; leave "
                    f"--use-target-labels out to treat them as unknown"
                )
        if own.any():
            notes.append(f"{int(own.sum())} labelled rows of targets serve as sources")
        places = np.where(own, places + LABELLED, places)
        aimed &= ~known
    elif (seen := int((aimed & known).sum())) > 0:
        notes.append(
            f"{seen} rows of targets have a response, which is not read; --use-target-labels "
            f"(use_target_labels=True) lets them help"
        )
    notes += _left_out(places, aimed, known)
    labelled = known & ~aimed
    _check_labelled(frame, response, y, labelled, places)
    rows = np.flatnonzero(labelled)
    columns = {name: frame.columns[name] for name in names}
    numbers = np.asarray(frame.rows)
    encoder = TableEncoder.fit(
        {name: column.take(rows) for name, column in columns.items()},
        numbers[rows].tolist(),
        wanted=features or (),
        category=category,
        called="labelled rows",
    )
    used, findings = np.flatnonzero(labelled | aimed), Findings()
    X = encoder.transform(
        {name: column.take(used) for name, column in columns.items()}, numbers[used].tolist()
    )
    if aimed.any():
        taken = {name: column.take(aimed) for name, column in columns.items()}
        encoder.transform(taken, numbers[aimed].tolist(), findings)
    return Problem(
        X,
        np.where(aimed, np.nan, y)[used],
        places[used],
        tuple(dict.fromkeys(targets)),
        encoder,
        findings,
        tuple(notes),
        (domain, response),
        frame.sha256,
    )


def choose_features(
    table: str,
    every: Sequence[str],
    domain: str,
    response: str,
    features: Sequence[str] | None,
    drop: Sequence[str],
) -> list[str]:
    """Name the columns to predict from, among all of a table, checking those that were named."""
    need(Path(table), every, [domain, response, *(features or ()), *drop])
    if domain == response:
        raise ArgumentError(f"response: {response!r} is also the domain; name another column")
    roles = {domain, response}
    if doubled := roles & set(features or ()):
        raise ArgumentError(f"features: {doubled.pop()!r} is also the response or the domain")
    if doubled := roles & set(drop):
        raise ArgumentError(f"drop: {doubled.pop()!r} is the response or the domain")
    wanted = every if features is None else features
    names = [n for n in wanted if n not in roles and n not in drop]
    if not names:
        raise DataError(f"{table}: no column is left as a feature; it has {', '.join(every)}")
    return list(dict.fromkeys(names))


def read_places(frame: Frame, domain: str) -> NDArray[Any]:
    """Give the place (or task) of each row as text."""
    places = frame.columns[domain].texts()
    if (blank := places == "").any():
        row = frame.rows[int(blank.argmax())]
        raise DataError(
            f"{frame.name}: row {row}, column {domain!r}: is empty; say where the row comes from"
        )
    return places


def read_responses(frame: Frame, response: str) -> Floats:
    """Give the response of each row as a number, NaN where it is not known."""
    column = without_marks(frame.columns[response])
    y = column.numbers()
    if (bad := np.isinf(y)).any():
        i = int(bad.argmax())
        raise DataError(
            f"{frame.name}: row {frame.rows[i]}, column {response!r}: {column.texts()[i][:40]!r} "
            f"is not a finite number; the response must be one (code classes as 0 and 1, or leave "
            f"the cell empty where it is unknown)"
        )
    return y


def _check_targets(frame: Frame, places: NDArray[Any], targets: Sequence[str]) -> None:
    every = list(dict.fromkeys(places.tolist()))
    for name in targets:
        if name not in every:
            close = get_close_matches(name, every, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(every[:20])}"
            raise DomainError(f"target: {frame.name} has no place {name!r}; {hint}")
    if len(every) < 2:
        raise DomainError(
            f"domain: {frame.name} has one place, {every[0]!r}; at least two are needed, one of "
            f"them with a response"
        )


def _left_out(places: NDArray[Any], aimed: NDArray[Any], known: NDArray[Any]) -> list[str]:
    notes = []
    for name in dict.fromkeys(places[~aimed & ~known].tolist()):
        own = (places == name) & ~aimed
        gone, all_of = int((own & ~known).sum()), int(own.sum())
        why = "and is not a target" if gone == all_of else ""
        notes.append(f"{gone} of {all_of} rows of {name!r} have no response {why}".rstrip())
    return [f"{note}: left out" for note in notes]


def _check_labelled(
    frame: Frame, response: str, y: Floats, labelled: NDArray[Any], places: NDArray[Any]
) -> None:
    n = int(labelled.sum())
    if n < LEAST:
        raise DataError(
            f"{frame.name}: {n} rows of sources have a response in {response!r}; at least {LEAST} "
            f"are needed (is the target the place without responses?)"
        )
    if np.ptp(y[labelled]) == 0:
        raise DataError(
            f"{frame.name}: column {response!r} is {y[labelled][0]:g} in all labelled rows; there "
            f"is nothing to learn"
        )
