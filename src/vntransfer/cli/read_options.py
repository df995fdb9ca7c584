"""Options that say how a file is written, the same ones for every command that reads tables."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from vntransfer.cli.common import plain_errors

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
