"""The laboratory uses the library's public names only, and its packages form no cycle."""

import re

import import_graph as graph
import make_architecture
from import_graph import LABORATORY, edges, imports, packages

LAB = "vntransfer_lab"


def test_every_package_is_listed() -> None:
    assert sorted(LABORATORY) == sorted(packages(LAB))


def test_packages_form_no_cycle() -> None:
    assert graph.cycle(edges(LAB)) == []


def test_only_public_names_are_imported() -> None:
    assert graph.private(imports(LAB)) == []


def test_the_diagram_is_up_to_date() -> None:
    drawn = make_architecture.PICTURE.read_text(encoding="utf-8")
    assert drawn == make_architecture.picture(), "run make docs"


def test_the_page_names_files_that_exist() -> None:
    page = (graph.ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_-]+/)+(?:[a-z_-]+\.(?:py|md))?)`", page))
    assert len(named) > 20
    tops = ("", "src/vntransfer", "src", "lab/src/vntransfer_lab")
    lost = [path for path in named if not any((graph.ROOT / top / path).exists() for top in tops)]
    assert not lost
    modules = re.findall(r"`((?:tables|workflows|cli)\.[a-z_]+)`", page)
    assert len(modules) > 8
    assert [
        name for name in modules if f"vntransfer.{name}" not in graph.modules("vntransfer")
    ] == []
