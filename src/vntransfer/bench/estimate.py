"""How long a run will take on this machine: from finished cells, or from a few short steps.

A kind says with `Kind.probe` which cheaper cells to time and how to add up their times; without it
one whole cell is timed. Times are grouped by data set, condition and method; of many conditions two
are timed.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING

import numpy as np

from vntransfer.bench.cells import Cell, canonical_json
from vntransfer.bench.kinds import load_kind
from vntransfer.bench.records import Outcome
from vntransfer.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from vntransfer.bench.records import Record

FINISHED_RANGE, PROBED_RANGE = (0.7, 1.5), (0.6, 1.7)
"""Factors on times of finished cells and of short steps between which a run lies as a rule."""

LONG = 20.0

_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0}


def parse_seconds(text: str) -> float:
    """Seconds of a duration such as 2h, 90m, 45s or 1h30m.

    Examples
    --------
    >>> parse_seconds("1h30m"), parse_seconds("45s"), parse_seconds("1.5h")
    (5400.0, 45.0, 5400.0)
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(min|[dhms])", text)
    rest = re.sub(r"(\d+(?:\.\d+)?)\s*(min|[dhms])", "", text)
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if rest.strip() or not total > 0:
        raise ArgumentError(
            f"budget: expected a duration such as 2h, 90m, 45s or 1h30m, got {text!r}"
        )
    return total


