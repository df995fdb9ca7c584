"""Parts shared by commands: options for tables, errors, progress, summaries."""

import inspect
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vntransfer.errors import DataWarning, VnError

if TYPE_CHECKING:
    from vntransfer.progress import Progress
    from vntransfer.tables.notes import Note
    from vntransfer.tables.options import ReadOptions

BAD = 2
"""Exit code for anything that the user can fix."""

FAILED = 3
"""Exit code for cells that failed, and for archived numbers that do not reproduce."""

Files = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="csv or parquet files, or patterns.")
]
File = Annotated[
    Path, typer.Argument(metavar="FILE", help="csv or parquet file; csv may be compressed (.gz).")
]
Domain = Annotated[str, typer.Option(help="Column that names the place of each row.")]
Response = Annotated[str, typer.Option(help="Column to predict.")]
Features = Annotated[
    str | None, typer.Option(help="Comma-separated feature columns. Default: all others.")
]
Drop = Annotated[list[str] | None, typer.Option(help="Column to ignore. Repeatable.")]
Category = Annotated[
    list[str] | None, typer.Option(help="Column to treat as categories. Repeatable.")
]
Save = Annotated[Path | None, typer.Option(help="Folder for the fitted model, for `vnt predict`.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="HTML page for the results.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Overwrite existing files.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Random seed; fixes all results.")]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of a Dask cluster. Default: start one.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="List all notes on the table.")]


class Terminated(KeyboardInterrupt):
    """SIGTERM, which stops a command like Ctrl-C."""


def _terminate(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not stop the clean-up
    raise Terminated


def _send_again(before: Any, lost: Any) -> None:
    """Send a signal again if its exception was lost where none can be raised, as in ``__del__``."""
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        before(lost)
        return
    handler: Any = signal.default_int_handler
    number = signal.SIGINT
    if isinstance(lost.exc_value, Terminated):
        handler, number = _terminate, signal.SIGTERM
        signal.signal(number, handler)

    def send() -> None:
        if signal.getsignal(number) is handler:  # the command is still at work
            os.kill(os.getpid(), number)

    timer = threading.Timer(0.05, send)
    timer.daemon = True
    timer.start()


@contextmanager
def signals_as_exit_codes(said: str = "stopped; no incomplete file was left") -> Iterator[None]:
    """Let Ctrl-C and SIGTERM clean up, print a message, then exit with 130 or 143."""
    before, hook = signal.signal(signal.SIGTERM, _terminate), sys.unraisablehook
    sys.unraisablehook = partial(_send_again, hook)
    try:
        yield
    except KeyboardInterrupt as stop:
        reason = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        typer.echo(f"vnt: {said} ({reason.name})", err=True)
        sys.exit(128 + reason)
    finally:
        signal.signal(signal.SIGTERM, before)
        sys.unraisablehook = hook


@contextmanager
def plain_errors() -> Iterator[None]:
    """Print an expected error as one sentence and exit with code 2; print warnings as notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", DataWarning)
        try:
            yield
        except BrokenPipeError:  # the reader of a pipe is gone
            raise
        except (VnError, OSError) as error:  # such as a full disk
            typer.echo(f"vnt: {error}", err=True)
            raise typer.Exit(BAD) from None
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in caught):
                typer.echo(f"vnt: note: {message}", err=True)


@contextmanager
def progress(*, of_bytes: bool = False) -> Iterator["Progress | None"]:
    """Show progress bars with the time left on stderr; give the callback that moves them.

    The callback is None if stderr is not a terminal.
    """
    import rich.progress
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:  # before rich 14.3, disabled bars end in an empty line
        yield None
        return
    bars = rich.progress.Progress(
        rich.progress.TextColumn("{task.description}", markup=False),
        rich.progress.BarColumn(),
        rich.progress.DownloadColumn() if of_bytes else rich.progress.MofNCompleteColumn(),
        rich.progress.TimeElapsedColumn(),
        rich.progress.TimeRemainingColumn(),
        console=console,
    )
    tasks: dict[str, Any] = {}

    def advance(what: str, done: int, total: int | None) -> None:
        bars.start()  # not earlier: what is printed before would be overdrawn
        if what not in tasks:
            tasks[what] = bars.add_task(what, total=total)
        bars.update(tasks[what], completed=done, total=total)

    try:
        yield advance
    finally:
        bars.stop()


def split(text: str | None) -> list[str] | None:
    """Split a list of comma-separated names."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1) -> Any:
    """Make a table whose first columns are text and the others numbers; markup is not parsed."""
    from rich.table import Table
    from rich.text import Text

    made = Table(title=Text(title), title_justify="left")
    for i, name in enumerate(head):
        made.add_column(Text(name), justify="left" if i < texts else "right", overflow="fold")
    for row in rows:
        made.add_row(*map(Text, row))
    return made


LISTED = 40
"""Largest number of columns that are listed."""


def print_columns(screen: Any, summary: Sequence[tuple[str, str, str]]) -> None:
    """Print how each column is used."""
    head = ("column", "kind", "treatment")
    screen.print(table("Column handling", head, summary[:LISTED], texts=3))
    if len(summary) > LISTED:
        screen.print(f"and {len(summary) - LISTED:,} more columns")


SHOWN = 3
"""Notes of a group that are printed; more are counted."""


def print_notes(screen: Any, notes: "Sequence[Note | str]", *, verbose: bool = False) -> None:
    """Print notes by group, warnings in color; of a large group some, unless all are asked for.

    Plain sentences that differ only in quoted names and numbers make a group.
    """
    from vntransfer.tables.notes import Note, grouped, overview

    kinds = [note for note in notes if isinstance(note, Note)]
    plain = [note for note in notes if isinstance(note, str)]
    groups: dict[str, list[Note | str]] = {name: [*own] for name, own in grouped(kinds).items()}
    for text in plain:
        groups.setdefault(re.sub(r"'[^']*'|\d[\d.,]*", "…", text), []).append(text)
    for own in groups.values():
        for note in own if verbose else own[:SHOWN]:
            if isinstance(note, Note) and note.warning:
                screen.print(f"Warning: {note.text}.", style="yellow")
            else:
                screen.print(f"note: {note.text if isinstance(note, Note) else note}")
        if plain and not verbose and len(own) > SHOWN:
            screen.print(f"      and {len(own) - SHOWN:,} more notes of this kind")
    if not verbose and any(len(own) > SHOWN for own in groups.values()):
        counted = overview(kinds) or f"{len(plain):,} notes"
        screen.print(f"{counted}; --verbose lists all")


def check_outputs(
    files: Sequence[str | Path],
    out: Path | None,
    save: Path | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Raise unless the page, and the folder of the model, can be written."""
    from vntransfer.storage.places import PAGES, check_file, check_place
    from vntransfer.tables.files import expand

    if out is not None:
        check_file("out", out, PAGES, expand(files), save, overwrite=overwrite)
    if save is not None:
        check_place(save)


def print_outputs(screen: Any, folder: Path | None, page: Path | None) -> None:
    """Print where the model and its page are, and how to use the model."""
    if folder is not None:
        screen.print(f"\nsaved; predict with: vnt predict {folder} FILE --out predictions.csv")
    if page is not None:
        screen.print(f"page: {page}")


class _Lasting:
    """Standard output that may lose its reader (``| head``); the command then continues."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, text: str) -> None:
        self._attempt(self.file.write, text)

    def flush(self) -> None:
        self._attempt(self.file.flush)

    def _attempt(self, do: Callable[..., Any], *given: str) -> None:
        try:
            do(*given)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.file.fileno())
            os.close(nowhere)


def console() -> Any:
    """Make a console for results; lines are not wrapped in a pipe."""
    from rich.console import Console

    file: Any = _Lasting(sys.stdout)
    plain = partial(Console, highlight=False, markup=False, emoji=False, file=file)
    own = plain()
    return own if own.is_terminal else plain(width=120)


def _read_options(
    *,
    delimiter: Annotated[
        str | None, typer.Option(help="Delimiter of a csv file, or 'tab'. Default: detected.")
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option(help="Decimal mark, '.' or ','. Default: '.', or ',' if only that fits."),
    ] = None,
    thousands: Annotated[
        str | None, typer.Option(help="Thousands separator, such as ',' or ' '.")
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(help="Encoding of a csv file, such as latin-1. Default: UTF-8."),
    ] = None,
    day_first: Annotated[
        bool | None,
        typer.Option(
            "--day-first/--month-first",
            help="Read 01/02/2020 as February 1 or as January 2. Default: inferred.",
        ),
    ] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(help="Unit to ignore next to numbers, such as € or %. Repeatable."),
    ] = None,
) -> "ReadOptions":
    from vntransfer.tables.options import ReadOptions

    return ReadOptions(delimiter, decimal, thousands, encoding, day_first, tuple(unit or ()))


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for reading files to a command, which gets them as ``read_options``.

    Its expected errors are printed plainly.
    """
    added = inspect.signature(_read_options).parameters

    @wraps(command)
    def wrapped(**given: Any) -> None:
        chosen = {name: given.pop(name) for name in added}
        with plain_errors():
            command(**given, read_options=_read_options(**chosen))

    signature = inspect.signature(command)
    own = [p for name, p in signature.parameters.items() if name != "read_options"]
    every = [*own, *added.values()]
    wrapped.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in every}
    return wrapped
