"""All rows of a run folder: as a data frame, csv or parquet."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vntransfer.storage.files import atomic_write
from vntransfer.storage.places import TABLES, check_file
from vntransfer_lab.runner.records import flat_rows
from vntransfer_lab.runner.store import read_records

if TYPE_CHECKING:
    import pandas as pd


def _rows(folder: str | Path) -> tuple[list[dict[str, Any]], list[str]]:
    """All rows, and the names of their columns: metric, step and value are the last."""
    rows = list(flat_rows(read_records(folder)[1]))
    last = ("metric", "step", "value")
    names = dict.fromkeys(name for row in rows for name in row if name not in last)
    return rows, [*names, *last]


def results(folder: str | Path) -> "pd.DataFrame":
    """Everything that a run folder holds, one row per cell, metric and step, even during a run.

    Columns are those of the cell (data, target, method, seed, ``settings.*``, ``hyper.*``, ...),
    then metric, step, value. Cells that failed or wait have one row with an empty metric.
    """
    import pandas as pd

    rows, columns = _rows(folder)
    return pd.DataFrame(rows, columns=columns)


def export(folder: str | Path, file: str | Path, *, overwrite: bool = False) -> int:
    """Write all rows of a run folder to a ``.csv`` or ``.parquet`` file; return their number.

    An existing file is replaced only to ``overwrite`` it.
    """
    path = Path(file)
    check_file("file", path, TABLES, overwrite=overwrite)
    rows, columns = _rows(folder)
    if path.suffix.lower() == ".csv":
        with atomic_write(path, "w") as text:
            writer = csv.DictWriter(text, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({name: [row.get(name) for row in rows] for name in columns})
        with atomic_write(path) as binary:
            pq.write_table(table, binary)
    return len(rows)
