"""Reports: from the store to tables and figures, always the same for the same cells."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

from vntransfer.checks import one_of
from vntransfer_lab.reports.statistics import VERDICTS, Difference, Estimate, compared, estimate
from vntransfer_lab.reports.tables import (
    PROBABILITY,
    Number,
    NumberPair,
    ReportTable,
    Value,
    Verdict,
    render,
    signed,
    text,
)
from vntransfer_lab.runner.kinds import Kind, load_kind
from vntransfer_lab.runner.preset import Preset
from vntransfer_lab.runner.records import DIVERGED, Record
from vntransfer_lab.runner.selection import RULES, choose
from vntransfer_lab.runner.store import read_records

Condition = tuple[tuple[str, Any], ...]
Group = tuple[str, Condition]  # a data set under one condition
Place = tuple[str, str, int]  # method, target and seed
# method -> target -> seed -> value of the metric
Values = dict[str, dict[str, dict[int, float]]]


class Remark(NamedTuple):
    """What must stand under every table; ``kind`` is paper, warning or neutral."""

    text: str
    kind: str = "neutral"


@dataclass(frozen=True)
class View:
    """What of a run is shown: some methods beside the baseline (all by default), and which one."""

    baseline: str = ""
    methods: Sequence[str] = ()

    def words(self) -> list[str]:
        """Return the options of the command line that say the same."""
        words = ["--baseline", self.baseline] if self.baseline else []
        return words + (["--methods", ",".join(self.methods)] if self.methods else [])

    def preset(self, preset: Preset) -> Preset:
        """Return the preset as if it had asked for just this."""
        named = [("baseline", self.baseline)] if self.baseline else []
        for argument, name in (*named, *(("methods", name) for name in self.methods)):
            one_of(argument, name, preset.methods)
        baseline = self.baseline or preset.baseline
        methods = {
            name: given
            for name, given in preset.methods.items()
            if not self.methods or name in (*self.methods, baseline)
        }
        return replace(preset, methods=methods, baseline=baseline)


EVERYTHING = View()


@dataclass(frozen=True)
class Report:
    """What a run folder holds, ready for tables and figures."""

    preset: Preset
    kind: Kind
    records: list[Record]
    unplanned: int = 0

    def condition(self, record: Record) -> Condition:
        """Return the settings of a cell that the preset's grid varies."""
        return tuple((name, record.settings[name]) for name in self.preset.grid)

    @cached_property
    def _finished(self) -> dict[Group, dict[Place, list[Record]]]:
        """Candidates of each place of a table that did not diverge; none: all of them did."""
        groups: dict[Group, dict[Place, list[Record]]] = {}
        for record in self.records:
            if record.status == "done":
                places = groups.setdefault((record.data, self.condition(record)), {})
                own = places.setdefault((record.method, record.target, record.seed), [])
                own += [record] if DIVERGED not in record.metrics else []
        return groups

    @cached_property
    def diverged(self) -> dict[Group, dict[tuple[str, str], str]]:
        """(data, condition) -> (method, target) -> how many seeds diverged, if any did."""
        found: dict[Group, dict[tuple[str, str], str]] = {}
        for group, places in self._finished.items():
            seeds: dict[tuple[str, str], list[bool]] = {}
            for (method, target, _), candidates in places.items():
                seeds.setdefault((method, target), []).append(not candidates)
            found[group] = {
                key: f"diverged ({sum(lost)} of {len(lost)} seeds)"
                for key, lost in seeds.items()
                if any(lost)
            }
        return found

    @cached_property
    def chosen(self) -> dict[Group, dict[Place, tuple[Record, int]]]:
        """(data, condition) -> (method, target, seed) -> the cell and step that the rule chose.

        A method that diverged with some seed is left out with all its seeds (of that target): a
        mean over those that remain would hide it. `diverged` has their number.
        """
        return {
            group: {
                place: choose(
                    candidates,
                    candidates[0].selection,
                    self.kind.metric,
                    higher_is_better=self.kind.higher_is_better,
                )
                for place, candidates in places.items()
                if place[:2] not in self.diverged[group]
            }
            for group, places in self._finished.items()
        }

    def values(self, data: str, condition: Condition, metric: str | None = None) -> Values:
        """Chosen values of a metric of one data set under one condition."""
        found: Values = {}
        for (method, target, seed), (record, step) in self.chosen[data, condition].items():
            value = record.metrics[metric or self.kind.metric][step]
            found.setdefault(method, {}).setdefault(target, {})[seed] = value
        return found

    def targets(self, data: str, condition: Condition) -> list[str]:
        """Targets at which any method has values, in the order of the plan."""
        return list(dict.fromkeys(target for _, target, _ in self.chosen[data, condition]))

    def estimates(
        self, data: str, condition: Condition, metric: str | None = None
    ) -> dict[str, dict[str, Estimate]]:
        """Target -> method, in the preset's order -> mean and standard error over seeds."""
        values = self.values(data, condition, metric)
        return {
            target: {
                method: estimate(list(values[method][target].values()))
                for method in self.preset.methods
                if target in values.get(method, {})
            }
            for target in self.targets(data, condition)
        }

    def remarks(self) -> list[Remark]:
        """Return what must stand under every table."""
        rule = self.preset.selection
        kind = "warning" if rule == "oracle" else "neutral"
        found = [Remark(f"selection: {rule} ({RULES[rule][1]})", kind)]
        sizes = {m: math.prod(map(len, grid.values())) for m, grid in self.preset.grids.items()}
        if sizes:
            listed = ", ".join(f"{method} {count}" for method, count in sizes.items())
            found.append(Remark(f"settings to choose from: {listed}"))
        if claim := self.preset.paper.get("claim"):
            found.append(Remark(f"paper: {claim}", "paper"))
        counts, total = Counter(record.status for record in self.records), len(self.records)
        warned = sum(record.warnings is not None for record in self.records)
        said = [
            (counts["failed"], f"of {total} cells failed"),
            (counts["pending"], f"of {total} cells are not computed yet"),
            (warned, "cells gave warnings (column 'warnings' of the export)"),
        ]
        found += [Remark(f"{count} {text}", "warning") for count, text in said if count]
        found += [Remark(text, "warning") for text in self._diverged()]
        found += map(Remark, self.superseded())
        if self.unplanned:
            text = f"{self.unplanned} finished cells of other settings are not shown"
            found.append(Remark(text, "warning"))
        return found

    def table(
        self, title: str, header: list[str], rows: list[list[Value]], notes: Sequence[str] = ()
    ) -> ReportTable:
        """Make a table of this report, with its remarks under the notes."""
        remarks = [remark.text for remark in self.remarks()]
        return ReportTable(title, header, rows, [*notes, *remarks], self.preset.title)

    def _diverged(self) -> list[str]:
        """Name what diverged, and the mean of the seeds that did not."""
        found = []
        for group, lost in self.diverged.items():
            for (method, target), own in lost.items():
                rest = [
                    max(record.metrics[self.kind.metric].items())[1]
                    for (name, at, _), candidates in self._finished[group].items()
                    for record in candidates[:1]
                    if (name, at) == (method, target)
                ]
                mean = f"; {self.kind.metric} of the others {text(estimate(rest))}" if rest else ""
                where = dict.fromkeys((group[0], target, *filter(None, [condition_text(group[1])])))
                found.append(f"{method} on {', '.join(where)}: {own}{mean}")
        return found

    def superseded(self) -> list[str]:
        """Name methods whose cells an earlier version of the method computed."""
        found = Counter(
            (record.method, record.version)
            for record in self.records
            if record.status == "done" and record.version != self.kind.version_of(record.method)
        )
        return [
            f"superseded: {count} cells of {method} are of its version {before}, today's is "
            f"{self.kind.version_of(method)}; vnt bench run computes them again"
            for (method, before), count in found.items()
        ]

    def tables(self) -> list[ReportTable]:
        """Return the tables of this kind of experiment."""
        own = self.kind.tables
        found: Callable[[Report], list[ReportTable]] = resolve_name(own) if own else standard
        return found(self)


