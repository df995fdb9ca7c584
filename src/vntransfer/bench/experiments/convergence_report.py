"""Tables and figures of the experiment ``convergence``."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from vntransfer.bench.report import Report
from vntransfer.bench.statistics import Estimate
from vntransfer.bench.store import Record
from vntransfer.bench.tables import Table, Value


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


def tables(loaded: Report) -> list[Table]:
    """Return the observed rates, then Proposition 1's terms."""
    groups = _groups(loaded)
    return [_rate_table(loaded, groups), _bound_table(loaded, groups)]


def _rate_table(loaded: Report, groups: dict[tuple[str, int, str], list[Record]]) -> Table:
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
    return Table(
        f"{loaded.preset.title}: rates",
        [*header, "exponent", "exponent, larger n", "verdict"],
        rows,
        [
            f"root mean square error over {len(loaded.preset.seeds)} seeds; exponents: slope of "
            "its logarithm over log n (± standard error), over all sizes and over the larger half",
            *loaded.notes(),
        ],
    )


def _bound_table(loaded: Report, groups: dict[tuple[str, int, str], list[Record]]) -> Table:
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
    return Table(
        f"{loaded.preset.title}: Proposition 1 (von Neumann divergence)",
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
    )


def _share(flags: Iterator[bool]) -> str:
    values = list(flags)
    return f"{100 * sum(values) / len(values):.0f} %"


def figures(loaded: Report) -> Iterator[tuple[str, Any]]:
    """Draw rates per dimension, and Proposition 1's terms per family at the median dimension."""
    from vntransfer.bench.figures import COLOURS, MARKERS, grid, legend

    groups = _groups(loaded)
    families = list(dict.fromkeys(family for family, _, _ in groups))
    dimensions = sorted({d for _, d, _ in groups})
    methods = [m for m in loaded.preset.methods if any(key[2] == m for key in groups)]

    figure, axes = grid(len(methods), len(dimensions), width=2.8, height=2.5)
    for row, method in enumerate(methods):
        for column, d in enumerate(dimensions):
            ax = axes[row, column]
            for index, family in enumerate(families):
                if (family, d, method) in groups:
                    errors = _rms(groups[family, d, method])
                    style = {"color": COLOURS[index], "marker": MARKERS[index]}
                    ax.loglog(
                        list(errors), list(errors.values()), label=family, markersize=3, **style
                    )
            _reference(ax)
            ax.set_title(f"{method.replace('_', ' ')}, d = {d}", fontsize=8)
            ax.tick_params(labelsize=7)
            ax.set_xlabel("n", fontsize=8)
        axes[row, 0].set_ylabel("error", fontsize=8)
    legend(figure, axes)
    yield "rates", figure

    if "von_neumann" in methods:
        d = dimensions[len(dimensions) // 2]
        names = ("error", "first_order", "epsilon", "squared_bound", "printed_bound")
        labels = ("error", "first order", "ε", "|bound, squared overlaps|", "|bound as printed|")
        figure, axes = grid(1, len(families), width=2.8, height=2.7)
        for ax, family in zip(axes.flat, families, strict=True):
            for index, (name, label) in enumerate(zip(names, labels, strict=True)):
                values = _rms(groups[family, d, "von_neumann"], name)
                style = {"color": COLOURS[index], "marker": MARKERS[index]}
                ax.loglog(list(values), list(values.values()), label=label, markersize=3, **style)
            ax.set_title(f"{family}, d = {d}", fontsize=8)
            ax.set_xlabel("n", fontsize=8)
            ax.tick_params(labelsize=7)
        legend(figure, axes)
        yield "proposition", figure


def _reference(ax: Any) -> None:
    """Dotted line that falls like n^-1/2."""
    lines = [line for line in ax.lines if len(line.get_xdata()) > 1]
    if lines:
        n = np.asarray(lines[0].get_xdata(), dtype=float)
        top = max(float(line.get_ydata()[0]) for line in lines)
        ax.loglog(n, 2 * top * np.sqrt(n[0] / n), ":", color="#888888", label="$n^{-1/2}$")
