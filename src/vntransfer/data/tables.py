"""The user's own table: csv or parquet, one file or many, columns by name."""

import csv
import glob
import gzip
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.data.base import Domains, Provenance
from vntransfer.errors import ArgumentError, DataError
from vntransfer.io import file_hash

_CHUNK = 10_000
_EMPTY = ""


@dataclass(frozen=True)
class _Columns:
    """Which columns to read: the domain's (None: the file is the domain), response, features."""

    domain: str | None
    response: str
    features: tuple[str, ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        return (*self.features, self.response)

    @property
    def all(self) -> tuple[str, ...]:
        return self.numbers if self.domain is None else (*self.numbers, self.domain)


def table(
    path: str | Path | Sequence[str | Path],
    *,
    domain: str | None = None,
    response: str,
    features: Sequence[str] | None = None,
    targets: Sequence[str] = (),
    delimiter: str = ",",
    name: str = "table",
) -> Domains:
    r"""Domains from csv or parquet files whose columns have names.

    Parameters
    ----------
    path
        A file (csv, csv.gz or parquet), a pattern such as ``"data/*.csv"``, or several of them.
    domain
        Column that names each row's domain; None: each file is a domain, named after it.
    response
        Column with the number to predict. A domain where all of it is empty is unlabelled: its
        y is NaN.
    features
        Columns to predict from; None: all others.
    targets
        Domains that serve as target by default.
    delimiter
        Between the cells of a csv file.
    name
        Of the result.

    Raises
    ------
    DataError
        Names file, row (the header is row 1), column and value of what does not fit.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "rooms.csv")
    >>> _ = path.write_text("room,t,load\nhall,20,1.5\nhall,21,2\nattic,25,3\nattic,24,2.5\n")
    >>> rooms = table(path, domain="room", response="load")
    >>> rooms, rooms["attic"][1]
    (<Domains table: 2 domains, 4 rows x 1 features>, array([3. , 2.5]))
    """
    paths = _expand(path)
    names = tuple(features) if features is not None else None
    blocks: dict[str, list[NDArray[np.float64]]] = {}
    wanted: _Columns | None = None
    for file in paths:
        parquet = file.suffix.lower() in (".parquet", ".pq")
        header = _parquet_header(file) if parquet else _csv_header(file, delimiter)
        if names is None:
            names = tuple(column for column in header if column not in (domain, response))
        wanted = _choose(file, header, domain, response, names)
        rows = 0
        chunks = _parquet_chunks if parquet else _csv_chunks
        for labels, numbers in chunks(file, wanted, delimiter):
            rows += len(numbers)
            for label in dict.fromkeys(labels):
                blocks.setdefault(label, []).append(numbers[np.asarray(labels) == label])
        if not rows:
            raise DataError(f"{file}: has a header but no rows; drop the file or fill it")
    domains = {}
    for label, parts in blocks.items():
        whole = np.concatenate(parts)
        x, y = whole[:, :-1], whole[:, -1]
        if np.isnan(y).any() and not np.isnan(y).all():
            raise DataError(
                f"{paths[0]}: column {response!r} is empty in {int(np.isnan(y).sum())} of {len(y)} "
                f"rows of domain {label!r}; fill or drop them, or empty all (an unlabelled domain)"
            )
        domains[label] = (np.ascontiguousarray(x), np.ascontiguousarray(y))
    assert wanted is not None  # _expand gives at least one file
    return Domains(
        name,
        domains,
        feature_names=wanted.features,
        response_name=response,
        targets=tuple(targets),
        provenance=Provenance(
            built=(f"rows of {len(paths)} file(s), domain by {domain or 'file'}",),
            sources=tuple(str(file) for file in paths),
            sha256={file.name: file_hash(file) for file in paths},
        ),
    )


def _expand(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """Files named by one or several paths or patterns, each once."""
    several = [path] if isinstance(path, str | Path) else list(path)
    found: list[Path] = []
    for item in several:
        if Path(item).is_file():
            found.append(Path(item))
            continue
        matches = sorted(Path(match) for match in glob.glob(str(item), recursive=True))
        found += (files := [match for match in matches if match.is_file()])
        if not files:
            raise DataError(f"path: no file {str(item)!r}; give a csv or parquet file or a pattern")
    if not found:
        raise ArgumentError("path: got an empty list; give at least one file")
    return list(dict.fromkeys(found))


def _choose(
    file: Path, header: Sequence[str], domain: str | None, response: str, features: tuple[str, ...]
) -> _Columns:
    """Check that the columns are there, once, and that there are features."""
    chosen = _Columns(domain, response, features)
    if repeated := [column for column in dict.fromkeys(header) if header.count(column) > 1]:
        raise DataError(f"{file}: column {repeated[0]!r} is there twice; rename one")
    for column in chosen.all:
        if column not in header:
            close = get_close_matches(column, header, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(header)[:300]}"
            raise DataError(f"{file}: has no column {column!r}; {hint}")
    if not features:
        raise DataError(f"{file}: no column is left as a feature; it has {', '.join(header)}")
    if doubled := {response, domain} & set(features):
        raise ArgumentError(f"features: {doubled.pop()!r} is also the response or the domain")
    return chosen


def _csv_header(file: Path, delimiter: str) -> list[str]:
    header = next(_csv_rows(file, delimiter), None)
    if header is None:
        raise DataError(f"{file}: is empty; expected a line with the names of the columns")
    return header


def _csv_rows(file: Path, delimiter: str) -> Iterator[list[str]]:
    """Rows of cells; errors of encoding and quoting name the place."""
    opened = gzip.open if file.suffix.lower() == ".gz" else open
    with opened(file, "rt", encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            yield from reader
        except UnicodeDecodeError as error:
            raise DataError(
                f"{file}: not UTF-8 text (byte {error.object[error.start]:#04x} after row "
                f"{reader.line_num}); save it as UTF-8"
            ) from error
        except (EOFError, gzip.BadGzipFile) as error:
            raise DataError(f"{file}: damaged gzip ({error}); get it again") from error
        except csv.Error as error:
            raise DataError(f"{file}: malformed csv near row {reader.line_num}: {error}") from error


def _csv_chunks(
    file: Path, wanted: _Columns, delimiter: str
) -> Iterator[tuple[list[str], NDArray[np.float64]]]:
    rows = _csv_rows(file, delimiter)
    header = next(rows)
    at = [header.index(column) for column in wanted.numbers]
    where = None if wanted.domain is None else header.index(wanted.domain)
    first = 2
    while chunk := list(islice(rows, _CHUNK)):
        for row, line in enumerate(chunk, start=first):
            if len(line) != len(header) and line:
                raise DataError(
                    f"{file}: row {row} has {len(line)} cells, the header {len(header)}; is "
                    f"{delimiter!r} the delimiter?"
                )
        full = [(row, line) for row, line in enumerate(chunk, start=first) if line]
        first += len(chunk)
        numbers = [row for row, _ in full]
        labels = [file.stem if where is None else line[where].strip() for _, line in full]
        _check_labels(file, wanted, numbers, labels)
        cells = [[line[i].strip() for i in at] for _, line in full]
        yield labels, _csv_numbers(file, wanted, numbers, cells)


def _csv_numbers(
    file: Path, wanted: _Columns, rows: Sequence[int], cells: list[list[str]]
) -> NDArray[np.float64]:
    """Cells as numbers; only the last column, the response, may be empty (NaN)."""
    filled = [[*line[:-1], line[-1] or "nan"] for line in cells]
    try:
        values = np.array(filled, dtype=np.float64).reshape(len(cells), len(wanted.numbers))
    except ValueError:
        values = np.array([[_number(cell) for cell in line] for line in filled])
    _check_values(file, wanted, rows, values, lambda i, j: cells[i][j])
    return values


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.inf  # found by _check_values, which reports what is written there


def _check_values(
    file: Path,
    wanted: _Columns,
    rows: Sequence[int],
    values: NDArray[np.float64],
    written: Callable[[int, int], object],
) -> None:
    bad = ~np.isfinite(values)
    bad[:, -1] = np.isinf(values[:, -1])
    if bad.any():
        i, j = map(int, np.argwhere(bad)[0])
        raise DataError(
            f"{file}: row {rows[i]}, column {wanted.numbers[j]!r}: {str(written(i, j))[:40]!r} is "
            "not a finite number; mend it, or name the numeric columns in features="
        )


def _check_labels(file: Path, wanted: _Columns, rows: Sequence[int], labels: Sequence[str]) -> None:
    if _EMPTY in labels:
        raise DataError(
            f"{file}: row {rows[labels.index(_EMPTY)]}, column {wanted.domain!r}: is empty; name "
            "the row's domain"
        )


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(
            "path: parquet files need pyarrow: run `pip install 'vntransfer[tables]'` or save the "
            "table as csv"
        ) from error
    return pyarrow.parquet


def _open_parquet(file: Path) -> Any:
    try:
        return _parquet().ParquetFile(file)
    except (OSError, ValueError) as error:  # pyarrow.ArrowInvalid is a ValueError
        raise DataError(f"{file}: not a readable parquet file ({error})") from error


def _parquet_header(file: Path) -> list[str]:
    with _open_parquet(file) as opened:
        return list(opened.schema_arrow.names)


def _parquet_chunks(
    file: Path, wanted: _Columns, delimiter: str
) -> Iterator[tuple[list[str], NDArray[np.float64]]]:
    first = 2  # as in a csv file, whose header is row 1
    with _open_parquet(file) as opened:
        for batch in opened.iter_batches(_CHUNK, columns=list(wanted.all)):
            rows = range(first, first + batch.num_rows)
            columns = [batch.column(column) for column in wanted.numbers]
            values = np.column_stack([_parquet_numbers(column) for column in columns])
            _check_values(file, wanted, rows, values, lambda i, j: columns[j][i].as_py())  # noqa: B023 called at once
            if wanted.domain is None:
                labels = [file.stem] * batch.num_rows
            else:
                named = batch.column(wanted.domain).to_pylist()
                labels = [_EMPTY if value is None else str(value).strip() for value in named]
            _check_labels(file, wanted, rows, labels)
            first += batch.num_rows
            yield labels, values


def _parquet_numbers(column: Any) -> NDArray[np.float64]:
    """Column as numbers: NaN where it is empty, infinity where it is none (a text, a date)."""
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind in "biuf":
        return np.asarray(values, dtype=np.float64)
    return np.array([math.nan if v is None else _number(v) for v in column.to_pylist()])
