"""Tables and drawings of the experiment ``adaptation``."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from statistics import geometric_mean

from vntransfer.pages import Axis, Heatmap, Panels
from vntransfer_lab.experiments.adaptation_weights import weight_figures, weight_table
from vntransfer_lab.reports.drawings import Drawing, by_method, standard
from vntransfer_lab.reports.report import (
    Group,
    Report,
    against_baseline,
    comparison_tables,
    label_of,
    mean_over_targets,
    value_table,
    value_tables,
)
from vntransfer_lab.reports.statistics import Estimate
from vntransfer_lab.reports.tables import Number, NumberPair, ReportTable, Value

UNRANKED = ("oracle",)
"""Methods that see the target's responses."""

_SHARE = "share/"


def tables(loaded: Report) -> list[ReportTable]:
    """Return the summary over data sets, errors per target, tests, choices and weights."""
    found = [summary_table(loaded)] if len(loaded.chosen) > 1 else []
    if loaded.preset.baseline:
        found.append(relative_table(loaded))
    for data, table in zip(loaded.preset.data, value_tables(loaded), strict=True):
        found.append(table)
        if loaded.preset.paper_values(data, "mae_raw"):
            found.append(replace(value_table(loaded, data, "mae_raw"), detail=table.detail))
    if loaded.preset.baseline:
        found += comparison_tables(loaded)
    more = [choice_table(loaded), weight_table(loaded)]
    return found + [replace(table, detail=True) for table in more if table.rows]


def summary(loaded: Report) -> dict[str, dict[Group, Estimate]]:
    """Return each method's mean error over targets (± over seeds) where no target is missing."""
    means: dict[str, dict[Group, Estimate]] = {method: {} for method in loaded.preset.methods}
    for group in loaded.chosen:
        for method, by_target in loaded.values(*group).items():
            mean = mean_over_targets(by_target, loaded.targets(*group))
            if mean is not None:
                means[method][group] = mean
    return means


def summary_table(loaded: Report) -> ReportTable:
    """Mean over targets per method and data set, with ranks and tests against the baseline."""
    preset, groups, means = loaded.preset, list(loaded.chosen), summary(loaded)
    ranks, rival = mean_ranks(means, groups), means.get(preset.baseline, {})
    rows: list[list[Value]] = []
    for method, by_group in means.items():
        verdicts = (
            {group: found for group, (_, _, found) in against_baseline(loaded, method).items()}
            if preset.baseline and method != preset.baseline
            else {}
        )
        cells: list[Value] = [
            Number(mean.mean, error=mean.error, verdict=verdicts.get(group, ""))
            if (mean := by_group.get(group)) is not None
            else None
            for group in groups
        ]
        ratios = _ratios(by_group, rival)
        ratio = geometric_mean(ratios.values()) if ratios and len(ratios) == len(rival) else None
        counts = [list(verdicts.values()).count(word) for word in ("better", "worse")]
        won = NumberPair(counts[0], counts[1], "/") if verdicts else None
        rows.append([method, *cells, ratio, ranks.get(method), won])
    unit = "standard deviations of the sources' responses"
    notes = [
        f"{loaded.kind.metric} in {unit}, mean over targets ± standard error over seeds",
        f"ratio: geometric mean over data sets of the error relative to {preset.baseline}"
        if preset.baseline
        else "no baseline: no ratios",
        f"rank: mean over data sets, 1 is best, without {', '.join(UNRANKED)}",
        "[+] better, [-] worse than the baseline at the 5 % level (paired over targets and seeds, "
        "Holm-corrected over data sets)",
    ]
    header = ["method", *(label_of(*group) for group in groups), "ratio", "rank", "better/worse"]
    return loaded.table("all data sets", header, rows, notes)


