"""Choice among candidates by held-out sources; a gain within its standard error does not count."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vntransfer.checks import Floats
from vntransfer.display import one_line
from vntransfer.domains import Name
from vntransfer.errors import ArgumentError

FLOOR = 1e-6
"""Smallest error that counts, relative to the largest one on the same held-out source."""

TEMPERATURE = 0.02
"""Difference of two scores at which the weights differ by a factor e."""


@dataclass(frozen=True)
class Guarded:
    """What `guard` found for C candidates on V held-out sources."""

    scores: Floats  # v_c = mean of r_c + its standard error, (C,); 0 for the fallback
    ratios: Floats  # r = log(error of c / error of the fallback), (V, C)
    shares: Floats  # softmax(-v / .02), (C,): weights of an average of the candidates
    best: int  # candidate with the lowest score


@dataclass(frozen=True)
class SharpnessSelection:
    """How the sharpness was chosen."""

    sharpness: float
    reason: str
    candidates: tuple[float, ...] = ()  # sharpnesses that were tried, (C,)
    held_out: tuple[Name, ...] = ()  # sources that were held out, (V,)
    errors: tuple[tuple[float, ...], ...] = ()  # of each candidate on each of them, (V, C)

    def __repr__(self) -> str:
        return one_line(f"SharpnessSelection: sharpness {self.sharpness:g}, {self.reason}")


def guard(errors: Any) -> Guarded:
    """Score candidates by their errors (V, C) on held-out sources; the first is the fallback.

    With r_c = log(error_c / error_0) on each held-out source, the score v_c is the mean of r_c plus
    its standard error, and v_0 = 0: a candidate must beat the fallback by more than a standard
    error. With a single held-out source the fallback is chosen. A candidate that failed anywhere
    (NaN or infinite) is never chosen; the fallback must not fail. Zero errors count as 1e-6 of the
    largest one in their row. Two weights differ by a factor e per .02 in v.
    """
    e = np.array(errors, dtype=np.float64)
    if not np.isfinite(e[:, 0]).all():
        raise ArgumentError(
            f"errors: the fallback's (column 0) must be finite, got {e[:, 0].tolist()}"
        )
    failed = ~np.isfinite(e).all(0)
    e = np.where(failed, np.inf, e)
    largest = e[:, ~failed].max(1, keepdims=True)
    relative = np.divide(e, largest, out=np.ones_like(e), where=largest > 0)
    e = np.maximum(relative, FLOOR)
    ratios = np.log(e) - np.log(e[:, :1])
    n = len(ratios)
    errs = np.full(ratios.shape[1], np.inf)
    if n > 1:
        errs[~failed] = ratios[:, ~failed].std(0, ddof=1) / np.sqrt(n)
    errs[0] = 0.0
    ratios[:, failed] = np.inf
    scores = ratios.mean(0) + errs
    shares = np.exp(-(scores - scores.min()) / TEMPERATURE)
    return Guarded(scores, ratios, shares / shares.sum(), int(scores.argmin()))
