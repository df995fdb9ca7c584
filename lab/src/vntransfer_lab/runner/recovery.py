"""What can be saved of a damaged store: cells that can be read and have the digest they were given.

Every id that the file has room for is asked for by itself: a damaged page takes only its own cells
along.
"""

import json
from contextlib import suppress
from pathlib import Path

from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.cells import IDENTITY, Cell
from vntransfer_lab.runner.records import JSON_COLUMNS, CellOutcome
from vntransfer_lab.runner.store import Store
from vntransfer_lab.runner.store_file import STORE_NAME

_CELL_BYTES = 40  # no row of a cell is shorter than its key


def recover(folder: str | Path, out: str | Path) -> int:
    """Copy the finished cells of a run folder that are intact into a new one; return their number.

    The new folder has no plan: the command of the run, with ``--out`` for it, computes the rest.
    """
    if Path(out, STORE_NAME).exists():
        raise StoreError(f"--out: {out} holds a run already; name a new folder")
    found: dict[str, tuple[Cell, CellOutcome]] = {}
    reason = ""
    try:
        with Store(folder, verify=False) as store:
            for number in range(1, store.path.stat().st_size // _CELL_BYTES):
                with suppress(StoreError, ValueError, TypeError):  # of a row that is damaged
                    found |= _intact(store, number)
    except StoreError as error:
        reason = f" ({error.__cause__ or error})"
    if not found:
        raise StoreError(
            f"{folder}: no intact cell was found{reason}; start the run again in a new folder"
        )
    with Store(out, write=True) as new:
        outcomes = {key: outcome for key, (_, outcome) in found.items()}
        new.adopt([cell for cell, _ in found.values()], outcomes)
    return len(found)


def _intact(store: Store, number: int) -> dict[str, tuple[Cell, CellOutcome]]:
    query = f"SELECT key, {', '.join(IDENTITY)} FROM cells WHERE id = ? AND status = 'done'"
    for key, *values in store.read(query, number):
        known = store.read("SELECT digest FROM digests WHERE number = ?", number)
        outcome = store.outcome(number)
        if outcome is not None and known == [(store.digest(number),)]:
            row = dict(zip(IDENTITY, values, strict=True))
            return {key: (Cell(**row | {n: json.loads(row[n]) for n in JSON_COLUMNS}), outcome)}
    return {}
