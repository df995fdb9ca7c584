"""Cells that other run folders have finished: equal cells are not computed again."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.packed import RUN_NAME, is_packed
from vntransfer_lab.runner.store import Store, read_outcomes
from vntransfer_lab.runner.store_file import STORE_NAME


def check_folders(folders: Iterable[str | Path]) -> None:
    """Refuse folders that hold no results."""
    for folder in folders:
        if not is_packed(folder) and not Path(folder, STORE_NAME).is_file():
            raise StoreError(
                f"reuse: {folder} is neither a run folder nor packed results; name one that "
                f"holds {STORE_NAME} or {RUN_NAME}"
            )


def folder_name(folder: str | Path) -> str:
    """Give a folder as records name it: of an absolute path the last two parts.

    Examples
    --------
    >>> folder_name("/home/me/project/runs/streams"), folder_name("runs/streams")
    ('runs/streams', 'runs/streams')
    """
    path = Path(folder)
    return Path(*path.parts[-2:]).as_posix() if path.is_absolute() else path.as_posix()


def take_over(store: Store, cells: Sequence[Cell], folders: Sequence[str | Path]) -> dict[str, int]:
    """Write what other folders know of unfinished cells into a store.

    Parameters
    ----------
    store
        Open for writing.
    cells
        What is asked for. The cells that they choose from are taken as well.
    folders
        Run folders, finished or not, or packed results; the first that knows a cell counts.

    Returns
    -------
    dict
        Name of a folder -> number of cells that came from it.
    """
    wanted = {cell.key: cell for cell in cells}
    for cell in cells:
        for other in load_kind(cell.experiment).first(cell):
            wanted.setdefault(other.key, other)
    wanted = {key: cell for key, cell in wanted.items() if store.outcome(key) is None}
    taken = {}
    for folder in folders:
        found = read_outcomes(folder, wanted)
        store.adopt([wanted.pop(key) for key in found], found)
        taken[folder_name(folder)] = len(found)
    return taken
