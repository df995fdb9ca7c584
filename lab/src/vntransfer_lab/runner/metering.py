"""What a cell costs: processor time of its training steps, and memory.

Neither enters the results: two equal runs have equal tables and unequal costs.
"""

import ctypes
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from vntransfer.step_times import StepTimes
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.records import Cost

_STATUS, _REFERENCES = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # what Linux wants to be told to forget the largest size so far

# What this process has computed cells of. The first one imports libraries and reads data, and what
# that takes stays for the others: its memory says nothing about a method.
_warm: set[tuple[str, str]] = set()


class TimedRun:
    """What a generator yields; afterwards ``step_times`` is what it returned."""

    def __init__(self, steps: Iterable[Any]) -> None:
        self._steps: Any = steps
        self.step_times = StepTimes()

    def __iter__(self) -> Iterator[Any]:
        self.step_times = (yield from self._steps) or StepTimes()


@contextmanager
def metered(cell: Cell) -> Iterator[Callable[[StepTimes], Cost]]:
    """Measure the block, which computes a cell; yields a function: step times -> cost so far."""
    before = _resident() if (cell.experiment, cell.data) in _warm else None
    _warm.add((cell.experiment, cell.data))

    def cost(times: StepTimes) -> Cost:
        peak = None if before is None else _status("VmHWM")
        grown = None if before is None or peak is None else max(0, peak - before)
        return Cost(times.timed, times.seconds / times.timed if times.timed else None, grown)

    yield cost


def _resident() -> int | None:
    """Bytes in use, from which on the largest size is followed; None: the system does not say."""
    with suppress(OSError, AttributeError):
        # What earlier cells freed is given back first: the cell would fill it unseen.
        ctypes.CDLL(None).malloc_trim(0)
    try:
        _REFERENCES.write_text(_RESET_PEAK, "ascii")
    except OSError:
        return None
    return _status("VmRSS")


def _status(name: str) -> int | None:
    """Bytes that the system's page about this process gives under a name."""
    with suppress(OSError):
        for line in _STATUS.read_text("ascii", "replace").splitlines():
            if line.startswith(f"{name}:"):
                return 1024 * int(line.split()[1])
    return None
