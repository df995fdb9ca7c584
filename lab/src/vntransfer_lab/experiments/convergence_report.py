"""Tables and figures of the experiment ``convergence``."""

import math
from collections.abc import Iterator

import numpy as np

from vntransfer.pages import MUTED, Axis, Lines, Panels, Series
from vntransfer_lab.reports.drawings import Drawing
from vntransfer_lab.reports.report import Report
from vntransfer_lab.reports.statistics import Estimate
from vntransfer_lab.reports.tables import Number, ReportTable, Value
from vntransfer_lab.runner.records import Record


def _groups(loaded: Report) -> dict[tuple[str, int, str], list[Record]]:
    """(family, dimension, method) -> finished cells, one per seed."""
    found: dict[tuple[str, int, str], list[Record]] = {}
    for record in loaded.records:
        if record.status == "done":
            key = record.target, record.settings["dimension"], record.method
            found.setdefault(key, []).append(record)
    return found


def _rms(records: list[Record], metric: str = "error") -> dict[int, float]:
    """Root mean square over seeds, per number of samples."""
    steps = sorted(set.intersection(*(set(r.metrics[metric]) for r in records)))
    return {n: float(np.sqrt(np.mean([r.metrics[metric][n] ** 2 for r in records]))) for n in steps}


def _slope(errors: dict[int, float], seeds: int) -> Estimate:
    """Exponent of the error in n; a mean square over S seeds has a relative error of √(2/S)."""
    n, e = np.log(list(errors)), np.log(list(errors.values()))
    error = math.sqrt(1 / (2 * seeds) / float(((n - n.mean()) ** 2).sum()))
    return Estimate(float(np.polyfit(n, e, 1)[0]), error, seeds)


def _verdict(slope: Estimate) -> str:
    margin = 2 * (slope.error or 0.0)
    if slope.mean - margin > -0.5:
        return "slower than n^-1/2"
    return "faster than n^-1/2" if slope.mean + margin < -0.5 else "n^-1/2"


def tables(loaded: Report) -> list[ReportTable]:
    """Return the observed rates, then Proposition 1's terms."""
    groups = _groups(loaded)
    return [_rate_table(loaded, groups), _bound_table(loaded, groups)]


def _rate_table(loaded: Report, groups: dict[tuple[str, int, str], list[Record]]) -> ReportTable:
    rows: list[list[Value]] = []
    for (family, d, method), records in groups.items():
        errors = _rms(records)
        if len(errors) < 4:
            continue
        late = dict(list(errors.items())[len(errors) // 2 :])
        slopes = _slope(errors, len(records)), _slope(late, len(records))
        last = max(errors)
        true = records[0].metrics["true"][last]
        small = true < 1e-12
        row: list[Value] = [family, d, method, 0.0 if small else true, errors[last]]
        rows.append([*row, None if small else errors[last] / true, *slopes, _verdict(slopes[1])])
    header = ["family", "d", "divergence", "true", "error at largest n", "relative"]
    return loaded.table(
        "rates",
        [*header, "exponent", "exponent, larger n", "verdict"],
        rows,
        [
            f"root mean square error over {len(loaded.preset.seeds)} seeds; exponents: slope of "
            "its logarithm over log n (± standard error), over all sizes and over the larger half",
        ],
    )


def _bound_table(loaded: Report, groups: dict[tuple[str, int, str], list[Record]]) -> ReportTable:
    rows: list[list[Value]] = []
    for (family, d, method), records in groups.items():
        if method != "von_neumann":
            continue
        draws = [
            {name: record.metrics[name][n] for name in record.metrics}
            for record in records
            for n in record.metrics["error"]
        ]
        last = max(records[0].metrics["error"])
        ratios = [
            r.metrics["error"][last] / r.metrics["squared_bound"][last]
            for r in records
            if r.metrics["squared_bound"][last] > 0
        ]
        first = [abs(r.metrics["first_order"][last] - r.metrics["error"][last]) for r in records]
        size = [r.metrics["error"][last] for r in records]
        shares = [
            _share(draw["error"] <= draw["printed_bound"] for draw in draws),
            _share(draw["error"] <= draw["squared_bound"] for draw in draws),
            _share(draw["log_step_holds"] == 1 for draw in draws),
        ]
        ratio = float(np.median(ratios)) if ratios else None
        rows.append([family, d, *shares, ratio, float(np.mean(first) / np.mean(size))])
    return ReportTable(
        "Proposition 1 (von Neumann divergence)",
        [
            "family",
            "d",
            "bound as printed holds",
            "with squared overlaps",
            "log((λ+ε)/λ) ≤ log(1+ε)",
            "error / squared bound",
            "first order: relative miss",
        ],
        rows,
        [
            "shares of all draws and sizes; the last two columns at the largest n: median ratio of "
            "error and bound; mean |first-order prediction - error| over mean error",
        ],
        loaded.preset.title,
    )


def _share(flags: Iterator[bool]) -> Number:
    values = list(flags)
    return Number(100 * sum(values) / len(values), ".0f", unit=" %")


def figures(loaded: Report) -> Iterator[Drawing]:
    """Draw rates per dimension, and Proposition 1's terms per family at the median dimension."""
    groups = _groups(loaded)
    families = list(dict.fromkeys(family for family, _, _ in groups))
    dimensions = sorted({d for _, d, _ in groups})
    methods = [m for m in loaded.preset.methods if any(key[2] == m for key in groups)]
    n = Axis("n", log=True)
    charts = []
    for method in methods:
        for d in dimensions:
            found = {f: _rms(groups[f, d, method]) for f in families if (f, d, method) in groups}
            series = [
                Series(f, list(errors), list(errors.values()), color=families.index(f))
                for f, errors in found.items()
            ]
            title = f"{method.replace('_', ' ')}, d = {d}"
            series += _reference(list(found.values()))
            charts.append(Lines(series, n, Axis("error", log=True), title=title))
    caption = "Root mean square error over seeds against the number of samples n; dotted: n^-1/2."
    columns = len(dimensions)
    yield Drawing("rates", "Rates", Panels(charts, share=False, columns=columns), caption)

    if "von_neumann" in methods:
        d = dimensions[len(dimensions) // 2]
        names = ("error", "first_order", "epsilon", "squared_bound", "printed_bound")
        labels = ("error", "first order", "ε", "|bound, squared overlaps|", "|bound as printed|")
        charts = []
        for family in families:
            if (family, d, "von_neumann") not in groups:
                continue
            series = []
            for name, label in zip(names, labels, strict=True):
                values = _rms(groups[family, d, "von_neumann"], name)
                series.append(Series(label, list(values), list(values.values())))
            charts.append(Lines(series, n, Axis("", log=True), title=f"{family}, d = {d}"))
        caption = "Root mean square over seeds of the error, of what predicts it and of its bounds."
        chart = Panels(charts, share=False, columns=len(families))
        yield Drawing("proposition", "Proposition 1's terms", chart, caption)


def _reference(found: list[dict[int, float]]) -> list[Series]:
    """Line that falls like n^-1/2, above the others."""
    known = [errors for errors in found if len(errors) > 1]
    if not known:
        return []
    n = np.array(list(known[0]), dtype=float)
    top = max(next(iter(errors.values())) for errors in known)
    return [Series("n^-1/2", n, 2 * top * np.sqrt(n[0] / n), color=MUTED, marks=False)]
