"""Predict a file piece by piece, so that it may be larger than memory."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import Names, instance
from vntransfer.display import counted, percent, rounded
from vntransfer.errors import ArgumentError, DataError
from vntransfer.progress import Progress, reporter
from vntransfer.storage.files import atomic_write
from vntransfer.storage.places import TABLES, check_file
from vntransfer.tables.columns import MISSING, Column, Frame
from vntransfer.tables.encoder import Findings
from vntransfer.tables.files import CHUNK, chunks, expand, is_parquet, open_table, share_read
from vntransfer.tables.options import DEFAULTS, ReadOptions
from vntransfer.workflows.continual_model import ContinualModel
from vntransfer.workflows.predictions import later_options
from vntransfer.workflows.table_model import TableModel
from vntransfer.workflows.task_responses import as_classes

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""With these a spreadsheet takes a cell for a formula."""

Write = Callable[[Sequence[Any]], None]


@dataclass
class Written:
    """What was predicted, and how near it was to the responses that the file has."""

    rows: int = 0
    notes: list[str] = field(default_factory=list)  # on the columns
    findings: Findings = field(default_factory=Findings)  # on the values
    learned: int = 0  # rows with a response, of places that the model was trained on
    unread: int = 0  # rows whose response is not a number, as numbers are read
    labeled: int = 0  # other rows with a response
    error: float = 0.0  # their mean absolute error; of classes, the share of wrong ones
    squared: float = 0.0  # their mean squared error; of classes the same
    covered: float = 0.0  # share of them inside the interval, NaN without intervals
    classes: bool = False  # whether classes were predicted

    def count(
        self,
        response: Column,
        found: Mapping[str, NDArray[Any]],
        classes: Sequence[str] = (),
        learned: NDArray[Any] | bool = False,
    ) -> None:
        """Compare what was found with the file's responses, but for rows that were learned."""
        value = found["predicted"]
        self.classes = bool(classes)
        if classes:
            truth = as_classes(response.texts(), classes)
            known = ~np.isin(truth, [mark for mark in MISSING if mark not in classes])
            gap = np.asarray(truth != value, dtype=np.float64)
        else:
            truth = response.without_marks().numbers()
            known = np.isfinite(truth)
            self.unread += int(np.isinf(truth).sum())
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
        """Say how near the predictions were to the responses of the file."""
        has = "has" if self.labeled == 1 else "have"
        said = f"{counted(self.labeled, 'row')} {has} a response: "
        if self.classes:
            return said + f"accuracy {percent(1 - self.error)}"
        said += f"mean absolute error {rounded(self.error)}, "
        if np.isnan(self.covered):
            return said + f"root mean squared error {rounded(self.squared**0.5)}"
        return said + f"{percent(self.covered)} inside the interval of {percent(level)}"


@dataclass(frozen=True)
class WriteOptions:
    """Which columns of a table are written next to its predictions, and how."""

    columns: bool = True  # whether the table's own columns are written too
    escape_formulas: bool = False  # csv: an apostrophe before what a spreadsheet would run
    overwrite: bool = False  # whether an existing file is replaced


