"""The import graph of the library and the laboratory, read from their source, and its rules.

Nothing is imported to read the graph: imports at the top of a file, inside functions, by
``import_module("...")`` and the names that ``vntransfer/__init__.py`` exports on first use all
count. Imports under ``if TYPE_CHECKING`` never run; they are kept apart. A *package* is a module or
a folder directly below ``vntransfer`` or ``vntransfer_lab``. The tests check the rules, and
``tools/make_architecture.py`` draws the diagram of docs/architecture.md from the same lists.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {"vntransfer": ROOT / "src", "vntransfer_lab": ROOT / "lab" / "src"}
FACE = "__init__"  # the public face: `import vntransfer`


@dataclass(frozen=True)
class Layer:
    """Packages that stand in one row of the diagram.

    Parameters
    ----------
    title
        Heading of the row.
    packages
        What is in it.
    independent
        Its packages may not import each other.
    """

    title: str
    packages: tuple[str, ...]
    independent: bool = False


LAYERS = (
    Layer(
        "mathematics",
        (
            "lazy",
            "errors",
            "checks",
            "arrays",
            "holm",
            "step_times",
            "progress",
            "display",
            "linalg",
            "moments",
            "ridge",
            "quadrature",
            "bordered",
            "integrands",
            "single_precision",
            "centered_samples",
            "random_features",
            "closed_form",
            "row_sample",
            "divergences",
            "losses",
            "theory",
            "array_networks",
            "networks",
            "domains",
            "repeats",
        ),
    ),
    Layer("files on disk", ("storage",)),
    Layer("charts, pages", ("pages",)),
    Layer("methods", ("adaptation", "continual", "relations"), independent=True),
    Layer("your tables", ("tables",)),
    Layer("what you call", ("workflows",)),
    Layer("entry points", (FACE, "cli", "integrations")),
)
"""Layers of the library, from the top down: each imports only from its own and those above."""

LABORATORY = ("errors", "data", "runner", "reports", "experiments", FACE, "cli")
"""Packages of the laboratory. They form no layers, but no cycles either."""

TYPES_ONLY = {"TYPE_CHECKING", "typing.TYPE_CHECKING"}

EVERYWHERE = {"vntransfer._version", "vntransfer_lab._version"}
"""Modules that every package of the same distribution may import."""


@dataclass(frozen=True)
class Import:
    """One imported module or name.

    Parameters
    ----------
    source
        Module that imports, with dots.
    target
        Module that is imported, with dots.
    name
        Name that is taken from it, or "".
    line
        Line in the source.
    typing
        Whether it stands under ``if TYPE_CHECKING``.
    """

    source: str
    target: str
    name: str
    line: int
    typing: bool

    def __str__(self) -> str:
        what = f"{self.target}.{self.name}" if self.name else self.target
        return f"{self.source}:{self.line} imports {what}"


def package(module: str) -> str:
    """Return the package that a module is part of.

    Examples
    --------
    >>> package("vntransfer.adaptation.mdd"), package("vntransfer.linalg"), package("vntransfer")
    ('adaptation', 'linalg', '__init__')
    """
    return [*module.split("."), FACE][1]


def distribution(module: str) -> str:
    """Return "vntransfer" or "vntransfer_lab"."""
    return module.partition(".")[0]


@cache
def modules(root: str) -> dict[str, Path]:
    """Find all modules of a distribution, by their names with dots."""
    found = {}
    for path in sorted((SOURCES[root] / root).rglob("*.py")):
        parts = path.relative_to(SOURCES[root]).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def packages(root: str) -> set[str]:
    """Return the packages of a distribution: modules and folders directly below it."""
    return {package(name) for name in modules(root) if name not in EVERYWHERE}


@cache
def tree(module: str) -> ast.Module:
    """Parse a module."""
    return ast.parse(modules(distribution(module))[module].read_text(encoding="utf-8"))


def is_folder(module: str) -> bool:
    """Return whether a module is the ``__init__.py`` of a folder."""
    path = modules(distribution(module)).get(module)
    return path is not None and path.name == "__init__.py"


@cache
def exported() -> dict[str, str]:
    """Return the home of every name that ``import vntransfer`` offers on first use."""
    (block,) = (node for node in tree("vntransfer").body if isinstance(node, ast.If))
    imports = (node for node in block.body if isinstance(node, ast.ImportFrom))
    return {
        own.name: str(node.module)
        for node in imports
        for own in node.names
        if node.module != "vntransfer"
    }


def _hidden(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _known(name: str) -> bool:
    return distribution(name) in SOURCES and name in modules(distribution(name))


def _resolve(module: str, name: str) -> tuple[str, str]:
    """Find out what ``from module import name`` is: a module, or a name in its real home."""
    if _known(f"{module}.{name}"):
        return f"{module}.{name}", ""
    if module == "vntransfer" and name in exported():
        return exported()[name], name
    return module, name


class _Reader(ast.NodeVisitor):
    """Collect the imports of one module."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.typing = False
        self.found: list[Import] = []
        self.bound: dict[str, str] = {}  # local names of modules of ours

    def add(self, target: str, name: str, node: ast.AST, local: str = "") -> None:
        """Note one import, and the local name of a module."""
        if distribution(target) in SOURCES:
            line = getattr(node, "lineno", 0)
            self.found.append(Import(self.module, target, name, line, self.typing))
            if local and not name:
                self.bound[local] = target

    def visit_If(self, node: ast.If) -> None:
        """Mark what stands under ``if TYPE_CHECKING``."""
        before = self.typing
        self.typing = before or ast.unparse(node.test) in TYPES_ONLY
        for part in node.body:
            self.visit(part)
        self.typing = before
        for part in node.orelse:
            self.visit(part)

    def visit_Import(self, node: ast.Import) -> None:
        """Read ``import a.b as c``."""
        for alias in node.names:
            self.add(alias.name, "", node, alias.asname or "")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Read ``from a.b import c``, also with leading dots."""
        base = node.module or ""
        if node.level:
            own = self.module.split(".")
            up = node.level - 1 if is_folder(self.module) else node.level
            base = ".".join([*own[: len(own) - up], *filter(None, [base])])
        if distribution(base) not in SOURCES:
            return
        for alias in node.names:
            target, name = _resolve(base, alias.name)
            self.add(target, name, node, alias.asname or alias.name)

    def visit_Call(self, node: ast.Call) -> None:
        """Read ``import_module("a.b")``."""
        if ast.unparse(node.func).rpartition(".")[2] in {"import_module", "__import__"}:
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    self.add(argument.value.partition(":")[0], "", node)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Count ``linalg._name`` as an import of that name."""
        dotted = ast.unparse(node.value)
        module = self.bound.get(dotted, dotted)
        if _known(module) and _hidden(node.attr):
            self.add(module, node.attr, node)
        self.generic_visit(node)


