"""Does choosing the scale of the random features gain anything? Every target at every scale.

z = [s, relu(σ W s/√p + b)]: for each σ the moments of the sources, the ridge by held-out sources,
and the mean absolute error on the target; then the error of the σ that held-out sources choose
and of the σ that is best on the target. Data sets, cuts and targets are those of `choice.py`.

    python benchmarks/random_features.py [--partition 3] [--count 256]

Prints the ratio of errors to those of σ = 1: geometric mean over targets, worst target, and targets
more than 2 % better and worse.
"""

import argparse
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sets import TABLES, Cut, cuts
from vntransfer.closed_form import (
    RIDGES,
    choose_ridge,
    feature_moments,
    fit_ridge,
    squared_error,
    without,
)
from vntransfer.moments import Moments
from vntransfer.random_features import RandomFeatures

Floats = NDArray[np.float64]

SCALES = (0.1, 0.3, 1.0, 3.0)
ROWS = 400
ONE = SCALES.index(1.0)


class Trial(NamedTuple):
    """Mean logarithm of the squared error on held-out sources, and the error on the target."""

    held_out: float
    target: float


def scaled(features: RandomFeatures, scale: float) -> RandomFeatures:
    """Give features whose random weights are scaled."""
    object.__setattr__(features, "_weights", features._weights * scale)  # type: ignore[attr-defined]
    return features


def trial(case: Cut, scale: float, count: int) -> Trial | None:
    """Fit one target at one scale."""
    if (parts_of := case.split(ROWS)) is None:
        return None
    sources, (x_target, y_target) = parts_of
    every = np.vstack([x for x, _ in sources.values()])
    features = scaled(RandomFeatures.standardizing(every, count, 0), scale)
    parts = [feature_moments(features, x, y[:, None]) for x, y in sources.values()]
    weights = [float(part.count) for part in parts]
    ridge = choose_ridge(parts, 1, weights)
    errors = [
        squared_error(fit_ridge(without(parts, weights, k), 1, ridge), own)
        for k, own in enumerate(parts)
    ]
    fit = fit_ridge(Moments.weighted(parts, weights), 1, ridge)
    found = features(x_target) @ fit.coefficients.numpy()[:, 0] + float(fit.intercept)
    low, high = (end([end(y) for _, y in sources.values()]) for end in (min, max))
    error = float(np.abs(np.clip(found, low, high) - y_target).mean())
    return Trial(float(np.mean(np.log(errors))), error)


def line(name: str, ratio: Floats) -> str:
    mean = np.exp(np.log(ratio).mean())
    better, worse = int((ratio < 0.98).sum()), int((ratio > 1.02).sum())
    return f"| {name} | {mean:.3f} | {ratio.max():.2f} | {better} | {worse} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partition", type=int, default=3)
    parser.add_argument("--count", type=int, default=256, help="random features")
    given = parser.parse_args()
    rows = []
    for case in cuts(given.partition, TABLES):
        own = [trial(case, scale, given.count) for scale in SCALES]
        if all(one is not None for one in own):
            rows.append(own)
    table = np.array(rows)  # (targets, scales, 2)
    held_out, errors = table[:, :, 0], table[:, :, 1]
    ratio, at = errors / errors[:, [ONE]], np.arange(len(errors))
    print(f"{len(errors)} targets, {given.count} random features, {len(RIDGES)} ridges\n")
    print("| scale | mean | worst | better | worse |\n| --- | --- | --- | --- | --- |")
    for k, scale in enumerate(SCALES):
        print(line(f"{scale:g}", ratio[:, k]))
    print(line("chosen by held-out sources", ratio[at, held_out.argmin(1)]))
    print(line("best on the target", ratio.min(1)))


if __name__ == "__main__":
    main()
