"""Choosing among candidates by held-out sources, with a guard: a doubtful gain is no gain."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import number
from vntransfer.display import one_line
from vntransfer.domains import Name
from vntransfer.errors import ArgumentError

Floats = NDArray[np.float64]

FLOOR = 1e-6
"""Errors below this share of a held-out source's largest one count as this share of it."""


@dataclass(frozen=True)
class Guarded:
    """What `guard` found for C candidates on V held-out sources."""

    scores: Floats  # v_c = mean of r_c + its standard error, (C,); 0 for the fallback
    ratios: Floats  # r = log(error of c / error of the fallback), (V, C)
    # of the mean of r_c, (C,); infinite with fewer than two held-out sources
    standard_errors: Floats
    shares: Floats  # softmax(-v / temperature), (C,): weights of a mean over the candidates
    best: int  # the candidate of the lowest score; the first one among equals


@dataclass(frozen=True)
class SharpnessSelection:
    """How the sharpness was chosen."""

    sharpness: float
    reason: str
    candidates: tuple[float, ...] = ()  # sharpnesses that were tried, (C,)
    virtual_targets: tuple[Name, ...] = ()  # sources that were held out, (V,)
    errors: Floats | None = None  # of each candidate on each, (V, C)
    guarded: Guarded | None = None  # None if there was nothing to choose from

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Make it again from its values as lists."""
        guarded, errors = record["guarded"], record["errors"]
        if guarded is not None:
            arrays = {k: np.array(v) for k, v in guarded.items() if k != "best"}
            guarded = Guarded(**arrays, best=int(guarded["best"]))
        return cls(
            float(record["sharpness"]),
            str(record["reason"]),
            tuple(record["candidates"]),
            tuple(record["virtual_targets"]),
            None if errors is None else np.array(errors),
            guarded,
        )

    def __repr__(self) -> str:
        return one_line(f"SharpnessSelection: sharpness {self.sharpness:g}, {self.reason}")


def guard(errors: Any, *, temperature: float = 0.02) -> Guarded:
    """Score candidates by their errors (V, C) on held-out sources, against a fallback, the first.

    With r_c = log(error_c / error_0) on each held-out source, the score v_c is the mean of r_c plus
    its standard error, and v_0 = 0: a candidate must be better than the fallback by more than a
    standard error to be preferred. A single held-out source gives no standard error, so only the
    fallback can be chosen then. A candidate that failed somewhere (NaN or infinite)
    cannot be chosen; the fallback must not fail. Zero errors count as 1e-6 of their row's largest.
    A difference of ``temperature`` in v changes the ratio of two shares by a factor e.
    """
    e, t = np.array(errors, dtype=np.float64), number("temperature", temperature, exclusive=True)
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
    shares = np.exp(-(scores - scores.min()) / t)
    return Guarded(scores, ratios, errs, shares / shares.sum(), int(scores.argmin()))
