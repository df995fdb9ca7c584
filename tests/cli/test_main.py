"""The command ``vnt`` itself: plug-ins, exit codes, signals."""

import os
import signal
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from vntransfer.cli import app, main, plugins
from vntransfer.errors import DataError

ECHO = """
import typer

app = typer.Typer(help="Echo things.")


@app.command()
def once(word: str) -> None:
    typer.echo(word)


@app.command()
def twice(word: str) -> None:
    typer.echo(2 * word)


def plain(word: str) -> None:
    "A function."
    typer.echo(word)
"""


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Let plug-ins be installed by (name, value) pairs, instead of those that are."""
    (tmp_path / "vnt_echo.py").write_text(ECHO)
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(**values: str) -> None:
        found = [EntryPoint(name, value, plugins.GROUP) for name, value in values.items()]
        monkeypatch.setattr(plugins, "entry_points", lambda group: found)

    return install


def test_a_plug_in_adds_a_command(install: Any) -> None:
    install(echo="vnt_echo:app", plain="vnt_echo:plain")
    listed = CliRunner().invoke(app, ["--help"]).output
    assert "echo" in listed
    assert "Command of a plug-in." in listed
    assert "vnt_echo" not in sys.modules  # loaded when it is called
    assert "Echo things." in CliRunner().invoke(app, ["echo", "--help"]).output
    assert CliRunner().invoke(app, ["echo", "twice", "ab"]).output == "abab\n"
    assert CliRunner().invoke(app, ["plain", "ab"]).output == "ab\n"


@pytest.mark.parametrize("command", [["bench", "run", "smoke"], ["data", "--help"], ["bench"]])
def test_without_the_laboratory_one_sentence_says_how_to_install_it(
    install: Any, command: list[str]
) -> None:
    install()
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert f"vnt {command[0]}: this command belongs to the laboratory" in done.stderr
    assert "pip install ./lab" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "bench" not in CliRunner().invoke(app, ["--help"]).output


@pytest.mark.parametrize("value", ["no_such_module:app", "vnt_echo:absent"])
def test_a_plug_in_that_cannot_be_loaded_leaves_the_others_alone(install: Any, value: str) -> None:
    install(broken=value, echo="vnt_echo:app")
    assert CliRunner().invoke(app, ["--help"]).exit_code == 0
    done = CliRunner().invoke(app, ["broken", "--anything"])
    assert done.exit_code == 2
    assert value in done.stderr


def test_our_own_commands_cannot_be_replaced(install: Any) -> None:
    install(adapt="vnt_echo:app")
    assert "Echo things." not in CliRunner().invoke(app, ["--help"]).output


def test_expected_errors_are_a_sentence_with_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise DataError("data: nothing here; put something there")

    monkeypatch.setattr("vntransfer.cli.app", fail)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit) as stop:
        main()
    signal.signal(signal.SIGINT, before)
    assert stop.value.code == 2
    assert capsys.readouterr().err == "vnt: data: nothing here; put something there\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_unwind_and_become_exit_codes(number: int, code: int, install: Any) -> None:
    install(stop="vnt_echo:plain")
    cleaned = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background

    def stop() -> None:
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            cleaned.append(True)

    own = typer.Typer(cls=plugins.PluginGroup)
    own.command("stop")(stop)
    own.command("other")(lambda: None)
    try:
        assert CliRunner().invoke(own, ["stop"]).exit_code == code
    finally:
        signal.signal(signal.SIGINT, before)
    assert cleaned


def test_ctrl_c_while_python_ends_is_no_traceback() -> None:
    """Threads are waited for after the command: a signal must not print where."""
    code = (
        "import os, signal, sys, threading, time\n"
        "from vntransfer.cli import app, main\n"
        "def stop():\n"
        "    time.sleep(0.5)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(0.5)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "app.command('late')(lambda: threading.Thread(target=stop).start())\n"
        "sys.argv = ['vnt', 'late']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGINT
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_is_not_lost_where_no_exception_can_be_raised(name: str) -> None:
    code = (
        "import os, signal, time\n"
        "from vntransfer.cli.common import signals_as_exit_codes\n"
        "class Held:\n"
        "    def __del__(self):\n"
        f"        os.kill(os.getpid(), signal.{name})\n"
        "        time.sleep(1)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with signals_as_exit_codes():\n"
        "    Held()\n"
        "    time.sleep(30)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.returncode == 128 + signal.Signals[name]
    assert done.stderr.splitlines() == [f"vnt: stopped; no incomplete file was left ({name})"]


def test_a_defect_of_ours_ends_with_exit_code_1() -> None:
    code = (
        "from vntransfer.cli import app, main\n"
        "app.command('defect')(lambda: 1 / 0)\n"
        "import sys; sys.argv = ['vnt', 'defect']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
