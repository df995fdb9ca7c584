"""The command ``vnt``. Heavy modules are imported inside the commands, never here.

Exit codes: 0 success; 1 a defect of ours; 2 anything the user can fix; 3 failed cells, or a
``verify`` that does not reproduce; 130 and 143 after Ctrl-C and SIGTERM.
"""

import sys
from typing import Annotated

import typer

from vntransfer._version import __version__
from vntransfer.cli import adapt, demo, example, learn, predict, relate
from vntransfer.cli.common import BAD
from vntransfer.cli.plugins import PluginGroup
from vntransfer.errors import VnError

app = typer.Typer(
    cls=PluginGroup,
    name="vnt",
    help="Predict for a new place from labeled places, and learn task after task.",
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
app.command(name="learn")(learn.command)


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
    """Run ``vnt``; an expected error is one sentence on stderr, not a traceback."""
    if hasattr(sys.stdout, "reconfigure"):  # a name the terminal cannot show is not a failure
        sys.stdout.reconfigure(errors="replace")
    try:
        app()
    except (VnError, OSError) as error:
        typer.echo(f"vnt: {error}", err=True)
        sys.exit(BAD)
