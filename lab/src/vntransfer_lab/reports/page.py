"""The page of a report: verdicts first, then tables, figures and costs; all in one file."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vntransfer.pages import Page, Section, TableCell
from vntransfer.pages.table import Value as Shown
from vntransfer.storage.places import PAGES, check_file
from vntransfer_lab.reports.costs import cost_table
from vntransfer_lab.reports.drawings import drawings_of
from vntransfer_lab.reports.report import Report, against_baseline, label_of, load_report
from vntransfer_lab.reports.statistics import VERDICTS, estimate
from vntransfer_lab.reports.tables import Number, ReportTable, Value, Verdict, sort_key, text
from vntransfer_lab.reports.view import EVERYTHING, View
from vntransfer_lab.runner.provenance import read_provenance, versions
from vntransfer_lab.runner.selection import RULES

PAGE_NAME = "report.html"
MOST_FAILURES = 100
"""Failed cells that are listed."""

Tally = dict[str, dict[str, list[str]]]  # method -> verdict -> data sets

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
    preset = loaded.preset
    page = Page(preset.title, question(loaded), footer(loaded, invocations, command))
    _summarize(loaded, page.section("Answer"))
    _add_failures(loaded, page)
    part = page.section("Tables")
    # what stands in the summary
    claims = [remark.text for remark in loaded.remarks() if remark.kind == "paper"]
    for table in loaded.tables():
        _add_table(part, table, claims)
    if drawings := drawings_of(loaded):
        part = page.section("Figures")
        for drawing in drawings:
            part.figure(drawing.chart, drawing.title, drawing.caption)
    if (costs := cost_table(loaded)).rows:
        _add_table(page.section("Cost"), costs)
    return page


def question(loaded: Report) -> str:
    """Ask what the run answers."""
    preset, summary = loaded.preset, loaded.kind.summary
    if claim := preset.paper.get("claim"):
        return f"Does this claim of the paper hold: {claim}? Experiment: {summary}."
    if preset.baseline:
        return f"Which methods are better than {preset.baseline}, and where? Experiment: {summary}."
    return f"How do {len(preset.methods)} methods compare? Experiment: {summary}."


def _summarize(loaded: Report, part: Section) -> None:
    preset = loaded.preset
    counts = {
        status: sum(record.status == status for record in loaded.records)
        for status in ("done", "failed", "pending")
    }
    total = len(loaded.records)
    targets = len({(record.data, record.target) for record in loaded.records})
    for kind, sentence in sentences(tally(loaded), preset.baseline):
        part.note(sentence, kind=kind)
    if not preset.baseline:
        part.note("No baseline is named: nothing is tested here, the tables compare.")
    if words := paper_words(loaded):
        part.note(" ".join(words), head="Paper")
    for remark in loaded.remarks():
        if remark.kind != "paper":
            part.note(remark.text, kind=remark.kind, head="")
    part.facts(
        [
            ("Cells done", str(counts["done"]), f"of {total}"),
            ("Failed", str(counts["failed"]), ""),
            ("Pending", str(counts["pending"]), ""),
            ("Methods", str(len(preset.methods)), ""),
            ("Data sets", str(len(preset.data)), f"{targets} target{'s' * (targets > 1)}"),
            ("Seeds", str(len(preset.seeds)), ""),
        ]
    )


def tally(loaded: Report) -> Tally:
    """Verdicts of all methods but the baseline, by data set; empty without a baseline."""
    baseline = loaded.preset.baseline
    found: Tally = {}
    for method in loaded.preset.methods if baseline else ():
        if method != baseline:
            own: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
            for group, (_, _, verdict) in against_baseline(loaded, method).items():
                own[verdict].append(label_of(*group))
            if any(own.values()):
                found[method] = own
    return found


def sentences(found: Tally, baseline: str) -> list[tuple[str, str]]:
    """Kind of note and sentence about the methods, those that gain first.

    A page opens notes of the kinds "good" and "bad" with "Better" and "Worse".
    """
    gains: list[str] = []
    losses: list[str] = []
    mixed: list[str] = []
    even: list[str] = []
    few: list[str] = []
    for method, own in found.items():
        better, worse = len(own["better"]), len(own["worse"])
        total = sum(map(len, own.values()))
        if better and worse:
            mixed.append(f"{method} (better {better}, worse {worse} of {total})")
        elif better:
            gains.append(f"{method} ({better} of {total} data sets)")
        elif worse:
            losses.append(f"{method} ({worse} of {total} data sets)")
        elif own["no difference"]:
            even.append(method)
        else:
            few.append(method)
    said = [
        ("good", f"than {baseline}, and nowhere worse: {{}}.", gains),
        ("bad", f"than {baseline}, and nowhere better: {{}}.", losses),
        ("neutral", f"Better than {baseline} on some data and worse on other: {{}}.", mixed),
        ("neutral", f"No significant difference to {baseline}: {{}}.", even),
        ("warning", f"Too few runs for a test against {baseline}: {{}}.", few),
    ]
    return [(kind, text.format(", ".join(named))) for kind, text, named in said if named]


def paper_words(loaded: Report) -> list[str]:
    """Sentences about the paper's claim, and its numbers beside ours, target by target."""
    paper, metric = loaded.preset.paper, loaded.kind.metric
    best = max if loaded.kind.higher_is_better else min
    pairs: list[tuple[float, float]] = []
    same_best: list[bool] = []
    for data, condition in loaded.chosen:
        for target, methods in paper.get("values", {}).get(data, {}).items():
            printed = {name for values in methods.values() for name in values}
            name = metric if metric in printed else f"{metric}_raw"
            theirs = {m: values[name] for m, values in methods.items() if name in values}
            found = loaded.values(data, condition, name) if theirs else {}
            ours = {
                m: estimate(list(found[m][target].values())).mean
                for m in theirs
                if target in found.get(m, {})
            }
            pairs += [(ours[m], theirs[m]) for m in ours]
            if len(ours) > 1:
                winners = [best(ours, key=values.__getitem__) for values in (ours, theirs)]
                same_best.append(winners[0] == winners[1])
    said = [f"Claim: {paper['claim']}."] if paper.get("claim") else []
    if pairs:
        close = sum(abs(a - b) < 0.1 * abs(b) for a, b in pairs)
        source = paper.get("source", "its tables")
        said.append(
            f"{close} of our values are within a tenth of the {len(pairs)} that the paper prints "
            f"({source})."
        )
    elif said:
        said.append("The paper prints no numbers that can be set beside ours here.")
    if same_best:
        said.append(
            f"The method that is best in the paper is best here on {sum(same_best)} of "
            f"{len(same_best)} targets."
        )
    return said


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
    """Value of a table for a page: read as in every form, sorted by its number."""
    if value is None or (isinstance(value, str) and not isinstance(value, Verdict)):
        return value
    verdict = value.verdict if isinstance(value, Number) else value
    tone = _TONES.get(verdict, "neutral") if isinstance(verdict, str) else "neutral"
    return TableCell(text(value), sort_key(value), tone)


def _add_table(part: Section, table: ReportTable, known: Sequence[str] = ()) -> None:
    rows = [[cell(value) for value in row] for row in table.rows]
    part.table(table.header, rows, table.title, [note for note in table.notes if note not in known])


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
