"""What a run computes next: the cells of the preset, trials as they follow, within a budget."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from vntransfer_lab.runner.cell_times import Times, group
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.durations import seconds_text
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.preset import Preset
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.search import Study
from vntransfer_lab.runner.store import Store


@dataclass(frozen=True)
class Budget:
    """How long a run may take, and what is known of the time of its cells."""

    seconds: float
    times: Times


@dataclass
class _Slot:
    """A cell, or a study whose trials come one after another."""

    place: int
    template: Cell
    study: Study | None = None
    waiting: Cell | None = None
    left: int = 0
    first: Sequence[str] = ()  # keys of the cells that it waits for


@dataclass(frozen=True)
class LeftOut:
    """What a budget left out.

    Parameters
    ----------
    cells
        Their number.
    seeds, methods
        Seed (or "search", of what is computed for all seeds) and method -> number of cells.
    seconds
        Estimate of the time that they still need, of one worker.
    overlong
        Labels of cells that take longer than the whole budget, with their time.
    """

    cells: int = 0
    seeds: dict[int | str, int] = field(default_factory=dict)
    methods: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    overlong: dict[str, float] = field(default_factory=dict)


class RunPlan:
    """Says which cell comes next and hears what came out of it.

    The places of cells in tables are those of the preset. The cells of the first seed come first,
    then those of the second and so on: whatever is finished is a fair comparison. With a budget
    this holds for all data sets together, otherwise for one data set after another, so that
    workers read each but once.

    Parameters
    ----------
    preset, cells
        The preset and what `vntransfer_lab.runner.cells.expand` made of it.
    store
        Where finished cells are and new trials are announced.
    retry
        Compute failed cells again.
    budget
        Start no cell that would not end in time.
    clock
        Tells the time in seconds.

    Attributes
    ----------
    total, finished : int
        Number of all cells, and of those that were there before.
    computed : int
        Number of results heard so far.
    """

    def __init__(
        self,
        preset: Preset,
        cells: Sequence[Cell],
        store: Store,
        *,
        retry: bool = False,
        budget: Budget | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._budget, self._clock = store, budget, clock
        self._metric = load_kind(preset.experiment).metric
        self._start = clock()
        self.computed = 0

        def known(key: str) -> CellOutcome | None:
            outcome = store.outcome(key)
            return None if retry and outcome is not None and outcome.error else outcome

        slots, self.total = _slots(preset, cells, known)
        there = [
            (slot.place + i, cell)
            for slot in slots
            for i, cell in enumerate(slot.study.cells if slot.study else [slot.template])
        ]
        places, planned = [place for place, _ in there], [cell for _, cell in there]
        todo = store.plan(preset, planned, places=places, retry=retry)
        keys = {cell.key for cell in todo}
        for slot in slots:
            cell = slot.study.pending if slot.study else slot.template
            if cell is not None and cell.key in keys:
                slot.waiting = cell
                slot.left = len(slot.study) - len(slot.study.cells) + 1 if slot.study else 1
        self._slots = [slot for slot in slots if slot.left]
        self._seeds = set(preset.seeds)
        seeds = {seed: i for i, seed in enumerate(preset.seeds)}
        data = {} if budget is not None else {name: i for i, name in enumerate(preset.data)}
        # what comes first has seeds of its own, and comes with the first of the table's
        self._slots.sort(
            key=lambda slot: (data.get(slot.template.data, 0), seeds.get(slot.template.seed, 0))
        )
        needed = {key for slot in self._slots for key in slot.first}
        self._given = {
            key: self._result(outcome)
            for key in needed - keys
            if (outcome := store.outcome(key)) is not None
        }
        self._running: dict[str, _Slot] = {}
        self._open = list(self._slots)  # that may still give cells
        self.finished = self.total - sum(slot.left for slot in self._slots)

    def ready(self) -> list[Cell]:
        """Give the cells that are known to be left: one of every study."""
        return [slot.waiting for slot in self._open if slot.waiting is not None]

    def next(self) -> Cell | None:
        """Give a cell to start; None if there is none now (trials may follow results)."""
        for i, slot in enumerate(self._open):
            cell = slot.waiting
            if cell is None or self._overlong(slot) or not self._given.keys() >= set(slot.first):
                continue
            if not self._fits(cell):
                return None
            slot.waiting, self._running[cell.key] = None, slot
            if slot.left == 1:
                del self._open[i]
            given = ((key, self._given[key]) for key in slot.first)
            return replace(cell, given=tuple((k, v) for k, v in given if v is not None))
        return None

    def tell(self, cell: Cell, outcome: CellOutcome) -> None:
        """Take in the result of a cell, after it is stored."""
        self.computed += 1
        if self._budget is not None:
            self._budget.times.add(cell, outcome.seconds)
        slot = self._running.pop(cell.key)
        slot.left -= 1
        self._given[cell.key] = self._result(outcome)
        if slot.study is None:
            return
        slot.waiting = slot.study.tell(outcome)
        if slot.waiting is not None:
            place = slot.place + len(slot.study.cells) - 1
            self._store.extend(place, slot.waiting)

    def left_out(self) -> LeftOut:
        """Tell what was not started."""
        seeds: dict[int | str, int] = {}
        methods: dict[str, int] = {}
        overlong: dict[str, float] = {}
        seconds = 0.0
        for slot in self._slots:
            if not slot.left:
                continue
            cell = slot.template
            seed = cell.seed if cell.seed in self._seeds else "search"
            seeds[seed] = seeds.get(seed, 0) + slot.left
            methods[cell.method] = methods.get(cell.method, 0) + slot.left
            each = self._seconds(cell)
            seconds += slot.left * each
            if self._overlong(slot):
                overlong[cell.label] = each
        return LeftOut(sum(seeds.values()), seeds, methods, seconds, overlong)

    def _result(self, outcome: CellOutcome) -> float | None:
        """Metric of a cell at its last step; None if it failed."""
        steps = [(step, value) for step, name, value in outcome.rows if name == self._metric]
        return max(steps)[1] if steps else None

    def _seconds(self, cell: Cell) -> float:
        return 0.0 if self._budget is None else self._budget.times.seconds(cell) or 0.0

    def _overlong(self, slot: _Slot) -> bool:
        return self._budget is not None and self._seconds(slot.template) > self._budget.seconds

    def _fits(self, cell: Cell) -> bool:
        """Whether a cell would end in time."""
        if self._budget is None:
            return True
        return self._clock() - self._start + self._seconds(cell) <= self._budget.seconds


def _slots(
    preset: Preset, cells: Sequence[Cell], known: Callable[[str], CellOutcome | None]
) -> tuple[list[_Slot], int]:
    """Cells and studies with their places, and the number of all cells.

    Cells that come first stand before the first one that names them, with places below zero.
    """
    kind, search, place = load_kind(preset.experiment), preset.search, 0
    shown = {cell.key for cell in cells}
    early: dict[str, _Slot] = {}
    slots = []
    for cell in cells:
        left = known(cell.key) is None
        # what a finished cell chose from is not computed for it again
        first = {one.key: one for one in kind.first(cell) if left or known(one.key) is not None}
        unseen = [key for key in first if key not in shown and key not in early]
        early |= {key: _Slot(0, first[key]) for key in unseen}
        searched = search is not None and cell.method in search.space
        study = Study(cell, search, kind.metric, known) if search and searched else None
        own = _Slot(place, study.template if study else cell, study, first=tuple(first))
        slots += [*(early[key] for key in unseen), own]
        place += len(study) if study else 1
    for i, slot in enumerate(early.values()):
        slot.place = i - len(early)
    return slots, place + len(early)


def remaining(
    preset: Preset, cells: Sequence[Cell], known: Callable[[str], CellOutcome | None]
) -> dict[str, tuple[Cell, int]]:
    """Count what is left: group of equal time -> one of its cells and their number."""
    found: dict[str, tuple[Cell, int]] = {}
    for slot in _slots(preset, cells, known)[0]:
        if slot.study is not None:
            n = len(slot.study) - len(slot.study.cells) + (slot.study.pending is not None)
        else:
            n = int(known(slot.template.key) is None)
        name = group(slot.template)
        if n:
            first, count = found.get(name, (slot.template, 0))
            found[name] = first, count + n
    return found


def left_text(left: LeftOut, budget: float, workers: int) -> str:
    """Sentences about what a budget left out.

    Examples
    --------
    >>> left = LeftOut(4, {1: 4}, {"ridge": 2, "boosting": 2}, 90.0, {"synthetic s1 mdd": 7300.0})
    >>> print(left_text(left, 3600.0, 2))
    budget of 1 h used: 4 cells were left out (seeds 1: 4; methods ridge: 2, boosting: 2), about
    45 s more; the same command goes on
    longer than the whole budget: synthetic s1 mdd (2 h 1 min)
    """
    seeds = ", ".join(f"{seed}: {n}" for seed, n in left.seeds.items())
    methods = ", ".join(f"{method}: {n}" for method, n in left.methods.items())
    text = (
        f"budget of {seconds_text(budget)} used: {left.cells} cells were left out (seeds {seeds}; "
        f"methods {methods}), about {seconds_text(left.seconds / workers)} more; the same command "
        "goes on"
    )
    if left.overlong:
        named = [f"{label} ({seconds_text(s)})" for label, s in list(left.overlong.items())[:10]]
        more = len(left.overlong) - len(named)
        text += f"\nlonger than the whole budget: {', '.join(named)}"
        text += f" and {more} more" if more else ""
    return text
