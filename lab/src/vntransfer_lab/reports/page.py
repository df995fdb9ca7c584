"""The page of a report: verdicts first, then tables, figures, data, costs; all in one file."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vntransfer.pages import Page, Section, TableCell
from vntransfer.pages.table import Value as Shown
from vntransfer_lab.reports.cost_figures import cost_drawings
from vntransfer_lab.reports.costs import cost_table
from vntransfer_lab.reports.data_pictures import domain_drawings
from vntransfer_lab.reports.drawings import Drawing, standard
from vntransfer_lab.reports.report import EVERYTHING, Report, View, load_report
from vntransfer_lab.reports.run_facts import footer
from vntransfer_lab.reports.statistics import VERDICTS, Estimate
from vntransfer_lab.reports.tables import IntervalValue, ReportTable, Value, text
from vntransfer_lab.reports.verdicts import paper_words, sentences, tally
from vntransfer_lab.runner.provenance import read_provenance

PAGE_NAME = "report.html"
MOST_FAILURES = 100
"""Failed cells that are listed."""

_TONES = {"better": "good", "worse": "bad"}
# A number at the start, alone or before what explains it: "0.51 ± 0.02", "3/1", "40 %", "< 0.0001"
_LEADING = re.compile(r"^<?\s*([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?=$|[\s/%])")


def write_page(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    domains: bool = True,
    view: View = EVERYTHING,
) -> Path:
    """Write the page of a run folder.

    Parameters
    ----------
    folder
        The run folder.
    out
        The file; by default ``report.html`` in the folder.
    domains
        Also show the data (t-SNE and histograms), where they are on this machine.
    view
        Which methods, against which baseline.

    Returns
    -------
    Path
        Of the page.
    """
    words = ["vnt", "bench", "report", str(folder), "--format", "html"]
    words += [] if out is None else ["--out", str(out)]
    words += view.words() + ([] if domains else ["--no-domains"])
    made = read_provenance(folder).get("invocations", [])
    page = make_page(load_report(folder, view), made, shlex.join(words), domains=domains)
    return page.write(out or Path(folder, PAGE_NAME))


def make_page(
    loaded: Report,
    invocations: Sequence[Mapping[str, Any]],
    command: str,
    *,
    domains: bool = True,
) -> Page:
    """Put the page of a report together.

    Parameters
    ----------
    loaded
        The run.
    invocations, command
        What made the run (see `vntransfer_lab.read_provenance`) and what makes the page, for its
        foot.
    domains
        Also show the data.
    """
    preset = loaded.preset
    lead = f"{loaded.kind.summary[:1].upper()}{loaded.kind.summary[1:]}."
    page = Page(preset.title, lead, footer(loaded, invocations, command))
    _summarise(loaded, page.section("Summary"))
    _add_failures(loaded, page)
    part = page.section("Tables")
    claim = f"paper: {preset.paper.get('claim')}"  # it stands in the summary
    for table in loaded.tables():
        if table.header != ["method", *VERDICTS]:  # so does this
            _add_table(part, table, preset.title, claim)
    drawings = list((loaded.kind.figures or standard)(loaded)) if loaded.chosen else []
    _add_drawings(page, "Figures", drawings)
    if domains:
        _add_drawings(page, "Data", list(domain_drawings(loaded)))
    if costs := list(cost_drawings(loaded)):
        _add_drawings(page, "Cost", costs)
        _add_table(page.sections[-1], cost_table(loaded), preset.title)
    return page


def _summarise(loaded: Report, part: Section) -> None:
    preset = loaded.preset
    counts = {
        status: sum(record.status == status for record in loaded.records)
        for status in ("done", "failed", "pending")
    }
    total = len(loaded.records)
    targets = {(record.data, record.target) for record in loaded.records}
    part.facts(
        [
            ("Cells done", str(counts["done"]), f"of {total}"),
            ("Failed", str(counts["failed"]), ""),
            ("Pending", str(counts["pending"]), ""),
            ("Methods", str(len(preset.methods)), ""),
            (
                "Data sets",
                str(len(preset.data)),
                f"{len(targets)} target{'s' * (len(targets) > 1)}",
            ),
            ("Seeds", str(len(preset.seeds)), ""),
        ]
    )
    found = tally(loaded)
    for kind, sentence in sentences(found, preset.baseline):
        part.note(sentence, kind=kind)
    if not preset.baseline:
        part.note("No baseline is named: nothing is tested here, the tables compare.")
    if words := paper_words(loaded):
        part.note(" ".join(words), head="Paper")
    for remark in loaded.notes():
        if not remark.startswith("paper: "):
            warned = remark.startswith(("selection: oracle", *"0123456789"))
            part.note(remark, kind="warning" if warned else "neutral", head="")
    if found and len(loaded.chosen) > 1:
        rows: list[list[Shown]] = []
        for method, own in found.items():
            counted = [
                TableCell(str(len(own[v])), float(len(own[v])), _tone(v, own[v])) for v in VERDICTS
            ]
            named = [f"{v}: {', '.join(own[v])}" for v in ("better", "worse") if own[v]]
            rows.append([method, *counted, "; ".join(named)])
        part.table(
            ["method", *VERDICTS, "where"],
            rows,
            f"Data sets on which methods differ from {preset.baseline}",
            ["at the 5 % level, paired over targets and seeds, Holm-corrected over the data sets"],
        )


def _tone(verdict: str, where: list[str]) -> str:
    return _TONES.get(verdict, "neutral") if where else "neutral"


def _add_failures(loaded: Report, page: Page) -> None:
    failed = [record for record in loaded.records if record.status == "failed"]
    if not failed:
        return
    rows: list[list[Shown]] = [
        [r.data, r.target, r.method, r.seed, (r.error or "").splitlines()[0] if r.error else ""]
        for r in failed[:MOST_FAILURES]
    ]
    more = len(failed) - MOST_FAILURES
    notes = [f"{more} further ones are in the export"] if more > 0 else []
    header = ["data", "target", "method", "seed", "error"]
    page.section("Failed cells").table(header, rows, "What failed", notes)


def cell(value: Value) -> Shown:
    """Value of a table for a page: read as in every form, sorted by what it is worth.

    Examples
    --------
    >>> cell(Estimate(0.51234, 0.00234, 5))
    TableCell(text='0.5123 ± 0.0023', value=0.51234, tone='neutral')
    >>> cell("0.51 ± 0.02 [+]").value, cell("better").tone, cell("2dplanes")
    (0.51, 'good', '2dplanes')
    """
    if isinstance(value, Estimate):
        return TableCell(text(value), value.mean)
    if isinstance(value, IntervalValue):
        return TableCell(text(value), value.low)
    if isinstance(value, str):
        if value in _TONES:
            return TableCell(value, tone=_TONES[value])
        marks = {" [+]": "good", " [-]": "bad"}
        tone = next((marks[mark] for mark in marks if value.endswith(mark)), "neutral")
        leading = _LEADING.match(value)
        return TableCell(value, float(leading[1]), tone) if leading else value
    return value if value is None else TableCell(text(value), float(value))


def _add_table(part: Section, table: ReportTable, title: str, claim: str = "") -> None:
    rows = [
        [row[0] if isinstance(row[0], str) else cell(row[0]), *map(cell, row[1:])]
        for row in table.rows
    ]
    notes = [note for note in table.notes if note != claim]
    part.table(table.header, rows, table.title.removeprefix(f"{title}: "), notes)


def _add_drawings(page: Page, title: str, drawings: list[Drawing]) -> None:
    if drawings:
        part = page.section(title)
        for drawing in drawings:
            part.figure(drawing.chart, drawing.title, drawing.caption)
