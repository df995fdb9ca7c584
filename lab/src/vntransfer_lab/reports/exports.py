"""All rows of a run folder: as a data frame, csv or parquet."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vntransfer.storage.files import atomic_write
from vntransfer.storage.places import TABLES, check_file
from vntransfer_lab.runner.cells import IDENTITY
from vntransfer_lab.runner.records import JSON_COLUMNS
from vntransfer_lab.runner.store import read_records

if TYPE_CHECKING:
    import pandas as pd


def results(folder: str | Path) -> "pd.DataFrame":
    """Everything that a run folder holds, one row per cell, metric and step, even during a run.

    Columns are those of the cell (data, target, method, seed, ``settings.*``, ``hyper.*``, ...),
    then metric, step, value. Cells that failed or wait have one row with an empty metric.
    """
    return _frame(folder)


def _frame(folder: str | Path, **options: Any) -> "pd.DataFrame":
    """Make a data frame of all rows, with some options of pandas."""
    import pandas as pd

    rows, last = list[dict[str, Any]](), ("metric", "step", "value")
    for record in read_records(folder).records:
        names = ("key", *IDENTITY, "status", "seconds", "error", "warnings", "made_by")
        head = {name: getattr(record, name) for name in names if name not in JSON_COLUMNS}
        head |= {f"settings.{name}": value for name, value in record.settings.items()}
        head |= {f"hyper.{name}": value for name, value in record.hyper.items()}
        found: list[tuple[Any, ...]] = [
            (name, step, v) for name, steps in record.metrics.items() for step, v in steps.items()
        ]
        for values in found or [(None, None, None)]:
            rows.append(head | dict(zip(last, values, strict=True)))
    columns = dict.fromkeys(name for row in rows for name in row if name not in last)
    return pd.DataFrame(rows, columns=[*columns, *last], **options)


def export(folder: str | Path, file: str | Path, *, overwrite: bool = False) -> int:
    """Write all rows of a run folder to a ``.csv`` or ``.parquet`` file; return their number.

    An existing file is replaced only to ``overwrite`` it.
    """
    path = Path(file)
    check_file("file", path, TABLES, overwrite=overwrite)
    frame = _frame(folder, dtype=object)  # whole numbers stay whole beside empty places
    with atomic_write(path) as binary:
        if path.suffix.lower() == ".csv":
            frame.to_csv(binary, index=False, lineterminator="\n")
        else:
            frame.to_parquet(binary, index=False)
    return len(frame)
