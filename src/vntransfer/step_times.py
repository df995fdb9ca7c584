"""Times of training steps, which every training loop measures and returns."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import process_time


@dataclass
class StepTimes:
    """Steps of training and their processor time.

    The first step of a loop is counted but not timed: it imports, allocates and sets up what all
    others use. Processor time does not run while the process waits for others or is stopped.

    Parameters
    ----------
    made
        Number of steps.
    timed
        Number of steps that are in ``seconds``.
    seconds
        Their processor time.

    Examples
    --------
    >>> times = StepTimes()
    >>> for _ in range(3):
    ...     with times.step():
    ...         pass
    >>> times.made, times.timed, times.seconds >= 0
    (3, 2, True)
    >>> (times + times).timed
    4
    """

    made: int = 0
    timed: int = 0
    seconds: float = 0.0

    @contextmanager
    def step(self) -> Iterator[None]:
        """Measure one step of a loop; a step that raises does not count."""
        start = process_time()
        yield
        if self.made:
            self.timed += 1
            self.seconds += process_time() - start
        self.made += 1

    def __add__(self, other: "StepTimes") -> "StepTimes":
        return StepTimes(
            self.made + other.made, self.timed + other.timed, self.seconds + other.seconds
        )
