"""``vnt predict``: predictions with intervals from a saved model."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vntransfer.cli.common import File, Overwrite, plain_errors, progress, with_read_options

if TYPE_CHECKING:
    from vntransfer.tables.options import ReadOptions

_ENDING = re.compile(r"\.(csv|parquet|pq)(\.(gz|bz2|zst))?$", re.IGNORECASE)


@with_read_options
def command(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Saved by `vnt adapt` or `vnt learn`.")
    ],
    file: File,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Ends in .csv or .parquet; default: FILE without its ending, .predicted.csv."
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="Target of the rows; may be repeated: the column of places decides."),
    ] = None,
    level: Annotated[float, typer.Option(help="Of the prediction intervals.")] = 0.9,
    only: Annotated[
        bool, typer.Option("--only", help="Leave the columns of FILE out, but for the place.")
    ] = False,
    escape_formulas: Annotated[
        bool,
        typer.Option("--escape-formulas", help="Make texts such as =1+1 harmless in spreadsheets."),
    ] = False,
    overwrite: Overwrite = False,
    *,
    read_options: "ReadOptions",
) -> None:
    """Predict the rows of a table, piece by piece; columns are matched by name."""
    with plain_errors():
        from vntransfer.storage.places import TABLES, check_file
        from vntransfer.tables.files import expand
        from vntransfer.workflows.load import load_predictor
        from vntransfer.workflows.predict import WriteOptions, predict_file

        place = out or file.with_name(f"{_ENDING.sub('', file.name)}.predicted.csv")
        check_file("out", place, TABLES, expand(file), overwrite=overwrite)
        model = load_predictor(folder)
        with progress() as report:
            done = predict_file(
                model,
                file,
                place,
                target=target or None,
                level=level,
                read_options=read_options,
                write_options=WriteOptions(not only, escape_formulas, overwrite),
                progress=report,
            )
        for note in (*done.notes, *done.findings.lines()):
            typer.echo(f"note: {note}")
        if done.labeled:
            typer.echo(done.comparison(level))
        typer.echo(f"{done.rows} rows: {place}")
