"""Fill the tables of the docs from the packed results.

A page names a table between two comments,

    <!-- table lab/results/NAME "TITLE" -->
    ...
    <!-- end -->

where TITLE is what stands behind the colon in the report's title of the table. An optional
``rows=a,b`` keeps those rows (by their first value), ``methods=a,b`` those of these methods,
``columns=a,"b c"`` those columns, ``baseline=a`` compares with that method instead of the preset's,
``among=a,b`` makes the report of these methods alone (so that ranks are among them), and
``notes=no`` leaves out the notes.

    <!-- runs -->
    ...
    <!-- end -->

is filled with a table of the packed runs themselves: how to make them again, and what they took.
"""

import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

from vntransfer_lab.reports.report import Report, View, load_report
from vntransfer_lab.reports.tables import Number, ReportTable, render, text
from vntransfer_lab.runner.provenance import command_line

ROOT = Path(__file__).resolve().parent.parent
PLACE = re.compile(
    r'(?P<head><!-- table (?P<folder>lab/results/\S+) "(?P<title>[^"]+)"(?P<options>[^>]*) -->\n)'
    r"(?P<body>.*?)(?P<tail><!-- end -->)",
    re.S,
)
RUNS = re.compile(r"(?P<head><!-- runs -->\n).*?(?P<tail><!-- end -->)", re.S)
WHOLE = View()
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@cache
def report(folder: str, view: View) -> Report:
    """Read one folder of results."""
    return load_report(ROOT / folder, view)


def find(folder: str, title: str, view: View = WHOLE) -> ReportTable:
    """Return the table of a report by what follows the colon of its title."""
    tables = report(folder, view).tables()
    for table in tables:
        if table.title == title:
            return table
    known = ", ".join(table.title for table in tables)
    raise SystemExit(f"{folder}: no table {title!r}; there are: {known}")


def cut(table: ReportTable, options: dict[str, str]) -> ReportTable:
    """Keep what the page asks for."""
    header, rows, notes = table.header, table.rows, table.notes
    if "rows" in options:
        wanted = options["rows"].split(",")
        by_name = {text(row[0]): row for row in rows}
        rows = [by_name[name] for name in wanted]
    if "methods" in options:
        place = header.index("method")
        rows = [row for row in rows if row[place] in options["methods"].split(",")]
    if "columns" in options:
        places = [header.index(name) for name in options["columns"].split(",")]
        header, rows = [header[i] for i in places], [[row[i] for i in places] for row in rows]
    return ReportTable(table.title, header, rows, [] if options.get("notes") == "no" else notes)


def spans(seeds: list[int]) -> str:
    """Write seeds down, three or more in a row by their ends."""
    found: list[list[int]] = []
    for seed in seeds:
        if found and seed == found[-1][-1] + 1:
            found[-1].append(seed)
        else:
            found.append([seed])
    return ", ".join(
        f"{own[0]} to {own[-1]}" if len(own) > 2 else ", ".join(map(str, own)) for own in found
    )


def size(preset: dict[str, Any]) -> str:
    """Say how large a run is: rows of each domain or task, and passes over them."""
    settings = {**preset["settings"], **preset["grid"]}
    common = settings.get("epochs")
    passes = {own.get("epochs") or common for own in preset["methods"].values()} - {None}

    def said(value: Any) -> str:
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    if "n_tasks" in settings:
        rows = f"{said(settings['n_tasks'])} tasks of {settings['n_train']}"
        if preset["data"] == ["omniglot"]:
            rows += " per character"
    elif "pictures" in settings:
        rows = f"{settings['pictures']} images of each domain"
    elif "sizes" in settings:
        rows = f"{said(settings['sizes'])} rows"
    elif "n_train" in settings:
        rows = f"{settings['n_train']} rows"
    else:
        rows = f"{settings['rows'] or 'all'} rows of each domain"
    epochs = f", {said(sorted(passes))} epoch{'s' if passes != {1} else ''}" if passes else ""
    return rows + epochs


def runs() -> ReportTable:
    """Return one row for each folder of results."""
    header = ["result", "command", "cells", "seeds", "size", "hours", "selection", "sha256"]
    rows, versions = [], set()
    for file in sorted(ROOT.glob("lab/results/*/run.json")):
        run = json.loads(file.read_text(encoding="utf-8"))
        # what was retried has no changes of its own
        last = next(one for one in reversed(run["invocations"]) if "overrides" in one)
        used = ("torch", "numpy", "scikit-learn")
        versions.add(", ".join(f"{name} {last['versions'][name]}" for name in used))
        rows.append(
            [
                f"`lab/results/{file.parent.name}`",
                f"`{command_line('run', run['preset']['name'], last['overrides'])}`",
                run["cells"],
                spans(run["preset"]["seeds"]),
                size(run["preset"]),
                Number(run["hours"], ".1f"),
                run["preset"]["selection"],
                f"`{run['sha256'][:12]}`",
            ]
        )
    return ReportTable(
        "packed runs", header, rows, [f"made with {text}" for text in sorted(versions)]
    )


def fill(page: str) -> str:
    """Return the text of a page with its tables up to date."""

    def table(place: re.Match[str]) -> str:
        options = dict(item.split("=", 1) for item in shlex.split(place["options"]))
        among = tuple(filter(None, options.get("among", "").split(",")))
        view = View(options.get("baseline", ""), among)
        found = cut(find(place["folder"], place["title"], view), options)
        body = render([found], "markdown").partition("\n\n")[2]  # the page has its own heading
        return f"{place['head']}\n{body}\n\n{place['tail']}"

    def packed(place: re.Match[str]) -> str:
        body = render([runs()], "markdown").partition("\n\n")[2]
        return f"{place['head']}\n{body}\n\n{place['tail']}"

    return RUNS.sub(packed, PLACE.sub(table, page))


def main() -> None:
    """Rewrite the pages whose tables changed."""
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = fill(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
