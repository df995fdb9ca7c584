"""The statistics of the tables; ``docs/statistics.md`` explains them in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from vntransfer.errors import ArgumentError
from vntransfer.holm import holm

Runs = Mapping[str, Mapping[int, float]]
"""Target -> seed -> value."""

_Key = TypeVar("_Key")

LEVEL = 0.95
VERDICTS = ("better", "worse", "no difference", "too few runs")
MIN_PAIRS = 3  # two equal differences of a coarse metric would look like certainty
_TIE = 1e-12  # differences that are rounding errors, relative to the values


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error (None from a single value)."""

    mean: float
    error: float | None
    n: int


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and standard error of the mean."""
    n = len(values)
    error = float(np.std(values, ddof=1) / math.sqrt(n)) if n > 1 else None
    return Estimate(float(np.mean(values)), error, n)


@dataclass(frozen=True)
class Difference:
    """A difference to the baseline with its interval; ``won``/``lost`` count targets.

    Interval and p are None when there are fewer than `MIN_PAIRS` targets (or seeds of one target).
    """

    mean: float
    low: float | None
    high: float | None
    p: float | None
    won: int
    lost: int


def difference(
    method: Runs, baseline: Runs, *, higher_is_better: bool = False
) -> Difference | None:
    r"""Compare a method with the baseline over targets and seeds, paired.

    With d[k, s] the difference for target k and seed s, seeds are averaged first,
    m[k] = mean_s d[k, s], and the estimate is m = mean_k m[k]. Its standard error is that of the
    hierarchical bootstrap, which draws K targets with replacement and, within each drawn target,
    its seeds with replacement. For a mean this needs no resampling, since its variance over all
    resamples is known: (var_k m[k] + mean_k var_s d[k, s] / S_k) / K with population variances.
    The interval is m ± t √(n/(n-1)) · error with Student's quantile t on n - 1 degrees of
    freedom, n = K targets, or the number of seeds when there is one target. With one target this
    is the paired t interval over seeds; with one seed, that over targets. Values are given as
    target -> seed -> value; only pairs that both have are used, and without any it is None.
    """
    pairs = [
        np.array([method[target][seed] - baseline[target][seed] for seed in seeds])
        for target in method
        if (seeds := sorted(method[target].keys() & baseline.get(target, {}).keys()))
    ]
    if not pairs:
        return None
    means = np.array([d.mean() for d in pairs])
    if not np.isfinite(means).all():
        raise ArgumentError("method, baseline: expected finite values, got some that are not")
    largest = max(abs(value) for seeds in baseline.values() for value in seeds.values())
    means[np.abs(means) <= _TIE * largest] = 0.0
    won, lost = int((means < 0).sum()), int((means > 0).sum())
    if higher_is_better:
        won, lost = lost, won
    mean = float(means.mean())
    n = len(pairs) if len(pairs) > 1 else len(pairs[0])
    if n < MIN_PAIRS:
        return Difference(mean, None, None, None, won, lost)
    within = np.mean([d.var() / len(d) for d in pairs])
    error = math.sqrt((means.var() + within) / len(pairs) * n / (n - 1))

    from scipy.stats import t

    width = float(t.ppf((1 + LEVEL) / 2, n - 1)) * error
    score = abs(mean) / error if error > 0 else (math.inf if mean else 0.0)
    p = float(2 * t.sf(score, n - 1))
    return Difference(mean, mean - width, mean + width, p, won, lost)


def verdict(found: Difference, corrected_p: float | None, *, higher_is_better: bool = False) -> str:
    """One of `VERDICTS`, at the 5 % level after correction."""
    if corrected_p is None:
        return "too few runs"
    if corrected_p > 1 - LEVEL:
        return "no difference"
    return "better" if (found.mean > 0) == higher_is_better else "worse"


def compared(
    pairs: Mapping[_Key, tuple[Runs, Runs]], *, higher_is_better: bool = False
) -> dict[_Key, tuple[Difference, float | None, str]]:
    """Differences of (method, baseline) pairs, p corrected over all of them (Holm), verdicts.

    Pairs without common runs are left out.
    """
    found = {
        key: result
        for key, pair in pairs.items()
        if (result := difference(*pair, higher_is_better=higher_is_better)) is not None
    }
    known = {key: d.p for key, d in found.items() if d.p is not None}
    corrected = dict(zip(known, holm(list(known.values())).tolist(), strict=True))
    return {
        key: (d, p := corrected.get(key), verdict(d, p, higher_is_better=higher_is_better))
        for key, d in found.items()
    }
