"""Drawings: the charts of a report as data, drawn on its page and by matplotlib alike."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vntransfer.pages import Axis, Chart, Lines, Panels, Series
from vntransfer_lab.reports.report import Group, Report, condition_text
from vntransfer_lab.reports.statistics import Estimate, estimate


@dataclass(frozen=True)
class Drawing:
    """A chart with a name for its file, a title and a caption."""

    name: str
    title: str
    chart: Chart
    caption: str = ""


def group_label(group: Group) -> str:
    """Name a data set and, where the preset has several, the condition.

    Examples
    --------
    >>> group_label(("bike", (("rows", 100),)))
    'bike, rows=100'
    """
    return ", ".join(filter(None, (group[0], condition_text(group[1]))))


def ends(values: Sequence[Estimate]) -> dict[str, Any]:
    """Interval of one standard error on each side, as options of a chart.

    Examples
    --------
    >>> ends([Estimate(2.0, 0.5, 3), Estimate(1.0, None, 1)])
    {'low': [1.5, 1.0], 'high': [2.5, 1.0]}
    """
    return {
        "low": [e.mean - (e.error or 0.0) for e in values],
        "high": [e.mean + (e.error or 0.0) for e in values],
    }


def spread(
    name: str, points: Mapping[float, Sequence[float]], *, shift: float = 0.0, **options: Any
) -> Series:
    """Mean and standard error over seeds against x: ``points[x]`` holds one value per seed.

    Examples
    --------
    >>> spread("a", {2.0: [1.0, 3.0], 1.0: [5.0]}).y
    [5.0, 2.0]
    """
    found = {x: estimate(values) for x, values in sorted(points.items())}
    means = [e.mean for e in found.values()]
    return Series(name, [x + shift for x in found], means, **ends(list(found.values())), **options)


def standard(loaded: Report) -> Iterator[Drawing]:
    """One panel per data set and condition: targets along x, one mark per method."""
    panels = []
    for group in loaded.chosen:
        values = loaded.values(*group)
        targets = list(dict.fromkeys(t for method in values for t in values[method]))
        methods = [method for method in loaded.preset.methods if method in values]
        series = []
        for index, method in enumerate(methods):
            points = {
                float(place): list(values[method][target].values())
                for place, target in enumerate(targets)
                if target in values[method]
            }
            shift = 0.7 * ((index + 0.5) / len(methods) - 0.5)
            series.append(spread(method, points, shift=shift, dash="none"))
        y = Axis(loaded.kind.metric, low=0)
        panels.append(Lines(series, Axis(names=targets), y, title=group_label(group)))
    direction = "higher" if loaded.kind.higher_is_better else "lower"
    caption = f"{loaded.kind.metric}, {direction} is better; mean ± standard error over seeds."
    yield Drawing("values", "Values per target", Panels(panels, share=False), caption)
