"""Predictions of a file, written piece by piece: files larger than memory are no trouble."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import Names
from vntransfer.errors import ArgumentError, DataError
from vntransfer.progress import Progress, silent
from vntransfer.storage.files import atomic_write
from vntransfer.storage.places import check_file
from vntransfer.tables.columns import MISSING, Column
from vntransfer.tables.encoder import Findings, TableEncoder
from vntransfer.tables.files import CHUNK, Chunk, chunks, expand, is_parquet, open_table
from vntransfer.tables.options import ReadOptions
from vntransfer.workflows.predictions import Answers, later_options

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""With these a spreadsheet takes a cell for a formula."""

Write = Callable[[Sequence[Any]], None]


class Predictor(Protocol):
    """What predicts a file: a `TableModel`, or a `ContinualModel`."""

    @property
    def encoder(self) -> TableEncoder:
        """How columns become numbers."""

    @property
    def roles(self) -> tuple[str, str]:
        """The columns of place (or task) and response."""

    @property
    def gives(self) -> tuple[str, ...]:
        """What `answers` has: "predicted", and the ends of intervals if there are any."""

    @property
    def classes(self) -> tuple[str, ...]:
        """What can be predicted; empty for numbers."""

    @property
    def sources(self) -> frozenset[str]:
        """Places with which nothing is compared, since their responses were learned."""

    @property
    def read_options(self) -> ReadOptions:
        """How the training table was written."""

    def made_for(self, target: Names | None) -> str | None:
        """Name the place that all rows are predicted for; None: what each row says."""

    def check(self, names: Sequence[str], target: Names | None) -> list[str]:
        """Give notes on the columns of a table, or say what is missing."""

    def answers(
        self,
        columns: Mapping[str, Column],
        rows: Sequence[int],
        *,
        target: Names | None,
        level: float,
    ) -> Answers:
        """Predict rows: numbers, or texts for classes."""


@dataclass
class Written:
    """What was predicted.

    Parameters
    ----------
    rows
        Number of rows.
    notes
        On the columns.
    findings
        On the values.
    learned
        Rows of the file with a response that are of places that the model was trained on.
    labeled
        Other rows of the file that have a response.
    error, squared
        Their mean absolute and mean squared error; of classes both are the share of wrong ones.
    covered
        Share of them inside the interval, NaN if there are no intervals.
    classes
        Whether classes were predicted.
    """

    rows: int = 0
    notes: list[str] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    learned: int = 0
    labeled: int = 0
    error: float = 0.0
    squared: float = 0.0
    covered: float = 0.0
    classes: bool = False

    def count(
        self,
        response: Column,
        found: Mapping[str, NDArray[Any]],
        classes: Sequence[str] = (),
        learned: NDArray[Any] | bool = False,
    ) -> None:
        """Compare predictions with responses, where there are any.

        Parameters
        ----------
        response
            What the file has.
        found
            What was predicted.
        classes
            What can be predicted; empty for numbers.
        learned
            Rows that the model was trained on.
        """
        value = found["predicted"]
        self.classes = bool(classes)
        if classes:
            truth = _as_classes(response.texts(), classes)
            known = ~np.isin(truth, [mark for mark in MISSING if mark not in classes])
            gap = np.asarray(truth != value, dtype=np.float64)
        else:
            truth = response.without_marks().numbers()
            known = np.isfinite(truth)
            gap = np.abs(truth - value)
        self.learned += int((known & learned).sum())
        known &= ~np.asarray(learned)
        if not (n := int(known.sum())):
            return
        inside = np.full(len(gap), np.nan)
        if "low" in found and np.isfinite(found["low"]).any():
            inside = ((truth >= found["low"]) & (truth <= found["high"])).astype(np.float64)
        self.labeled += n
        share = n / self.labeled
        self.error += share * (float(gap[known].mean()) - self.error)
        self.squared += share * (float((gap[known] ** 2).mean()) - self.squared)
        self.covered += share * (float(inside[known].mean()) - self.covered)

    def comparison(self, level: float) -> str:
        """Say how near the predictions were to the responses of the file.

        Examples
        --------
        >>> Written(labeled=4, error=0.25, covered=np.nan, classes=True).comparison(0.9)
        '4 rows have a response: accuracy 0.75'
        >>> Written(labeled=4, error=1.5, covered=0.75).comparison(0.9)
        '4 rows have a response: mean absolute error 1.5, 75.0% inside the interval of 90%'
        """
        said = f"{self.labeled} rows have a response: "
        if self.classes:
            return said + f"accuracy {1 - self.error:.4g}"
        said += f"mean absolute error {self.error:.4g}, "
        if np.isnan(self.covered):
            return said + f"root mean squared error {self.squared**0.5:.4g}"
        return said + f"{self.covered:.1%} inside the interval of {level:.0%}"


