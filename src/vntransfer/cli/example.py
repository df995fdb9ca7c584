"""``vnt example``: a copy of the small table that comes with the package."""

from pathlib import Path
from typing import Annotated

import typer

from vntransfer.cli.common import Overwrite, plain_errors


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to copy it.")] = Path(
        "houses.csv"
    ),
    answers: Annotated[
        bool, typer.Option("--answers", help="Saltby's rows with the prices that were withheld.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Copy a small table to try things on: invented houses in seven towns, one without prices."""
    from vntransfer.storage.files import atomic_write
    from vntransfer.storage.places import check_file
    from vntransfer.tables.example import example_table

    with plain_errors():
        check_file("FILE", file, (".csv",), overwrite=overwrite)
        with atomic_write(file) as copy:
            copy.write(example_table("answers" if answers else "houses").read_bytes())
        rows = "Saltby's prices" if answers else "Saltby has no prices"
        typer.echo(f"{file}: columns town (domain), price (response); {rows}")
