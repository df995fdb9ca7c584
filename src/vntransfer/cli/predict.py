"""``vnt predict``: predictions with intervals from a saved model."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vntransfer.cli import common

if TYPE_CHECKING:
    from vntransfer.tables.options import ReadOptions

_ENDING = re.compile(r"\.(csv|parquet|pq)(\.(gz|bz2|zst))?$", re.IGNORECASE)


@common.reads_tables
def command(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Model saved by `vnt adapt` or `vnt learn`.")
    ],
    file: common.File,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Output file, .csv or .parquet. Default: FILE with the ending .predicted.csv."
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="Target of all rows; if repeated, the targets that rows may belong to."),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the prediction intervals.")] = 0.9,
    only: Annotated[
        bool, typer.Option("--only", help="Write only the place and the predictions.")
    ] = False,
    escape_formulas: Annotated[
        bool,
        typer.Option("--escape-formulas", help="Make text such as =1+1 harmless in spreadsheets."),
    ] = False,
    overwrite: common.Overwrite = False,
    *,
    read_options: "ReadOptions",
) -> None:
    """Predict the rows of a table with a saved model.

    Columns are matched by name.
    """
    from vntransfer.display import counted
    from vntransfer.storage.places import TABLES, check_file
    from vntransfer.tables.files import expand
    from vntransfer.workflows.load import load_predictor
    from vntransfer.workflows.predict import WriteOptions, predict_file

    place = out or file.with_name(f"{_ENDING.sub('', file.name)}.predicted.csv")
    check_file("out", place, TABLES, expand(file), overwrite=overwrite)
    model = load_predictor(folder)
    with common.progress() as report:
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
    typer.echo(f"{counted(done.rows, 'row')}: {place}")