def load_report(folder: str | Path, view: View = EVERYTHING) -> Report:
    """Read a run folder."""
    preset, records, unplanned = read_records(folder)
    preset = view.preset(preset)
    kind = load_kind(preset.experiment)
    records = [record for record in records if record.method in preset.methods]
    return Report(preset, kind, records, unplanned)


def report(
    folder: str | Path, form: str = "terminal", *, times: bool = False, view: View = EVERYTHING
) -> str:
    """Tables of a run folder as text: terminal, markdown or csv.

    ``times`` adds what the cells cost: the one table that differs between equal runs.
    """
    from vntransfer_lab.reports.costs import cost_table

    loaded = load_report(folder, view)
    return render(loaded.tables() + ([cost_table(loaded)] if times else []), form)


def standard(loaded: Report) -> list[ReportTable]:
    """One table of values per data set, then the comparison with the baseline."""
    tables = value_tables(loaded)
    if loaded.preset.baseline:
        tables += comparison_tables(loaded)
    return tables


def value_tables(loaded: Report) -> list[ReportTable]:
    """One table of values per data set; of several, a page shows them as details."""
    data = loaded.preset.data
    return [replace(value_table(loaded, own), detail=len(data) > 1) for own in data]


def condition_text(condition: Condition) -> str:
    """``a=1, b=2``."""
    return ", ".join(f"{name}={value}" for name, value in condition)


