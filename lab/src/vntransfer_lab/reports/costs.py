"""What methods cost: time of a training step and of a whole cell, memory."""

from collections.abc import Callable
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

import numpy as np

from vntransfer_lab.reports.statistics import estimate
from vntransfer_lab.reports.tables import ReportTable, Value
from vntransfer_lab.runner.records import Record

if TYPE_CHECKING:
    from vntransfer_lab.reports.report import Report

Place = tuple[Any, ...]
"""Data set, target, seed and condition: where methods are compared."""

Places = dict[str, dict[Place, float]]
"""Method -> place -> mean over its cells there (several if hyper-parameters are tried)."""

PLAIN = ("source_only", "sgd")
"""What steps are compared with, where a run has it; otherwise with those of its baseline."""

MEGABYTE = 1e6


def seconds(loaded: "Report") -> Places:
    """Wall-clock time of whole cells."""
    return _places(loaded, lambda record: record.seconds or None)


def step_seconds(loaded: "Report") -> Places:
    """Processor time of a training step; methods that train no networks have none."""
    return _places(loaded, lambda record: _cost(loaded, record, "step_seconds") or None)


def memory(loaded: "Report") -> Places:
    """Megabytes by which a cell made its worker grow at most."""

    def megabytes(record: Record) -> float | None:
        found = _cost(loaded, record, "memory")
        return None if found is None else found / MEGABYTE

    return _places(loaded, megabytes)


def reference(loaded: "Report", found: Places) -> str:
    """Name the method that the steps of the others are compared with; "" if there is none."""
    for method in (*PLAIN, loaded.preset.baseline):
        if method in found:
            return method
    return ""


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


def cost_table(loaded: "Report") -> ReportTable:
    """Costs per cell of each method; columns of which nothing is known are left out."""
    steps, grown = step_seconds(loaded), memory(loaded)
    rival = reference(loaded, steps)
    relative = ratios(steps, rival) if rival else {}
    rows: list[list[Value]] = []
    for method in loaded.preset.methods:
        own = [r.seconds for r in loaded.records if r.method == method and r.seconds]
        if not own:
            continue
        times = [1e3 * value for value in steps.get(method, {}).values()]
        sizes = list(grown.get(method, {}).values())
        rows.append(
            [
                method,
                len(own),
                estimate(times) if times else None,
                geometric_mean(relative[method]) if method in relative else None,
                float(np.median(sizes)) if sizes else None,
                estimate(own),
                sum(own),
            ]
        )
    always = ["method", "cells", "seconds per cell", "seconds in all"]
    header = ["method", "cells", "ms per step", f"steps relative to {rival}", "memory (MB)"]
    header += always[2:]
    known = [any(row[i] is not None for row in rows) for i in range(len(header))]
    kept = [i for i, name in enumerate(header) if name in always or known[i]]
    notes = ["seconds are wall-clock time of the workers; costs differ from run to run"]
    if steps:
        notes.append("a step is timed in processor time, without reading, scoring and waiting")
    if grown:
        notes.append("memory: median of what a cell added to its worker, at its largest")
    return ReportTable(
        f"{loaded.preset.title}: cost per method",
        [header[i] for i in kept],
        [[row[i] for i in kept] for row in rows],
        notes,
    )


def _cost(loaded: "Report", record: Record, name: str) -> float | None:
    cost = loaded.costs.get(record.key)
    return None if cost is None else getattr(cost, name)


def _places(loaded: "Report", value: Callable[[Record], float | None]) -> Places:
    found: dict[str, dict[Place, list[float]]] = {m: {} for m in loaded.preset.methods}
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
