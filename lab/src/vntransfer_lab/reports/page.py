"""The page of a report: verdicts first, then tables, figures, data, costs; all in one file."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vntransfer.pages import Page, Section, TableCell
from vntransfer.pages.table import Value as Shown
from vntransfer_lab.reports.costs import cost_drawings, cost_table
from vntransfer_lab.reports.drawings import Drawing, domain_drawings, drawings_of
from vntransfer_lab.reports.report import EVERYTHING, Report, View, load_report
from vntransfer_lab.reports.run_facts import footer
from vntransfer_lab.reports.statistics import VERDICTS
from vntransfer_lab.reports.tables import Number, ReportTable, Value, Verdict, sort_key, text
from vntransfer_lab.reports.verdicts import paper_words, sentences, tally
from vntransfer_lab.runner.provenance import read_provenance

PAGE_NAME = "report.html"
MOST_FAILURES = 100
"""Failed cells that are listed."""

_TONES = {"better": "good", "worse": "bad"}


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
    """Put the page of a report together; `write_page` explains the options.

    ``invocations`` and ``command`` say what made the run and the page, for its foot.
    """
    preset = loaded.preset
    lead = f"{loaded.kind.summary[:1].upper()}{loaded.kind.summary[1:]}."
    page = Page(preset.title, lead, footer(loaded, invocations, command))
    _summarise(loaded, page.section("Summary"))
    _add_failures(loaded, page)
    part = page.section("Tables")
    # what stands in the summary
    claims = [remark.text for remark in loaded.remarks() if remark.kind == "paper"]
    for table in loaded.tables():
        if not table.tally:
            _add_table(part, table, claims)
    _add_drawings(page, "Figures", drawings_of(loaded))
    if domains:
        _add_drawings(page, "Data", list(domain_drawings(loaded)))
    if costs := list(cost_drawings(loaded)):
        _add_drawings(page, "Cost", costs)
        _add_table(page.sections[-1], cost_table(loaded))
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
    for remark in loaded.remarks():
        if remark.kind != "paper":
            part.note(remark.text, kind=remark.kind, head="")
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
    """Value of a table for a page: read as in every form, sorted by its number.

    Examples
    --------
    >>> cell(Number(0.51234, error=0.00234))
    TableCell(text='0.5123 ± 0.0023', value=0.51234, tone='neutral')
    >>> cell(Number(0.5, verdict="worse")).tone, cell(Verdict("better")).tone, cell("2dplanes")
    ('bad', 'good', '2dplanes')
    """
    if value is None or (isinstance(value, str) and not isinstance(value, Verdict)):
        return value
    verdict = value.verdict if isinstance(value, Number) else value
    tone = _TONES.get(verdict, "neutral") if isinstance(verdict, str) else "neutral"
    return TableCell(text(value), sort_key(value), tone)


def _add_table(part: Section, table: ReportTable, known: Sequence[str] = ()) -> None:
    rows = [[cell(value) for value in row] for row in table.rows]
    part.table(table.header, rows, table.title, [note for note in table.notes if note not in known])


def _add_drawings(page: Page, title: str, drawings: list[Drawing]) -> None:
    if drawings:
        part = page.section(title)
        for drawing in drawings:
            part.figure(drawing.chart, drawing.title, drawing.caption)
