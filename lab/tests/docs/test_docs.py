"""What README and docs print is what happens; pages that are generated are up to date."""

import re
import runpy
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import pytest

from lab_helpers.docs_code import PAGES, ROOT, load_tool, parse
from vntransfer.continual import METHODS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), target


def figure_rows() -> list[tuple[list[str], list[str]]]:
    page = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]+) \| (`[^|]+) \|", page, re.M)
    return [(re.findall("`([^`]+)`", a), re.findall("`([^`]+)`", b)) for a, b in rows]


def test_every_picture_has_its_command_and_a_reader() -> None:
    docs = ROOT / "docs"
    kinds = {".svg", ".png", ".jpg", ".gif"}
    pictures = {p.relative_to(docs).as_posix() for p in docs.rglob("*") if p.suffix in kinds}
    patterns = [pattern for made, _ in figure_rows() for pattern in made]
    for picture in pictures:
        assert sum(fnmatch(picture, pattern) for pattern in patterns) == 1, picture
    for pattern in patterns:
        assert any(fnmatch(picture, pattern) for picture in pictures), pattern
    shown = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    }
    orphans = {picture for picture in pictures if (docs / picture).resolve() not in shown}
    assert not orphans, "on no page"


@pytest.mark.parametrize("commands", [c for _, c in figure_rows()], ids=lambda c: c[0])
def test_commands_of_pictures_are_there(commands: list[str]) -> None:
    for command in commands:
        first, second, *rest = command.replace("*", "synthetic").split()
        if first == "vnt":
            parse([first, second, *rest])
        elif first == "make":
            assert f"\n{second}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
        else:
            assert (first, (ROOT / second).exists()) == ("python", True)


def test_every_continual_method_is_on_its_page() -> None:
    text = (ROOT / "docs" / "continual.md").read_text(encoding="utf-8")
    for name, method in METHODS.items():
        assert f"| `{name}` | `{method.__name__}` |" in text


def test_api_page_is_up_to_date() -> None:
    tool = load_tool("make_api")
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "run make docs"


def test_the_api_page_says_when_to_use_every_public_name() -> None:
    tool = load_tool("make_api")
    for package, groups in {"": tool.TOP, **tool.PACKAGES}.items():
        module = import_module(f"vntransfer.{package}".rstrip("."))
        names = [name for own in groups.values() for name in own]
        assert len(names) == len(set(names))
        assert set(names) >= tool.public(module)
        assert [name for name in names if not hasattr(module, name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert load_tool("make_tables").fill(text) == text, "run make docs"


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/*.py")), ids=lambda p: p.stem)
def test_examples_run(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example))
    assert capsys.readouterr().out
