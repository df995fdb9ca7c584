"""The library keeps to its layers (docs/architecture.md), read from its source."""

import ast
from pathlib import Path

import pytest

import import_graph as graph
from import_graph import LAYERS, distribution, edges, imports, packages

LIBRARY = "vntransfer"


def read(text: str, module: str = "vntransfer.adaptation.mdd") -> list[graph.Import]:
    return graph.read(module, ast.parse(text))


def test_every_package_has_exactly_one_layer() -> None:
    listed = [name for layer in LAYERS for name in layer.packages]
    assert sorted(listed) == sorted(packages(LIBRARY))


def test_no_import_points_to_a_lower_layer_or_an_independent_neighbor() -> None:
    assert graph.upward(imports(LIBRARY)) == []


def test_packages_form_no_cycle() -> None:
    assert graph.cycle(edges(LIBRARY)) == []


def test_no_package_imports_private_names_of_another() -> None:
    assert graph.private(imports(LIBRARY)) == []


def test_the_library_does_not_know_the_laboratory() -> None:
    """Not even for types: it is installed without the laboratory."""
    assert [str(one) for one in imports(LIBRARY) if distribution(one.target) != LIBRARY] == []


def test_tests_of_the_library_run_without_the_laboratory() -> None:
    for path in Path(__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert "vntransfer_lab" not in ast.unparse(node), path


def test_names_exported_on_first_use_count() -> None:
    assert "workflows" in edges(LIBRARY)["__init__"]
    (one,) = read("from vntransfer import relate")
    assert one.target == "vntransfer.workflows.relate"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("from vntransfer.workflows.adapt import adapt", True),
        ("def f():\n    from vntransfer import workflows", True),
        ("from importlib import import_module\nimport_module('vntransfer.workflows')", True),
        ("from ..workflows.adapt import adapt", True),
        ("import vntransfer.continual.networks as n", True),
        ("import vntransfer", True),
        ("from vntransfer import adapt", True),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import vntransfer.cli", False),
        ("if not TYPE_CHECKING:\n    import vntransfer.cli", True),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import vntransfer.cli", True),
        ("from vntransfer import pairwise", False),
        ("from vntransfer.adaptation._base import DomainRegressor", False),
        ("from .._version import __version__", False),
    ],
)
def test_imports_against_the_layers_are_found(text: str, wrong: bool) -> None:
    assert bool(graph.upward(read(text))) is wrong


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("from vntransfer.divergences._matrix import jeffreys", True),
        ("from vntransfer.divergences import _matrix", True),
        ("from vntransfer.linalg import _floor", True),
        ("from vntransfer import linalg\nlinalg._floor(1)", True),
        ("import vntransfer.linalg\nvntransfer.linalg._floor(1)", True),
        ("from vntransfer.linalg import sym_logm", False),
        ("from vntransfer.linalg import __doc__", False),
        ("from vntransfer.adaptation import _base\n_base._hidden", False),
        ("from vntransfer._version import __version__", False),
    ],
)
def test_private_imports_are_found(text: str, wrong: bool) -> None:
    assert bool(graph.private(read(text))) is wrong


def test_the_laboratory_may_not_take_private_names() -> None:
    text = "from vntransfer._version import __version__"
    assert graph.private(read(text, "vntransfer_lab.runner.run"))


def test_layers_that_are_not_independent_may_import_each_other() -> None:
    assert not graph.upward(read("from vntransfer.errors import VnError", "vntransfer.arrays"))


def test_no_class_name_is_used_twice() -> None:
    twice = {name: places for name, places in graph.classes().items() if len(places) > 1}
    assert not twice
