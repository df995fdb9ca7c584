"""What methods cost: time of a training step and of a whole cell."""

from statistics import geometric_mean
from typing import Any

import numpy as np

from vntransfer_lab.reports.report import Report
from vntransfer_lab.reports.statistics import estimate
from vntransfer_lab.reports.tables import ReportTable, Value

Places = dict[str, dict[tuple[Any, ...], float]]
"""Method -> data set, target, seed and condition -> mean over its cells there."""

PLAIN = ("source_only", "sgd")
"""What steps are compared with, where a run has it; otherwise with those of its baseline."""

MEGABYTE = 1e6


def step_seconds(loaded: Report) -> Places:
    """Processor time of a training step; methods that train no networks have none."""
    found: dict[str, dict[tuple[Any, ...], list[float]]] = {m: {} for m in loaded.preset.methods}
    for record in loaded.records:
        own = record.cost.step_seconds if record.cost else None
        if record.status == "done" and own:
            condition = tuple((name, str(v)) for name, v in loaded.condition(record))
            place = record.data, record.target, record.seed, condition
            found[record.method].setdefault(place, []).append(own)
    return {
        method: {place: float(np.mean(values)) for place, values in places.items()}
        for method, places in found.items()
        if places
    }


def cost_table(loaded: Report) -> ReportTable:
    """Costs per cell of each method, those of steps where any were timed.

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
            of_steps: list[Value] = [estimate(times) if times else None] if steps else []
            of_steps += [geometric_mean(ratios) if ratios else None] if base else []
            rows.append([method, len(own), *of_steps, estimate(own), sum(own)])
    names = ["ms per step"] if steps else []
    names += [f"steps relative to {rival}"] if base else []
    notes = ["seconds are wall-clock time of the workers; costs differ from run to run"]
    if steps:
        notes.append("a step is timed in processor time, without reading, scoring and waiting")
    header = ["method", "cells", *names, "seconds per cell", "seconds in all"]
    return ReportTable("cost per method", header, rows, notes, loaded.preset.title)
