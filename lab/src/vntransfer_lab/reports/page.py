"""The page of a report: the answer, figures, tables, how it was done; all in one file."""

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vntransfer.display import counted
from vntransfer.pages import Page, Section, TableCell
from vntransfer.pages.table import Value as Shown
from vntransfer.storage.places import PAGES, check_file
from vntransfer_lab.reports.answers import Tally, lead, sentences, tally
from vntransfer_lab.reports.costs import cost_table
from vntransfer_lab.reports.drawings import drawings_of
from vntransfer_lab.reports.names import Names
from vntransfer_lab.reports.report import EVERYTHING, Report, View, load_report
from vntransfer_lab.reports.tables import Number, ReportTable, Value, Verdict, sort_key, text
from vntransfer_lab.runner.provenance import read_provenance, versions
from vntransfer_lab.runner.selection import RULES

PAGE_NAME = "report.html"
MOST_FAILURES, MOST_WARNINGS, MOST_NAMES = 100, 5, 15
"""Failed cells and warnings that are listed, and names up to which their table is unfolded."""

_TONES = {"better": "good", "worse": "bad"}


def write_page(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    view: View = EVERYTHING,
    overwrite: bool = False,
) -> Path:
    """Write the page of a run folder and return its path, by default ``report.html`` in there.

    An existing file is replaced if it is a page of ours, or to ``overwrite`` it.
    """
    place = Path(folder, PAGE_NAME) if out is None else Path(out)
    check_file("out", place, PAGES, overwrite=overwrite)
    words = ["vnt", "bench", "report", str(folder), "--format", "html"]
    words += [] if out is None else ["--out", str(out)]
    made = read_provenance(folder).get("invocations", [])
    page = make_page(load_report(folder, view), made, shlex.join(words + view.words()))
    return page.write(place, overwrite=overwrite)


def make_page(loaded: Report, invocations: Sequence[Mapping[str, Any]], command: str) -> Page:
    """Put the page of a report together.

    ``invocations`` and ``command`` say what made the run and the page, for its foot.
    """
    names = Names(loaded)
    found = tally(loaded)
    foot = footer(loaded, invocations, command)
    page = Page(loaded.preset.title, lead(loaded, names, found), foot)
    _summarize(loaded, names, found, page.section("Answer"))
    if drawings := sorted(drawings_of(loaded), key=lambda own: own.detail):
        part = page.section("Figures")
        for drawing in map(names.inside, drawings):
            title = _headline(drawing.title)
            part.figure(drawing.chart, title, drawing.caption, fold=drawing.detail)
    part = page.section("Tables")
    for table in sorted(loaded.tables(), key=lambda own: own.detail):
        _add_table(part, table, loaded, names)
    _add_failures(loaded, names, page)
    _explain(loaded, names, page.section("How it was done"))
    return page


def _summarize(loaded: Report, names: Names, found: Tally, part: Section) -> None:
    preset = loaded.preset
    counts = Counter(record.status for record in loaded.records)
    targets = len({(record.data, record.target) for record in loaded.records})
    for kind, sentence in sentences({names(method): own for method, own in found.items()}):
        part.note(sentence, kind=kind)
    if not preset.baseline:
        part.note("The run names no baseline, so nothing is tested.")
    warnings = [remark.text for remark in loaded.remarks() if remark.kind == "warning"]
    for said in warnings[:MOST_WARNINGS]:
        part.note(f"{names(said)}.", kind="warning", head="")
    if (more := len(warnings) - MOST_WARNINGS) > 0:
        part.text(f"and {counted(more, 'more warning')}")
    part.facts(
        [
            ("Cells", f"{counts['done']:,}", f"of {len(loaded.records):,} done"),
            ("Methods", str(len(preset.methods)), ""),
            ("Data sets", str(len(preset.data)), counted(targets, "target")),
            ("Seeds", str(len(preset.seeds)), ""),
        ]
    )


