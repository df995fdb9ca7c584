"""How long a run will take on this machine: from finished cells, or from a few short steps.

A kind says with `Kind.probe` which cheaper cells to time and how to add up their times; without it
one whole cell is timed. Times are grouped by data set, condition and method; of many conditions two
are timed, and in a hurry as many methods on one data set as time allows and one on the others.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import geometric_mean, mean
from typing import TYPE_CHECKING

import numpy as np

from vntransfer_lab.runner.cells import Cell, canonical_json
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.records import CellOutcome

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from vntransfer_lab.runner.records import Record

RANGES = {
    "finished": (0.7, 1.5),
    "probed": (0.6, 1.7),
    "derived": (0.4, 2.5),
    "guessed": (0.25, 4.0),
}
"""Factors on times between which a run lies as a rule, by where the times are from."""

LONG = 20.0

IMPORTS = 5.0
"""Seconds below which the first time of a method may be that of its imports."""

LEAST = 3
"""Groups that are timed in a hurry too, unless they are slow: one says nothing of the others."""

SLOW = 3.0
"""Multiple of the time there is after which no further group is begun at all."""


def group(cell: "Cell | Record") -> str:
    """Name of what takes the same time: all that identifies a cell but target, seed and values."""
    return canonical_json([cell.experiment, cell.data, cell.method, cell.version, cell.settings])


Subject = tuple[str, str, str]
"""Experiment, data set and method of a group."""


def _subject(name: str) -> Subject:
    experiment, data, method, *_ = json.loads(name)
    return experiment, data, method


@dataclass
class Steps:
    """Short steps that were timed: seconds by the key of their cell.

    The first one on a data set is computed twice, since its first time includes reading data, and
    so is the first of a method, which includes imports: a worker does both once. A long one (`LONG`
    seconds, `IMPORTS`) is not worth that.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    seen: set[tuple[str, str]] = field(default_factory=set)

    def time(self, cell: Cell, compute: Callable[[Cell], CellOutcome]) -> float:
        """Seconds of a cell; computed unless it was before."""
        if cell.key not in self.seconds:
            outcome = compute(cell)
            firsts = {("data", cell.data): LONG, ("method", cell.method): IMPORTS}
            limit = max((own for first, own in firsts.items() if first not in self.seen), default=0)
            if outcome.seconds < limit and not outcome.error:
                outcome = compute(cell)
            if outcome.error:
                raise ProbeError(outcome.error)
            self.seen.update(firsts)
            self.seconds[cell.key] = outcome.seconds
        return self.seconds[cell.key]


