"""Write docs/api.md from the docstrings of the public names (`make docs`).

The docstrings' examples are run by the tests, and a test checks that the page is up to date.
"""

import inspect
from importlib import import_module
from pathlib import Path

import vntransfer
from vntransfer.linalg import sym_logm

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
GROUPS = {
    "Tables of your own": ("workflows", "tables"),
    "Adaptation": ("adaptation",),
    "Domains": ("domains",),
    "Relating places": ("relations",),
    "Divergences": ("divergences",),
    "Matrices from samples": ("moments",),
    "Losses": ("losses",),
    "Theory": ("theory",),
    "Errors and warnings": ("errors",),
}
"""Title -> the packages whose top-level names stand below it."""


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
            if not key.startswith("_") and callable(own) and inspect.getdoc(own):
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


def package(name: str, title: str) -> list[str]:
    """Sections of what a package offers whose names are not among the top-level ones."""
    module = import_module(f"vntransfer.{name}")
    lines = [f"## {title} (`vntransfer.{name}`)", ""]
    for name, thing in sorted(vars(module).items()):
        public = not name.startswith("_") and name not in vntransfer.__all__
        if public and (inspect.isclass(thing) or inspect.isfunction(thing)):
            lines += section(name, thing)
    return lines


def page() -> str:
    """Assemble the whole page."""
    lines = [
        "# API",
        "",
        "Generated from the docstrings by `make docs`; their examples run in CI.",
        "",
    ]
    for title, packages in GROUPS.items():
        lines += [f"## {title}", ""]
        for module, names in vntransfer._EXPORTS.items():
            if module.partition(".")[0] in packages:
                for name in names:
                    thing = getattr(vntransfer, name)
                    lines += registry() if name == "DIVERGENCES" else section(name, thing)
    lines += package("adaptation", "More of adaptation")
    lines += package("continual", "Continual learning")
    lines += ["## Matrix functions (`vntransfer.linalg`)", "", *section("sym_logm", sym_logm)]
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
