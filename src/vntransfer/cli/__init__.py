"""The command ``vnt``. Heavy modules are imported inside the commands, never here.

Exit codes: 0 success; 1 a bug in vntransfer; 2 anything the user can fix; 3 failed cells, or a
``verify`` that does not reproduce; 130 and 143 after Ctrl-C and SIGTERM.
"""

import atexit
import os
import signal
import sys
from typing import Annotated

import typer

from vntransfer._version import __version__
from vntransfer.cli import adapt, demo, example, learn, predict, relate
from vntransfer.cli.common import BAD
from vntransfer.cli.plugins import PluginGroup
from vntransfer.errors import VnError

STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM)
"""Exit codes after Ctrl-C and SIGTERM."""

app = typer.Typer(
    cls=PluginGroup,
    name="vnt",
    help="Predict for a new place from labeled places, and learn task after task.",
    epilog="Start with: vnt demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help in boxes takes longer to import than to read
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
    if hasattr(sys.stdout, "reconfigure"):  # the terminal may not be able to show every name
        sys.stdout.reconfigure(errors="replace")
    try:
        app()
    except (VnError, OSError) as error:
        typer.echo(f"vnt: {error}", err=True)
        sys.exit(BAD)
    except SystemExit as end:
        if end.code in STOPPED:
            _leave(end.code)
        raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is done: no traceback while Python ends


def _leave(code: int) -> None:
    """End after a signal without taking Python apart.

    A reader of pyarrow may still run in a thread of its own, calls Python, and aborts the process
    (SIGABRT instead of our exit code) if Python is no longer there.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
