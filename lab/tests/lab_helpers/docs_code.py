"""The code blocks of the pages: which there are, what they are marked with, and how they are run.

A page can say in comments, which no reader sees,

    <!-- not run: REASON -->        that the block below is not run, and why
    <!-- setup                      what its next blocks need (Python, or lines of ``vnt``)
    ...
    -->
"""

import contextlib
import importlib.util
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from vntransfer.cli import app
from vntransfer.cli.plugins import PluginCommand, load

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
SHELLS = ("sh", "bash", "console")
RUNNABLE = ("python", *SHELLS)
TOKEN = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```"
    r"|<!-- (?P<word>not run:|setup)(?P<note>.*?)-->",
    re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    """One block of code, or one hidden setup (``kind`` "setup")."""

    kind: str
    code: str
    line: int
    reason: str | None = None
    follows: bool = False
    """Whether nothing but white space stands between this block and the one before."""

    @property
    def wanted(self) -> bool:
        return self.kind == "setup" or (self.kind in RUNNABLE and self.reason is None)


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(text: str) -> list[Block]:
    found: list[Block] = []
    reason, end = None, 0
    for token in TOKEN.finditer(text):
        near = not text[end : token.start()].strip()
        line = text.count("\n", 0, token.start()) + 1
        if token["word"] == "not run:":
            reason = " ".join(token["note"].split())
        elif token["word"] == "setup":
            found.append(Block("setup", token["note"].strip() + "\n", line))
        else:
            mark = reason if near else None
            code = re.sub(f"^{token['indent']}", "", token["code"], flags=re.M)  # in a list
            found.append(Block(token["kind"], code, line, mark, near))
            reason = None
        end = token.end()
    return found


def commands(code: str) -> Iterator[list[str]]:
    """Yield the words of every line of a shell block, without comments and variables."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        if words:
            yield words


def parse(words: list[str]) -> None:
    """Let ``vnt`` read its arguments, and do nothing."""
    command: Any = get_command(app)
    called, *rest = words
    while hasattr(command, "get_command"):
        called, *rest = rest
        command = command.get_command(None, called)
        if isinstance(command, PluginCommand):
            command = load(command.entry)
        if command is None:
            raise KeyError(called)
    command.make_context(called, rest)


def shell(code: str) -> str:
    """Run the lines of ``vnt`` of a block; return what they print."""
    printed = ""
    for words in commands(code):
        assert words[0] == "vnt", f"only vnt is run, not {words[0]}: mark the block"
        done = CliRunner().invoke(app, words[1:], catch_exceptions=False)
        assert done.exit_code == 0, (words, done.output, done.stderr)
        printed += done.output
    return printed


def run(page: list[Block], names: dict[str, Any], kinds: tuple[str, ...] = RUNNABLE) -> None:
    """Run the blocks of a page in the present folder, in order and in one namespace.

    A ``text`` block right below a block of Python is what that prints.
    """
    printed = None
    for block in page:
        if block.kind == "text" and block.follows and printed is not None:
            assert printed == block.code, f"line {block.line}: it prints\n{printed}"
        printed = None
        if not block.wanted or block.kind not in (*kinds, "setup"):
            continue
        if block.kind in SHELLS or block.code.startswith("vnt "):
            shell(block.code)
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block.code, f"line {block.line}", "exec"), names)
        printed = out.getvalue()


@cache
def load_tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def code_of(page: Path) -> list[tuple[str, str]]:
    """Give the kind and the code of each block of a page."""
    return re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
