"""Weights of the sources in a run of ``adaptation``: collected, measured and drawn.

A weight matrix H has one row per target and one column per source, NaN where a domain is not a
source of a target.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.pages import Axis, Heatmap, Lines, Panels, Series
from vntransfer_lab.reports.drawings import Drawing
from vntransfer_lab.reports.report import Condition, Group, Report, condition_text, label_of
from vntransfer_lab.reports.statistics import estimate
from vntransfer_lab.reports.tables import ReportTable, Value

Array = NDArray[np.float64]
# target -> source -> one weight per epoch
Curves = dict[str, dict[str, Array]]

ORDERED = ("synthetic",)
"""Data sets whose domains lie in a row, so that |i - j| says how far two of them are apart."""

WINDOW = 5
"""Epochs of the moving average."""

_PREFIX = "weight/"


@dataclass(frozen=True)
class Weights:
    """Weights of one method on one data set."""

    domains: list[str]  # names of the rows and columns of the matrices
    final: dict[int, Array]  # seed -> weight matrix at the end of training
    curves: dict[int, Curves]  # seed -> weights of every epoch, if the run recorded its history

    @property
    def mean(self) -> Array:
        """Mean of the weight matrices over seeds."""
        return np.mean(list(self.final.values()), axis=0)


def collect(loaded: Report, data: str, condition: Condition) -> dict[str, Weights]:
    """Weights of all methods that learn them, in the order of the preset."""
    chosen = loaded.chosen[data, condition]
    targets = loaded.targets(data, condition)
    found: dict[str, Weights] = {}
    for method in loaded.preset.methods:
        cells = {(t, s): cell for (m, t, s), cell in chosen.items() if m == method}
        if not any(r.metrics.get("learned_weights", {}).get(step) for r, step in cells.values()):
            continue
        metrics = {name for r, _ in cells.values() for name in r.metrics}
        sources = {name.removeprefix(_PREFIX) for name in metrics if name.startswith(_PREFIX)}
        domains = targets + sorted(sources - set(targets))
        weights = Weights(domains, {}, {})
        for (target, seed), (record, step) in cells.items():
            matrix = weights.final.setdefault(seed, np.full((len(domains), len(domains)), np.nan))
            for name, steps in record.metrics.items():
                if not name.startswith(_PREFIX):
                    continue
                source = name.removeprefix(_PREFIX)
                matrix[domains.index(target), domains.index(source)] = steps[step]
                if len(steps) > 1:
                    curves = weights.curves.setdefault(seed, {}).setdefault(target, {})
                    curves[source] = np.array([steps[epoch] for epoch in sorted(steps)])
        found[method] = weights
    return found


def _correlation(a: Array, b: Array) -> float:
    """Pearson's correlation; 0 where one side is constant and so says nothing."""
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return round(float(a @ b) / size, 12) if size > 0 else 0.0


def closeness(matrix: Array) -> float:
    """Correlate weights with closeness -|i - j|: Spearman's, per target, averaged over targets.

    Ties of the closeness (two neighbors at the same distance) keep it below 1: the weights of six
    domains in a row reach at most 0.974.
    """
    from scipy.stats import rankdata

    rows = []
    for i, row in enumerate(matrix):
        known = np.flatnonzero(np.isfinite(row))
        if len(known) > 1:
            rows.append(_correlation(rankdata(row[known]), rankdata(-np.abs(known - i))))
    return float(np.mean(rows)) if rows else 0.0


def asymmetry(matrix: Array) -> float | None:
    """Mean |H - H'| over the pairs of domains that are each other's source; None without any."""
    gap = np.abs(matrix - matrix.T)
    known = gap[np.isfinite(gap)]
    return float(known.mean()) if len(known) else None


def agreement(matrices: Sequence[Array]) -> float | None:
    """Mean correlation of the weights of two runs; None with a single run."""
    flat = [matrix[np.isfinite(matrix)] for matrix in matrices]
    pairs = [_correlation(a, b) for a, b in combinations(flat, 2) if a.shape == b.shape]
    return float(np.mean(pairs)) if pairs else None