def relative_table(loaded: Report) -> ReportTable:
    """Error relative to the baseline, target by target: where does a method help, where hurt."""
    baseline, groups = loaded.preset.baseline, list(loaded.chosen)
    estimates = [list(loaded.estimates(*group).values()) for group in groups]
    rows: list[list[Value]] = []
    for method in loaded.preset.methods:
        if method != baseline:
            ratios = [
                [
                    own[method].mean / own[baseline].mean
                    for own in targets
                    if {method, baseline} <= own.keys() and own[baseline].mean > 0
                ]
                for targets in estimates
            ]
            rows.append([method, *map(_outcome, ratios)])
    notes = [
        f"geometric mean over targets of the error divided by that of {baseline}, lower is better; "
        f"and on how many targets it was lower / higher; means over seeds",
    ]
    header = ["method", *(label_of(*group) for group in groups)]
    return loaded.table(f"errors relative to {baseline}", header, rows, notes)


def mean_ranks(
    means: Mapping[str, Mapping[Group, Estimate]], groups: Collection[Group]
) -> dict[str, float]:
    """Mean rank over the groups of each method that has errors on all of them, ties shared."""
    from scipy.stats import rankdata

    kept = [m for m, by in means.items() if m not in UNRANKED and len(by) == len(groups)]
    if not kept:
        return {}
    ranks = rankdata([[e.mean for e in means[m].values()] for m in kept], axis=0).mean(1)
    return dict(zip(kept, map(float, ranks), strict=True))


def _ratios(means: Mapping[Group, Estimate], rival: Mapping[Group, Estimate]) -> dict[Group, float]:
    """Errors relative to those of another method, where neither is zero."""
    known = {g: (e.mean, rival[g].mean) for g, e in means.items() if g in rival}
    return {g: own / other for g, (own, other) in known.items() if own > 0 and other > 0}


def choice_table(loaded: Report) -> ReportTable:
    """How often a method that chooses by itself adapted, the outcome, and what it chose."""
    rows: list[list[Value]] = []
    metric, baseline = loaded.kind.metric, loaded.preset.baseline
    for group, chosen in loaded.chosen.items():
        cells = {
            key: {name: steps[step] for name, steps in record.metrics.items() if step in steps}
            for key, (record, step) in chosen.items()
        }
        for method in loaded.preset.methods:
            own = {k: c for k, c in cells.items() if k[0] == method and "adapted" in c}
            if not own:
                continue
            ratios: dict[bool, list[float]] = {True: [], False: []}
            for (_, target, seed), cell in own.items():
                rival = cells.get((baseline, target, seed), {}).get(metric, 0.0)
                if rival > 0:
                    ratios[bool(cell["adapted"])].append(cell[metric] / rival)
            often = NumberPair(
                round(sum(cell["adapted"] for cell in own.values())), len(own), " of "
            )
            outcome = [_outcome(ratios[adapted]) for adapted in (True, False)]
            found = _candidates(list(own.values()))
            rows.append([label_of(*group), method, often, *outcome, found])
    of_auto = "; of auto, candidates that weight or align sources had more than half"
    notes = [
        "adapted: a candidate other than the fallback had the largest share in the prediction"
        + of_auto * ("auto" in loaded.preset.methods),
        f"where adapted, where not: geometric mean of the error relative to {baseline}, and on how "
        f"many targets and seeds it was lower / higher",
        "candidates: how often each had the largest share, and its mean share over targets and "
        "seeds",
    ]
    header = ["data", "method", "adapted", "where adapted", "where not", "candidates"]
    return loaded.table("what was chosen without labels of the target", header, rows, notes)


def _outcome(ratios: list[float]) -> Value:
    if not ratios or min(ratios) <= 0:
        return None
    lower, higher = sum(r < 1 for r in ratios), sum(r > 1 for r in ratios)
    return Number(geometric_mean(ratios), ".3f", won=lower, lost=higher)


