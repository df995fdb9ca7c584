"""How far a run is, read from its folder while it runs or after its runner died."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from vntransfer_lab.runner import durations
from vntransfer_lab.runner.run import LOCK_NAME
from vntransfer_lab.runner.running_cells import BEAT_SECONDS, RunningCells, read_running
from vntransfer_lab.runner.store import Store

State = Literal["complete", "running", "dead", "stopped"]

FAILURES = 5
"""Failures that are shown, the latest ones."""


@dataclass(frozen=True)
class Group:
    """Numbers of cells of one method on one data set, and the mean time of the finished ones."""

    data: str
    method: str
    done: int = 0
    failed: int = 0
    pending: int = 0
    seconds: float | None = None


@dataclass(frozen=True)
class Snapshot:
    """How far a run is.

    Parameters
    ----------
    folder, title
        The run folder and what its preset is headed.
    groups
        Numbers of cells by data set and method.
    state
        "complete"; "running": a runner holds the lock; "dead": a runner was killed; "stopped": one
        ended before all cells were computed.
    running
        What the last runner said, unless it ended in order.
    began
        When the last invocation began, in seconds since 1970.
    last
        When the last cell was finished.
    rate
        Cells per second of the present invocation, once it has finished a few.
    failures
        Label and first line of the error of the latest failures.
    taken
        When this was seen.
    """

    folder: Path
    title: str
    groups: list[Group]
    state: State
    running: RunningCells | None = None
    began: float | None = None
    last: float | None = None
    rate: float | None = None
    failures: list[tuple[str, str]] = field(default_factory=list)
    taken: float = field(default_factory=time.time)

    def total(self, status: Literal["done", "failed", "pending"]) -> int:
        """Count the cells of a status."""
        return sum(getattr(group, status) for group in self.groups)

    @property
    def cells(self) -> int:
        """Number of all cells of the plan."""
        return self.total("done") + self.total("failed") + self.total("pending")

    @property
    def sign_of_life(self) -> float | None:
        """When the last runner did something that can be seen."""
        seen = [self.last, self.began, self.running.beat if self.running else None]
        return max((moment for moment in seen if moment is not None), default=None)

    @property
    def seconds_left(self) -> float | None:
        """Time for what is pending, at the rate of the cells that this invocation finished."""
        if self.state != "running" or self.rate is None or self.last is None:
            return None
        return durations.seconds_left(self.rate, self.total("pending"), self.taken - self.last)


def look(folder: str | Path) -> Snapshot:
    """See how far a run is; works while it is written and on folders that cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from vntransfer_lab import run
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = run("smoke", methods=["constant"], targets=["s1"], seeds=2, out=place)
    ...     seen = look(place)
    >>> seen.state, seen.total("done"), seen.total("pending")
    ('complete', 2, 0)
    """
    folder = Path(folder)
    # First who runs, then what is done: a run that ends in between is seen as complete.
    alive, running = _alive(folder), read_running(folder)
    with Store(folder) as store:
        preset = store.preset()
        groups = _groups(store)
        began, ended, last, rate = _times(store)
        failures = _failures(store)
    state: State
    if groups and not any(group.pending for group in groups):
        state = "complete"
    elif alive or (alive is None and running and time.time() - running.beat < 4 * BEAT_SECONDS):
        state = "running"
    else:
        killed = running is not None or (began is not None and ended is None)
        state = "dead" if killed else "stopped"
    title = "" if preset is None else preset.title
    rate = rate if state == "running" else None
    return Snapshot(folder, title, groups, state, running, began, last, rate, failures)


def _alive(folder: Path) -> bool | None:
    """Whether a runner holds the lock; None where that cannot be found out."""
    try:
        import fcntl

        with open(folder / LOCK_NAME, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (ImportError, OSError):
        return None
    return False


def _groups(store: Store) -> list[Group]:
    found: dict[tuple[str, str], dict[str, int]] = {}
    seconds: dict[tuple[str, str], float] = {}
    query = (
        "SELECT data, method, status, count(*), sum(seconds) FROM cells WHERE place IS NOT NULL "
        "GROUP BY data, method, status ORDER BY min(place)"
    )
    for data, method, status, number, spent in store.read(query):
        found.setdefault((data, method), {})[status] = number
        seconds[data, method] = seconds.get((data, method), 0.0) + (spent or 0.0)
    groups = []
    for (data, method), counts in found.items():
        finished = counts.get("done", 0) + counts.get("failed", 0)
        mean = seconds[data, method] / finished if finished else None
        groups.append(Group(data, method, **counts, seconds=mean))
    return groups


def _times(store: Store) -> tuple[float | None, float | None, float | None, float | None]:
    """Begin and end of the last invocation, end of the last cell, cells per second."""
    if not store.has("invocations"):
        return None, None, None, None
    rows = store.read("SELECT began, ended FROM invocations ORDER BY id DESC LIMIT 1")
    if not rows:
        return None, None, None, None
    ((began, ended),) = rows
    ((last,),) = store.read("SELECT max(ended) FROM times")
    query = (
        "SELECT ended, seconds FROM times JOIN cells ON id = cell WHERE ended >= ? "
        "ORDER BY ended DESC LIMIT ?"
    )
    latest = store.read(query, began, durations.RATE_CELLS)[::-1]
    first = max((end - (spent or 0.0) for end, spent in latest[:1]), default=began)
    rate = durations.cell_rate(max(began, first), [end for end, _ in latest])
    return began, ended, last, rate


def _failures(store: Store) -> list[tuple[str, str]]:
    """Latest failures; those of stores that have no times in the order of the plan."""
    timed = store.has("times")
    query = (
        f"SELECT data, target, method, seed, error FROM cells "
        f"{'LEFT JOIN times ON cell = id' if timed else ''} "
        f"WHERE status = 'failed' AND place IS NOT NULL "
        f"ORDER BY {'ended' if timed else 'place'} DESC LIMIT {FAILURES}"
    )
    return [
        (f"{data} {target} {method} seed {seed}", (error or "").partition("\n")[0])
        for data, target, method, seed, error in store.read(query)
    ]