@dataclass
class Times:
    """Seconds per cell, by group; and the short steps that they were measured with."""

    finished: dict[str, list[float]] = field(default_factory=dict)
    probed: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    steps: Steps = field(default_factory=Steps)

    def add(self, cell: "Cell | Record", seconds: float | None) -> None:
        """Take in the time of a finished cell."""
        if seconds is not None:
            self.finished.setdefault(group(cell), []).append(seconds)

    def seconds(self, cell: Cell) -> float | None:
        """Mean time of such a cell; None: nothing is known."""
        return self.find(cell)[0]

    def find(self, cell: Cell) -> tuple[float | None, str]:
        """Mean time of such a cell and where it is from: a name in `RANGES`, or "unknown".

        Where its group was not timed, the same method and data set under other conditions count;
        failing that, another data set does; failing that, the other methods do.
        """
        name = group(cell)
        if name in self.finished:
            return mean(self.finished[name]), "finished"
        if name in self.probed:
            return self.probed[name], "probed"
        known = self._known()
        if near := known.get(_subject(name)):
            return mean(near), "probed"
        means = {own: mean(times) for own, times in known.items()}
        for where, guess in (("derived", _derived), ("guessed", _guessed)):
            if (seconds := guess(_subject(name), means)) is not None:
                return seconds, where
        return None, "unknown"

    def _known(self) -> dict[Subject, list[float]]:
        """Collect the times of all groups, those of different conditions side by side."""
        known: dict[Subject, list[float]] = {}
        for name, seconds in self.probed.items():
            known.setdefault(_subject(name), []).append(seconds)
        for name, times in self.finished.items():
            known.setdefault(_subject(name), []).append(mean(times))
        return known

    def measure(
        self,
        cells: Mapping[str, Cell],
        compute: Callable[[Cell], CellOutcome],
        progress: Callable[[int, int, Cell], None] = lambda done, total, cell: None,
        *,
        limit: float | None = None,
    ) -> None:
        """Time short steps of every group of which nothing is known.

        Parameters
        ----------
        cells
            Group -> one of its cells.
        compute
            Computes a cell where the run would; its result is thrown away.
        progress
            Told how many groups are done, of how many at most, and the present cell.
        limit
            Seconds after which no further group is begun (but see `LEAST`). Of several data sets
            then only the first is timed with many methods, for half the time, and the others with
            one of them.
        """
        known = self.finished.keys() | self.probed.keys() | self.failed.keys()
        alike: dict[Subject, list[str]] = {}
        for name in cells:
            alike.setdefault(_subject(name), []).append(name)
        ends = dict.fromkeys(name for names in alike.values() for name in (names[0], names[-1]))
        places: dict[str, list[str]] = {}
        for name in ends:
            if name not in known:
                places.setdefault(cells[name].data, []).append(name)
        first, *others = list(places.values()) or [[]]
        hurry, limit, start = limit is not None, limit or 0.0, time.monotonic()
        done, total = 0, len(first) + (len(others) if hurry else sum(map(len, others)))
        for names in (first, *others):
            share = 0.5 if names is first and others else 1.0
            chosen = names
            if hurry:
                chosen = _spread(names, cells) if names is first else self._typical(names, first)
            for name in chosen:
                spent = time.monotonic() - start
                if hurry and spent > limit * (share if done >= LEAST else SLOW) and done:
                    break
                progress(done, total, cells[name])
                done += 1
                try:
                    self.probed[name] = probe(cells[name], compute, self.steps)
                except ProbeError as error:
                    self.failed[name] = str(error)

    def _typical(self, names: Sequence[str], timed: Sequence[str]) -> list[str]:
        """Choose the group of the method that was in the middle elsewhere, else the first."""
        ranked = sorted(
            (self.probed[name], _subject(name)[2]) for name in timed if name in self.probed
        )
        middle = ranked[len(ranked) // 2][1] if ranked else ""
        return [name for name in names if _subject(name)[2] == middle][:1] or [names[0]]


def _derived(subject: Subject, known: Mapping[Subject, float]) -> float | None:
    """Guess a time from other data sets: methods are taken to compare there as they do here.

    Examples
    --------
    >>> known = {("e", "a", "x"): 1.0, ("e", "a", "y"): 3.0, ("e", "b", "x"): 2.0}
    >>> _derived(("e", "b", "y"), known)
    6.0
    """
    experiment, data, method = subject
    found = []
    for (kind, place, own), there in known.items():
        if kind == experiment and place != data and own == method:
            for (_, here, other), seconds in known.items():
                base = known.get((kind, place, other))
                if here == data and base:
                    found.append(there * seconds / base)
    return geometric_mean(found) if found else None


def _guessed(subject: Subject, known: Mapping[Subject, float]) -> float | None:
    """Guess the time of a method that was timed nowhere: the mean of the others, here if possible.

    Examples
    --------
    >>> known = {("e", "a", "x"): 1.0, ("e", "a", "y"): 3.0, ("e", "b", "x"): 5.0}
    >>> _guessed(("e", "a", "z"), known), _guessed(("e", "c", "z"), known)
    (2.0, 3.0)
    """
    there = {place: seconds for place, seconds in known.items() if place[0] == subject[0]}
    here = [seconds for (_, data, _), seconds in there.items() if data == subject[1]]
    return mean(here or there.values()) if there else None


def _spread(names: Sequence[str], cells: Mapping[str, Cell]) -> list[str]:
    """Order that begins with every third, since neighbours in a preset are alike.

    Methods without short steps come last: simple ones, that tell nothing of the others.
    """
    trained = [name for name in names if _short(cells[name])[0][0] != cells[name]]
    spread = [name for start in range(3) for name in trained[start::3]]
    return spread + [name for name in names if name not in trained]


class ProbeError(Exception):
    """A short step failed."""


def probe(cell: Cell, compute: Callable[[Cell], CellOutcome], steps: Steps | None = None) -> float:
    """Estimate the seconds of one cell from cheaper ones.

    Parameters
    ----------
    cell, compute
        See `Times.measure`.
    steps
        Cheaper cells that are not computed again; others are added.

    Examples
    --------
    >>> from vntransfer_lab.runner.cells import expand
    >>> from vntransfer_lab.runner.preset import check, read_preset
    >>> from vntransfer_lab.runner.workers import compute
    >>> 0 < probe(expand(check(read_preset("smoke")[1], "smoke"))[0], compute) < 60
    True
    """
    steps = Steps() if steps is None else steps
    found = [(steps.time(cheaper, compute), factor) for cheaper, factor in _short(cell)]
    return max(sum(factor * each for each, factor in found), max(each for each, _ in found))


def _short(cell: Cell) -> Sequence[tuple[Cell, float]]:
    """Give the cheaper cells of one and their factors; itself where its kind knows none."""
    kind = load_kind(cell.experiment)
    return [(cell, 1.0)] if kind.probe is None else kind.probe(cell)


def combine(known: "ArrayLike", wanted: "ArrayLike") -> list[float]:
    """Factors that turn times of cheaper cells into that of the whole one.

    Time is taken to be linear in some numbers of a cell (steps, tasks, rows): with the rows of
    ``known`` as those of the cheaper cells, Σ factor · row = ``wanted``.

    Examples
    --------
    >>> factors = combine([[1, 2], [1, 4]], [1, 10])     # 1 and its number of steps
    >>> [round(factor, 6) for factor in factors]         # 2 s and 3 s: 0.5 s a step, 6 s in all
    [-3.0, 4.0]
    """
    found, *_ = np.linalg.lstsq(np.array(known, float).T, np.array(wanted, float), rcond=None)
    return [float(factor) for factor in found]