def read(module: str, parsed: ast.Module) -> list[Import]:
    """Return the imports of one module of ours."""
    reader = _Reader(module)
    reader.visit(parsed)
    return reader.found


@cache
def imports(root: str) -> tuple[Import, ...]:
    """Return all imports of modules of ours by the modules of a distribution."""
    found: list[Import] = []
    for module in modules(root):
        found += read(module, tree(module))
    if root == "vntransfer":
        found += [Import("vntransfer", home, name, 1, False) for name, home in exported().items()]
    return tuple(found)


def crossing(found: Iterable[Import]) -> Iterator[Import]:
    """Give the imports at run time that lead to another package of the same distribution."""
    for one in found:
        same = distribution(one.source) == distribution(one.target)
        away = package(one.source) != package(one.target) and one.target not in EVERYWHERE
        if same and away and not one.typing:
            yield one


def edges(root: str) -> dict[str, set[str]]:
    """Return the packages that each package imports."""
    graph: dict[str, set[str]] = {name: set() for name in packages(root)}
    for one in crossing(imports(root)):
        graph[package(one.source)].add(package(one.target))
    return graph


def level(name: str) -> int:
    """Return the number of a package's layer, 0 at the top."""
    return next(i for i, layer in enumerate(LAYERS) if name in layer.packages)


def upward(found: Iterable[Import]) -> list[str]:
    """Return imports against the order of the layers, or between packages that must not."""
    wrong = []
    for one in crossing(found):
        here, there = level(package(one.source)), level(package(one.target))
        if there > here or (there == here and LAYERS[here].independent):
            wrong.append(str(one))
    return wrong


def private(found: Iterable[Import]) -> list[str]:
    """Return imports of a module or name with a leading underscore from another package."""
    wrong = []
    for one in (one for one in found if not one.typing):
        inside = distribution(one.source) == distribution(one.target)
        if inside and (package(one.source) == package(one.target) or one.target in EVERYWHERE):
            continue
        parts = [*one.target.split("."), one.name]
        if any(map(_hidden, parts)):
            wrong.append(str(one))
    return wrong


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return one cycle of a graph, its first package repeated at the end, or an empty list.

    Examples
    --------
    >>> cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}})
    ['b', 'c', 'b']
    >>> cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    []
    """
    done: set[str] = set()

    def search(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for other in sorted(graph.get(name, ())):
            if found := search(other, [*path, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := search(name, []))), [])


def classes() -> dict[str, list[str]]:
    """Return every class name of both distributions with the places that define it."""
    found: dict[str, list[str]] = {}
    for module in (name for root in SOURCES for name in modules(root)):
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(f"{module}:{node.lineno}")
    return found
