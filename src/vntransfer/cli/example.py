"""``vnt example``: a copy of the small table that comes with the package."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from vntransfer.cli.common import plain_errors
from vntransfer.errors import ArgumentError


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to copy it.")] = Path(
        "houses.csv"
    ),
    answers: Annotated[
        bool, typer.Option("--answers", help="Saltby's rows with the prices that were withheld.")
    ] = False,
) -> None:
    """Copy a small table to try things on: invented houses in seven towns, one without prices."""
    from vntransfer.tables.example import example_table

    with plain_errors():
        if file.exists():
            raise ArgumentError(f"FILE: {file} is there already; name another place")
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(example_table("answers" if answers else "houses"), file)
        rows = "Saltby's prices" if answers else "Saltby has no prices"
        typer.echo(f"{file}: columns town (domain), price (response); {rows}")
