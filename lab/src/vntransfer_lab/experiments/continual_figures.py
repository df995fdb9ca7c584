"""Drawings of the experiment ``continual``: what is retained, task by task."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.pages import Axis, Heatmap, Lines, Panels, Scatter, Series
from vntransfer_lab.experiments.continual_methods import VARIANTS
from vntransfer_lab.experiments.continual_report import (
    methods_of,
    seeds_of,
    sets_of,
    sweep_grid,
    sweeps,
)
from vntransfer_lab.reports.drawings import Drawing, spread
from vntransfer_lab.reports.report import Condition, Group, Report, condition_text, label_of
from vntransfer_lab.runner.records import Record

MOST_METHODS = 6
"""Methods whose matrices and curves of single tasks are drawn: the first of `PREFERRED`."""

PREFERRED = ("sgd", "ewc", "rsp", "rsp_untuned", "mer", "agem", "covp")
MOST_TASKS = 7
"""Tasks with a curve of their own, evenly spread over the stream."""


def figures(loaded: Report) -> Iterator[Drawing]:
    """Forgetting over lags; matrices and curves of tasks; sweeps, groups and divergences."""
    if sweeps(loaded):
        yield _sweep(loaded)
        return
    if not loaded.chosen:
        return
    yield Drawing(
        "forgetting",
        "Forgetting",
        Panels([_forgetting(loaded, *group) for group in loaded.chosen]),
        "Accuracy on a task 0, 1, 2, ... tasks after it was learned, mean over tasks ± standard "
        "error over seeds.",
    )
    if _group_numbers(loaded):
        yield _groups(loaded)
    for group in loaded.chosen:
        yield from _by_task(loaded, group)
    if any("drop/0" in record.metrics for record in loaded.records):
        yield _divergences(loaded)


def _forgetting(loaded: Report, data: str, condition: Condition) -> Lines:
    points: dict[str, dict[float, list[float]]] = {}
    for (method, _, _), (record, _) in loaded.chosen[data, condition].items():
        for lag, value in enumerate(_curve(record)):
            points.setdefault(method, {}).setdefault(float(lag), []).append(value)
    series = [spread(m, points[m]) for m in methods_of(loaded) if m in points]
    x, y = Axis("tasks since it was learned", whole=True), Axis("accuracy, %")
    return Lines(series, x, y, title=label_of(data, condition))


def _curve(record: Record) -> list[float]:
    """Mean accuracy by lag."""
    by_lag: dict[int, list[float]] = {}
    for j, steps in _tasks(record).items():
        for step, value in steps.items():
            by_lag.setdefault(step - 1 - j, []).append(value)
    return [sum(by_lag[lag]) / len(by_lag[lag]) for lag in sorted(by_lag)]


def _tasks(record: Record) -> dict[int, dict[int, float]]:
    """Task -> number of tasks learned -> accuracy."""
    start = "task/"
    return {
        int(name.removeprefix(start)): steps
        for name, steps in record.metrics.items()
        if name.startswith(start)
    }


def accuracies(loaded: Report, group: Group) -> dict[str, NDArray[np.float64]]:
    """Give for each method the mean over seeds of R[i, j], accuracy on task j after task i."""
    found: dict[str, list[NDArray[np.float64]]] = {}
    for (method, _, _), (record, _) in loaded.chosen[group].items():
        tasks = _tasks(record)
        if tasks:
            R = np.full((len(tasks), len(tasks)), np.nan)
            for j, steps in tasks.items():
                for step, value in steps.items():
                    R[step - 1, j] = value
            found.setdefault(method, []).append(R)
    shown = [m for m in PREFERRED if m in found] + [m for m in found if m not in PREFERRED]
    kept = shown[:MOST_METHODS]
    return {m: np.mean(found[m], axis=0) for m in methods_of(loaded) if m in kept}


def _by_task(loaded: Report, group: Group) -> Iterator[Drawing]:
    """Accuracy matrices, and the accuracy on single tasks while others are learned."""
    found = accuracies(loaded, group)
    if not found or max(map(len, found.values())) < 2:
        return
    label = label_of(*group)
    name = "-".join(filter(None, (group[0], condition_text(group[1]).replace(", ", "-"))))
    left_out = len({m for m, _, _ in loaded.chosen[group]}) - len(found)
    more = f" {left_out} further methods are not drawn." if left_out else ""
    maps, curves = [], []
    for method, R in found.items():
        T = len(R)
        places = [str(i + 1) for i in range(T)]
        words: dict[str, Any] = {"row_label": "after task", "column_label": "accuracy on task"}
        maps.append(
            Heatmap(places, places, R, title=method, label="accuracy, %", low=0, high=100, **words)
        )
        chosen = np.unique(np.linspace(0, T - 1, min(T, MOST_TASKS)).round().astype(int))
        series = [
            Series(f"task {j + 1}", np.arange(j, T) + 1, R[j:, j], color=k, marks=T <= 12)
            for k, j in enumerate(chosen)
        ]
        axes = Axis("tasks learned", whole=True), Axis("accuracy, %")
        curves.append(Lines(series, *axes, title=method))
    caption = f"Mean over seeds.{more}"
    yield Drawing(f"matrices-{name}", f"Accuracy matrices: {label}", Panels(maps), caption)
    title = f"Accuracy on single tasks: {label}"
    yield Drawing(f"tasks-{name}", title, Panels(curves), caption)


def _group_numbers(loaded: Report) -> dict[int, str]:
    """Give number of groups -> the method that has it as a fixed option."""
    options = {name: VARIANTS[name].options for name in methods_of(loaded) if name in VARIANTS}
    return {own["groups"]: name for name, own in options.items() if "groups" in own}


def _groups(loaded: Report) -> Drawing:
    """RA against the number of groups of RSP, beside the paper's."""
    charts = []
    for group in loaded.chosen:
        data, condition = group
        found = seeds_of(loaded, data, condition, "ra")
        numbers = _group_numbers(loaded)
        series = [spread("ours", {float(n): found[m] for n, m in numbers.items() if m in found})]
        paper = loaded.preset.paper.get("values", {}).get(data, {}).get(data, {})
        theirs = {n: paper[m]["ra"] for n, m in numbers.items() if "ra" in paper.get(m, {})}
        if theirs:
            series.append(Series("paper", list(theirs), list(theirs.values()), dash="dashed"))
        charts.append(
            Lines(series, Axis("groups", whole=True), Axis("RA, %"), title=label_of(*group))
        )
    caption = "Retained accuracy, mean ± standard error over seeds."
    return Drawing("groups", "Number of groups", Panels(charts, share=False), caption)


