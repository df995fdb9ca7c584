"""``vnt data``: what data sets there are, where they come from, and getting them."""

import ast
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vntransfer.cli.common import progress
from vntransfer.errors import ArgumentError, DataError, DataWarning

if TYPE_CHECKING:
    from vntransfer_lab.data import Domains, TaskStream
    from vntransfer_lab.data.files import Status
    from vntransfer_lab.data.registry import Entry

app = typer.Typer(help="Data sets: list, show, fetch, verify, plot.", no_args_is_help=True)

From = Annotated[
    Path | None,
    typer.Option("--from", help="Folder with the files; default VNT_DATA, then the user cache."),
]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", "-s", help="A parameter of the set, as seed=1.")
]
Name = Annotated[str, typer.Argument(help="A name of `vnt data list`.")]


@app.command("list")
def list_sets(folder: From = None) -> None:
    """List every data set and its state on this machine."""
    from vntransfer_lab.data.files import status
    from vntransfer_lab.data.registry import DATASETS

    rows = [("NAME", "STATE", "HASHES", "KIND", "WHAT")]
    for entry in DATASETS.values():
        rows.append((entry.name, *status(entry, folder).describe(), entry.kind, entry.title))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        typer.echo("  ".join([*(f"{row[i]:<{widths[i]}}" for i in range(4)), row[4]]))


@app.command()
def show(
    name: Name,
    folder: From = None,
    parameters: Parameters = None,
    quick: Annotated[bool, typer.Option("--quick", help="Do not load it.")] = False,
) -> None:
    """Show what a set is, its files and addresses and, where they are here, how it was built."""
    from vntransfer_lab.data import load
    from vntransfer_lab.data.files import status
    from vntransfer_lab.data.registry import lookup

    entry = lookup(name)
    seen = status(entry, folder)
    typer.echo(f"{entry.name}: {entry.title}\n")
    for line in _about(entry, seen, folder):
        typer.echo(line)
    if quick or seen.missing:
        return
    with _plain_warnings(), progress(of_bytes=True) as advance:
        loaded = load(name, folder=folder, progress=advance, **_parse(parameters))
    typer.echo(f"\nloaded    {loaded.summary()}")
    for line in _inside(loaded):
        typer.echo(line)
    typer.echo(loaded.provenance.describe())


def _inside(loaded: "Domains | TaskStream") -> Iterator[str]:
    """Lines on the domains and the response, or on the tasks."""
    from vntransfer_lab.data import TaskStream

    if isinstance(loaded, TaskStream):
        for i, task in enumerate(loaded):
            yield f"task      {i}: {task.name}, {len(task.x)} + {len(task.x_test)} rows"
        return
    for domain, (x, y) in loaded.items():
        yield f"domain    {domain}: {x.shape[0]} rows, mean response {y.mean():.4g}"
    if set(loaded.targets) != set(loaded):
        yield f"targets   {', '.join(loaded.targets)}"
    mean, deviation = loaded.response_scale()
    yield (
        f"response  {loaded.response_name}: mean {mean:.4g}, standard deviation {deviation:.4g}; "
        "divide an error by the latter for one in standard deviations"
    )


def _about(entry: "Entry", seen: "Status", folder: Path | None) -> Iterator[str]:
    """Lines on the record and the files, before anything is loaded."""
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
    names: Annotated[list[str] | None, typer.Argument(help="Names of `vnt data list`.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every set.")] = False,
    folder: Annotated[
        Path | None, typer.Option("--to", help="Where to put it; default VNT_DATA or the cache.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also what is present, compact or damaged.")
    ] = False,
    unpacked: Annotated[
        bool, typer.Option("--unpack", help="Unpack archives beside themselves, too.")
    ] = False,
) -> None:
    """Download data sets from their official addresses; files that are here are kept."""
    from vntransfer_lab.data.fetch import fetch as fetch_entry

    problems = []
    for entry in _chosen(names, everything):
        if not entry.files:
            typer.echo(f"{entry.name}: embedded, nothing to fetch")
            continue
        try:
            with progress(of_bytes=True) as advance:
                paths = fetch_entry(entry, folder, force=force, unpacked=unpacked, progress=advance)
        except DataError as error:
            problems.append(entry.name)
            typer.echo(f"vnt: {error}", err=True)
            continue
        for path in paths:
            typer.echo(f"{entry.name}: {path}")
    if problems:
        raise DataError(f"not fetched: {', '.join(problems)}")


@app.command()
def verify(
    names: Annotated[list[str] | None, typer.Argument(help="Default: all that is here.")] = None,
    folder: From = None,
) -> None:
    """Read the files again and compare their hashes with those that are known or recorded."""
    from vntransfer_lab.data.derived import forget
    from vntransfer_lab.data.files import locate, status

    entries, wrong = _chosen(names, not names), list[str]()
    for path in {found.path for entry in entries for found in locate(entry, folder)}:
        forget(path)
    for entry in entries:
        seen = status(entry, folder)
        if names and seen.missing:
            wrong += [remote.name for remote in seen.missing]
            typer.echo(f"{'absent':<11} {entry.name}: {', '.join(r.name for r in seen.missing)}")
        for found, judged in seen.checks.items():
            typer.echo(f"{judged:<11} {entry.name}: {found.path}")
            wrong += [str(found.path)] if judged == "differs" else []
    if wrong:
        raise DataError(
            f"{', '.join(dict.fromkeys(wrong))}: absent, or not the known file; run "
            "`vnt data fetch NAME --force`"
        )


@app.command()
def plot(
    name: Name,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default NAME.svg.")] = None,
    folder: From = None,
    parameters: Parameters = None,
) -> None:
    """Draw a set: its domains and responses, or samples of its tasks."""
    from vntransfer_lab.data.plots import plot as draw

    place = out or Path(f"{name}.svg")
    with _plain_warnings(), progress(of_bytes=True):
        draw(name, place, folder=folder, **_parse(parameters))
    typer.echo(str(place))


def _chosen(names: list[str] | None, everything: bool) -> "list[Entry]":
    from vntransfer_lab.data.registry import DATASETS, lookup

    if everything:
        return list(DATASETS.values())
    if not names:
        raise ArgumentError("names: none given; name a data set of `vnt data list`, or --all")
    return [lookup(name) for name in names]


def _parse(parameters: list[str] | None) -> dict[str, Any]:
    """Parameters as Python values; what is none stays text.

    >>> _parse(["seed=3", "size=(60, 80)", "sources=other"])
    {'seed': 3, 'size': (60, 80), 'sources': 'other'}
    """
    parsed: dict[str, Any] = {}
    for text in parameters or []:
        key, sign, value = text.partition("=")
        if not sign or not key.isidentifier():
            raise ArgumentError(f"--set: expected name=value, got {text!r}")
        try:
            parsed[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parsed[key] = value
    return parsed


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Say what is to be said about the data in a sentence, not as a line of code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        yield
    for warning in caught:
        typer.echo(f"vnt: note: {warning.message}", err=True)
