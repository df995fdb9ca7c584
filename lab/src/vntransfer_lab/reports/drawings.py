"""Drawings: the charts of a report as data, for its page and as SVG files."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from vntransfer.pages import Axis, Chart, Intervals, Panels, Series
from vntransfer.pages.picture import write_picture
from vntransfer.storage.places import PICTURES, check_file
from vntransfer_lab.reports.report import EVERYTHING, Report, View, label_of, load_report
from vntransfer_lab.reports.statistics import Estimate


@dataclass(frozen=True)
class Drawing:
    """A chart with a name for its file, a title and a caption."""

    name: str
    title: str
    chart: Chart
    caption: str = ""
    detail: bool = False  # a page shows it folded, below the others


def ends(values: Sequence[Estimate]) -> dict[str, Any]:
    """Interval of one standard error on each side, as options of a chart."""
    return {
        "low": [e.mean - (e.error or 0.0) for e in values],
        "high": [e.mean + (e.error or 0.0) for e in values],
    }


def spread(name: str, points: Mapping[float, Estimate], **options: Any) -> Series:
    """Mean and standard error over seeds against x."""
    places, found = zip(*sorted(points.items()), strict=True)
    return Series(name, places, [e.mean for e in found], **ends(found), **options)


def by_method(found: Mapping[str, Estimate], *, baseline: str = "", **options: Any) -> Intervals:
    """One row per method: its mean ± standard error, a dotted line at the baseline's."""
    return Intervals(
        list(found),
        [own.mean for own in found.values()],
        **ends(list(found.values())),
        reference=found[baseline].mean if baseline in found else None,
        highlight=baseline,
        **options,
    )


def standard(loaded: Report) -> Iterator[Drawing]:
    """One panel per target, data set and condition, with one row per method."""
    preset, metric, panels = loaded.preset, loaded.kind.metric, []
    for data, condition in loaded.chosen:
        by_target = loaded.estimates(data, condition)
        for target, found in by_target.items():
            several = len(by_target) > 1
            name = f"{data}, {target}" if several and len(preset.data) > 1 else target
            title = label_of(name if several else data, condition)
            options: dict[str, Any] = {"x": Axis(metric), "title": title}
            if theirs := preset.paper_values(data, metric).get(target):
                options |= {"others": list(map(theirs.get, found)), "others_name": "paper"}
            panels.append(by_method(found, baseline=preset.baseline, **options))
    direction = "Higher" if loaded.kind.higher_is_better else "Lower"
    caption = f"Mean ± standard error over seeds. {direction} is better."
    caption += " Dotted: the baseline." if preset.baseline else ""
    caption += " Hollow: the paper's value." if any(p.others for p in panels) else ""
    yield Drawing("values", f"{metric} at each target", Panels(panels, share=False), caption)


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
