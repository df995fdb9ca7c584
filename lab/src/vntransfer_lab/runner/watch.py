"""``vnt bench watch``: a running (or dead) run, seen from another terminal."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from vntransfer_lab.runner.display import FEWEST_CELLS, seconds_text
from vntransfer_lab.runner.store import CellGroup, Store
from vntransfer_lab.runner.store_file import is_held

RATE_CELLS = 50
"""Cells that the rate is measured over: the latest ones."""

State = Literal["complete", "running", "dead", "stopped"]

FAILURES = 5
"""Failures that are shown, the latest ones."""

_COLORS = {"running": "green", "complete": "green", "dead": "red", "stopped": "yellow"}


@dataclass(frozen=True)
class Snapshot:
    """How far a run is; moments are in seconds since 1970."""

    title: str
    groups: list[CellGroup]
    # running: a runner holds the lock; dead: it was killed; stopped: it ended before all was done
    state: State
    began: float | None = None  # the last invocation
    last: float | None = None  # when the last cell was finished
    left: float | None = None  # seconds, once this invocation has finished a few cells
    failures: list[tuple[str, str]] = field(default_factory=list)  # label, first line of the error
    taken: float = 0.0

    def total(self, status: Literal["done", "failed", "pending"]) -> int:
        """Count the cells of a status."""
        return sum(getattr(group, status) for group in self.groups)

    def headline(self) -> str:
        """Say in one line whether the run is at work, and how far it is."""
        failed, finished = self.total("failed"), self.total("done") + self.total("failed")
        share = f"{finished} of {finished + self.total('pending')} cells"
        share += f", {failed} failed" if failed else ""
        if self.state == "complete":
            return f"complete: {share}"
        if self.state != "running":
            words = "dead: the runner was killed" if self.state == "dead" else "stopped"
            life = max(filter(None, (self.last, self.began)), default=None)
            if life:
                sign = ", last sign of life %Y-%m-%d %H:%M:%S"
                words += time.strftime(sign, time.localtime(life))
            return f"{words}; {share}; rerun the same command to resume"
        parts = [f"running: {share}"]
        if self.began is not None:
            parts.append(f"for {seconds_text(self.taken - self.began)}")
        if self.left is not None:
            parts.append(f"about {seconds_text(self.left)} left")
        return ", ".join(parts)


def look(folder: str | Path, *, verify: bool = True) -> Snapshot:
    """See how far a run is; works while it is written and on folders that cannot be written."""
    # First who runs, then what is done: a run that ends in between is seen as complete.
    alive = is_held(Path(folder))
    with Store(folder, verify=verify) as store:
        preset, groups = store.preset(), store.groups()
        (*_, invocation) = (None, *store.invocations())
        began = None if invocation is None else invocation.began
        ends = store.latest_ends(began or 0.0, RATE_CELLS)
        failures = store.latest_failures(FAILURES)
    unended = invocation is not None and invocation.ended is None
    state: State
    if groups and not any(group.pending for group in groups):
        state = "complete"
    elif alive or (alive is None and unended):
        state = "running"
    else:
        state = "dead" if unended else "stopped"
    last, left, now = ends[-1][0] if ends else None, None, time.time()
    if began is not None and ends and state == "running":
        start = max(began, ends[0][0] - ends[0][1])  # until workers were there
        pending = sum(group.pending for group in groups)
        left = seconds_left(start, [end for end, _ in ends], pending, now)
    title = "" if preset is None else preset.title
    return Snapshot(title, groups, state, began, last, left, failures, now)


def seconds_left(began: float, ends: Sequence[float], unfinished: int, now: float) -> float | None:
    """Time for the unfinished cells at the rate of the latest `RATE_CELLS` that a run finished.

    It began with the first of its cells at ``began`` and finished cells at ``ends``. None before
    `FEWEST_CELLS` are finished.
    """
    if len(ends) < FEWEST_CELLS:
        return None
    latest, start = ends[-RATE_CELLS:], began
    if len(latest) == RATE_CELLS:
        start, *latest = latest
    rate = len(latest) / (latest[-1] - start) if latest[-1] > start else None
    return None if rate is None else max(0.0, unfinished / rate - (now - latest[-1]))


def draw(seen: Snapshot) -> RenderableType:
    """Draw a snapshot: headline, table, latest failures."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("data", "method"):
        table.add_column(name)
    for name in ("done", "failed", "pending", "each"):
        table.add_column(name, justify="right")
    for group in seen.groups:
        counts = (group.done, group.failed, group.pending)
        each = "" if group.seconds is None else f"{group.seconds:.3g} s"
        table.add_row(group.data, group.method, *(str(n or "") for n in counts), each)
    parts: list[RenderableType] = [
        Text(seen.title, style="bold"),
        Text(seen.headline(), style=_COLORS[seen.state]),
        table,
    ]
    if seen.failures:
        parts.append(Text("latest failures:"))
        for label, error in seen.failures:
            parts.append(Text(f"  {label}: {error}", style="red"))
    return Group(*parts)


def watch(folder: str | Path, *, once: bool = False) -> None:
    """Show a run until it ends, or once."""
    console, seen = Console(), look(folder)
    if not once and seen.state == "running":
        with Live(console=console, auto_refresh=False, transient=True) as live:
            while seen.state == "running":
                if console.is_terminal:  # a file or a pipe gets the end alone
                    live.update(draw(seen), refresh=True)
                time.sleep(1.0)
                seen = look(folder, verify=False)  # once a second: the first look did
    console.print(draw(seen), soft_wrap=True)
