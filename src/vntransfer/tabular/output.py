"""Predictions of a file, written piece by piece: files larger than memory are no trouble."""

import csv
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.data.cells import CHUNK, Chunk, Column, chunks, expand, header
from vntransfer.errors import ArgumentError, DataError
from vntransfer.io import atomic_write, report
from vntransfer.tabular.encoder import Findings
from vntransfer.tabular.model import Predictions, TableModel
from vntransfer.tabular.schema import without_marks

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""With these a spreadsheet takes a cell for a formula."""

Write = Callable[[Mapping[str, Any]], None]


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
    labelled
        Rows of the file that have a response.
    error, covered
        Their mean absolute error, and the share of them inside the interval.
    """

    rows: int = 0
    notes: list[str] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    labelled: int = 0
    error: float = 0.0
    covered: float = 0.0

    def count(self, truth: NDArray[np.float64], found: Predictions) -> None:
        """Compare predictions with responses, where there are any."""
        known = np.isfinite(truth)
        if not (n := int(known.sum())):
            return
        share = n / (self.labelled + n)
        gap = np.abs(truth - found.value)[known].mean()
        inside = ((truth >= found.low) & (truth <= found.high))[known].mean()
        self.labelled += n
        self.error += share * (float(gap) - self.error)
        self.covered += share * (float(inside) - self.covered)


def predict_file(
    model: TableModel,
    path: str | Path,
    out: str | Path | None = None,
    *,
    target: str | None = None,
    level: float = 0.9,
    columns: bool = True,
    escape_formulas: bool = False,
    delimiter: str = ",",
    size: int = CHUNK,
) -> Written:
    """Predict the rows of a file and write them to another.

    Parameters
    ----------
    model
        The model.
    path
        A csv, csv.gz or parquet file.
    out
        A csv or parquet file, written whole or not at all; None: nothing is written.
    target
        Which one the rows are of; None: the only one, or what the column of places says.
    level
        Of the intervals.
    columns
        Whether the file's own columns are written too.
    escape_formulas
        Whether texts that a spreadsheet would take for formulas get an apostrophe in front (csv).
    delimiter
        Of the csv file that is read, and written.
    size
        Rows at a time.
    """
    (file,) = expand(path)[:1]
    names = header(file, delimiter)
    done = Written(notes=model.check(names, target))
    domain, response = model.names
    wanted = names if columns else [n for n in names if n in {*model.encoder.needed, *model.names}]
    added = [f"{response} predicted", f"{response} low", f"{response} high"]
    if taken := [name for name in added if name in names]:
        raise DataError(f"{file}: has a column {taken[0]!r} already; rename it or drop it")
    shown = wanted if columns else [n for n in (domain,) if n in names]
    with _writer(out, ["row", *shown, *added], delimiter, escape_formulas) as write:
        for chunk in chunks(file, wanted, delimiter=delimiter, size=size):
            found = model.predict_columns(
                chunk.columns, chunk.rows, target=target, level=level, findings=done.findings
            )
            done.rows += len(chunk.rows)
            if response in chunk.columns:
                done.count(without_marks(chunk.columns[response]).numbers(), found)
            write(_record(chunk, shown, added, found))
            report("rows", done.rows, None)
        if not done.rows:
            raise DataError(f"{file}: has a header but no rows; nothing to predict")
    return done


def _record(chunk: Chunk, shown: list[str], added: list[str], found: Predictions) -> dict[str, Any]:
    values = (found.value, found.low, found.high)
    return {
        "row": np.asarray(chunk.rows),
        **{name: chunk.columns[name] for name in shown},
        **dict(zip(added, values, strict=True)),
    }


@contextmanager
def _writer(
    out: str | Path | None, names: list[str], delimiter: str, escape: bool
) -> Iterator[Write]:
    if out is None:
        yield lambda record: None
        return
    out = Path(out)
    if "row" in names[1:]:
        names = [f"{names[0]} of file", *names[1:]]
    if out.suffix.lower() == ".csv":
        with atomic_write(out, "w") as text:
            writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
            writer.writerow([_escaped(name) if escape else name for name in names])
            yield lambda record: writer.writerows(_cells(record.values(), escape))
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
            made.append([_escaped(text) for text in own.values])
        else:
            made.append(own.texts().tolist())
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
    """Writes records as row groups; the first one decides the types."""

    def __init__(self, file: Any, names: list[str]) -> None:
        self.file, self.names = file, names
        self.writer: Any = None

    def __enter__(self) -> "_Parquet":
        return self

    def __exit__(self, *error: object) -> None:
        if self.writer is not None:
            self.writer.close()

    def write(self, record: Mapping[str, Any]) -> None:
        import pyarrow
        import pyarrow.parquet

        kinds = {"number": pyarrow.float64(), "boolean": pyarrow.bool_(), "text": pyarrow.string()}
        arrays = []
        for own in record.values():
            if not isinstance(own, Column):
                arrays.append(pyarrow.array(own, from_pandas=True))
                continue
            values = own.values.astype(bool) if own.stored == "boolean" else own.values
            kind = kinds.get(own.stored, pyarrow.timestamp("us"))
            arrays.append(pyarrow.array(values, type=kind, mask=own.empty()))
        table = pyarrow.Table.from_arrays(arrays, names=self.names)
        if self.writer is None:
            self.writer = pyarrow.parquet.ParquetWriter(self.file, table.schema)
        self.writer.write_table(table)
