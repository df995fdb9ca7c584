"""Write docs/api.md from the docstrings of the public names (`make docs`).

The docstrings' examples are run by the tests, and a test checks that the page is up to date.
"""

import inspect
from importlib import import_module
from pathlib import Path

import vntransfer

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
TITLES = {
    "adaptation": "Adaptation",
    "domains": "Domains",
    "relate": "Relating places",
    "divergences": "Divergences",
    "moments": "Matrices from samples",
    "losses": "Losses",
    "theory": "Theory",
    "linalg": "Matrix functions",
    "errors": "Errors and warnings",
}


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
        if not name.startswith("_") and (inspect.isclass(thing) or inspect.isfunction(thing)):
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
    for module, title in TITLES.items():
        lines += [f"## {title} (`vntransfer.{module}`)", ""]
        # the function `relate` shares its name with its module, so that it is no top-level name
        names = (*(["relate"] if module == "relate" else []), *vntransfer._EXPORTS[module])
        for name in names:
            thing = getattr(import_module(f"vntransfer.{module}"), name)
            lines += registry() if name == "DIVERGENCES" else section(name, thing)
    lines += package("continual", "Continual learning") + package("tabular", "Tables")
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
