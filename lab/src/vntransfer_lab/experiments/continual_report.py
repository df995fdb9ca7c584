"""Tables and drawings of the experiment ``continual``: what is retained, task by task."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from vntransfer.pages import Axis, Lines, Panels, Series
from vntransfer_lab.reports.costs import MEGABYTE
from vntransfer_lab.reports.drawings import Drawing, spread, standard
from vntransfer_lab.reports.report import (
    Condition,
    Group,
    Report,
    comparison_tables,
    condition_text,
    label_of,
    mean_over_targets,
    value_table,
)
from vntransfer_lab.reports.statistics import Estimate, estimate
from vntransfer_lab.reports.tables import Number, ReportTable, Value, signed
from vntransfer_lab.runner.records import Record

METRICS = ("ra", "la", "bt")
COSTS = ("kept (MB)", "processor (s)")
COSTS_NOTE = (
    "kept: bytes of network and method between tasks; processor: time of learning, ends of tasks "
    "included; cells of earlier versions lack both"
)
NEAR = 2.0
"""Points of RA within which a setting counts as near the best."""
LONG = 20
"""Number of tasks from which a stream is long: its ends are shown separately."""
END = 10
"""Tasks at either end of a long stream."""
MOST_METHODS = 6
"""Methods whose curves of single tasks are drawn: the first of `PREFERRED`."""
PREFERRED = ("sgd", "ewc", "rsp", "rsp_untuned", "mer", "agem", "covp")
MOST_TASKS = 7
"""Tasks with a curve of their own, evenly spread over the stream."""


def tables(loaded: Report) -> list[ReportTable]:
    """One table per stream, the mean over streams, and what the preset is about besides."""
    if sweeps(loaded):
        sweep = [_sweep_table(loaded, *pair) for pair in _pairs(loaded)]
        made = [replace(table, detail=True) for table in sweep]
        made.append(_sensitivity_table(loaded))
    else:
        several = len(loaded.chosen) > 1
        made = [replace(_stream_table(loaded, *group), detail=several) for group in loaded.chosen]
        if several:
            made.append(_mean_table(loaded))
        if (ends := _ends_table(loaded)).rows:
            made.append(ends)
    if any("correlation" in record.metrics for record in loaded.records):
        made.append(_correlation_table(loaded))
    if loaded.preset.baseline:
        made += comparison_tables(loaded)
    return made or [value_table(loaded, data) for data in loaded.preset.data]


def _pairs(loaded: Report) -> list[tuple[str, str]]:
    """All streams with all methods."""
    return list(product(dict.fromkeys(data for data, _ in loaded.chosen), loaded.preset.methods))


def sweeps(loaded: Report) -> bool:
    """Whether learning rate and strength are varied."""
    return {"lr", "strength"} <= set(loaded.preset.grid)


def estimates_of(loaded: Report, group: Group, metric: str = "ra") -> dict[str, Estimate]:
    """Return mean and standard error of each method on a stream, which is its own target."""
    return loaded.estimates(*group, metric).get(group[0], {})


def _cells_of(loaded: Report, group: Group, method: str) -> list[tuple[Record, int]]:
    """Return the chosen cells and steps of a method, one per seed."""
    return [one for (name, _, _), one in loaded.chosen[group].items() if name == method]


def _stream_table(loaded: Report, data: str, condition: Condition) -> ReportTable:
    preset = loaded.preset
    paper = [preset.paper_values(data, metric).get(data, {}) for metric in METRICS]
    found = {metric: estimates_of(loaded, (data, condition), metric) for metric in METRICS}
    costs = costs_of(loaded, [(data, condition)])
    rows: list[list[Value]] = []
    for method in loaded.preset.methods:
        lost = loaded.diverged[data, condition].get((method, data))
        if method not in found["ra"] and lost is None:
            continue
        ours = [] if lost else [found[metric][method] for metric in METRICS]
        row: list[Value] = [method, *([lost, None, None] if lost else ours)]
        if costs:
            row += costs.get(method, [None, None])
        if any(paper):
            row += [known.get(method) for known in paper]
            compared = method in paper[0] and ours
            gap = ours[0].mean - paper[0][method] if compared else 0.0
            row.append(Number(gap, signed(ours[0].error)) if compared else None)
        rows.append([*row, _configuration(loaded, data, condition, method)])
    header = ["method", "RA", "LA", "BT", *(COSTS if costs else ())]
    header += ["paper RA", "LA", "BT", "difference of RA"] if any(paper) else []
    runs = sorted({own.n for own in found["ra"].values()}) or [0]
    notes = [
        "percent, mean ± standard error over seeds; BT = RA - LA",
        f"seeds: {' to '.join(map(str, runs))} of {len(preset.seeds)}",
        *([f"paper: {preset.paper['source']}"] if any(paper) and "source" in preset.paper else []),
        *([COSTS_NOTE] if costs else []),
    ]
    table = loaded.table(label_of(data, condition), [*header, "setting"], rows, notes)
    return replace(table, notes=[*table.notes, *_trials(loaded)])


def costs_of(loaded: Report, groups: Sequence[Group]) -> dict[str, list[float]]:
    """Return the most megabytes kept and the mean processor seconds of each method, where known."""
    found: dict[str, list[tuple[float, float]]] = {}
    for group in groups:
        for (method, _, _), (record, step) in loaded.chosen[group].items():
            kept, cost = record.metrics.get("kept", {}).get(step), record.cost
            if kept is not None and cost is not None:
                seconds = cost.steps * (cost.step_seconds or 0.0)
                found.setdefault(method, []).append((kept / MEGABYTE, seconds))
    return {
        m: [max(k for k, _ in own), float(np.mean([t for _, t in own]))] for m, own in found.items()
    }


def _trials(loaded: Report) -> list[str]:
    """Return the number of candidates of each method, for rules with a search."""
    if loaded.preset.selection not in ("short_stream", "full_stream"):
        return []
    by_number: dict[int, list[str]] = {}
    for method, hyper in loaded.preset.methods.items():
        # rsp_untuned takes the learning rate that ewc's candidates give, and chooses nothing else
        own = [len(v) for k, v in hyper.items() if isinstance(v, list) and k != "ewc_strength"]
        by_number.setdefault(math.prod(own), []).append(method)
    told = "; ".join(f"{n} of {', '.join(names)}" for n, names in by_number.items())
    return [f"search: grid, trials inside every cell: {told}"]


def _configuration(loaded: Report, data: str, condition: Condition, method: str) -> str:
    """Hyper-parameters that were used: the same for all seeds."""
    if (method, data) in loaded.diverged[data, condition]:
        own = loaded.preset.per_data.get(data, {}).get(method, loaded.preset.methods[method])
        single = {k: v[0] for k, v in own.items() if isinstance(v, list) and len(v) == 1}
        return ", ".join(f"{k} {v:g}" for k, v in single.items())
    record, step = _cells_of(loaded, (data, condition), method)[0]
    chosen = {k: v[step] for k, v in record.metrics.items() if k.startswith("chosen/")}
    return ", ".join(f"{k.removeprefix('chosen/')} {v:g}" for k, v in chosen.items())


def _mean_table(loaded: Report) -> ReportTable:
    """RA of each stream and, over seeds, of their mean."""
    groups = list(loaded.chosen)
    costs = costs_of(loaded, groups)
    labels = [label_of(*group) for group in groups]
    rows: list[list[Value]] = []
    for method in loaded.preset.methods:
        per: dict[str, dict[int, float]] = {}
        lost: dict[str, str] = {}
        for label, group in zip(labels, groups, strict=True):
            stream = group[0]  # its only target
            if (method, stream) in loaded.diverged[group]:
                lost[label] = loaded.diverged[group][method, stream]
            elif method in (found := loaded.values(*group)):
                per[label] = found[method][stream]
        if per or lost:
            streams: list[Value] = [
                estimate(list(per[one].values())) if one in per else lost.get(one) for one in labels
            ]
            kept = costs.get(method, [None, None]) if costs else []
            rows.append([method, *streams, mean_over_targets(per, labels), *kept])
    notes = ["RA in percent, mean ± standard error over seeds", *([COSTS_NOTE] if costs else [])]
    header = ["method", *labels, "mean", *(COSTS if costs else ())]
    return loaded.table("RA", header, rows, notes)


def sweep_grid(loaded: Report, data: str, method: str) -> dict[tuple[float, float], Estimate]:
    """(lr, strength) -> RA."""
    found = {}
    for group in loaded.chosen:
        own = estimates_of(loaded, group)
        if group[0] == data and method in own:
            place = dict(group[1])
            found[place["lr"], place["strength"]] = own[method]
    return found


def _sweep_table(loaded: Report, data: str, method: str) -> ReportTable:
    found = sweep_grid(loaded, data, method)
    rates, strengths = (sorted({key[i] for key in found}) for i in (0, 1))
    rows: list[list[Value]] = [
        [Number(rate, "g"), *(found.get((rate, s)) for s in strengths)] for rate in rates
    ]
    header = ["lr \\ strength", *(f"{s:g}" for s in strengths)]
    return ReportTable(f"RA of {method} on {data}", header, rows, of=loaded.preset.title)


def _sensitivity_table(loaded: Report) -> ReportTable:
    """How far RA falls when learning rate and strength are not the best ones."""
    rows: list[list[Value]] = []
    for data, method in _pairs(loaded):
        means = [own.mean for own in sweep_grid(loaded, data, method).values()]
        if means:
            best = max(means)
            near = sum(mean > best - NEAR for mean in means) / len(means)
            middle = sum(means) / len(means)
            rows.append([data, method, best, middle, min(means), 100 * near])
    header = ["data", "method", "best RA", "mean RA", "worst RA", f"% within {NEAR:g} of best"]
    return loaded.table("summary", header, rows)


def _final(record: Record, step: int) -> list[float]:
    """Accuracy on each task at the end of a long stream; none of a short one."""
    T = sum(name.startswith("task/") for name in record.metrics)
    return [record.metrics[f"task/{j}"][step] for j in range(T)] if T >= LONG else []


def _ends_table(loaded: Report) -> ReportTable:
    """Show the final accuracy on the oldest and the newest tasks of long streams."""
    rows: list[list[Value]] = []
    for group, method in product(loaded.chosen, loaded.preset.methods):
        own = [_final(*one) for one in _cells_of(loaded, group, method)]
        ends = [(tasks[:END], tasks[END:-END], tasks[-END:]) for tasks in own if tasks]
        if ends:
            places = [[sum(part) / len(part) for part in parts if part] for parts in ends]
            oldest, *middle, newest = (estimate(values) for values in zip(*places, strict=True))
            between = middle[0] if middle else None
            rows.append([label_of(*group), method, oldest, between, newest])
    header = ["data", "method", f"first {END}", "between", f"last {END}"]
    notes = ["accuracy at the end in percent, mean ± standard error over seeds"]
    return loaded.table("oldest and newest tasks", header, rows, notes)


def _correlation_table(loaded: Report) -> ReportTable:
    rows: list[list[Value]] = []
    for group, method in product(loaded.chosen, loaded.preset.methods):
        row: list[Value] = [label_of(*group), method]
        for metric in ("correlation", "correlation/next"):
            found = [
                record.metrics[metric][step]
                for record, step in _cells_of(loaded, group, method)
                if step in record.metrics.get(metric, {})
            ]
            row.append(estimate(found) if found else None)
        rows.append(row)
    notes = [
        "Spearman's correlation, over pairs of an earlier and a later task, between the mean "
        "divergence of their modules and the accuracy that the earlier one loses while the later "
        "one is learned; below zero: similar tasks overwrite each other more, as the paper says",
    ]
    header = ["data", "method", "all pairs", "next neighbors"]
    return loaded.table("divergence and forgetting", header, rows, notes)


def figures(loaded: Report) -> Iterator[Drawing]:
    """RA of all methods and curves of single tasks, or the sweep."""
    if sweeps(loaded):
        yield _sweep(loaded)
        return
    yield from standard(loaded)
    if drawing := _against_bytes(loaded):
        yield drawing
    for group in loaded.chosen:
        for drawing in _by_task(loaded, group):
            yield replace(drawing, detail=len(loaded.chosen) > 1)


def _against_bytes(loaded: Report) -> Drawing | None:
    """RA against bytes kept, a mark per method: means over streams and seeds."""
    costs = costs_of(loaded, list(loaded.chosen))
    if len(costs) < 2:
        return None
    series = []
    for method, (kept, _) in costs.items():
        found = [estimates_of(loaded, group).get(method) for group in loaded.chosen]
        means = [own.mean for own in found if own is not None]
        if len(means) == len(found):  # a mean over some streams is not comparable with one over all
            series.append(Series(method, [kept], [float(np.mean(means))]))
    axes = Axis("bytes kept, MB", log=True), Axis("RA, %")
    caption = "Mean over streams and seeds; bytes of network and method between tasks."
    return Drawing("bytes", "Accuracy against bytes kept", Lines(series, *axes), caption)


def accuracies(loaded: Report, group: Group) -> dict[str, NDArray[np.float64]]:
    """Return for each method the mean over seeds of R[i, j], accuracy on task j after task i."""
    found: dict[str, list[NDArray[np.float64]]] = {}
    for (method, _, _), (record, _) in loaded.chosen[group].items():
        tasks = [name for name in record.metrics if name.startswith("task/")]
        if tasks:
            R = np.full((len(tasks), len(tasks)), np.nan)
            for name in tasks:
                for step, value in record.metrics[name].items():
                    R[step - 1, int(name.removeprefix("task/"))] = value
            found.setdefault(method, []).append(R)
    shown = [m for m in PREFERRED if m in found] + [m for m in found if m not in PREFERRED]
    kept = shown[:MOST_METHODS]
    return {m: np.mean(found[m], axis=0) for m in loaded.preset.methods if m in kept}


def _by_task(loaded: Report, group: Group) -> Iterator[Drawing]:
    """Accuracy on single tasks while others are learned."""
    found = accuracies(loaded, group)
    if not found or max(map(len, found.values())) < 2:
        return
    name = "-".join(filter(None, (group[0], condition_text(group[1]).replace(", ", "-"))))
    left_out = len({m for m, _, _ in loaded.chosen[group]}) - len(found)
    more = f" {left_out} further methods are not drawn." if left_out else ""
    curves = []
    for method, R in found.items():
        T = len(R)
        chosen = np.unique(np.linspace(0, T - 1, min(T, MOST_TASKS)).round().astype(int))
        series = [
            Series(f"task {j + 1}", np.arange(j, T) + 1, R[j:, j], color=k, marks=T <= 12)
            for k, j in enumerate(chosen)
        ]
        axes = Axis("tasks learned", whole=True), Axis("accuracy, %")
        curves.append(Lines(series, *axes, title=method))
    title = f"Accuracy on single tasks: {label_of(*group)}"
    yield Drawing(f"tasks-{name}", title, Panels(curves), f"Mean over seeds.{more}")


def _sweep(loaded: Report) -> Drawing:
    """RA against strength, one line per learning rate and one panel per method and stream."""
    charts = []
    for data, method in _pairs(loaded):
        found = sweep_grid(loaded, data, method)
        series = []
        for rate in sorted({lr for lr, _ in found}):
            line = {s: own for (lr, s), own in found.items() if lr == rate}
            series.append(spread(f"lr {rate:g}", line))
        axes = Axis("strength", log=True), Axis("RA, %")
        charts.append(Lines(series, *axes, title=f"{method} on {data}"))
    caption = "Retained accuracy, mean ± standard error over seeds."
    panels = Panels(charts, columns=len(loaded.preset.methods))
    return Drawing("sensitivity", "Sensitivity", panels, caption)