def predict_file(
    model: TableModel | ContinualModel,
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
        Result of `adapt` or `learn_tasks`.
    path
        A csv or parquet file.
    out
        A csv or parquet file, written completely or not at all; None: nothing is written. An
        existing file is replaced only if the ``write_options`` allow it.
    target
        Target that all rows belong to. If there are several, the column of places assigns each
        row to one of them. None: all targets of the model.
    level
        Level of the intervals.
    read_options
        Format of the file; None: that of the training table, except for the delimiter, which is
        detected. A csv output has the delimiter of the input.
    write_options
        Which columns are written, and how; None: all of them, unchanged.
    progress
        Called with "rows" and the number of rows written; the total is unknown.
    """
    report = reporter(progress)
    instance("model", model, TableModel | ContinualModel, "what adapt or learn_tasks gave")
    written_as = WriteOptions() if write_options is None else write_options
    instance("write_options", written_as, WriteOptions, "WriteOptions or None")
    columns, escape_formulas, overwrite = astuple(written_as)
    file, *more = expand(path)
    if more:
        raise ArgumentError(f"path: {1 + len(more)} files, such as {more[0]}; predict one by one")
    if out is not None:
        check_file("out", out, TABLES, [file], overwrite=overwrite)
    options = later_options(model.read_options, read_options)
    with open_table(file, options) as table:
        done = Written(notes=[*table.notes, *model.check(table.names, target)])
        if not is_parquet(file):
            done.notes += _kept_from_training(options, read_options or DEFAULTS)
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
        # numbers that parquet holds are copied with a point, so predictions have one too
        style = replace(table.options, decimal=".") if is_parquet(file) else table.options
        with _writer(out, written, style, escape_formulas) as write:
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
                share = share_read(table, done.rows)
                report("rows", done.rows, max(done.rows, round(done.rows / share)))
            if not done.rows:
                raise DataError(f"{file}: has a header but no rows; nothing to predict")
    if table.empty_rows:
        done.notes.append(f"{table.empty_rows} empty rows are ignored")
    if elsewhere:
        done.notes.append(
            f"{elsewhere} of {done.rows} rows are not of {place!r}, the target of the model; they "
            f"are predicted anyway"
        )
    if done.unread:
        done.notes.append(
            f"{done.unread} responses are not numbers and are not compared; see "
            f"--decimal, --thousands and --unit"
        )
    if done.learned:
        done.notes.append(
            f"{done.learned} rows with a response are from places that the model was trained "
            f"on and are not compared"
        )
    return done


def _kept_from_training(used: ReadOptions, given: ReadOptions) -> list[str]:
    """Sentences on what a file is read with because the training table was written so."""
    said = {
        "encoding": f"read as {used.encoding}",
        "decimal": "numbers are read with a decimal comma" if used.decimal == "," else None,
        "thousands": f"{used.thousands!r} between digits is read as a thousands separator",
    }
    return [
        f"{text}, as in training; override with --{name}"
        for name, text in said.items()
        if text is not None and getattr(used, name) is not None and getattr(given, name) is None
    ]


def _free_name(taken: Sequence[str]) -> str:
    """Name the column of row numbers as no other is named: row, row of file, ..."""
    name = "row"
    while name in taken:
        name += " of file"
    return name


def _written(chunk: Frame, shown: list[str], found: Mapping[str, NDArray[Any]]) -> list[Any]:
    """Columns in the order in which they are written: row numbers, the file's own, answers."""
    values = [
        Column.of_texts(own.tolist()) if own.dtype == object else own for own in found.values()
    ]
    return [np.asarray(chunk.rows), *(chunk.columns[name] for name in shown), *values]


@contextmanager
def _writer(
    out: str | Path | None, names: list[str], options: ReadOptions, escape: bool
) -> Iterator[Write]:
    """Give a function that writes columns to a file."""
    if out is None:
        yield lambda columns: None
    elif (out := Path(out)).suffix.lower() == ".csv":
        with atomic_write(out, "w") as text:
            writer = csv.writer(text, delimiter=options.delimiter or ",", lineterminator="\n")
            writer.writerow(_escaped(Column.of_texts(names)) if escape else names)
            decimal = options.decimal or "."
            yield lambda columns: writer.writerows(_cells(columns, decimal, escape))
    else:
        with atomic_write(out) as binary, _parquet_writer(binary, names) as write:
            yield write


@contextmanager
def _parquet_writer(file: Any, names: list[str]) -> Iterator[Write]:
    """Give a function that writes columns as row groups; the first ones decide the types."""
    import pyarrow
    import pyarrow.parquet

    def array(own: Any) -> Any:
        if not isinstance(own, Column):
            return pyarrow.array(own, from_pandas=True)
        if own.original is None:  # texts of a csv file
            return pyarrow.array(own.texts(), pyarrow.string(), mask=own.empty())
        return own.original

    writer: Any = None

    def write(columns: Sequence[Any]) -> None:
        nonlocal writer
        table = pyarrow.Table.from_arrays([*map(array, columns)], names=names)
        writer = writer or opened.enter_context(pyarrow.parquet.ParquetWriter(file, table.schema))
        writer.write_table(table)

    with ExitStack() as opened:
        yield write


def _cells(columns: Any, decimal: str, escape: bool) -> Iterator[tuple[str, ...]]:
    """Rows of texts; predictions have the decimal mark of the table."""
    made = []
    for own in columns:
        if not isinstance(own, Column):
            texts = ["" if value != value else f"{value:.10g}" for value in own.tolist()]
            made.append([text.replace(".", decimal) for text in texts])
        elif escape and own.stored == "text":
            made.append(_escaped(own))
        else:
            made.append(own.copies().tolist())
    return zip(*made, strict=True)


def _escaped(column: Column) -> list[str]:
    """Texts, with an apostrophe before what a spreadsheet would run; numbers stay.

    Examples
    --------
    >>> _escaped(Column.of_texts(["=1+1", "-3.5", "flat"]))
    ["'=1+1", '-3.5', 'flat']
    """
    cells = zip(column.texts(), np.isinf(column.numbers()), strict=True)
    return [f"'{text}" if odd and text.startswith(FORMULA) else text for text, odd in cells]
