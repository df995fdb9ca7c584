"""``vnt relate``: which places of a table behave alike."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vntransfer.cli import common

if TYPE_CHECKING:
    from vntransfer.relations import Relation
    from vntransfer.tables.options import ReadOptions

WIDE = 12
"""Largest number of places for which the matrix is printed."""

NEAREST, RANKED = 10, 20
"""Number of sources in a ranking, and of places that get one by default."""


@common.reads_tables
def command(
    files: common.Files,
    domain: common.Domain,
    response: Annotated[str, typer.Option(help="Column that depends on the features.")],
    features: common.Features = None,
    drop: common.Drop = None,
    category: common.Category = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="Place to rank the others for. Repeatable. Default: all."),
    ] = None,
    divergence: Annotated[
        str, typer.Option(help="Divergence, such as jeffreys; see the docs.")
    ] = "conditional_von_neumann",
    resamples: Annotated[
        int | None,
        typer.Option(
            min=19, metavar="N", help="Resamples per pair. Default: depends on the number of pairs."
        ),
    ] = None,
    out: common.Out = None,
    overwrite: common.Overwrite = False,
    seed: common.Seed = 0,
    verbose: common.Verbose = False,
    engine: Annotated[
        str, typer.Option(help="'local', or 'dask' to read files on workers.")
    ] = "local",
    scheduler: common.Scheduler = None,
    *,
    read_options: "ReadOptions",
) -> None:
    """Show which places behave alike.

    Two places behave alike if the response depends on the features in the same way in both.
    The table is read in pieces and may be larger than memory. A place without any response is
    compared by its features alone.
    """
    from vntransfer.workflows.relate import relate

    common.check_outputs(files, out, overwrite=overwrite)
    with common.progress() as report:
        found = relate(
            files,
            domain=domain,
            response=response,
            features=common.split(features),
            drop=drop or (),
            category=category or (),
            divergence=divergence,
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
        found.to_page(out, overwrite=overwrite)
    show(found, common.console(), target or (), verbose=verbose)
    if out is not None:
        typer.echo(f"\npage: {out}")


def show(found: "Relation", console: Any, targets: Sequence[str], *, verbose: bool = False) -> None:
    """Print the answer, the matrix with its marks, rankings (of all places if few) and notes."""
    from rich.text import Text

    from vntransfer.relations.explain import verdict

    for line in verdict(found):
        console.print(Text(line))
    console.print()
    order = [name for name in found.order if name in found.labeled]
    if len(order) <= WIDE:
        console.print(_matrix(found, order))
    else:
        console.print(f"{len(order)} places: use --out PAGE for the map")
    console.print("≠ different   · no significant difference   ? not tested\n")
    for name in targets or found.names[:RANKED]:
        console.print(Text(f"for {name}: {_ranked(found, name)}"))
    if not targets and len(found.names) > RANKED:
        console.print(f"{len(found.names) - RANKED} more places: use --target NAME or --out PAGE")
    plain = ("number", "dropped")
    unusual = any(kind not in plain or "missing" in what for _, kind, what in found.treatment)
    if unusual:
        common.print_columns(console, found.treatment)
    common.print_notes(console, found.notes, verbose=verbose)


def _matrix(found: "Relation", order: list[str]) -> Any:
    from vntransfer.relations.result import STATISTIC

    rows = []
    for one in order:
        i = found.at(one)
        cells = [
            "-"
            if one == other
            else f"{found.statistics[i, found.at(other)]:.3g} {found.mark(one, other)}"
            for other in order
        ]
        rows.append([one, *cells])
    return common.table(STATISTIC, ["", *order], rows)


def _ranked(found: "Relation", target: str) -> str:
    near = found.ranking(target)
    more = f" and {len(near) - NEAREST} more" if len(near) > NEAREST else ""
    if target in found.labeled:
        shown = (
            f"{own.name} {own.statistic:.3g} {found.mark(target, own.name)}"
            for own in near[:NEAREST]
        )
        return " < ".join(shown) + more
    listed = " < ".join(f"{own.name} {own.features_alone:.3g}" for own in near[:NEAREST])
    return f"{listed}{more}  (by the features alone, because it has no responses)"
