"""How often the state of a long computation is written."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


class Pace:
    """Seconds between writes of the state of a long computation; 0: write every state.

    The clock decides whether a state is written, never what is in it. The first write also waits.
    ``on_write`` is called before every write.
    """

    def __init__(self, seconds: float = 0.0, on_write: Callable[[], None] | None = None) -> None:
        self.seconds, self.on_write = seconds, on_write
        self._last = time.monotonic()

    def due(self, *, last: bool = False) -> bool:
        """Whether to write now; the ``last`` state of a stage is due in a quarter of the time."""
        now = time.monotonic()
        if now - self._last < self.seconds / (4 if last else 1):
            return False
        self._last = now
        if self.on_write is not None:
            self.on_write()
        return True


@dataclass(frozen=True)
class Paced:
    """A file or folder of states, and how often to write them."""

    path: Path
    pace: Pace = field(default_factory=Pace)

    def __truediv__(self, name: str) -> "Paced":
        return Paced(self.path / name, self.pace)


def paced(place: "str | Path | Paced") -> Paced:
    """Turn a plain path into one at which every state is written."""
    return place if isinstance(place, Paced) else Paced(Path(place))