def _divergences(loaded: Report) -> Drawing:
    """Draw what a task loses while another is learned, against the divergence of their modules."""
    charts = []
    for group, cells in loaded.chosen.items():
        near: list[tuple[float, float]] = []
        far: list[tuple[float, float]] = []
        for record, _ in cells.values():
            for name, steps in record.metrics.items():
                if name.startswith("divergence/"):
                    j = int(name.removeprefix("divergence/"))
                    for step, divergence in steps.items():
                        pair = divergence, record.metrics[f"drop/{j}"][step]
                        (near if step - 1 - j == 1 else far).append(pair)
        series = [
            Series(name, [d for d, _ in pairs], [drop for _, drop in pairs])
            for name, pairs in (("next neighbors", near), ("further apart", far))
            if pairs
        ]
        axes = Axis("divergence of the modules"), Axis("accuracy lost, points")
        charts.append(Scatter(series, *axes, title=label_of(*group)))
    caption = "One mark per pair of an earlier and a later task, and seed."
    title = "Divergence and forgetting"
    return Drawing("divergence", title, Panels(charts, share=False), caption)


def _sweep(loaded: Report) -> Drawing:
    """RA against strength, one line per learning rate and one panel per method and stream."""
    charts = []
    for data in sets_of(loaded):
        for method in methods_of(loaded):
            found = sweep_grid(loaded, data, method)
            series = []
            for rate in sorted({lr for lr, _ in found}):
                line = {s: values for (lr, s), values in found.items() if lr == rate}
                series.append(spread(f"lr {rate:g}", line))
            axes = Axis("strength", log=True), Axis("RA, %")
            charts.append(Lines(series, *axes, title=f"{method} on {data}"))
    columns = len(methods_of(loaded))
    caption = "Retained accuracy, mean ± standard error over seeds."
    return Drawing("sensitivity", "Sensitivity", Panels(charts, columns=columns), caption)
