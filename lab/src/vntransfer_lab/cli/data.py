"""``vnt data``: list, describe and download data sets."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vntransfer.cli.common import plain_errors, progress
from vntransfer.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from vntransfer_lab.data import Domains, TaskStream
    from vntransfer_lab.data.files import Status
    from vntransfer_lab.data.registry import Entry

app = typer.Typer(
    help="List, show and download data sets.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

From = Annotated[
    Path | None,
    typer.Option("--from", help="Folder with the files. Default: VNT_DATA, then the user cache."),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", help="Parameter of the set, such as seed=1. Repeatable."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name from `vnt data list`.")]


@app.command("list")
def list_sets(folder: From = None) -> None:
    """List all data sets and their state on this machine."""
    from vntransfer_lab.data.files import status
    from vntransfer_lab.data.registry import DATASETS

    rows = [("NAME", "STATE", "HASHES", "KIND", "DESCRIPTION")]
    for entry in DATASETS.values():
        rows.append((entry.name, *status(entry, folder).describe(), entry.kind, entry.title))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        typer.echo("  ".join([*(f"{row[i]:<{widths[i]}}" for i in range(4)), row[4]]))


@app.command()
def show(name: Name, folder: From = None, parameters: Parameters = None) -> None:
    """Show the files, addresses, content and preparation of a data set."""
    from vntransfer_lab.cli.bench import assignments
    from vntransfer_lab.data import load
    from vntransfer_lab.data.files import status
    from vntransfer_lab.data.registry import lookup

    entry = lookup(name)
    seen = status(entry, folder)
    typer.echo(f"{entry.name}: {entry.title}\n")
    for line in _about(entry, seen, folder):
        typer.echo(line)
    if seen.missing:
        return
    with plain_errors(), progress(of_bytes=True) as advance:
        loaded = load(name, folder=folder, progress=advance, **assignments(parameters or []))
    typer.echo(f"\nloaded    {loaded.summary()}")
    for line in _inside(loaded):
        typer.echo(line)
    typer.echo(loaded.provenance.describe())


def _inside(loaded: "Domains | TaskStream") -> Iterator[str]:
    """Describe the domains and the response, or the tasks, line by line."""
    import numpy as np

    from vntransfer_lab.data import TaskStream

    if isinstance(loaded, TaskStream):
        for i, task in enumerate(loaded):
            yield f"task      {i}: {task.name}, {len(task.x)} + {len(task.x_test)} rows"
        return
    for domain, (x, y) in loaded.items():
        yield f"domain    {domain}: {x.shape[0]} rows, mean response {y.mean():.4g}"
    if set(loaded.targets) != set(loaded):
        yield f"targets   {', '.join(loaded.targets)}"
    every = np.concatenate([y.ravel() for _, y in loaded.values()]).astype(np.float64)
    yield (
        f"response  {loaded.response_name}: mean {every.mean():.4g}, standard deviation "
        f"{every.std():.4g} (divide an error by it to get standard deviations)"
    )


def _about(entry: "Entry", seen: "Status", folder: Path | None) -> Iterator[str]:
    """Describe the record and the files, before anything is loaded."""
    from vntransfer_lab.data.files import data_home

    state, hashes = seen.describe()
    yield f"state     {state}" + ("" if hashes == "-" else f", {hashes}")
    for key in ("license", "citation", "notes"):
        if text := getattr(entry, key):
            yield f"{key:<9} {text}"
    for parameter, text in entry.parameters.items():
        yield f"--set     {parameter}: {text}"
    for found, judged in seen.checks.items():
        yield f"file      {found.path} ({found.form}, {judged})"
    for remote in seen.missing:
        yield f"missing   {remote.name}; put it into {data_home(folder) / remote.folder}"
        for place in remote.urls:
            yield f"address   {place}"


@app.command()
def fetch(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Names from `vnt data list`.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Download all sets.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option("--to", help="Folder for the files. Default: VNT_DATA, then the user cache."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Download again, and replace existing files.")
    ] = False,
) -> None:
    """Download data sets from their official addresses.

    Existing files are kept.
    """
    from vntransfer_lab.data.fetch import fetch as fetch_entry
    from vntransfer_lab.data.registry import DATASETS, lookup

    if not names and not everything:
        raise ArgumentError("names: none given. Name a data set of `vnt data list`, or add --all.")
    problems = []
    for entry in [*DATASETS.values()] if everything else map(lookup, names or ()):
        if not entry.files:
            typer.echo(f"{entry.name}: embedded, nothing to download")
            continue
        try:
            with progress(of_bytes=True) as advance:
                paths = fetch_entry(entry, folder, force=force, progress=advance)
        except DataError as error:
            problems.append(entry.name)
            typer.echo(f"vnt: {error}", err=True)
            continue
        for path in paths:
            typer.echo(f"{entry.name}: {path}")
    if problems:
        raise DataError(f"not downloaded: {', '.join(problems)}. The reasons are above.")
