"""How often the state of a long computation is written."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


class Pace:
    """How often the state of a long computation is worth writing, in seconds; 0: every state.

    A clock decides whether a state is written, never what is in it. The seconds also pass before
    the first write. ``on_write`` is called whenever a state is about to be written.
    """

    def __init__(self, seconds: float = 0.0, on_write: Callable[[], None] | None = None) -> None:
        self.seconds, self.on_write = seconds, on_write
        self._last = time.monotonic()

    def due(self, *, last: bool = False) -> bool:
        """Say whether to write now.

        The ``last`` state of a stage, which a resumed computation would do over as a whole, is
        worth writing after a quarter of the time.
        """
        now = time.monotonic()
        if now - self._last < self.seconds / (4 if last else 1):
            return False
        self._last = now
        if self.on_write is not None:
            self.on_write()
        return True


@dataclass(frozen=True)
class Paced:
    """A file or folder of states, and how often they are worth writing."""

    path: Path
    pace: Pace = field(default_factory=Pace)

    def __truediv__(self, name: str) -> "Paced":
        return Paced(self.path / name, self.pace)


def paced(place: "str | Path | Paced") -> Paced:
    """Take a plain path as one at which every state is written."""
    return place if isinstance(place, Paced) else Paced(Path(place))
