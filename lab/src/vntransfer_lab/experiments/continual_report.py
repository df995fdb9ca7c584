"""Tables of the experiment ``continual``."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from vntransfer_lab.reports.report import (
    Condition,
    Report,
    comparison_tables,
    label_of,
    value_table,
)
from vntransfer_lab.reports.statistics import Estimate, estimate
from vntransfer_lab.reports.tables import SIGNED, Number, ReportTable, Value
from vntransfer_lab.runner.records import Record

METRICS = ("ra", "la", "bt")
NEAR = 2.0
"""Points of RA within which a setting counts as near the best."""
LONG = 20
"""Tasks from which on a stream is long: its ends are told apart."""
END = 10
"""Tasks at either end of a long stream."""


def tables(loaded: Report) -> list[ReportTable]:
    """One table per stream, the mean over streams, and what the preset is about besides."""
    made = [_stream_table(loaded, data, c) for data, c in loaded.chosen if not sweeps(loaded)]
    if sweeps(loaded):
        made += [
            _sweep_table(loaded, data, m) for data in sets_of(loaded) for m in methods_of(loaded)
        ]
        made += [_sensitivity_table(loaded)]
    elif len(loaded.chosen) > 1:
        made.append(_mean_table(loaded))
    if not sweeps(loaded) and any(_final(*one) for one in _every(loaded)):
        made.append(_ends_table(loaded))
    if any("correlation" in record.metrics for record in loaded.records):
        made.append(_correlation_table(loaded))
    if loaded.preset.baseline:
        made += comparison_tables(loaded)
    return made or [value_table(loaded, data) for data in loaded.preset.data]


def sets_of(loaded: Report) -> list[str]:
    """Return the streams."""
    return list(dict.fromkeys(data for data, _ in loaded.chosen))


def methods_of(loaded: Report) -> list[str]:
    """Return the methods in the order of the preset."""
    return list(loaded.preset.methods)


def sweeps(loaded: Report) -> bool:
    """Whether learning rate and strength are varied."""
    return {"lr", "strength"} <= set(loaded.preset.grid)


def seeds_of(
    loaded: Report, data: str, condition: Condition, metric: str
) -> dict[str, list[float]]:
    """Give for each method the values of the seeds."""
    found = loaded.values(data, condition, metric)
    return {
        m: [v for seeds in targets.values() for v in seeds.values()] for m, targets in found.items()
    }


def _stream_table(loaded: Report, data: str, condition: Condition) -> ReportTable:
    preset = loaded.preset
    paper = preset.paper.get("values", {}).get(data, {}).get(data, {})
    found = {metric: seeds_of(loaded, data, condition, metric) for metric in METRICS}
    rows: list[list[Value]] = []
    for method in methods_of(loaded):
        if method not in found["ra"]:
            continue
        ours = [estimate(found[metric][method]) for metric in METRICS]
        row: list[Value] = [method, *ours]
        if paper:
            known = paper.get(method, {})
            gap = known.get("ra")
            row += [known.get(metric) for metric in METRICS]
            row.append(None if gap is None else Number(ours[0].mean - gap, SIGNED))
        rows.append([*row, _configuration(loaded, data, condition, method)])
    header = ["method", "RA", "LA", "BT"]
    header += ["paper RA", "LA", "BT", "difference of RA"] if paper else []
    runs = sorted({len(values) for values in found["ra"].values()})
    notes = [
        "percent, mean ± standard error over seeds; BT = RA - LA",
        f"seeds: {' to '.join(map(str, runs))} of {len(preset.seeds)}",
        *([f"paper: {preset.paper['source']}"] if paper and "source" in preset.paper else []),
    ]
    table = loaded.table(label_of(data, condition), [*header, "setting"], rows, notes)
    return replace(table, notes=[*table.notes, *_trials(loaded)])


def _trials(loaded: Report) -> list[str]:
    """Say how many candidates the methods could choose from, if they had a choice."""
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
    for (name, _, _), (record, step) in loaded.chosen[data, condition].items():
        if name == method:
            chosen = _chosen(record, step)
            return ", ".join(f"{key} {value:g}" for key, value in chosen.items())
    return ""


def _chosen(record: Record, step: int) -> dict[str, float]:
    prefix = "chosen/"
    return {
        name.removeprefix(prefix): values[step]
        for name, values in record.metrics.items()
        if name.startswith(prefix)
    }


def _mean_table(loaded: Report) -> ReportTable:
    """RA of each stream and, over seeds, of their mean."""
    groups = list(loaded.chosen)
    labels = [label_of(*group) for group in groups]
    rows: list[list[Value]] = []
    for method in methods_of(loaded):
        per: list[dict[int, float]] = []
        for data, condition in groups:
            found = loaded.values(data, condition).get(method, {})
            per.append({seed: v for seeds in found.values() for seed, v in seeds.items()})
        if not any(per):
            continue
        common = set.intersection(*map(set, per))
        mean: Estimate | None = None
        if common:
            mean = estimate([sum(one[s] for one in per) / len(per) for s in sorted(common)])
        rows.append([method, *(estimate(list(v.values())) if v else None for v in per), mean])
    notes = ["RA in percent, mean ± standard error over seeds"]
    return loaded.table("RA", ["method", *labels, "mean"], rows, notes)


def sweep_grid(loaded: Report, data: str, method: str) -> dict[tuple[float, float], list[float]]:
    """(lr, strength) -> RA of the seeds."""
    found = {}
    for group, condition in loaded.chosen:
        place = dict(condition)
        values = seeds_of(loaded, data, condition, "ra").get(method) if group == data else None
        if values:
            found[place["lr"], place["strength"]] = values
    return found


def _sweep_table(loaded: Report, data: str, method: str) -> ReportTable:
    found = sweep_grid(loaded, data, method)
    rates, strengths = (sorted({key[i] for key in found}) for i in (0, 1))
    rows: list[list[Value]] = [
        [Number(rate, "g"), *(_estimate(found.get((rate, s))) for s in strengths)] for rate in rates
    ]
    header = ["lr \\ strength", *(f"{s:g}" for s in strengths)]
    return ReportTable(f"RA of {method} on {data}", header, rows, of=loaded.preset.title)


def _estimate(values: Sequence[float] | None) -> Value:
    return estimate(values) if values else None


def _sensitivity_table(loaded: Report) -> ReportTable:
    """How far RA falls when learning rate and strength are not the best ones."""
    rows: list[list[Value]] = []
    for data in sets_of(loaded):
        for method in methods_of(loaded):
            means = [estimate(v).mean for v in sweep_grid(loaded, data, method).values()]
            if means:
                best = max(means)
                near = sum(mean > best - NEAR for mean in means) / len(means)
                middle = sum(means) / len(means)
                rows.append([data, method, best, middle, min(means), 100 * near])
    header = ["data", "method", "best RA", "mean RA", "worst RA", f"% within {NEAR:g} of best"]
    return loaded.table("summary", header, rows)


def _every(loaded: Report) -> Iterator[tuple[Record, int]]:
    return (one for found in loaded.chosen.values() for one in found.values())


def _final(record: Record, step: int) -> list[float]:
    """Accuracy on each task at the end of a long stream; none of a short one."""
    T = sum(name.startswith("task/") for name in record.metrics)
    return [record.metrics[f"task/{j}"][step] for j in range(T)] if T >= LONG else []


def _ends_table(loaded: Report) -> ReportTable:
    """Tell the final accuracy on the oldest and the newest tasks of long streams."""
    rows: list[list[Value]] = []
    for (data, condition), found in loaded.chosen.items():
        for method in methods_of(loaded):
            own = [_final(*one) for (name, _, _), one in found.items() if name == method]
            ends = [(tasks[:END], tasks[END:-END], tasks[-END:]) for tasks in own if tasks]
            if ends:
                places = [[sum(part) / len(part) for part in parts if part] for parts in ends]
                oldest, *middle, newest = (estimate(values) for values in zip(*places, strict=True))
                label = label_of(data, condition)
                rows.append([label, method, oldest, middle[0] if middle else None, newest])
    header = ["data", "method", f"first {END}", "between", f"last {END}"]
    notes = ["accuracy at the end in percent, mean ± standard error over seeds"]
    return loaded.table("oldest and newest tasks", header, rows, notes)


def _correlation_table(loaded: Report) -> ReportTable:
    rows: list[list[Value]] = []
    for data, condition in loaded.chosen:
        for method in methods_of(loaded):
            row: list[Value] = [label_of(data, condition), method]
            for metric in ("correlation", "correlation/next"):
                found = [
                    record.metrics[metric][step]
                    for (name, _, _), (record, step) in loaded.chosen[data, condition].items()
                    if name == method and step in record.metrics.get(metric, {})
                ]
                row.append(_estimate(found))
            rows.append(row)
    notes = [
        "Spearman's correlation, over pairs of an earlier and a later task, between the mean "
        "divergence of their modules and the accuracy that the earlier one loses while the later "
        "one is learned; below zero: similar tasks overwrite each other more, as the paper says",
    ]
    header = ["data", "method", "all pairs", "next neighbors"]
    return loaded.table("divergence and forgetting", header, rows, notes)
