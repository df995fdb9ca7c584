"""All rows of a run folder: as a data frame, csv or parquet."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vntransfer.errors import ArgumentError
from vntransfer.storage.files import atomic_write
from vntransfer_lab.runner.records import flat_rows
from vntransfer_lab.runner.store import read_records

if TYPE_CHECKING:
    import pandas as pd

_TABLES_MISSING = "{}: {} is not installed; pip install ./lab"


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    last = ("metric", "step", "value")
    return [name for name in names if name not in last] + list(last)


def results(folder: str | Path) -> "pd.DataFrame":
    """Everything that a run folder holds: one row per cell, metric and step.

    Parameters
    ----------
    folder
        The run folder; a run may be going on in it.

    Returns
    -------
    pandas.DataFrame
        Columns of the cell (data, target, method, seed, ``settings.*``, ``hyper.*``, ...), then
        metric, step, value. Cells that failed or wait have one row with an empty metric.
    """
    try:
        import pandas as pd
    except ImportError:
        raise ArgumentError(_TABLES_MISSING.format("results", "pandas")) from None
    rows = list(flat_rows(read_records(folder)[1]))
    return pd.DataFrame(rows, columns=_columns(rows))


def export(folder: str | Path, file: str | Path) -> int:
    """Write all rows of a run folder to a ``.csv`` or ``.parquet`` file.

    Returns
    -------
    int
        Number of rows.

    Examples
    --------
    >>> export("runs/smoke", "smoke.xlsx")
    Traceback (most recent call last):
    vntransfer.errors.ArgumentError: file: expected a name that ends in .csv or .parquet, got 'smoke.xlsx'
    """  # noqa: E501
    path = Path(file)
    if path.suffix not in (".csv", ".parquet"):
        raise ArgumentError(
            f"file: expected a name that ends in .csv or .parquet, got {path.name!r}"
        )
    rows = list(flat_rows(read_records(folder)[1]))
    columns = _columns(rows)
    if path.suffix == ".csv":
        with atomic_write(path, "w") as text:
            writer = csv.DictWriter(text, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    else:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise ArgumentError(_TABLES_MISSING.format("file", "pyarrow")) from None
        table = pa.table({name: [row.get(name) for row in rows] for name in columns})
        with atomic_write(path) as binary:
            pq.write_table(table, binary)
    return len(rows)
