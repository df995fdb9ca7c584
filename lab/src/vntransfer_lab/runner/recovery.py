"""What can be saved of a damaged store: the cells that are intact, in a new one."""

from pathlib import Path

from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.store import Store
from vntransfer_lab.runner.store_file import STORE_NAME


def recover(folder: str | Path, out: str | Path) -> int:
    """Copy the finished cells of a run folder that are intact into a new one; return their number.

    The new folder has no plan: the command of the run, with ``--out`` for it, computes the rest.
    """
    if Path(out, STORE_NAME).exists():
        raise StoreError(f"--out: {out} holds a run already; name a new folder")
    cells, outcomes, reason = [], {}, ""
    try:
        with Store(folder, verify=False) as store:
            for cell, outcome in store.intact():
                cells.append(cell)
                outcomes[cell.key] = outcome
    except StoreError as error:
        reason = f" ({error.__cause__ or error})"
    if not cells:
        raise StoreError(
            f"{folder}: no intact cell was found{reason}; start the run again in a new folder"
        )
    with Store(out, write=True) as new:
        new.adopt(cells, outcomes)
    return len(cells)