def label_of(name: str, condition: Condition) -> str:
    """Name a data set or target and, where the preset has several, the condition."""
    return ", ".join(filter(None, (name, condition_text(condition))))


def value_table(loaded: Report, data: str, metric: str = "") -> ReportTable:
    """Mean and standard error over seeds per target and method; the paper's values below.

    ``metric`` can be another one than the experiment's, of the same direction.
    """
    preset, metric = loaded.preset, metric or loaded.kind.metric
    paper = preset.paper_values(data, metric)
    methods = list(preset.methods)
    rows: list[list[Value]] = []
    short: list[str] = []
    for group, condition in loaded.chosen:
        if group != data:
            continue
        values = loaded.values(data, condition, metric)
        found = loaded.estimates(data, condition, metric)
        lost = loaded.diverged[group, condition]
        targets = list(dict.fromkeys([*found, *(target for _, target in lost)]))
        for target in targets:
            label, ours = label_of(target, condition), found.get(target, {})
            said = {m: own for (m, at), own in lost.items() if at == target}
            rows.append([label, "ours", *(ours.get(m, said.get(m)) for m in methods)])
            short += [f"{label} {m} {e.n}" for m, e in ours.items() if e.n < len(preset.seeds)]
            if theirs := paper.get(target):
                rows.append([label, "paper", *map(theirs.get, methods)])
                gaps: list[Value] = [
                    Number(ours[m].mean - theirs[m], signed(ours[m].error))
                    if m in theirs and m in ours
                    else None
                    for m in methods
                ]
                rows.append([label, "difference", *gaps])
        if len(targets) > 1:
            means = [mean_over_targets(values.get(method, {}), targets) for method in methods]
            rows.append([label_of("mean", condition), "ours", *means])
    header = ["target", "", *methods]
    if not paper:
        header, rows = ["target", *methods], [[row[0], *row[2:]] for row in rows]
    direction = "higher" if loaded.kind.higher_is_better else "lower"
    about = f"{metric} ({direction} is better), mean ± standard error over seeds"
    if paper and "source" in preset.paper:
        about += f"; paper: {preset.paper['source']}"
    notes = [about, f"seeds: {', '.join(map(str, preset.seeds))}"]
    if short:
        notes.append(f"FEWER SEEDS than planned: {'; '.join(short)}")
    name = data if metric == loaded.kind.metric else f"{data}, {metric}"
    return loaded.table(name, header, rows, notes)


def mean_over_targets(
    values: Mapping[str, Mapping[int, float]], targets: list[str]
) -> Estimate | None:
    """Mean over targets of each seed, then over seeds; empty when a target is missing."""
    if any(target not in values for target in targets):
        return None
    seeds = set.intersection(*(set(values[target]) for target in targets))
    if not seeds:
        return None
    return estimate([sum(values[t][s] for t in targets) / len(targets) for s in sorted(seeds)])


def comparison_tables(loaded: Report) -> list[ReportTable]:
    """Difference to the baseline per data set (and condition), and wins and losses."""
    preset = loaded.preset
    rows: list[list[Value]] = []
    tally: list[list[Value]] = []
    for method in preset.methods:
        if method == preset.baseline:
            continue
        verdicts = []
        for group, (d, p, found) in against_baseline(loaded, method).items():
            verdicts.append(found)
            interval, form = None, signed(None)
            if d.low is not None and d.high is not None:
                form = signed((d.high - d.low) / 2)
                interval = NumberPair(d.low, d.high, " to ", form)
            counts = NumberPair(d.won, d.lost, "/")
            known = [None if value is None else Number(value, PROBABILITY) for value in (d.p, p)]
            numbers = [Number(d.mean, form), interval, *known, counts]
            rows.append([label_of(*group), method, *numbers, Verdict(found)])
        tally.append([method, *map(verdicts.count, VERDICTS)])
    notes = [
        "seeds averaged first; 95 % interval: Student's t with the standard error of the "
        "hierarchical bootstrap over targets and seeds; p (Holm) is corrected over the rows of a "
        "method"
    ]
    header = ["data", "method", "difference", "95 % interval", "p", "p (Holm)", "won/lost"]
    tables = [loaded.table(f"difference to {preset.baseline}", [*header, "verdict"], rows, notes)]
    if len(rows) > len(tally):
        title = f"wins and losses against {preset.baseline}"
        tables.append(ReportTable(title, ["method", *VERDICTS], tally, of=preset.title))
    return tables


def against_baseline(
    loaded: Report, method: str
) -> dict[Group, tuple[Difference, float | None, str]]:
    """Difference to the baseline per data set and condition, p corrected over them, verdict."""
    pairs = {}
    for group in loaded.chosen:
        values = loaded.values(*group)
        pairs[group] = values.get(method, {}), values.get(loaded.preset.baseline, {})
    return compared(pairs, higher_is_better=loaded.kind.higher_is_better)
