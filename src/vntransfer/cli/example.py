"""``vnt example``: copy the example table of the package."""

from pathlib import Path
from typing import Annotated

import typer

from vntransfer.cli import common


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")] = Path(
        "houses.csv"
    ),
    answers: Annotated[
        bool, typer.Option("--answers", help="Copy Saltby's rows with the withheld prices instead.")
    ] = False,
    overwrite: common.Overwrite = False,
) -> None:
    """Write the example table: six towns with prices, one without."""
    from vntransfer.storage.files import atomic_write
    from vntransfer.storage.places import check_file
    from vntransfer.tables.example import example_table

    with common.plain_errors():
        check_file("FILE", file, (".csv",), overwrite=overwrite)
        with atomic_write(file) as copy:
            copy.write(example_table("answers" if answers else "houses").read_bytes())
        rows = "Saltby's prices" if answers else "Saltby has no prices"
        typer.echo(f"{file}: columns town (domain), price (response); {rows}")
