"""``vnt relate``: which places of a table behave alike."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from vntransfer.cli.common import (
    Category,
    Domain,
    Drop,
    Features,
    Out,
    Seed,
    columns,
    console,
    plain_errors,
    progress,
    split,
    table,
)
from vntransfer.cli.read_options import with_read_options

if TYPE_CHECKING:
    from vntransfer.relations import Relation
    from vntransfer.tables.options import ReadOptions

WIDE = 12
"""Places up to which the matrix is printed in full."""


@with_read_options
def command(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="csv or parquet files, or patterns.")
    ],
    domain: Domain,
    response: Annotated[
        str, typer.Option("--response", help="Column: what depends on the others.")
    ],
    features: Features = None,
    drop: Drop = None,
    category: Category = None,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", help="Rank sources for this place; repeatable; default all."),
    ] = None,
    divergence: Annotated[
        str, typer.Option("--divergence", help="Any of the registry.")
    ] = "conditional_von_neumann",
    null: Annotated[
        str, typer.Option("--null", help="'relation': same dependence; 'joint': same everything.")
    ] = "relation",
    resamples: Annotated[
        int | None, typer.Option("--resamples", min=19, help="Per pair; default: enough.")
    ] = None,
    out: Out = None,
    seed: Seed = 0,
    engine: Annotated[
        str, typer.Option("--engine", help="'local', or 'dask' for many files on workers.")
    ] = "local",
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="Address of a Dask cluster; default own.")
    ] = None,
    *,
    read_options: "ReadOptions",
) -> None:
    """Tell which places behave alike: how response depends on features, pair by pair.

    The table is read once, in pieces: it may be larger than memory. A place whose response is
    empty everywhere is compared by its features alone.
    """
    with plain_errors():
        from vntransfer.storage.places import check_file
        from vntransfer.tables.files import expand
        from vntransfer.workflows.relate import relate

        if out is not None:
            check_file(out, expand(files))
        with progress() as report:
            found = relate(
                files,
                domain=domain,
                response=response,
                features=split(features),
                drop=drop or (),
                category=category or (),
                divergence=divergence,
                null=null,  # type: ignore[arg-type]
                n_resamples=resamples,
                read_options=read_options,
                random_state=seed,
                engine=engine,  # type: ignore[arg-type]
                scheduler=scheduler,
                progress=report,
            )
        for name in target or ():
            found.at(name)
        if out is not None:
            found.to_page(out)
        show(found, console(), target or list(found.names))
        if out is not None:
            typer.echo(f"\npage: {out}")


def show(found: "Relation", console: Any, targets: list[str]) -> None:
    """Print the matrix with its verdicts, the rankings and what else is to be known."""
    from rich.text import Text

    from vntransfer.cli.heat_maps import heat_map
    from vntransfer.relations.explain import verdict

    order = [name for name in found.order if name in found.labeled]
    if len(order) <= WIDE:
        console.print(_matrix(found, order))
    else:
        at = [found.at(name) for name in order]
        console.print(heat_map(order, found.divergences[at][:, at].tolist()))
    console.print("≠ different   · not told apart   ? not tested\n")
    for line in verdict(found):
        console.print(Text(line))
    console.print()
    for name in targets:
        console.print(Text(f"for {name}: {_ranked(found, name)}"))
    plain = ("number", "left out")
    if any(kind not in plain or "missing" in what for _, kind, what in found.treatment):
        console.print(columns(found.treatment))
    for note in found.notes:
        console.print(Text(f"note: {note}", style="dim"))


def _matrix(found: "Relation", order: list[str]) -> Any:
    rows = []
    for one in order:
        i = found.at(one)
        cells = [
            "-"
            if one == other
            else f"{found.divergences[i, found.at(other)]:.3g} {found.mark(one, other)}"
            for other in order
        ]
        rows.append([one, *cells])
    title = f"{found.settings['divergence']} of places, in units of the pooled variance"
    return table(title, ["", *order], rows)


def _ranked(found: "Relation", target: str) -> str:
    near = found.ranking(target)
    if target in found.labeled:
        return " < ".join(
            f"{own.name} {own.divergence:.3g} {found.mark(target, own.name)}" for own in near
        )
    listed = " < ".join(f"{own.name} {own.features_alone:.3g}" for own in near)
    return f"{listed}  (by the features alone: it has no responses)"
