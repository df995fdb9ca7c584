"""Drawings: the charts of a report as data, for its page and as SVG files."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from vntransfer.pages import Axis, Chart, Lines, Panels, Series
from vntransfer.pages.picture import write_picture
from vntransfer.storage.places import PICTURES, check_file
from vntransfer_lab.reports.report import Report, label_of, load_report
from vntransfer_lab.reports.statistics import Estimate, estimate
from vntransfer_lab.reports.view import EVERYTHING, View


@dataclass(frozen=True)
class Drawing:
    """A chart with a name for its file, a title and a caption."""

    name: str
    title: str
    chart: Chart
    caption: str = ""


def ends(values: Sequence[Estimate]) -> dict[str, Any]:
    """Interval of one standard error on each side, as options of a chart."""
    return {
        "low": [e.mean - (e.error or 0.0) for e in values],
        "high": [e.mean + (e.error or 0.0) for e in values],
    }


def spread(
    name: str, points: Mapping[float, Sequence[float]], *, shift: float = 0.0, **options: Any
) -> Series:
    """Mean and standard error over seeds against x: ``points[x]`` holds one value per seed."""
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
        panels.append(Lines(series, Axis(names=targets), y, title=label_of(*group)))
    direction = "higher" if loaded.kind.higher_is_better else "lower"
    caption = f"{loaded.kind.metric}, {direction} is better; mean ± standard error over seeds."
    yield Drawing("values", "Values per target", Panels(panels, share=False), caption)


def drawings_of(loaded: Report) -> list[Drawing]:
    """Return the drawings of this kind of experiment; none before a cell is done."""
    own = loaded.kind.figures
    draw: Callable[[Report], Iterator[Drawing]] = resolve_name(own) if own else standard
    return list(draw(loaded)) if loaded.chosen else []


def draw(
    folder: str | Path, to: str | Path, view: View = EVERYTHING, *, overwrite: bool = False
) -> list[Path]:
    """Draw the figures of a run folder into another folder, as SVG files; return their paths.

    Existing files are replaced if they are pictures of ours, or to ``overwrite`` them.
    """
    loaded = load_report(folder, view)
    files: dict[Path, Drawing] = {}
    for drawing in drawings_of(loaded):
        # a data set can be named like "data/houses.csv:domain=town,response=price"
        name = re.sub(r"[^\w.-]+", "-", f"{loaded.preset.name}-{drawing.name}")
        while (path := Path(to) / f"{name}.svg") in files:
            name += "-"  # names that differ in other characters alone
        files[path] = drawing
        check_file("figures", path, PICTURES, overwrite=overwrite)
    return [
        write_picture(own.chart, own.title, path, overwrite=overwrite)
        for path, own in files.items()
    ]
