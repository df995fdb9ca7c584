"""Packed results: a finished run as two small files that can be committed and reported again.

``run.json`` holds the preset as it ran, where the numbers come from, a digest of all that and the
hash of ``cells.parquet``, which holds one row per cell with its identity, its metrics and what it
cost, where that is known. Every report reads such a folder as it reads a run folder.
"""

import hashlib
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vntransfer import __version__
from vntransfer.storage.files import atomic_write, file_hash
from vntransfer.tables.files import parquet_rows
from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.cells import IDENTITY, canonical_json
from vntransfer_lab.runner.preset import Preset
from vntransfer_lab.runner.records import JSON_COLUMNS, Cost, Record, columns

RUN_NAME = "run.json"
CELLS_NAME = "cells.parquet"
_FORMAT = 1
_COLUMNS = ("key", *IDENTITY, "status", "seconds", "error", "warnings", "made_by")


def pack(folder: str | Path, out: str | Path, *, overwrite: bool = False) -> int:
    """Write the planned cells of a run folder as packed results.

    Parameters
    ----------
    folder
        The run folder.
    out
        Folder for the two files; packing a run twice gives equal files.
    overwrite
        Replace files of these names even if they are not packed results.

    Returns
    -------
    int
        Number of cells.

    Raises
    ------
    StoreError
        Cells are missing or failed (half a run is no result), or a file would be lost.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from vntransfer_lab.runner.provenance import read_provenance
    from vntransfer_lab.runner.store import read_records

    if not overwrite:
        _check_place(Path(out))
    preset, records, _ = read_records(folder)
    unfinished = sum(record.status != "done" for record in records)
    if unfinished:
        raise StoreError(
            f"{folder}: {unfinished} of {len(records)} cells are not done; finish the run with "
            f"vnt bench retry {folder}"
        )
    rows = []
    for record in records:
        own = record.outcome()
        row = {name: getattr(record, name) for name in _COLUMNS} | columns(record)
        row["metrics"] = [{"name": n, "step": step, "value": v} for step, n, v in own.rows]
        rows.append(row | {"cost": None if own.cost is None else asdict(own.cost)})
    table = pa.Table.from_pylist(rows, schema=_schema())
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", compression_level=19)
    with atomic_write(Path(out, CELLS_NAME)) as file:
        file.write(buffer.getvalue())
    described = {
        "format": _FORMAT,
        "vntransfer": __version__,
        "preset": preset.as_dict(),
        "cells": len(records),
        "hours": round(sum(record.seconds or 0 for record in records) / 3600, 2),
        "data": {record.data: record.data_hash for record in records},
        "sha256": file_hash(Path(out, CELLS_NAME)),
        **read_provenance(folder),
    }
    described["digest"] = _digest(described)
    with atomic_write(Path(out, RUN_NAME), "w") as text:
        json.dump(described, text, indent=1, allow_nan=False)
        text.write("\n")
    return len(records)


def _check_place(out: Path) -> None:
    """Raise if packing would replace files that are not packed results."""
    taken = [path for name in (CELLS_NAME, RUN_NAME) if (path := out / name).exists()]
    if not taken:
        return
    try:
        read_description(out)
    except StoreError:
        raise StoreError(
            f"{taken[-1]}: exists already and is not part of packed results; name another folder, "
            f"or replace it with --overwrite (overwrite=True)"
        ) from None


def is_packed(folder: str | Path) -> bool:
    """Tell packed results from a run folder."""
    return Path(folder, RUN_NAME).is_file()


def read_packed(folder: str | Path) -> tuple[Preset, list[Record]]:
    """Preset and cells of packed results; an error if the two files do not belong together."""
    described = read_description(folder)
    path = Path(folder, CELLS_NAME)
    if not path.is_file():
        raise StoreError(f"{path}: is missing; get it from the source of {RUN_NAME}")
    found = file_hash(path)
    if found != described["sha256"]:
        raise StoreError(
            f"{path}: has sha256 {found}, {RUN_NAME} says {described['sha256']}; the two files do "
            "not belong together: fetch both again"
        )
    records = []
    for row in parquet_rows(path):
        cost = row.pop("cost", None)  # older results do not tell
        metrics: dict[str, dict[int, float]] = {}
        for item in row.pop("metrics"):
            metrics.setdefault(item["name"], {})[item["step"]] = item["value"]
        row.update({name: json.loads(row[name]) for name in JSON_COLUMNS})
        row["cost"] = None if cost is None else Cost(**cost)
        records.append(Record(**row, metrics=metrics))
    return Preset.from_dict(described["preset"]), records


def read_description(folder: str | Path) -> dict[str, Any]:
    """Return what ``run.json`` says."""
    path = Path(folder, RUN_NAME)
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
        version, _, _ = (described[name] for name in ("format", "preset", "sha256"))
        digest = described.pop("digest", None)  # older results have none
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise StoreError(f"{path}: cannot be read ({error}); fetch it again") from None
    if version != _FORMAT:
        raise StoreError(
            f"{path}: has format {version}, this vntransfer knows {_FORMAT}; use the version that "
            "wrote it"
        )
    if digest not in (None, _digest(described)):
        raise StoreError(f"{path}: is damaged or was edited; fetch it again")
    return dict(described)


def _digest(described: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(described).encode()).hexdigest()


def _schema() -> Any:
    import pyarrow as pa

    metric = pa.struct([("name", pa.string()), ("step", pa.int32()), ("value", pa.float64())])
    kinds = {"seed": pa.int64(), "seconds": pa.float64()}
    typed = [(name, kinds.get(name, pa.string())) for name in _COLUMNS]
    typed.append(("metrics", pa.list_(metric)))
    amounts = (("steps", pa.int64()), ("step_seconds", pa.float64()), ("memory", pa.int64()))
    return pa.schema([*typed, ("cost", pa.struct(amounts))])
