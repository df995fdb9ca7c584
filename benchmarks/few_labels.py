"""How much do a few labeled rows of the target help, as one more source?

The first domains of a set are the target once each. 0, 5 or 20 of its rows, drawn at random, are
labeled and become one more source, as with `vnt adapt --use-target-labels`; errors are
those on the other rows, the same ones for all numbers of labels. Writes a table into
docs/benchmarks/few_labels.md: ratios of the mean absolute error to that without labels.

    python benchmarks/few_labels.py [--rows 300] [--targets 3] [--draws 2] [SET ...]
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.base import clone

from sets import domains, drawn
from vntransfer import PooledRegressor, WeightedSourceRegressor, stack

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "few_labels.md"
SETS = ["bike", "parkinsons", "protein"]
LABELS = (0, 5, 20)
LEARNERS = {
    "ridge": PooledRegressor("ridge"),
    "ridge, sharpness 3": WeightedSourceRegressor("ridge", sharpness=3.0),
    "boosting": PooledRegressor("boosting", random_state=0),
}
ALONE = "ridge, labeled rows alone"
Errors = dict[tuple[str, int], float]


def measure(name: str, target: str, most: int, draw: int) -> Errors:
    """Mean absolute error by method and number of labeled rows."""
    others = drawn(name, most, draw)
    x, y = others.pop(target)
    rest = slice(max(LABELS), None)
    out: Errors = {}
    for n in LABELS:
        sources = {**others, f"{target} (labeled)": (x[:n], y[:n])} if n else others
        X, r, domain = stack(sources, target=x[rest])
        for method, learner in LEARNERS.items():
            model = clone(learner).fit(X, r, domain)
            out[method, n] = float(np.abs(model.predict(x[rest]) - y[rest]).mean())
        if n:
            own = PooledRegressor("ridge").fit(x[:n], y[:n])
            out[ALONE, n] = float(np.abs(own.predict(x[rest]) - y[rest]).mean())
    print(name, target, draw, {k: round(v, 3) for k, v in out.items()}, flush=True)
    return out


def line(name: str, every: list[Errors], targets: int) -> list[str]:
    """Tabulate geometric means of ratios, the largest and the smallest target in brackets."""
    lines = []
    for method in (*LEARNERS, ALONE):
        cells = []
        for n in LABELS[1:]:
            base = "ridge" if method == ALONE else method
            logs = np.log([own[method, n] / own[base, 0] for own in every])
            by_target = np.exp(logs.reshape(targets, -1).mean(1))
            cells.append(f"{np.exp(logs.mean()):.3f} ({by_target.min():.2f}–{by_target.max():.2f})")
        lines.append(f"| {name} | {method} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--targets", type=int, default=3)
    parser.add_argument("--draws", type=int, default=2)
    given = parser.parse_args()
    lines = [
        "# A few labeled rows of the target",
        "",
        f"Written by `python benchmarks/few_labels.py --rows {given.rows} --targets "
        f"{given.targets} --draws {given.draws} {' '.join(given.sets)}`.",
        "The labeled rows of the target are added as one more source. The table shows the mean "
        "absolute error on",
        "its other rows, divided by the error of the same method without these labels (for "
        "*labeled rows alone*:",
        "by the error of ridge regression on the sources). Values are geometric means over "
        f"{given.targets} targets and {given.draws} draws;",
        "in brackets: the means of the best and the worst target. Below 1 is a gain.",
        "",
        "| data | method | 5 labeled rows | 20 labeled rows |",
        "| --- | --- | --- | --- |",
    ]
    for name in given.sets:
        targets = list(domains(name))[: given.targets]
        found = [measure(name, t, given.rows, d) for t in targets for d in range(given.draws)]
        lines += line(name, found, len(targets))
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