def seconds_text(seconds: float) -> str:
    """Write a duration in two units at most.

    Examples
    --------
    >>> [seconds_text(s) for s in (0.4, 8.26, 75, 5400, 200_000)]
    ['0.4 s', '8.3 s', '1 min 15 s', '1 h 30 min', '2 d 7 h']
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    for (name, size), (small, part) in pairwise(units):
        if whole >= size:
            rest = f" {whole % size // part} {small}" if whole % size // part else ""
            return f"{whole // size} {name}{rest}"
    return f"{whole} s"


def group(cell: "Cell | Record") -> str:
    """Name of what takes the same time: all that identifies a cell but target, seed and values."""
    return canonical_json([cell.experiment, cell.data, cell.method, cell.version, cell.settings])


def _alike(one: str, other: str) -> bool:
    """Whether two groups differ in condition or version only."""
    return bool(json.loads(one)[:3] == json.loads(other)[:3])


@dataclass
class Times:
    """Seconds per cell, by group."""

    finished: dict[str, list[float]] = field(default_factory=dict)
    probed: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, cell: "Cell | Record", seconds: float | None) -> None:
        """Take in the time of a finished cell."""
        if seconds is not None:
            self.finished.setdefault(group(cell), []).append(seconds)

    def seconds(self, cell: Cell) -> float | None:
        """Mean time of such a cell, or of those under other conditions; None: nothing is known."""
        name = group(cell)
        if name in self.finished:
            return mean(self.finished[name])
        if name in self.probed:
            return self.probed[name]
        near = [seconds for other, seconds in self.probed.items() if _alike(name, other)]
        near += [mean(own) for other, own in self.finished.items() if _alike(name, other)]
        return mean(near) if near else None

    def measure(
        self,
        cells: Mapping[str, Cell],
        compute: Callable[[Cell], Outcome],
        progress: Callable[[int, int, Cell], None] = lambda done, total, cell: None,
    ) -> None:
        """Time short steps of every group of which nothing is known.

        Parameters
        ----------
        cells
            Group -> one of its cells.
        compute
            Computes a cell where the run would; its result is thrown away.
        progress
            Told how many groups are done, of how many, and the present cell.
        """
        known = self.finished.keys() | self.probed.keys() | self.failed.keys()
        alike: dict[tuple[str, str, str], list[str]] = {}
        for name, cell in cells.items():
            alike.setdefault((cell.experiment, cell.data, cell.method), []).append(name)
        ends = dict.fromkeys(name for names in alike.values() for name in (names[0], names[-1]))
        todo = {name: cells[name] for name in ends if name not in known}
        for done, (name, cell) in enumerate(todo.items()):
            progress(done, len(todo), cell)
            try:
                self.probed[name] = probe(cell, compute)
            except ProbeError as error:
                self.failed[name] = str(error)


class ProbeError(Exception):
    """A short step failed."""


def probe(cell: Cell, compute: Callable[[Cell], Outcome]) -> float:
    """Estimate the seconds of one cell from cheaper ones.

    The first of them is computed twice, since its first time includes imports and reading data,
    which a worker does once; a long one (`LONG` seconds) is not worth that.

    Examples
    --------
    >>> from vntransfer.bench.cells import expand
    >>> from vntransfer.bench.preset import check, read_preset
    >>> from vntransfer.bench.workers import compute
    >>> 0 < probe(expand(check(read_preset("smoke")[1], "smoke"))[0], compute) < 60
    True
    """
    kind = load_kind(cell.experiment)
    short = kind.probe(cell) if kind.probe is not None else [(cell, 1.0)]
    total = largest = 0.0
    for place, (cheaper, factor) in enumerate(short):
        outcome = compute(cheaper)
        if place == 0 and not outcome.error and outcome.seconds < LONG:
            outcome = compute(cheaper)
        if outcome.error:
            raise ProbeError(outcome.error)
        total += factor * outcome.seconds
        largest = max(largest, outcome.seconds)
    return max(total, largest)


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


@dataclass(frozen=True)
class Forecast:
    """Estimate of a run.

    Parameters
    ----------
    cells
        Number of cells that are left.
    low, high
        Seconds on this machine, between which the run lies as a rule.
    finished, probed, unknown
        Groups by where their times are from: finished cells, short steps, nowhere.
    reason
        Why a group is unknown, if one is.
    """

    cells: int
    low: float
    high: float
    finished: int
    probed: int
    unknown: int
    reason: str = ""

    def text(self, workers: int) -> str:
        """One sentence."""
        if not self.cells:
            return "nothing is left to compute"
        span = f"{seconds_text(self.low)} to {seconds_text(self.high)}"
        if not self.finished + self.probed:
            span = "unknown"
        why = self.reason.splitlines()[0] if self.reason else "too few cells to measure"
        named = (
            (self.finished, "finished cells"),
            (self.probed, "short steps measured now"),
            (self.unknown, f"nothing: {why}"),
        )
        basis = ", ".join(f"{n} from {what}" for n, what in named if n)
        return (
            f"estimate: {span} for {self.cells} cells on {workers} worker"
            f"{'s' if workers > 1 else ''} (times per data set, condition and method: {basis})"
        )


def forecast(times: Times, left: Mapping[str, tuple[Cell, int]], workers: int) -> Forecast:
    """Estimate the time of what is left.

    Parameters
    ----------
    times
        What is known.
    left
        Group -> one of its cells and the number that are left.
    workers
        Processes that work side by side. The run cannot be shorter than its longest cell, and at
        its end some workers wait for the last cell.
    """
    low = high = longest = 0.0
    kinds = {"finished": 0, "probed": 0, "unknown": 0}
    reason = ""
    for name, (cell, n) in left.items():
        each = times.seconds(cell)
        if each is None:
            kinds["unknown"] += 1
            reason = reason or times.failed.get(name, "")
            continue
        where = "finished" if name in times.finished else "probed"
        kinds[where] += 1
        least, most = FINISHED_RANGE if where == "finished" else PROBED_RANGE
        low, high = low + least * n * each, high + most * n * each
        longest = max(longest, each)
    busy = max(1, min(workers, sum(n for _, n in left.values())))
    end = 0.0 if busy == 1 else longest * (busy - 1) / busy
    return Forecast(
        sum(n for _, n in left.values()),
        max(low / busy, min(low, longest)),
        high / busy + end,
        kinds["finished"],
        kinds["probed"],
        kinds["unknown"],
        reason,
    )
