"""What methods cost: time of a training step and of a whole cell."""

from collections.abc import Callable
from statistics import geometric_mean
from typing import Any

import numpy as np

from vntransfer_lab.reports.report import Report
from vntransfer_lab.reports.statistics import estimate
from vntransfer_lab.reports.tables import ReportTable, Value
from vntransfer_lab.runner.records import Record

Places = dict[str, dict[tuple[Any, ...], float]]
"""Method -> data set, target, seed and condition -> mean over its cells there."""

PLAIN = ("source_only", "sgd")
"""What steps are compared with, where a run has it; otherwise with those of its baseline."""

MEGABYTE = 1e6


def step_seconds(loaded: Report) -> Places:
    """Processor time of a training step; methods that train no networks have none."""
    return _places(loaded, lambda r: (r.cost and r.cost.step_seconds) or None)


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


def cost_table(loaded: Report) -> ReportTable:
    """Costs per cell of each method; empty columns are omitted.

    Steps are compared at the same data, target, seed and condition: geometric mean of the ratios.
    """
    steps = step_seconds(loaded)
    rival = next((m for m in (*PLAIN, loaded.preset.baseline) if m in steps), "")
    base = steps.get(rival, {})
    rows: list[list[Value]] = []
    for method in loaded.preset.methods:
        own = [r.seconds for r in loaded.records if r.method == method and r.seconds]
        if own:
            places = steps.get(method, {})
            times = [1e3 * value for value in places.values()]
            ratios = [value / base[place] for place, value in places.items() if base.get(place)]
            row: list[Value] = [method, len(own), estimate(times) if times else None]
            row.append(geometric_mean(ratios) if ratios else None)
            rows.append([*row, estimate(own), sum(own)])
    names = ["method", "cells", "ms per step", f"steps relative to {rival}"]
    names += ["seconds per cell", "seconds in all"]
    known = [any(row[i] is not None for row in rows) for i in range(len(names))]
    kept = [i for i in range(len(names)) if known[i] or i not in (2, 3)]
    notes = ["seconds are wall-clock time of the workers; costs differ from run to run"]
    if steps:
        notes.append("a step is timed in processor time, without reading, scoring and waiting")
    shown = [[row[i] for i in kept] for row in rows]
    return ReportTable(
        "cost per method", [names[i] for i in kept], shown, notes, loaded.preset.title
    )
