"""What commands share: options for people's own tables, errors, progress, summaries."""

import inspect
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vntransfer.errors import DataWarning, VnError

if TYPE_CHECKING:
    from vntransfer.progress import Progress

BAD = 2
"""Exit code for anything that the user can fix."""

FAILED = 3
"""Exit code for cells that failed, and for archived numbers that do not reproduce."""

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="A csv or parquet file; csv may be packed (.gz).")
]
Domain = Annotated[str, typer.Option("--domain", help="Column: where each row comes from.")]
Response = Annotated[str, typer.Option("--response", help="Column: what is to be predicted.")]
Features = Annotated[
    str | None,
    typer.Option("--features", help="Comma-separated feature columns. Default: all others."),
]
Drop = Annotated[
    list[str] | None, typer.Option("--drop", help="Leave a column out; may be repeated.")
]
Category = Annotated[
    list[str] | None,
    typer.Option("--category", help="A column of categories, whatever it looks like; repeatable."),
]


Save = Annotated[
    Path | None, typer.Option("--save", help="Folder for what was learned, for `vnt predict`.")
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Write everything as an HTML page.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace existing files that are not pages of ours.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Same seed, same numbers.")]


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


def _terminate(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not stop the clean-up
    raise Terminated


@contextmanager
def signals_as_exit_codes(said: str = "stopped; no file is half written") -> Iterator[None]:
    """Let Ctrl-C and SIGTERM unwind what is open, say so, then exit with 130 or 143."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except KeyboardInterrupt as stop:
        reason = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        typer.echo(f"vnt: {said} ({reason.name})", err=True)
        sys.exit(128 + reason)
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Say what cannot be done in a sentence and end with code 2; warnings are notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", DataWarning)
        try:
            yield
        except BrokenPipeError:  # nobody reads on
            raise
        except (VnError, OSError) as error:  # such as a disk that is full
            typer.echo(f"vnt: {error}", err=True)
            raise typer.Exit(BAD) from None
        finally:
            for warning in caught:
                typer.echo(f"vnt: note: {warning.message}", err=True)


@contextmanager
def progress(*, of_bytes: bool = False) -> Iterator["Progress | None"]:
    """Bars with an estimate of the time left, on stderr: gives the callback that moves them.

    It is None where nobody watches.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if not console.is_terminal:  # before rich 14.3, disabled bars end in an empty line
        yield None
        return
    with Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn() if of_bytes else MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as bars:
        tasks: dict[str, Any] = {}

        def advance(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield advance


def split(text: str | None) -> list[str] | None:
    """Names between commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1) -> Any:
    """Make a table whose first columns are texts, the others numbers; no markup is read."""
    from rich.table import Table
    from rich.text import Text

    made = Table(title=Text(title), title_justify="left")
    for i, name in enumerate(head):
        made.add_column(Text(name), justify="left" if i < texts else "right", overflow="fold")
    for row in rows:
        made.add_row(*map(Text, row))
    return made


LISTED = 40
"""Columns that are listed; more are counted."""


def print_columns(
    screen: Any, summary: Sequence[tuple[str, str, str]], notes: Sequence[str]
) -> None:
    """Print what was done to which column (nothing if nothing is given), and notes."""
    if summary:
        head = ("column", "kind", "treatment")
        screen.print(table("Column handling", head, summary[:LISTED], texts=3))
        if len(summary) > LISTED:
            screen.print(f"and {len(summary) - LISTED:,} more columns")
    for note in notes:
        screen.print(f"note: {note}")


def print_outputs(screen: Any, folder: Path | None, page: Path | None) -> None:
    """Print where a model is, and what it is for, and where its page is."""
    if folder is not None:
        screen.print(f"\nsaved; predict with: vnt predict {folder} FILE --out predictions.csv")
    if page is not None:
        screen.print(f"page: {page}")


class _Lasting:
    """Standard output that may lose its reader (``| head``): the work goes on, unseen."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, text: str) -> None:
        try:
            self.file.write(text)
        except BrokenPipeError:
            self._go_on()

    def flush(self) -> None:
        try:
            self.file.flush()
        except BrokenPipeError:
            self._go_on()

    def _go_on(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def console() -> Any:
    """Make a console for results; a pipe gets lines that are not broken."""
    from rich.console import Console

    file: Any = _Lasting(sys.stdout)
    plain = partial(Console, highlight=False, markup=False, emoji=False, file=file)
    own = plain()
    return own if own.is_terminal else plain(width=120)


_OPTIONS: dict[str, tuple[Any, Any]] = {
    "delimiter": (
        str | None,
        typer.Option(help="Between the cells of a csv file; 'tab' too. Default: detected."),
    ),
    "decimal": (
        str | None,
        typer.Option(help="Decimal mark, '.' or ','. Default: ',' only if nothing else fits."),
    ),
    "thousands": (
        str | None,
        typer.Option(help="Mark between groups of three digits, such as ',' or ' '."),
    ),
    "encoding": (
        str | None,
        typer.Option(help="Encoding of a csv file, such as latin-1. Default: UTF-8."),
    ),
    "day_first": (
        bool | None,
        typer.Option(
            "--day-first/--month-first",
            help="Read 01/02/2020 as February 1, or as January 2. Default: by the other dates.",
        ),
    ),
    "unit": (
        list[str] | None,
        typer.Option(help="A sign beside numbers that is ignored, such as € or %; repeatable."),
    ),
}


def with_read_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command, which gets them as ``read_options``."""

    @wraps(command)
    def wrapped(**given: Any) -> None:
        chosen = {name: given.pop(name) for name in _OPTIONS}
        units = tuple(chosen.pop("unit") or ())
        with plain_errors():
            from vntransfer.tables.options import ReadOptions

            read_options = ReadOptions(**chosen, units=units)
        command(**given, read_options=read_options)

    signature = inspect.signature(command)
    own = [p for name, p in signature.parameters.items() if name != "read_options"]
    added = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option]
        )
        for name, (kind, option) in _OPTIONS.items()
    ]
    wrapped.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in [*own, *added]}
    return wrapped
