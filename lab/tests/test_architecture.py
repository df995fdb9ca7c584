"""The laboratory uses the library's public names only, and its packages form no cycle."""

import import_graph as graph
from import_graph import LABORATORY, edges, imports, packages

LAB = "vntransfer_lab"
KNOWN = {"MIN_STEPS"}  # goes with the probe runs of the experiments


def test_every_package_is_listed() -> None:
    assert sorted(LABORATORY) == sorted(packages(LAB))


def test_packages_form_no_cycle() -> None:
    assert graph.cycle(edges(LAB)) == []


def test_only_public_names_are_imported() -> None:
    assert graph.private(one for one in imports(LAB) if one.name not in KNOWN) == []
