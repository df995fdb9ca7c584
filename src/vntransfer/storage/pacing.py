"""How often the state of a long computation is written."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


class Pace:
    """How often the state of a long computation is worth writing.

    A clock decides whether a state is written, never what is in it.

    Parameters
    ----------
    seconds
        Between two writes; also before the first. 0: every state.
    told
        Called whenever a state is about to be written.

    Examples
    --------
    >>> Pace(0).due(), Pace(3600).due()
    (True, False)
    """

    def __init__(self, seconds: float = 0.0, told: Callable[[], None] | None = None) -> None:
        self.seconds, self.told = seconds, told
        self._last = time.monotonic()

    def due(self, *, last: bool = False) -> bool:
        """Say whether to write now.

        Parameters
        ----------
        last
            It is the last state of a stage, which a resumed computation would do over as a whole:
            worth writing after a quarter of the time.
        """
        now = time.monotonic()
        if now - self._last < self.seconds / (4 if last else 1):
            return False
        self._last = now
        if self.told is not None:
            self.told()
        return True


@dataclass(frozen=True)
class Paced:
    """A file or folder of states, and how often they are worth writing.

    Examples
    --------
    >>> states = Paced(Path("run"), Pace(20)) / "fold1"
    >>> states.path.as_posix(), states.pace.seconds
    ('run/fold1', 20)
    """

    path: Path
    pace: Pace = field(default_factory=Pace)

    def __truediv__(self, name: str) -> "Paced":
        return Paced(self.path / name, self.pace)


def paced(place: "str | Path | Paced") -> Paced:
    """Take a plain path as one at which every state is written."""
    return place if isinstance(place, Paced) else Paced(Path(place))
