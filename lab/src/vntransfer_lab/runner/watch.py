"""``vnt bench watch``: a running (or dead) run, seen from another terminal."""

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from vntransfer_lab.runner.durations import seconds_text
from vntransfer_lab.runner.snapshot import Snapshot, look

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def moment(seconds: float) -> str:
    """Write a moment in local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def headline(seen: Snapshot) -> str:
    """Say in one line whether and how the run goes on."""
    failed = seen.total("failed")
    share = f"{seen.total('done') + failed} of {seen.cells} cells"
    share += f", {failed} failed" if failed else ""
    life = seen.sign_of_life
    if seen.state == "complete":
        return f"complete: {share}"
    if seen.state != "running":
        words = "dead: the runner was killed" if seen.state == "dead" else "stopped"
        last = f", last sign of life {moment(life)}" if life else ""
        return f"{words}{last}; {share}; the same command goes on"
    parts = [f"running: {share}"]
    if seen.began is not None:
        parts.append(f"for {seconds_text(seen.taken - seen.began)}")
    if seen.rate:
        parts.append(f"{60 * seen.rate:.3g} cells per minute")
    if seen.seconds_left is not None:
        parts.append(f"about {seconds_text(seen.seconds_left)} left")
    return ", ".join(parts)


def draw(seen: Snapshot) -> "RenderableType":
    """Draw a snapshot: headline, table, running cells, latest failures."""
    from rich.console import Group as Lines
    from rich.text import Text

    color = {"running": "green", "complete": "green", "dead": "red", "stopped": "yellow"}
    parts: list[RenderableType] = [
        Text(seen.title, style="bold"),
        Text(headline(seen), style=color[seen.state]),
    ]
    parts.append(_table(seen))
    if seen.running is not None and seen.running.cells:
        ran = "running" if seen.state == "running" else "were running"
        parts.append(Text(f"{ran} ({seen.running.engine}, {seen.running.jobs} at once):"))
        until = seen.taken if seen.state == "running" else seen.running.beat
        for cell in seen.running.cells:
            since = f"since {moment(cell.began)} ({seconds_text(max(0.0, until - cell.began))})"
            parts.append(Text(f"  {cell.label}  {since}", style="dim"))
    if seen.failures:
        parts.append(Text("latest failures:"))
        for label, error in seen.failures:
            parts.append(Text(f"  {label}: {error}", style="red"))
    return Lines(*parts)


def _table(seen: Snapshot) -> "RenderableType":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("data", "method"):
        table.add_column(name)
    for name in ("done", "failed", "running", "pending", "each"):
        table.add_column(name, justify="right")
    at_work = Counter(
        (cell.data, cell.method)
        for cell in (seen.running.cells if seen.running and seen.state == "running" else [])
    )
    for group in seen.groups:
        now = min(at_work[group.data, group.method], group.pending)
        counts = (group.done, group.failed, now, group.pending - now)
        each = "" if group.seconds is None else f"{group.seconds:.3g} s"
        table.add_row(group.data, group.method, *(str(n or "") for n in counts), each)
    return table


def watch(
    folder: str | Path,
    *,
    once: bool = False,
    seconds: float = 1.0,
    console: "Console | None" = None,
) -> Snapshot:
    """Show a run until nobody works on it any more, or once.

    Parameters
    ----------
    folder
        A run folder.
    once
        Print and leave.
    seconds
        Between two looks.
    console
        Of rich; standard output by default.

    Returns
    -------
    Snapshot
        The last one.
    """
    from rich.console import Console
    from rich.live import Live

    console = console or Console()
    seen = look(folder)
    if not once and seen.state == "running":
        with Live(console=console, auto_refresh=False, transient=True) as live:
            while seen.state == "running":
                if console.is_terminal:  # a file or a pipe gets the end alone
                    live.update(draw(seen), refresh=True)
                time.sleep(seconds)
                seen = look(folder)
    console.print(draw(seen), soft_wrap=True)
    return seen
