"""What methods cost: wall-clock seconds of their cells, relative to the baseline's."""

from typing import Any

import numpy as np

from vntransfer.bench.drawings import Drawing
from vntransfer.bench.report import Report
from vntransfer.page import Axis, Intervals

_INNER = (10, 90)  # percentiles that are drawn as an interval


def seconds(loaded: Report) -> dict[str, dict[tuple[Any, ...], float]]:
    """Give for each method the mean seconds of the cells of a place (data, target, seed, ...)."""
    found: dict[str, dict[tuple[Any, ...], list[float]]] = {m: {} for m in loaded.preset.methods}
    for record in loaded.records:
        if record.status == "done" and record.seconds:
            condition = tuple((name, str(value)) for name, value in loaded.condition(record))
            place = record.data, record.target, record.seed, condition
            found[record.method].setdefault(place, []).append(record.seconds)
    return {
        method: {place: float(np.mean(values)) for place, values in places.items()}
        for method, places in found.items()
        if places
    }


def cost_drawing(loaded: Report) -> Drawing | None:
    """Seconds per cell as a ratio to the baseline (or as they are, without one)."""
    found, baseline = seconds(loaded), loaded.preset.baseline
    if not found:
        return None
    rival = found.get(baseline)
    if rival:
        samples = {
            method: [value / rival[place] for place, value in places.items() if place in rival]
            for method, places in found.items()
        }
        label, caption = (
            f"seconds relative to {baseline}",
            (
                "Wall-clock time of a whole cell (reading, training and scoring; not of a step) "
                f"divided by that of {baseline} on the same data, target and seed"
            ),
        )
    else:
        samples = {method: list(places.values()) for method, places in found.items()}
        label, caption = "seconds per cell", "Wall-clock time of a whole cell, not of a step"
    samples = {method: values for method, values in samples.items() if values}
    low, high = np.transpose([np.percentile(v, _INNER) for v in samples.values()]).tolist()
    chart = Intervals(
        list(samples),
        [float(np.exp(np.mean(np.log(values)))) for values in samples.values()],
        low,
        high,
        Axis(label, log=True),
        reference=1.0 if rival else None,
        highlight=baseline,
    )
    caption += (
        ": geometric mean, line from the 10th to the 90th percentile. It depends on what else the "
        "machine did; memory is not recorded."
    )
    return Drawing("cost", "Cost per method", chart, caption)
