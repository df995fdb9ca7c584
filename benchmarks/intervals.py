"""How often do prediction intervals from held-out sources cover the target?

Each domain of a set is the target once, without labels; ridge regression and boosting predict it,
and the half width of the intervals is the weighted quantile of errors on held-out sources
(`vntransfer.workflows.prediction_intervals.Calibration`). Writes docs/benchmarks/intervals.md.

    python benchmarks/intervals.py [--rows 400] [SET ...]
"""

import argparse
from pathlib import Path

import numpy as np

from sets import drawn
from vntransfer import stack
from vntransfer.adaptation.candidates import attempt
from vntransfer.domains import group
from vntransfer.workflows.prediction_intervals import Calibration

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "intervals.md"
SETS = ["synthetic", "bike", "parkinsons", "protein", "pol", "pumadyn32nm", "yearpred-small"]
METHODS = ("ridge", "weighted", "boosting")
LEVELS = (0.8, 0.9)

Row = tuple[str, str, str, float, float, float]


def measure(name: str, most: int) -> list[Row]:
    """Set, method, target, coverages, and width in standard deviations of the response."""
    domains = drawn(name, most)
    out: list[Row] = []
    for target, (x_target, y_target) in domains.items():
        sources = {key: own for key, own in domains.items() if key != target}
        X, y, domain = stack(sources, target=x_target)
        groups = group(domain, len(y))
        tried = attempt(METHODS, X, y, groups, random_state=0)
        for method in METHODS:
            model = tried.model(method)
            gaps = {str(k): tried.held_out[method][r] - y[r] for k, r in groups.sources.items()}
            weights = dict(zip(gaps, model.source_weights_.values(), strict=True))
            found = Calibration.from_errors(gaps, weights)
            predicted = model.predict(x_target)
            low, high = (found.half_width(level) for level in LEVELS)
            gap = np.abs(y_target - predicted)
            covered = float((gap <= low).mean()), float((gap <= high).mean())
            spread = float(y[groups.source_rows].std())
            out.append((name, method, target, *covered, high / spread))
            print(*out[-1], flush=True)
    return out


def page(rows: list[Row], most: int) -> str:
    """Tabulate the mean and the worst target of each set and method."""
    lines = [
        "# Coverage of prediction intervals",
        "",
        f"`python benchmarks/intervals.py --rows {most}`: each domain is the target once, "
        f"{most} rows",
        "per domain at most. The intervals come from errors on held-out sources, weighted by the",
        "learned weights; no label of the target is used. Mean over targets, the worst one in",
        "brackets; half width at 90 % in standard deviations of the sources' responses.",
        "",
        "| data | method | covered at 80 % | covered at 90 % | half width |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, method in dict.fromkeys((row[0], row[1]) for row in rows):
        own = np.array([row[3:] for row in rows if row[:2] == (name, method)])
        (a, b, width), low = own.mean(0), own.min(0)
        lines.append(
            f"| {name} | {method} | {a:.1%} ({low[0]:.0%}) | {b:.1%} ({low[1]:.0%}) | {width:.2f} |"
        )
    every = np.array([row[3:] for row in rows])
    lines += [
        "",
        f"Over all {len(rows)} cases: {every[:, 0].mean():.1%} at 80 %, {every[:, 1].mean():.1%} "
        f"at 90 %; {np.mean(every[:, 1] < 0.8):.0%} of the cases cover less than 80 % at 90 %.",
        "What went wrong in the worst of them is in [predict.md](../predict.md#intervals).",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--rows", type=int, default=400)
    given = parser.parse_args()
    found = [row for name in given.sets for row in measure(name, given.rows)]
    PAGE.write_text(page(found, given.rows), encoding="utf-8")
