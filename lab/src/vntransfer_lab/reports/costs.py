"""What methods cost: time of a training step and of a whole cell, memory; as table and charts."""

from collections.abc import Callable, Iterator, Mapping
from statistics import geometric_mean
from typing import Any

import numpy as np

from vntransfer.pages import Axis, Intervals
from vntransfer_lab.reports.drawings import Drawing
from vntransfer_lab.reports.report import Report
from vntransfer_lab.reports.statistics import estimate
from vntransfer_lab.reports.tables import ReportTable, Value
from vntransfer_lab.runner.records import Record

Places = dict[str, dict[tuple[Any, ...], float]]
"""Method -> data set, target, seed and condition -> mean over its cells there."""

PLAIN = ("source_only", "sgd")
"""What steps are compared with, where a run has it; otherwise with those of its baseline."""

MEGABYTE = 1e6
_INNER = (10, 90)  # percentiles that are drawn as an interval
_SPAN = "line from the 10th to the 90th percentile"


def seconds(loaded: Report) -> Places:
    """Wall-clock time of whole cells."""
    return _places(loaded, lambda record: record.seconds or None)


def step_seconds(loaded: Report) -> Places:
    """Processor time of a training step; methods that train no networks have none."""
    return _places(loaded, lambda r: (r.cost and r.cost.step_seconds) or None)


def memory(loaded: Report) -> Places:
    """Megabytes by which a cell made its worker grow at most."""

    def megabytes(record: Record) -> float | None:
        cost = record.cost
        return None if cost is None or cost.memory is None else cost.memory / MEGABYTE

    return _places(loaded, megabytes)


def _places(loaded: Report, value: Callable[[Record], float | None]) -> Places:
    found: dict[str, dict[tuple[Any, ...], list[float]]] = {m: {} for m in loaded.preset.methods}
    for record in loaded.records:
        own = value(record)
        if record.status == "done" and own is not None:
            condition = tuple((name, str(v)) for name, v in loaded.condition(record))
            place = record.data, record.target, record.seed, condition
            found[record.method].setdefault(place, []).append(own)
    return {
        method: {place: float(np.mean(values)) for place, values in places.items()}
        for method, places in found.items()
        if places
    }


def reference(loaded: Report, found: Places) -> str:
    """Name the method that the steps of the others are compared with; "" if there is none."""
    return next((m for m in (*PLAIN, loaded.preset.baseline) if m in found), "")


def ratios(found: Places, rival: str) -> dict[str, list[float]]:
    """Values of each method divided by those of another one at the same places.

    Examples
    --------
    >>> ratios({"a": {1: 2.0, 2: 3.0}, "b": {1: 8.0, 3: 1.0}, "c": {3: 1.0}}, "a")
    {'a': [1.0, 1.0], 'b': [4.0]}
    """
    base = found[rival]
    shared = {
        method: [value / base[place] for place, value in places.items() if base.get(place)]
        for method, places in found.items()
    }
    return {method: values for method, values in shared.items() if values}


def cost_table(loaded: Report) -> ReportTable:
    """Costs per cell of each method; columns of which nothing is known are left out."""
    steps, grown = step_seconds(loaded), memory(loaded)
    rival = reference(loaded, steps)
    relative = ratios(steps, rival) if rival else {}
    rows: list[list[Value]] = []
    for method in loaded.preset.methods:
        own = [r.seconds for r in loaded.records if r.method == method and r.seconds]
        if own:
            times = [1e3 * value for value in steps.get(method, {}).values()]
            sizes = list(grown.get(method, {}).values())
            row: list[Value] = [method, len(own), estimate(times) if times else None]
            row.append(geometric_mean(relative[method]) if method in relative else None)
            row.append(float(np.median(sizes)) if sizes else None)
            rows.append([*row, estimate(own), sum(own)])
    names = ["method", "cells", "ms per step", f"steps relative to {rival}", "memory (MB)"]
    names += ["seconds per cell", "seconds in all"]
    known = [any(row[i] is not None for row in rows) for i in range(len(names))]
    kept = [i for i in range(len(names)) if known[i] or i not in (2, 3, 4)]
    notes = ["seconds are wall-clock time of the workers; costs differ from run to run"]
    if steps:
        notes.append("a step is timed in processor time, without reading, scoring and waiting")
    if grown:
        notes.append("memory: median of what a cell added to its worker, at its largest")
    shown = [[row[i] for i in kept] for row in rows]
    return ReportTable(
        "cost per method", [names[i] for i in kept], shown, notes, loaded.preset.title
    )


def cost_drawings(loaded: Report) -> Iterator[Drawing]:
    """Time per step, memory and time per cell, as far as they are known."""
    steps, sizes, whole = step_seconds(loaded), memory(loaded), seconds(loaded)
    if steps:
        chart, divided = _times(steps, reference(loaded, steps), "step")
        without = [method for method in whole if method not in steps]
        caption = (
            f"Processor time of a training step{divided}: geometric mean, {_SPAN}. "
            "Reading, scoring, waiting and what a method does between tasks are no part of a step; "
            "one that trains several candidates side by side counts as one."
        )
        caption += f" Without steps: {', '.join(without)}." if without else ""
        yield Drawing("cost-steps", "Time per step", chart, caption)
    if sizes:
        caption = (
            f"What a cell added to the memory of its worker, at its largest: median, {_SPAN}. The "
            "first cell of a worker and data set is left out: it imports libraries and reads data."
        )
        samples = {method: list(places.values()) for method, places in sizes.items()}
        chart = _intervals(samples, np.median, Axis("megabytes", low=0))
        yield Drawing("cost-memory", "Peak memory", chart, caption)
    if whole:
        rival = loaded.preset.baseline if loaded.preset.baseline in whole else ""
        chart, divided = _times(whole, rival, "cell")
        caption = (
            f"Wall-clock time of a whole cell (reading, choosing, training and scoring)"
            f"{divided}: geometric mean, {_SPAN}. It depends on what else the machine did."
        )
        yield Drawing("cost", "Time per cell", chart, caption)


def _times(found: Places, rival: str, of: str) -> tuple[Intervals, str]:
    """Draw times relative to a rival's, or as they are without one; and say which."""
    if rival:
        axis = Axis(f"time per {of} relative to {rival}", log=True)
        samples, lines = ratios(found, rival), {"reference": 1.0, "highlight": rival}
        said = f", divided by that of {rival} on the same data, target and seed"
        return _intervals(samples, geometric_mean, axis, **lines), said
    samples = {method: list(places.values()) for method, places in found.items()}
    return _intervals(samples, geometric_mean, Axis(f"seconds per {of}", log=True)), ""


def _intervals(
    samples: Mapping[str, list[float]],
    center: Callable[[list[float]], Any],
    axis: Axis,
    **options: Any,
) -> Intervals:
    low, high = np.transpose([np.percentile(v, _INNER) for v in samples.values()]).tolist()
    values = [float(center(own)) for own in samples.values()]
    return Intervals(list(samples), values, low, high, axis, **options)
