"""Cells that other run folders have finished: equal cells are not computed again."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.packed import RUN_NAME, is_packed
from vntransfer_lab.runner.records import CellOutcome, Cost, Record
from vntransfer_lab.runner.store import Store, read_costs, read_records
from vntransfer_lab.runner.store_file import STORE_NAME


class Elsewhere:
    """What other folders know of cells.

    Parameters
    ----------
    folders
        Run folders, finished or not, or packed results; the first that knows a cell counts.
    """

    def __init__(self, folders: Sequence[str | Path]) -> None:
        for folder in folders:
            if not is_packed(folder) and not Path(folder, STORE_NAME).is_file():
                raise StoreError(
                    f"reuse: {folder} is neither a run folder nor packed results; name one that "
                    f"holds {STORE_NAME} or {RUN_NAME}"
                )
        self.folders = [str(folder) for folder in folders]

    @property
    def names(self) -> list[str]:
        """Give the folders as records name them: of an absolute path the last two parts."""
        return [_name(folder) for folder in self.folders]

    def outcomes(self, cells: Iterable[Cell]) -> dict[str, dict[str, CellOutcome]]:
        """Give for each folder the outcomes of those cells that it finished without an error."""
        wanted = {cell.key for cell in cells}
        found = {}
        for folder in self.folders:
            found[folder] = _finished(folder, wanted)
            wanted -= found[folder].keys()
        return found


def take_over(store: Store, cells: Sequence[Cell], elsewhere: Elsewhere) -> dict[str, int]:
    """Write what other folders know of unfinished cells into a store.

    Parameters
    ----------
    store
        Open for writing.
    cells
        What is asked for. The cells that they choose from are taken as well.
    elsewhere
        The other folders.

    Returns
    -------
    dict
        Name of a folder -> number of cells that came from it.
    """
    wanted = [cell for cell in _with_first(cells) if store.outcome(cell.key) is None]
    found = elsewhere.outcomes(wanted)
    for outcomes in found.values():
        store.adopt([cell for cell in wanted if cell.key in outcomes], outcomes)
    return {_name(folder): len(outcomes) for folder, outcomes in found.items()}


def _name(folder: str) -> str:
    """Leave out of a path where on a machine it is.

    Examples
    --------
    >>> _name("/home/me/project/runs/streams"), _name("runs/streams")
    ('runs/streams', 'runs/streams')
    """
    path = Path(folder)
    return Path(*path.parts[-2:]).as_posix() if path.is_absolute() else path.as_posix()


def _with_first(cells: Sequence[Cell]) -> list[Cell]:
    """Give cells together with those that they choose from, each once."""
    found = {cell.key: cell for cell in cells}
    for cell in cells:
        for other in load_kind(cell.experiment).first(cell):
            found.setdefault(other.key, other)
    return list(found.values())


def _finished(folder: str, wanted: set[str]) -> dict[str, CellOutcome]:
    """Read the finished cells among those that are wanted; costs only of those in tables."""
    costs = read_costs(folder)
    if is_packed(folder):
        records = read_records(folder)[1]
        return {r.key: _outcome(r, costs.get(r.key)) for r in records if r.key in wanted}
    with Store(folder) as store:
        found = {key: store.outcome(key) for key in wanted}
    return {
        key: replace(outcome, cost=costs.get(key))
        for key, outcome in found.items()
        if outcome is not None and not outcome.error
    }


def _outcome(record: Record, cost: Cost | None) -> CellOutcome:
    rows = [
        (step, name, value)
        for name, steps in record.metrics.items()
        for step, value in steps.items()
    ]
    warnings = record.warnings.splitlines() if record.warnings else ()
    seconds = record.seconds or 0.0
    return CellOutcome(rows, seconds, warnings=warnings, cost=cost, made_by=record.made_by)
