"""Does the scale that `adapt` chooses for skewed, positive responses lower the target's error?

Two tables have such responses: cal_housing, and bike, whose response is a logarithm of counts and
is brought back to counts here. They are cut as in benchmarks/intervals.py.

    python benchmarks/transform.py --partition 3 8
"""

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from sets import Cut, cuts
from vntransfer import stack
from vntransfer.adaptation.candidates import maker
from vntransfer.domains import group
from vntransfer.tables.problem import TableColumns
from vntransfer.workflows.adapt_settings import AdaptSettings
from vntransfer.workflows.response_transform import ResponseTransform
from vntransfer.workflows.target_fit import choose_transform

SETS: dict[str, Callable[[Any], Any]] = {"cal_housing": np.asarray, "bike": np.exp}
METHODS = ("ridge", "boosting", "source_only")
ROWS = 300
SETTINGS = AdaptSettings(TableColumns("domain", "y"), ["target"])


def measure(case: Cut) -> tuple[str, list[float]] | None:
    """The scale that is chosen, and for each method its error on the log scale over the other."""
    if (parts := case.split(ROWS)) is None:
        return None
    unit = SETS[case.name]
    places = {name: (x, unit(y)) for name, (x, y) in parts[0].items()}
    x_target, truth = parts[1][0], unit(parts[1][1])
    X, y, domain = stack(places, target=x_target)
    groups = group(domain, len(y))
    known = y[groups.source_rows]
    chosen = choose_transform(X, y, groups, SETTINGS).transform
    if not chosen.reason or known.min() <= 0:
        return None  # not skewed
    ratios = []
    for method in METHODS:
        errors = []
        for kind in ("log", "none"):
            scale = ResponseTransform.fitted(kind, known)
            model = maker(method)(random_state=0).fit(X, scale.apply(y), domain)
            found = np.clip(scale.undo(model.predict(x_target)), known.min(), known.max())
            errors.append(float(np.abs(found - truth).mean()))
        ratios.append(errors[0] / errors[1])
    return chosen.kind, ratios


def main(partitions: list[int]) -> None:
    """Print a line for each target, and geometric means where the log scale was chosen or not."""
    print(f"| target | chosen | {' | '.join(METHODS)} |\n|{' --- |' * (2 + len(METHODS))}")
    found = []
    for case in (case for part in partitions for case in cuts(part, list(SETS))):
        if (row := measure(case)) is not None:
            found.append(row)
            shown = " | ".join(f"{ratio:.3f}" for ratio in row[1])
            print(f"| {case.name} {case.how} {case.target} | {row[0]} | {shown} |", flush=True)
    for kind in ("log", "none"):
        own = np.log([ratios for chosen, ratios in found if chosen == kind])
        if len(own):
            shown = " | ".join(f"{mean:.3f}" for mean in np.exp(own.mean(0)))
            print(f"| **mean of {len(own)}** | {kind} | {shown} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partition", type=int, nargs="+", default=[3, 8])
    warnings.simplefilter("ignore")
    main(parser.parse_args().partition)