def _candidates(cells: list[dict[str, float]]) -> str:
    """Name, times chosen and mean share of all candidates, the largest share first."""
    shares = [
        {k.removeprefix(_SHARE): v for k, v in cell.items() if k.startswith(_SHARE)}
        for cell in cells
    ]
    names = list(dict.fromkeys(name for cell in shares for name in cell))
    means = {name: sum(cell.get(name, 0.0) for cell in shares) / len(shares) for name in names}
    wins = [max(cell, key=cell.__getitem__) for cell in shares]
    names.sort(key=lambda name: -means[name])
    return "; ".join(f"{name}: {wins.count(name)} times, {means[name]:.2f}" for name in names)


def figures(loaded: Report) -> Iterator[Drawing]:
    """Errors per target or data set, and the weights of the sources."""
    if len(loaded.chosen) > 1:
        chart = error_panels(summary(loaded), loaded.preset.baseline)
        caption = (
            "Mean absolute error over targets in standard deviations of the sources' responses, "
            "± standard error over seeds; lower is better, dotted: the baseline."
        )
        yield Drawing("errors", "Errors per data set", chart, caption)
        yield from ratio_map(loaded)
    else:
        yield from standard(loaded)
    for group in loaded.chosen:
        for drawing in weight_figures(loaded, group):
            yield replace(drawing, detail=len(loaded.chosen) > 1)


ENSEMBLE = "source_only_5"
"""The plain ensemble: what others are compared with where a run has it."""

CLIP = 20.0
"""Differences, in percent, from which on colors do not change."""


def ratio_map(loaded: Report) -> Iterator[Drawing]:
    """Methods by data sets: log of the error relative to the plain ensemble, or the baseline."""
    rival = ENSEMBLE if ENSEMBLE in loaded.preset.methods else loaded.preset.baseline
    means, groups = summary(loaded), list(loaded.chosen)
    if not rival or len(means[rival]) < len(groups):
        return
    against = replace(loaded, preset=replace(loaded.preset, baseline=rival))
    ranks = mean_ranks(means, groups)
    methods = sorted(
        (m for m in means if means[m] and m not in UNRANKED),
        key=lambda m: ranks.get(m, math.inf),
    )
    ratios = [_ratios(means[method], means[rival]) for method in methods]
    tests = [{} if m == rival else against_baseline(against, m) for m in methods]
    side = {
        "mean ratio": [
            f"{geometric_mean(own.values()):.3f}" if len(own) == len(groups) else ""
            for own in ratios
        ],
        "worst": [f"{max(own.values()):.2f}" if own else "" for own in ratios],
        "rank": [f"{ranks[method]:.1f}" if method in ranks else "" for method in methods],
    }
    chart = Heatmap(
        methods,
        [label_of(*group) for group in groups],
        [[100 * math.log(own[g]) if g in own else None for g in groups] for own in ratios],
        label="error relative to the plain ensemble, 100 log(ratio)",
        low=-CLIP,
        high=CLIP,
        marks=[[g in own and own[g][2] in ("better", "worse") for g in groups] for own in tests],
        mark="•",
        side=list(side.items()),
    )
    caption = (
        f"100 log(error / error of {rival}), mean over targets and seeds: about the difference in "
        f"percent; blue is better, orange is worse. Colors end at ± {CLIP:g}. Dots: significant "
        "after Holm's correction over the data sets. Beside it the geometric mean over data sets, "
        "the largest ratio of a data set, and the mean rank."
    )
    yield Drawing("ratios", "Errors relative to the plain ensemble", chart, caption)


def error_panels(means: Mapping[str, Mapping[Group, Estimate]], baseline: str) -> Panels:
    """Mean error per method, one panel per data set; a dotted line at that of the baseline."""
    charts = []
    for group in dict.fromkeys(group for by_group in means.values() for group in by_group):
        found = {method: by[group] for method, by in means.items() if group in by}
        charts.append(by_method(found, baseline=baseline, x=Axis("error"), title=label_of(*group)))
    return Panels(charts, share=False)
