"""What a run starts next: the cells of the preset, until time is up."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.preset import Preset
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.store import Store


@dataclass
class _Slot:
    """A cell and its place in the tables."""

    place: int
    cell: Cell
    first: Sequence[str] = ()  # keys of the cells that it waits for


@dataclass(frozen=True)
class RunState:
    """State of a run for its watcher; total and finished are numbers of cells."""

    total: int
    finished: int
    running: Sequence[Cell] = ()
    ended: tuple[Cell, CellOutcome] | None = None  # the cell that has just ended, if one has


Watcher = Callable[[RunState], None]


class RunPlan:
    """Decides which cell comes next and takes in its result.

    The places of cells in tables are those of the preset. The cells of the first seed come first,
    then those of the second and so on: whatever is finished is a fair comparison. With a budget
    this holds for all data sets together, otherwise for one data set after another, so that
    workers read each but once.

    After ``budget`` seconds, counted from the first cell on, no further one is started: a cell that
    was started is finished, and at least one is. ``retry`` computes failed cells again. Of the
    ``total`` number of cells, ``finished`` were there before and ``computed`` were heard of since.
    """

    def __init__(
        self,
        preset: Preset,
        cells: Sequence[Cell],
        store: Store,
        *,
        retry: bool = False,
        budget: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget, self._clock = budget, clock
        self._metric = load_kind(preset.experiment).metric
        self._start: float | None = None
        self.computed = 0

        def known(key: str) -> CellOutcome | None:
            outcome = store.outcome(key)
            return None if retry and outcome is not None and outcome.error else outcome

        slots = _slots(preset, cells, known)
        places, planned = [slot.place for slot in slots], [slot.cell for slot in slots]
        keys = {cell.key for cell in store.plan(preset, planned, places=places, retry=retry)}
        self._open = [slot for slot in slots if slot.cell.key in keys]
        seeds = {seed: i for i, seed in enumerate(preset.seeds)}
        data = {} if budget is not None else {name: i for i, name in enumerate(preset.data)}
        # what comes first has seeds of its own, and comes with the first of the table's
        self._open.sort(
            key=lambda slot: (data.get(slot.cell.data, 0), seeds.get(slot.cell.seed, 0))
        )
        needed = {key for slot in self._open for key in slot.first}
        self._given = {
            key: outcome.last(self._metric)
            for key in needed - keys
            if (outcome := store.outcome(key)) is not None
        }
        self.total, self.finished = len(slots), len(slots) - len(self._open)

    def next(self) -> Cell | None:
        """Return a cell to start; None if there is none, or none before others end."""
        if self._start is None:
            self._start = self._clock()
        if self._budget is not None and self._clock() - self._start >= self._budget:
            return None
        for i, slot in enumerate(self._open):
            if not self._given.keys() >= set(slot.first):
                continue
            del self._open[i]
            given = ((key, self._given[key]) for key in slot.first)
            return replace(slot.cell, given=tuple((k, v) for k, v in given if v is not None))
        return None

    def tell(self, cell: Cell, outcome: CellOutcome) -> None:
        """Take in the result of a cell, after it is stored."""
        self.computed += 1
        self._given[cell.key] = outcome.last(self._metric)

    @property
    def left(self) -> int:
        """Number of cells that are not finished: at the end of a run those not started."""
        return self.total - self.finished - self.computed


def _slots(
    preset: Preset, cells: Sequence[Cell], known: Callable[[str], CellOutcome | None]
) -> list[_Slot]:
    """Cells with their places.

    Cells that come first stand before the first one that names them, with places below zero.
    """
    kind = load_kind(preset.experiment)
    shown = {cell.key for cell in cells}
    early: dict[str, _Slot] = {}
    slots = []
    for place, cell in enumerate(cells):
        left = known(cell.key) is None
        # what a finished cell chose from is not computed for it again
        first = {one.key: one for one in kind.first(cell) if left or known(one.key) is not None}
        unseen = [key for key in first if key not in shown and key not in early]
        early |= {key: _Slot(0, first[key]) for key in unseen}
        slots += [*(early[key] for key in unseen), _Slot(place, cell, tuple(first))]
    for i, slot in enumerate(early.values()):
        slot.place = i - len(early)
    return slots