@dataclass(frozen=True)
class WriteOptions:
    """What of a table is written beside its predictions, and how.

    Parameters
    ----------
    columns
        Whether the table's own columns are written too.
    escape_formulas
        Whether texts that a spreadsheet would take for formulas get an apostrophe in front (csv).
    """

    columns: bool = True
    escape_formulas: bool = False


def predict_file(
    model: Predictor,
    path: str | Path,
    out: str | Path | None = None,
    *,
    target: Names | None = None,
    level: float = 0.9,
    read_options: ReadOptions | None = None,
    write_options: WriteOptions | None = None,
    progress: Progress | None = None,
) -> Written:
    """Predict the rows of a file and write them to another.

    Parameters
    ----------
    model
        What `adapt` or `learn_tasks` gave.
    path
        A csv or parquet file.
    out
        A csv or parquet file, written whole or not at all; None: nothing is written.
    target
        Which one all rows are of; several: the column of places says which of them each row is
        of. None: the only one, or any of the model's.
    level
        Of the intervals.
    read_options
        How the file is written; what is not given is as in the training table, but for the
        delimiter, which is detected. A csv file is written with the same delimiter.
    write_options
        What of the file is written, and how; None: all of it, as it is.
    progress
        Called with "rows" and how many are written; how many there are is not known.
    """
    file, *more = expand(path)
    if more:
        raise ArgumentError(f"path: {1 + len(more)} files, such as {more[0]}; predict one by one")
    if out is not None:
        check_file(out, [file])
    options = later_options(model.read_options, read_options)
    columns, escape_formulas = astuple(write_options or WriteOptions())
    with open_table(file, options) as table:
        done = Written(notes=[*table.notes, *model.check(table.names, target)])
        asked = None if read_options is None else read_options.encoding
        if asked is None and table.options.encoding is not None:
            done.notes.append(
                f"read as {table.options.encoding}, as in training; override with --encoding"
            )
        names, (domain, response) = table.names, model.roles
        added = [f"{response} {what}" for what in model.gives]
        if taken := [name for name in added if name in names]:
            raise DataError(f"{file}: has a column {taken[0]!r} already; rename it or drop it")
        shown = names if columns else [n for n in (domain,) if n in names]
        needed = {*model.encoder.needed, *model.roles}
        # of csv all is read: a row is empty only if every cell is
        wanted = [n for n in names if columns or n in needed or not is_parquet(file)]
        written = [_free_name(shown), *shown, *added]
        place, elsewhere = model.made_for(target) if target is None else None, 0
        with _writer(out, written, table.options.delimiter or ",", escape_formulas) as write:
            for chunk in chunks(table, wanted, size=CHUNK, copied={*names} - needed):
                found = model.answers(chunk.columns, chunk.rows, target=target, level=level)
                done.findings += found.findings
                done.rows += len(chunk.rows)
                places = chunk.columns[domain].texts() if domain in chunk.columns else None
                if place is not None and places is not None:
                    elsewhere += int((places != place).sum())
                if response in chunk.columns:
                    learned = False if places is None else np.isin(places, [*model.sources])
                    done.count(chunk.columns[response], found.columns, model.classes, learned)
                write(_written(chunk, shown, found.columns))
                (progress or silent)("rows", done.rows, None)
            if not done.rows:
                raise DataError(f"{file}: has a header but no rows; nothing to predict")
    if table.empty_rows:
        done.notes.append(f"{table.empty_rows} empty rows are left out")
    if elsewhere:
        done.notes.append(
            f"{elsewhere} of {done.rows} rows are not of {place!r}, which the model is made for, "
            f"and are predicted anyway"
        )
    if done.learned:
        done.notes.append(
            f"{done.learned} rows have a response and are of places that the model was trained on: "
            f"not compared"
        )
    return done


