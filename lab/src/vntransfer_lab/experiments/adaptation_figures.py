"""Drawings of the experiment ``adaptation``: errors, and what weights the sources get."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from vntransfer.pages import Axis, Bars, Heatmap, Intervals, Lines, Panels, Series
from vntransfer_lab.experiments.adaptation_report import summary
from vntransfer_lab.experiments.adaptation_weights import (
    Array,
    Curves,
    Weights,
    changes,
    collect,
    smooth,
)
from vntransfer_lab.reports.drawings import Drawing, ends, spread, standard
from vntransfer_lab.reports.report import Group, Report, condition_text, label_of
from vntransfer_lab.reports.statistics import Estimate, estimate

WINDOW = 5
"""Epochs of the moving average."""

PICTURED = {
    "amazon": "computer_video_games",
    "amazon7i": "computer_video_games",
    "amazon4": "electronics",
}
"""The target whose weights are drawn as bars (the paper shows the first)."""


def figures(loaded: Report) -> Iterator[Drawing]:
    """Errors per target; weights as maps, bars and, where a run has its history, over epochs."""
    if len(loaded.chosen) > 1:
        chart = error_panels(summary(loaded), loaded.preset.baseline)
        caption = (
            "Mean absolute error over targets in standard deviations of the sources' responses, "
            "± standard error over seeds; lower is better, dotted: the baseline."
        )
        yield Drawing("errors", "Errors per data set", chart, caption)
    else:
        yield from standard(loaded)
    for group in loaded.chosen:
        data, condition = group
        label = label_of(*group)
        weights = collect(loaded, data, condition)
        name = "-".join(filter(None, (data, condition_text(condition).replace(", ", "-"))))
        if not weights:
            continue
        first = next(iter(weights.values()))
        maps = {method: w.mean for method, w in weights.items()}
        caption = "Rows are targets, columns sources; mean over seeds, one color scale."
        title = f"Weights of the sources: {label}"
        yield Drawing(f"weights-{name}", title, heat_maps(maps, first.domains), caption)
        if (target := PICTURED.get(data)) in first.domains:
            yield Drawing(
                f"weights-{name}-{target}",
                f"Weights of the sources: {label}, target {target}",
                weight_bars(weights, str(target)),
                "Mean ± standard error over seeds; dotted: equal weights.",
            )
        seeds = {method: w.curves for method, w in weights.items() if w.curves}
        for method, curves in seeds.items():
            yield Drawing(
                f"epochs-{name}-{method}",
                f"Weights over epochs: {label}, {method}",
                epoch_curves(curves[min(curves)]),
                f"Seed {min(curves)}; thin: as they are, thick: mean over {WINDOW} epochs.",
            )
        if seeds:
            yield Drawing(
                f"changes-{name}",
                f"Change of the weights: {label}",
                change_curves(seeds),
                "Share of the weight that changes hands from one epoch to the next, mean over "
                "targets ± standard error over seeds.",
            )


def error_panels(means: Mapping[str, Mapping[Group, Estimate]], baseline: str) -> Panels:
    """Mean error per method, one panel per data set; a dotted line at that of the baseline."""
    groups = list(dict.fromkeys(group for by_group in means.values() for group in by_group))
    charts = []
    for group in groups:
        found = {method: by[group] for method, by in means.items() if group in by}
        charts.append(
            Intervals(
                list(found),
                [e.mean for e in found.values()],
                **ends(list(found.values())),
                x=Axis("error"),
                title=label_of(*group),
                reference=found[baseline].mean if baseline in found else None,
                highlight=baseline,
            )
        )
    return Panels(charts, share=False)


def heat_maps(maps: Mapping[str, Array], domains: Sequence[str]) -> Panels:
    """Weight matrices side by side: rows are targets, columns sources, one color scale."""
    return Panels(
        [
            Heatmap(
                domains,
                domains,
                matrix,
                title=method,
                row_label="target",
                column_label="source",
                label="weight",
                low=0.0,
            )
            for method, matrix in maps.items()
        ]
    )


def epoch_curves(curves: Curves, *, window: int = WINDOW) -> Panels:
    """Weights over epochs, one panel per target: thin as they are, thick as a moving average."""
    names = sorted({source for by_source in curves.values() for source in by_source})
    charts = []
    for target, by_source in curves.items():
        series = []
        for source, values in sorted(by_source.items()):
            x, place = range(1, len(values) + 1), names.index(source)
            plain = {"marks": False, "color": place}
            series.append(Series(source, x, values, thin=True, **plain))  # type: ignore[arg-type]
            series.append(Series(source, x, smooth(values, window), **plain))  # type: ignore[arg-type]
        axes = Axis("epoch", whole=True), Axis("weight", low=0)
        charts.append(Lines(series, *axes, title=f"target {target}"))
    return Panels(charts, share=False)


def change_curves(curves: Mapping[str, Mapping[int, Curves]]) -> Lines:
    """Share of the weight that changes hands from one epoch to the next, one line per method."""
    series = []
    for method, by_seed in curves.items():
        steps = [changes(found) for found in by_seed.values()]
        points = {
            epoch + 2.0: list(values) for epoch, values in enumerate(zip(*steps, strict=True))
        }
        series.append(spread(method, points))
    return Lines(series, Axis("epoch", whole=True), Axis("½ Σ |w(epoch) − w(epoch − 1)|", low=0))


def weight_bars(weights: Mapping[str, Weights], target: str) -> Bars:
    """Weights of all sources for one target, one bar per method and standard errors over seeds."""
    first = next(iter(weights.values()))
    row = first.domains.index(target)
    sources = [name for name in first.domains if name != target]
    series = []
    for method, found in weights.items():
        columns = [found.domains.index(source) for source in sources]
        values = [
            [h[row, j] for h in found.final.values() if np.isfinite(h[row, j])] for j in columns
        ]
        known = [estimate(v) for v in values]
        series.append(Series(method, range(len(sources)), [e.mean for e in known], **ends(known)))
    return Bars(sources, series, Axis("weight", low=0), rules=[1 / len(sources)])
