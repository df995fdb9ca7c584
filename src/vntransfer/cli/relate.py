"""``vnt relate``: which places of a table behave alike."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vntransfer.cli._user import plain_mistakes, progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from vntransfer.relate import Relation

WIDE = 12
"""Places up to which the matrix is printed in full."""


def command(
    files: Annotated[list[str], typer.Argument(help="csv or parquet files, or patterns.")],
    domain: Annotated[str, typer.Option(help="Column that says where a row comes from.")],
    response: Annotated[str, typer.Option(help="Column that depends on the others.")],
    features: Annotated[
        str | None, typer.Option(help="Columns to use, as a,b,c; default: all others.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Column not to use; can be repeated.")
    ] = None,
    category: Annotated[
        list[str] | None, typer.Option(help="Column of categories that looks like numbers.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="Rank the others for this place; default: all.")
    ] = None,
    divergence: Annotated[
        str, typer.Option(help="Any id of the registry.")
    ] = "conditional_von_neumann",
    null: Annotated[
        str, typer.Option(help="'relation': same E[y|x]; 'joint': same distribution.")
    ] = "relation",
    noise: Annotated[
        str, typer.Option(help="Noise of 'relation': 'wild', 'own' or 'common'.")
    ] = "wild",
    resamples: Annotated[
        int | None, typer.Option(min=19, help="Per pair; default: as many as are needed.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the whole result as an HTML page.")
    ] = None,
    delimiter: Annotated[str, typer.Option(help="Between the cells of csv files.")] = ",",
    seed: Annotated[int, typer.Option(min=0, help="Seed of resamples and samples.")] = 0,
    engine: Annotated[
        str, typer.Option(help="'local', or 'dask' for many files on several workers.")
    ] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask cluster; default: one made here.")
    ] = None,
) -> None:
    """Tell which places behave alike: how response depends on features, pair by pair.

    The table is read once, in pieces: it may be larger than memory. A place whose response is
    empty everywhere is compared by its features alone.
    """
    with plain_mistakes():
        from rich.console import Console

        from vntransfer.relate import relate

        if out is not None and out.is_dir():
            raise typer.BadParameter(f"{out} is a folder; name a file such as {out / 'page.html'}")
        with progress():
            found = relate(
                files,
                domain=domain,
                response=response,
                features=[name.strip() for name in features.split(",")] if features else None,
                drop=drop or (),
                category=category or (),
                divergence=divergence,
                null=null,  # type: ignore[arg-type]
                noise=noise,  # type: ignore[arg-type]
                n_resamples=resamples,
                delimiter=delimiter,
                random_state=seed,
                engine=engine,  # type: ignore[arg-type]
                scheduler=scheduler,
            )
        for name in target or ():
            found.at(name)
        show(found, Console(), target or list(found.names))
        if out is not None:
            typer.echo(f"\npage: {found.to_page(out)}")


def show(found: "Relation", console: "Console", targets: list[str]) -> None:
    """Print the matrix with its verdicts, the rankings and what else is to be known."""
    from rich.text import Text

    from vntransfer.cli._show import heat_map
    from vntransfer.relate._words import verdict

    order = [name for name in found.order if name in found.labelled]
    if len(order) <= WIDE:
        console.print(_matrix(found, order))
    else:
        at = [found.at(name) for name in order]
        console.print(heat_map(order, found.divergences[at][:, at].tolist()))
    console.print("≠ different   · not told apart   ? not tested\n", highlight=False)
    for line in verdict(found):
        console.print(Text(line))
    console.print()
    for name in targets:
        console.print(Text(f"for {name}: {_ranked(found, name)}"))
    for note in found.notes:
        console.print(Text(f"note: {note}", style="dim"))


def _matrix(found: "Relation", order: list[str]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(f"{found.settings['divergence']} of places, in units of the pooled variance"),
        title_justify="left",
    )
    table.add_column("")
    for name in order:
        table.add_column(Text(name), justify="right")
    for one in order:
        cells = (
            "-"
            if one == other
            else f"{found.divergences[found.at(one), found.at(other)]:.3g} {found.mark(one, other)}"
            for other in order
        )
        table.add_row(Text(one, style="bold"), *map(Text, cells))
    return table


def _ranked(found: "Relation", target: str) -> str:
    near = found.ranking(target)
    if target in found.labelled:
        return " < ".join(
            f"{own.name} {own.divergence:.3g} {found.mark(target, own.name)}" for own in near
        )
    listed = " < ".join(f"{own.name} {own.features_alone:.3g}" for own in near)
    return f"{listed}  (by the features alone: it has no responses)"
