"""Write docs/api.md from the docstrings of the public names (`make docs`).

The docstrings' examples are run by the tests, and a test checks that the page is up to date.
"""

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import vntransfer

sys.path.insert(0, str(Path(__file__).resolve().parent))
from api_guide import PACKAGES, TOP

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"


def signature(name: str, thing: object) -> str:
    """Signature without annotations: the docstring explains the arguments."""
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Exception)):
        return name
    bare = [p.replace(annotation=p.empty) for p in inspect.signature(thing).parameters.values()]
    return f"{name}{inspect.Signature(bare)}"


def section(name: str, thing: object) -> list[str]:
    """Heading, signature and docstring of one name, with the public methods of a class."""
    text = inspect.getdoc(thing) if callable(thing) else None
    lines = [f"### {name}", "", "```text", signature(name, thing), "", text or "", "```", ""]
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        for key, member in vars(thing).items():
            own = getattr(thing, key)
            routing = key.startswith("set_") and key.endswith("_request")  # scikit-learn's own
            if not key.startswith("_") and not routing and callable(own) and inspect.getdoc(own):
                title = signature(f"{name}.{key}", getattr(member, "__func__", own))
                lines += ["```text", title, "", inspect.getdoc(own) or "", "```", ""]
    return lines


def registry() -> list[str]:
    """Tabulate the divergences."""
    lines = ["### DIVERGENCES", "", "| id | symmetric | metric | conditional | what |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    for key, entry in vntransfer.DIVERGENCES.items():
        flags = (entry.symmetric, entry.metric, entry.conditional)
        marks = " | ".join("yes" if flag else "no" for flag in flags)
        lines.append(f"| `{key}` | {marks} | {entry.summary} |")
    return [*lines, ""]


def public(module: ModuleType) -> set[str]:
    """Return the names of a package that the page has to show."""
    if module is vntransfer:
        return set(vntransfer.__all__) - {"__version__"}
    if not hasattr(module, "METHODS"):  # single functions are listed by hand
        return set()
    found = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return {
        name
        for name, thing in found.items()
        if name not in vntransfer.__all__
        and (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ != "vntransfer.lazy"  # how packages export names, not one of them
    }


def group(title: str, module: ModuleType, uses: dict[str, str]) -> Iterator[str]:
    """Yield one group: a table that says when to use which name, then the docstrings."""
    place = "" if module is vntransfer else f" (`{module.__name__}`)"
    yield from (f"## {title}{place}", "", "| name | when to prefer it |", "| --- | --- |")
    yield from (f"| [`{name}`](#{name.lower()}) | {use} |" for name, use in uses.items())
    yield ""
    for name in uses:
        thing = getattr(module, name)
        yield from registry() if name == "DIVERGENCES" else section(name, thing)


def page() -> str:
    """Assemble the whole page."""
    lines = [
        "# API",
        "",
        "Every public name, grouped by use. Generated from the docstrings by `make docs`; their",
        "examples run in CI.",
        "",
    ]
    for package, groups in {"": TOP, **PACKAGES}.items():
        module = import_module(f"vntransfer.{package}" if package else "vntransfer")
        known = {name for own in groups.values() for name in own}
        rest = dict.fromkeys(sorted(public(module) - known), "")
        for title, uses in {**groups, **({"Other names": rest} if rest else {})}.items():
            lines += group(title, module, {n: use for n, use in uses.items() if hasattr(module, n)})
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
