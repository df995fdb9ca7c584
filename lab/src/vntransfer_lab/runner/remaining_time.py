"""How long what is left of a run will take, from the times that are known."""

from collections.abc import Mapping
from dataclasses import dataclass

from vntransfer_lab.runner.cell_times import RANGES, Times
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.durations import seconds_text


@dataclass(frozen=True)
class Forecast:
    """Estimate of a run.

    Parameters
    ----------
    cells
        Number of cells that are left.
    low, high
        Seconds on this machine, between which the run lies as a rule.
    finished, probed, derived, guessed, unknown
        Groups by where their times are from: finished cells, short steps, other data, other
        methods, nowhere.
    reason
        Why a group is unknown, if one is.
    """

    cells: int
    low: float
    high: float
    finished: int
    probed: int
    derived: int
    guessed: int
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
            (self.derived, "those of other data sets"),
            (self.guessed, "those of other methods"),
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
    kinds = dict.fromkeys((*RANGES, "unknown"), 0)
    reason = ""
    for name, (cell, n) in left.items():
        each, where = times.find(cell)
        kinds[where] += 1
        if each is None:
            reason = reason or times.failed.get(name, "")
            continue
        least, most = RANGES[where]
        low, high = low + least * n * each, high + most * n * each
        longest = max(longest, each)
    busy = max(1, min(workers, sum(n for _, n in left.values())))
    end = 0.0 if busy == 1 else longest * (busy - 1) / busy
    return Forecast(
        sum(n for _, n in left.values()),
        max(low / busy, min(low, longest)),
        high / busy + end,
        **kinds,
        reason=reason,
    )