def _as_classes(texts: NDArray[Any], classes: Sequence[str]) -> NDArray[Any]:
    """Write classes as the model does: True is true, and 1.0 is 1.

    Examples
    --------
    >>> _as_classes(np.array(["1.0", "no"], dtype=object), ["0", "1"]).tolist()
    ['1', 'no']
    """
    known = {_plain(name): name for name in classes}
    written = {
        text: text if text in classes else known.get(_plain(text), text) for text in set(texts)
    }
    return np.array([written[text] for text in texts], dtype=object)


def _plain(text: str) -> str:
    """Write booleans and numbers in one way."""
    value = Column.of_texts([text]).numbers()[0]
    if np.isfinite(value):
        return repr(float(value))
    return text.lower() if text.lower() in ("true", "false") else text


def _free_name(taken: Sequence[str]) -> str:
    """Name the column of row numbers as no other is named.

    Examples
    --------
    >>> _free_name(["town"]), _free_name(["row", "row of file"])
    ('row', 'row of file of file')
    """
    name = "row"
    while name in taken:
        name += " of file"
    return name


def _written(chunk: Chunk, shown: list[str], found: Mapping[str, NDArray[Any]]) -> list[Any]:
    """Columns in the order in which they are written: row numbers, the file's own, answers."""
    values = [
        Column.of_texts(own.tolist()) if own.dtype == object else own for own in found.values()
    ]
    return [np.asarray(chunk.rows), *(chunk.columns[name] for name in shown), *values]


@contextmanager
def _writer(
    out: str | Path | None, names: list[str], delimiter: str, escape: bool
) -> Iterator[Write]:
    if out is None:
        yield lambda columns: None
        return
    out = Path(out)
    if out.suffix.lower() == ".csv":
        with atomic_write(out, "w") as text:
            writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
            writer.writerow([_escaped(name) if escape else name for name in names])
            yield lambda columns: writer.writerows(_cells(columns, escape))
    elif out.suffix.lower() in (".parquet", ".pq"):
        with atomic_write(out) as binary, _Parquet(binary, names) as parquet:
            yield parquet.write
    else:
        raise ArgumentError(f"out: {out} should end in .csv or .parquet")


def _cells(columns: Any, escape: bool) -> Iterator[tuple[str, ...]]:
    """Rows of texts; numbers are never escaped, a minus is theirs."""
    made = []
    for own in columns:
        if not isinstance(own, Column):
            made.append(["" if value != value else f"{value:.10g}" for value in own.tolist()])
        elif escape and own.stored == "text":
            made.append([_escaped(text) for text in own.texts()])
        else:
            made.append(own.copies().tolist())
    return zip(*made, strict=True)


def _escaped(text: str) -> str:
    """Put an apostrophe before what a spreadsheet would run; plain numbers stay.

    Examples
    --------
    >>> _escaped("=1+1"), _escaped("-3.5"), _escaped("flat")
    ("'=1+1", '-3.5', 'flat')
    """
    if not text.startswith(FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


class _Parquet:
    """Writes columns as row groups; the first ones decide the types."""

    def __init__(self, file: Any, names: list[str]) -> None:
        self.file, self.names = file, names
        self.writer: Any = None

    def __enter__(self) -> "_Parquet":
        return self

    def __exit__(self, *error: object) -> None:
        if self.writer is not None:
            self.writer.close()

    def write(self, columns: Sequence[Any]) -> None:
        import pyarrow
        import pyarrow.parquet

        arrays = []
        for own in columns:
            if not isinstance(own, Column):
                arrays.append(pyarrow.array(own, from_pandas=True))
            elif own.original is None:  # texts of a csv file
                arrays.append(pyarrow.array(own.texts(), pyarrow.string(), mask=own.empty()))
            else:
                arrays.append(own.original)
        table = pyarrow.Table.from_arrays(arrays, names=self.names)
        if self.writer is None:
            self.writer = pyarrow.parquet.ParquetWriter(self.file, table.schema)
        self.writer.write_table(table)
