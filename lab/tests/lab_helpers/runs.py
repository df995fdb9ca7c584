"""Presets with changes, and cells that are computed in this process."""

from pathlib import Path
from typing import Any

from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.plan import RunPlan
from vntransfer_lab.runner.preset import Preset, load_preset
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.store import Store
from vntransfer_lab.runner.workers import compute

TINY_STREAM: dict[str, Any] = {
    "n_tasks": 3,
    "n_train": 20,
    "n_test": 10,
    "search_tasks": 2,
    "search_train": 10,
    "search_test": 8,
    "hidden": [12, 8],
}
"""Settings of a stream whose cells take moments."""


def changed(name: str, **changes: Any) -> Preset:
    """A shipped preset, see `override`."""
    return load_preset(name, **changes)


def cells(name: str, **changes: Any) -> list[Cell]:
    return expand(changed(name, **changes))


def done(cell: Cell) -> CellOutcome:
    """What comes out of a cell that must not fail."""
    outcome = compute(cell)
    assert not outcome.error, outcome.traceback
    return outcome


def final(cell: Cell) -> dict[str, float]:
    """Metrics of the last step."""
    rows = done(cell).rows
    last = max(step for step, _, _ in rows)
    return {name: value for step, name, value in rows if step == last}


def finished(folder: Path, preset: Preset) -> Path:
    """Compute all cells of a preset into a run folder."""
    with Store(folder, write=True) as store:
        plan = RunPlan(preset, expand(preset), store)
        while (cell := plan.next()) is not None:
            outcome = done(cell)
            store.finish(cell.key, outcome)
            plan.tell(cell, outcome)
    return folder
