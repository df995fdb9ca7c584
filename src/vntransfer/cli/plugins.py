"""Commands that other distributions add to ``vnt`` through the entry-point group below."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from vntransfer.cli.common import BAD, signals_as_exit_codes

GROUP = "vntransfer.commands"
"""Entry points of this group are commands: a Typer app, or a function with Typer's annotations."""

LABORATORY = {
    "bench": "Run experiments and report them.",
    "data": "List, show and download data sets.",
}
"""Commands that the laboratory adds."""


class PluginGroup(TyperGroup):
    """The commands of the library, then those of installed plug-ins, loaded on first use."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the commands of the library first, in the order of the file."""
        own = list(self.commands)
        return own + sorted(name for name in _installed() if name not in own)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command of the library, or one of a plug-in, which is not loaded yet."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        found = _installed().get(cmd_name)
        if found is not None:
            return PluginCommand(found)
        if cmd_name in LABORATORY:
            return _refusal(
                cmd_name,
                f"vnt {cmd_name}: this command belongs to the laboratory, which is not installed. "
                f"Run `pip install ./lab` in the repository of vntransfer.",
            )
        return None

    def invoke(self, ctx: Any) -> Any:
        """Run a command; signals trigger the clean-up and become exit codes."""
        with signals_as_exit_codes():
            return super().invoke(ctx)


class PluginCommand(TyperCommand):
    """A command that is loaded when it is called: `vnt --help` needs only a line about it."""

    def __init__(self, entry: EntryPoint) -> None:
        provider = "a plug-in" if entry.dist is None else entry.dist.name
        super().__init__(entry.name, help=LABORATORY.get(entry.name, f"Command of {provider}."))
        self.entry = entry

    def make_context(self, *given: Any, **more: Any) -> Any:
        """Load the command; it parses its arguments and runs itself."""
        return load(self.entry).make_context(*given, **more)


def _installed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def load(entry: EntryPoint) -> Any:
    """Load a plug-in; if it fails, the other commands must still work."""
    try:
        loaded = entry.load()
    except Exception as error:
        return _refusal(
            entry.name,
            f"vnt {entry.name}: cannot load {entry.value} ({error!r}). Reinstall the package that "
            f"provides it.",
        )
    return _command(entry.name, loaded)


def _command(name: str, loaded: Any, **options: Any) -> Any:
    """Make a command from a Typer app or a function."""
    if not isinstance(loaded, typer.Typer):
        function, loaded = loaded, typer.Typer(add_completion=False)
        loaded.command(name, **options)(function)
    command = typer.main.get_command(loaded)
    command.name = name
    return command


def _refusal(name: str, sentence: str) -> Any:
    """Make a command that prints one sentence, whatever its arguments."""

    def refuse() -> None:
        typer.echo(sentence, err=True)
        raise typer.Exit(BAD)

    taken = {"ignore_unknown_options": True, "allow_extra_args": True}
    return _command(name, refuse, help=sentence, add_help_option=False, context_settings=taken)
