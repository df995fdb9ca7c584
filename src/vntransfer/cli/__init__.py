"""The command ``vnt``. Heavy things are imported inside the commands, never here."""

import sys
from typing import Annotated

import typer

from vntransfer._version import __version__
from vntransfer.cli import adapt, bench, continual, data, demo, example, predict, relate
from vntransfer.errors import VnError

app = typer.Typer(
    name="vnt",
    help="Transfer learning guided by how response depends on features.",
    epilog="Start with: vnt demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="demo")(demo.command)
app.command(name="example")(example.command)
app.command(name="relate")(relate.command)
app.command(name="adapt")(adapt.command)
app.command(name="predict")(predict.command)
app.command(name="continual")(continual.command)
app.add_typer(bench.app, name="bench")
app.add_typer(data.app, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vntransfer {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run ``vnt``; an error that we foresaw is a sentence on stderr, not a traceback."""
    if hasattr(sys.stdout, "reconfigure"):  # a name that a terminal cannot show is no failure
        sys.stdout.reconfigure(errors="replace")
    try:
        app()
    except (VnError, OSError) as error:
        typer.echo(f"vnt: {error}", err=True)
        sys.exit(1)
