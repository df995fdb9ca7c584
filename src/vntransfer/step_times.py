"""How long training steps take: loops mark their steps, whoever asked learns of them.

The time of a step belongs to no model and no result, so it is neither an option nor a part of a
history: it goes to a listener, and where there is none nothing is measured.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import process_time


@dataclass
class StepTimes:
    """Steps of training and their processor time.

    The first step is counted but not timed: it imports, allocates and sets up what all others use.
    Processor time does not run while the process waits for others or is stopped.

    Parameters
    ----------
    made
        Number of steps.
    seconds
        Processor time of all steps but the first.
    """

    made: int = 0
    seconds: float = 0.0

    @property
    def timed(self) -> int:
        """Number of steps that are in ``seconds``."""
        return max(0, self.made - 1)

    def add(self, seconds: float) -> None:
        """Take in a step."""
        self.seconds += seconds if self.made else 0.0
        self.made += 1


_listener: ContextVar[StepTimes | None] = ContextVar("steps", default=None)


@contextmanager
def step_times() -> Iterator[StepTimes]:
    """Learn of the training steps that are made inside the block.

    Examples
    --------
    >>> with step_times() as times:
    ...     for _ in range(3):
    ...         with one_step():
    ...             pass
    >>> times.made, times.timed, times.seconds >= 0
    (3, 2, True)
    """
    times = StepTimes()
    token = _listener.set(times)
    try:
        yield times
    finally:
        _listener.reset(token)


@contextmanager
def one_step() -> Iterator[None]:
    """Mark one step of a training loop."""
    times = _listener.get()
    if times is None:
        yield
        return
    start = process_time()
    yield
    times.add(process_time() - start)
