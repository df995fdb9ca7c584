"""Figures of what methods cost."""

from collections.abc import Callable, Iterator, Mapping
from statistics import geometric_mean
from typing import Any

import numpy as np

from vntransfer.pages import Axis, Intervals
from vntransfer_lab.reports.costs import Places, memory, ratios, reference, seconds, step_seconds
from vntransfer_lab.reports.drawings import Drawing
from vntransfer_lab.reports.report import Report

_INNER = (10, 90)  # percentiles that are drawn as an interval
_SPAN = "line from the 10th to the 90th percentile"


def cost_drawings(loaded: Report) -> Iterator[Drawing]:
    """Time per step, memory and time per cell, as far as they are known."""
    steps, sizes, whole = step_seconds(loaded), memory(loaded), seconds(loaded)
    if steps:
        rival = reference(loaded, steps)
        caption = (
            f"Processor time of a training step{_divided(rival)}: geometric mean, {_SPAN}. "
            "Reading, scoring, waiting and what a method does between tasks are no part of a step; "
            "one that trains several candidates side by side counts as one."
        )
        without = [method for method in whole if method not in steps]
        caption += f" Without steps: {', '.join(without)}." if without else ""
        yield Drawing("cost-steps", "Time per step", _times(steps, rival, "step"), caption)
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
        caption = (
            f"Wall-clock time of a whole cell (reading, choosing, training and scoring)"
            f"{_divided(rival)}: geometric mean, {_SPAN}. It depends on what else the machine did."
        )
        yield Drawing("cost", "Time per cell", _times(whole, rival, "cell"), caption)


def _divided(rival: str) -> str:
    return f", divided by that of {rival} on the same data, target and seed" if rival else ""


def _times(found: Places, rival: str, of: str) -> Intervals:
    """Draw times relative to a rival's, or as they are without one."""
    if rival:
        axis = Axis(f"time per {of} relative to {rival}", log=True)
        return _intervals(
            ratios(found, rival), geometric_mean, axis, reference=1.0, highlight=rival
        )
    samples = {method: list(places.values()) for method, places in found.items()}
    return _intervals(samples, geometric_mean, Axis(f"seconds per {of}", log=True))


def _intervals(
    samples: Mapping[str, list[float]],
    center: Callable[[list[float]], Any],
    axis: Axis,
    **options: Any,
) -> Intervals:
    low, high = np.transpose([np.percentile(v, _INNER) for v in samples.values()]).tolist()
    values = [float(center(own)) for own in samples.values()]
    return Intervals(list(samples), values, low, high, axis, **options)