def _explain(loaded: Report, names: Names, part: Section) -> None:
    """Say how the run was made, what it cost, and what its methods are called in the preset."""
    preset = loaded.preset
    part.text(f"Experiment: {loaded.kind.summary}.")
    part.text(*(f"{_headline(names(r.text))}." for r in loaded.remarks() if r.kind == "neutral"))
    if (costs := cost_table(loaded)).rows:
        _add_table(part, costs, loaded, names)
    rows = [[names(name), name] for name in (*preset.methods, *preset.data) if names(name) != name]
    if rows:
        part.table(["on this page", "in the preset"], rows, "Names", fold=len(rows) > MOST_NAMES)


def _headline(text: str) -> str:
    """Begin with a capital letter, unless it is a name such as that of a data set."""
    first, _, rest = text.partition(" ")
    word = first.removesuffix(":")
    return text[:1].upper() + text[1:] if rest and word.isalpha() and word.islower() else text


def _add_failures(loaded: Report, names: Names, page: Page) -> None:
    failed = [record for record in loaded.records if record.status == "failed"]
    if not failed:
        return
    rows: list[list[Shown]] = [
        [names(r.data), r.target, names(r.method), r.seed, str(r.error).partition("\n")[0]]
        for r in failed[:MOST_FAILURES]
    ]
    more = len(failed) - MOST_FAILURES
    notes = [f"{more} further ones are in the export"] if more > 0 else []
    header = ["data", "target", "method", "seed", "error"]
    page.section("Failed cells").table(header, rows, "What failed", notes)


def cell(value: Value) -> Shown:
    """Value of a table for a page: read as in every form, sorted by its number."""
    if value is None or (isinstance(value, str) and not isinstance(value, Verdict)):
        return value
    verdict = value.verdict if isinstance(value, Number) else value
    tone = _TONES.get(verdict, "neutral") if isinstance(verdict, str) else "neutral"
    return TableCell(text(value), sort_key(value), tone)


def _add_table(part: Section, table: ReportTable, loaded: Report, names: Names) -> None:
    """Add the columns that hold anything; what the page says elsewhere is no note."""
    said = {remark.text for remark in loaded.remarks()}
    notes = [names(note) for note in table.notes if note not in said]
    rows = [[cell(names.inside(value)) for value in row] for row in table.rows]
    kept = [i for i in range(len(table.header)) if any(row[i] not in (None, "") for row in rows)]
    header = [names(table.header[i]) for i in kept or range(len(table.header))]
    shown = [[row[i] for i in kept] for row in rows]
    part.table(header, shown, _headline(names(table.title)), notes, fold=table.detail)


def footer(
    loaded: Report, invocations: Sequence[Mapping[str, Any]], command: str
) -> dict[str, str]:
    """Name -> text: commands, versions, seeds, selection rule, settings, hashes of the data."""
    preset = loaded.preset
    commands = dict.fromkeys(str(one["command"]) for one in invocations)
    used = dict.fromkeys(_listed(one["versions"]) for one in invocations if "versions" in one)
    hashes = dict.fromkeys((record.data, record.data_hash) for record in loaded.records)
    rules = dict.fromkeys(record.selection for record in loaded.records)
    kinds = dict.fromkeys(record.version for record in loaded.records)
    settings: dict[str, Any] = {**preset.settings, **preset.grid}
    found = {
        "Run": "\n".join(commands) or "the command was not recorded",
        "Run made with": "\n".join(used),
        "Page": command,
        "Page made with": _listed(versions()),
        "Preset": f"{preset.name}: experiment {preset.experiment}, version {', '.join(kinds)}",
        "Seeds": ", ".join(map(str, preset.seeds)),
        "Selection rule": "\n".join(f"{rule}: {RULES[rule][1]}" for rule in rules or RULES),
        "Settings": ", ".join(f"{k} = {json.dumps(v)}" for k, v in settings.items()),
        "Data": "\n".join(f"{data} {own}" for data, own in hashes),
    }
    return {name: text for name, text in found.items() if text}


def _listed(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in found.items())
