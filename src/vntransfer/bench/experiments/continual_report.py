"""Tables and figures of the experiment ``continual``."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from vntransfer.bench.report import (
    Condition,
    Report,
    comparison_tables,
    condition_text,
    value_table,
)
from vntransfer.bench.statistics import Estimate, estimate
from vntransfer.bench.store import Record
from vntransfer.bench.tables import Signed, Table, Value

METRICS = ("ra", "la", "bt")
LINES = ("-", "--", ":")
NEAR = 2.0
"""Points of RA within which a setting counts as near the best."""


def tables(loaded: Report) -> list[Table]:
    """One table per stream, the mean over streams, and what the preset is about besides."""
    made = [_stream_table(loaded, data, c) for data, c in loaded.chosen if not _sweeps(loaded)]
    if _sweeps(loaded):
        made += [_sweep_table(loaded, data, m) for data in _sets(loaded) for m in _methods(loaded)]
        made += [_sensitivity_table(loaded)]
    elif len(loaded.chosen) > 1:
        made.append(_mean_table(loaded))
    if any("correlation" in record.metrics for record in loaded.records):
        made.append(_correlation_table(loaded))
    if loaded.preset.baseline:
        made += comparison_tables(loaded)
    return made or [value_table(loaded, data) for data in loaded.preset.data]


def _sets(loaded: Report) -> list[str]:
    return list(dict.fromkeys(data for data, _ in loaded.chosen))


def _methods(loaded: Report) -> list[str]:
    return list(loaded.preset.methods)


def _sweeps(loaded: Report) -> bool:
    return {"lr", "strength"} <= set(loaded.preset.grid)


def _seeds(loaded: Report, data: str, condition: Condition, metric: str) -> dict[str, list[float]]:
    """Give for each method the values of the seeds."""
    found = loaded.values(data, condition, metric)
    return {
        m: [v for seeds in targets.values() for v in seeds.values()] for m, targets in found.items()
    }


def _stream_table(loaded: Report, data: str, condition: Condition) -> Table:
    preset = loaded.preset
    paper = preset.paper.get("values", {}).get(data, {}).get(data, {})
    found = {metric: _seeds(loaded, data, condition, metric) for metric in METRICS}
    rows: list[list[Value]] = []
    for method in _methods(loaded):
        if method not in found["ra"]:
            continue
        ours: list[Value] = [estimate(found[metric][method]) for metric in METRICS]
        row: list[Value] = [method, *ours]
        if paper:
            known = paper.get(method, {})
            gap = known.get("ra")
            row += [known.get(metric) for metric in METRICS]
            row.append(None if gap is None else Signed(estimate(found["ra"][method]).mean - gap))
        rows.append([*row, _configuration(loaded, data, condition, method)])
    header = ["method", "RA", "LA", "BT"]
    header += ["paper RA", "LA", "BT", "difference of RA"] if paper else []
    title = ", ".join(filter(None, (data, condition_text(condition))))
    runs = sorted({len(values) for values in found["ra"].values()})
    notes = [
        "percent, mean ± standard error over seeds; BT = RA - LA",
        f"seeds: {' to '.join(map(str, runs))} of {len(preset.seeds)}",
        *([f"paper: {preset.paper['source']}"] if paper and "source" in preset.paper else []),
        *loaded.notes(),
        *_trials(loaded),
    ]
    return Table(f"{preset.title}: {title}", [*header, "setting"], rows, notes)


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


def _mean_table(loaded: Report) -> Table:
    """RA of each stream and, over seeds, of their mean."""
    groups = list(loaded.chosen)
    labels = [", ".join(filter(None, (data, condition_text(c)))) for data, c in groups]
    rows: list[list[Value]] = []
    for method in _methods(loaded):
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
    notes = ["RA in percent, mean ± standard error over seeds", *loaded.notes()]
    return Table(f"{loaded.preset.title}: RA", ["method", *labels, "mean"], rows, notes)


def _grid(loaded: Report, data: str, method: str) -> dict[tuple[float, float], list[float]]:
    """(lr, strength) -> RA of the seeds."""
    found = {}
    for group, condition in loaded.chosen:
        place = dict(condition)
        values = _seeds(loaded, data, condition, "ra").get(method) if group == data else None
        if values:
            found[place["lr"], place["strength"]] = values
    return found


def _sweep_table(loaded: Report, data: str, method: str) -> Table:
    found = _grid(loaded, data, method)
    rates, strengths = (sorted({key[i] for key in found}) for i in (0, 1))
    rows: list[list[Value]] = [
        [f"{rate:g}", *(_estimate(found.get((rate, s))) for s in strengths)] for rate in rates
    ]
    header = ["lr \\ strength", *(f"{s:g}" for s in strengths)]
    return Table(f"{loaded.preset.title}: RA of {method} on {data}", header, rows)


def _estimate(values: Sequence[float] | None) -> Value:
    return estimate(values) if values else None


def _sensitivity_table(loaded: Report) -> Table:
    """How far RA falls when learning rate and strength are not the best ones."""
    rows: list[list[Value]] = []
    for data in _sets(loaded):
        for method in _methods(loaded):
            means = [estimate(v).mean for v in _grid(loaded, data, method).values()]
            if means:
                best = max(means)
                near = sum(mean > best - NEAR for mean in means) / len(means)
                middle = sum(means) / len(means)
                rows.append([data, method, best, middle, min(means), 100 * near])
    header = ["data", "method", "best RA", "mean RA", "worst RA", f"% within {NEAR:g} of best"]
    return Table(f"{loaded.preset.title}: summary", header, rows, loaded.notes())


def _correlation_table(loaded: Report) -> Table:
    rows: list[list[Value]] = []
    for data, condition in loaded.chosen:
        label = ", ".join(filter(None, (data, condition_text(condition))))
        for method in _methods(loaded):
            row: list[Value] = [label, method]
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
        "one is learnt; below zero: similar tasks overwrite each other more, as the paper says",
        *loaded.notes(),
    ]
    header = ["data", "method", "all pairs", "next neighbours"]
    return Table(f"{loaded.preset.title}: divergence and forgetting", header, rows, notes)


def figures(loaded: Report) -> Iterator[tuple[str, Any]]:
    """Mean accuracy on a task 0, 1, 2, ... tasks after it was learnt, one panel per stream."""
    from vntransfer.bench.figures import COLOURS, curve, grid, legend

    if _sweeps(loaded):
        yield from _sweep_figures(loaded)
        return
    groups = list(loaded.chosen)
    width = max(3.6, 7.0 / max(1, len(groups)))
    height = 2.8 + 0.07 * len(_methods(loaded)) * 3.6 / width  # room for the legend
    figure, axes = grid(1, max(1, len(groups)), width=width, height=height)
    for ax, (data, condition) in zip(axes.flat, groups, strict=False):
        points: dict[str, dict[float, list[float]]] = {}
        for (method, _, _), (record, _) in loaded.chosen[data, condition].items():
            for lag, value in enumerate(_curve(record)):
                points.setdefault(method, {}).setdefault(float(lag), []).append(value)
        for index, method in enumerate(m for m in _methods(loaded) if m in points):
            line = LINES[index // len(COLOURS) % len(LINES)]
            curve(ax, points[method], index, method, line=line)
        ax.set_title(", ".join(filter(None, (data, condition_text(condition)))), fontsize=9)
        ax.set_xlabel("tasks since it was learnt", fontsize=8)
        ax.set_ylabel("accuracy, %", fontsize=8)
    legend(figure, axes)
    yield "forgetting", figure


def _curve(record: Record) -> list[float]:
    """Mean accuracy by lag."""
    by_lag: dict[int, list[float]] = {}
    for name, values in record.metrics.items():
        if name.startswith("task/"):
            j = int(name.removeprefix("task/"))
            for step, value in values.items():
                by_lag.setdefault(step - 1 - j, []).append(value)
    return [sum(by_lag[lag]) / len(by_lag[lag]) for lag in sorted(by_lag)]


def _sweep_figures(loaded: Report) -> Iterator[tuple[str, Any]]:
    from vntransfer.bench.figures import curve, grid, legend

    sets, methods = _sets(loaded), _methods(loaded)
    figure, axes = grid(len(sets), len(methods), width=3.0, height=2.6)
    for row, data in enumerate(sets):
        for column, method in enumerate(methods):
            ax, found = axes[row, column], _grid(loaded, data, method)
            for index, rate in enumerate(sorted({key[0] for key in found})):
                line = {s: values for (lr, s), values in found.items() if lr == rate}
                curve(ax, line, index, f"lr {rate:g}")
            ax.set_xscale("log")
            ax.set_title(f"{method} on {data}", fontsize=8)
            ax.set_xlabel("strength", fontsize=8)
        axes[row, 0].set_ylabel("RA, %", fontsize=8)
    legend(figure, axes)
    yield "sensitivity", figure