def changes(curves: Mapping[str, Mapping[str, Array]]) -> Array:
    """Half the sum of |w(epoch + 1) - w(epoch)| over sources, averaged over targets.

    It is the share of the weight that changes hands from one epoch to the next.
    """
    steps = [np.abs(np.diff(list(by.values()), axis=1)).sum(0) / 2 for by in curves.values()]
    return np.asarray(np.mean(steps, axis=0))


def weight_table(loaded: Report) -> ReportTable:
    """Whether weights follow the closeness of domains and are the same in every run."""
    rows: list[list[Value]] = []
    for group in loaded.chosen:
        for method, weights in collect(loaded, *group).items():
            final = list(weights.final.values())
            gaps = [gap for gap in map(asymmetry, final) if gap is not None]
            steps = [float(changes(curves).mean()) for curves in weights.curves.values()]
            measures: list[Value] = [
                float(np.nanmax(weights.mean)),
                estimate([closeness(matrix) for matrix in final]) if group[0] in ORDERED else None,
                estimate(gaps) if gaps else None,
                agreement(final),
                estimate(steps) if steps else None,
            ]
            rows.append([label_of(*group), method, *measures])
    notes = [
        "closeness: Spearman correlation of a target's weights with -|i - j|, mean over targets "
        "(± standard error over seeds; ties keep it below 0.975 for six domains in a row)",
        "asymmetry: mean |H - H'|; run to run: mean correlation of the weights of two seeds; "
        "change: share of the weight that changes hands from one epoch to the next, mean over "
        "epochs, targets and seeds",
    ]
    header = ["data", "method", "largest", "closeness", "asymmetry", "run to run", "change"]
    return loaded.table("weights of the sources", header, rows, notes)


def weight_figures(loaded: Report, group: Group) -> Iterator[Drawing]:
    """Weights as maps and, where a run has its history, over epochs."""
    data, condition = group
    weights, label = collect(loaded, data, condition), label_of(*group)
    if not weights:
        return
    name = "-".join(filter(None, (data, condition_text(condition).replace(", ", "-"))))
    caption = "Rows are targets, columns sources; mean over seeds, one color scale."
    title = f"Weights of the sources: {label}"
    yield Drawing(f"weights-{name}", title, heat_maps(weights), caption)
    for method, own in weights.items():
        if own.curves:
            first = min(own.curves)
            yield Drawing(
                f"epochs-{name}-{method}",
                f"Weights over epochs: {label}, {method}",
                epoch_curves(own.curves[first]),
                f"Seed {first}; thin: as they are, thick: mean over {WINDOW} epochs.",
            )


def heat_maps(weights: Mapping[str, Weights]) -> Panels:
    """Mean weight matrices side by side: rows are targets, columns sources, one color scale."""
    words: dict[str, Any] = {"row_label": "target", "column_label": "source", "label": "weight"}
    return Panels(
        [
            Heatmap(own.domains, own.domains, own.mean, title=method, low=0.0, **words)
            for method, own in weights.items()
        ]
    )


def epoch_curves(curves: Curves) -> Panels:
    """Weights over epochs, one panel per target: thin as they are, thick as a moving average."""
    names = sorted({source for by_source in curves.values() for source in by_source})
    window, charts = np.ones(WINDOW), []
    for target, by_source in curves.items():
        series = []
        for source, values in sorted(by_source.items()):
            x, color = range(1, len(values) + 1), names.index(source)
            # cut at both ends: it does not lag behind
            counts = np.convolve(np.ones(len(values)), window)
            mean = (np.convolve(values, window) / counts)[WINDOW // 2 :][: len(values)]
            series.append(Series(source, x, values, thin=True, marks=False, color=color))
            series.append(Series(source, x, mean, marks=False, color=color))
        axes = Axis("epoch", whole=True), Axis("weight", low=0)
        charts.append(Lines(series, *axes, title=f"target {target}"))
    return Panels(charts, share=False)
