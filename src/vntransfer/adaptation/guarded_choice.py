"""Choosing among candidates, or weights of their mean, by virtual targets, with a guard.

A doubtful gain is no gain.
"""

from collections.abc import Mapping, Sequence
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
"""Errors below this share of a virtual target's largest one count as this share of it."""

STEPS, RATE = 400, 0.5
ROWS = 1000
"""Rows of a virtual target that are used at most."""
LEAST_ERROR = 0.1
"""Of the median error: what errors are measured by where the safe candidate makes hardly any."""
TOO_MUCH = float(np.log(1.5))
"""Ratio of errors that no doubt excuses."""


@dataclass(frozen=True)
class Guarded:
    """What `guard` found for C candidates on V virtual targets."""

    scores: Floats  # v_c = mean of r_c + its standard error, (C,); 0 for the safe candidate
    ratios: Floats  # r = log(error of c / error of the safe candidate), (V, C)
    # of the mean of r_c, (C,); infinite with fewer than two virtual targets
    standard_errors: Floats
    shares: Floats  # softmax(-v / temperature), (C,): weights of a mean over the candidates
    best: int  # the candidate of the lowest score; the first one among equals


@dataclass(frozen=True)
class SharpnessSelection:
    """How the sharpness was chosen."""

    sharpness: float
    reason: str
    candidates: tuple[float, ...] = ()  # sharpnesses that were tried, (C,)
    virtual_targets: tuple[Name, ...] = ()  # sources that played the target, (V,)
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
    """Score candidates by their errors (V, C) on virtual targets, against a safe one, the first.

    With r_c = log(error_c / error_0) on each virtual target, the score v_c is the mean of r_c plus
    its standard error, and v_0 = 0: a candidate must be better than the safe one by more than a
    standard error to be preferred. A single virtual target gives no standard error, so that only
    the safe candidate can be chosen then. A candidate that failed somewhere (NaN or infinite)
    cannot be chosen; the safe one must not fail. Zero errors count as 1e-6 of their row's largest.
    A difference of ``temperature`` in v changes the ratio of two shares by a factor e.
    """
    e, t = np.array(errors, dtype=np.float64), number("temperature", temperature, exclusive=True)
    if not np.isfinite(e[:, 0]).all():
        raise ArgumentError(
            f"errors: the safe candidate's (column 0) must be finite, got {e[:, 0].tolist()}"
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


def stack_weights(predictions: Sequence[Floats], truth: Sequence[Floats]) -> Floats:
    """Weights (C,) on the simplex of the least error on virtual targets.

    With e_v(w) the mean absolute error of the mean by w on virtual target v, the mean over v of
    e_v(w)/e_v(safe) is minimized by mirror descent from equal weights: w ← w exp(-η_t g), η_t
    falling like 1/√t; the best w on the way is kept. No e_v(safe) counts as less than a tenth of
    their median: where nothing can go wrong, nothing can be learned about who is better.
    Predictions are (C, n) for each virtual target, the safe candidate first.
    """
    safe = _safe_errors(predictions, truth)
    pairs = []
    for p, y, base in zip(predictions, truth, np.maximum(safe, _floor(safe)), strict=True):
        step = -(-len(y) // ROWS)
        pairs.append((p[:, ::step] / base, y[::step] / base))
    w = np.full(len(predictions[0]), 1 / len(predictions[0]))
    best, least = w, np.inf
    for t in range(STEPS):
        f, g = 0.0, np.zeros(len(w))
        for p, y in pairs:
            gap = w @ p - y
            f += float(np.abs(gap).mean()) / len(pairs)
            g += (p @ np.sign(gap)) / (len(y) * len(pairs))
        if f < least:
            best, least = w, f
        step = -RATE / np.sqrt(t + 1) * (g - g @ w)
        w = w * np.exp(np.clip(step, -20, 20))
        w = w / w.sum()
    return best


def _safe_errors(predictions: Sequence[Floats], truth: Sequence[Floats]) -> Floats:
    return np.array([np.abs(p[0] - y).mean() for p, y in zip(predictions, truth, strict=True)])


def _floor(safe: Floats) -> float:
    return max(LEAST_ERROR * float(np.median(safe)), 1e-12)


@dataclass(frozen=True)
class StackedMean:
    """Weights of the candidates, and whether the mean by them is worse than the safe candidate."""

    weights: Floats  # (C,), from all virtual targets
    held_out: Floats  # (V, C): for each virtual target, the weights that the others give
    errors: Floats  # (V,): error of the mean by these on each
    ratio: float  # mean log ratio of these errors to the safe candidate's
    standard_error: float  # of that mean

    @property
    def worse(self) -> bool:
        """Whether it is no better than the safe candidate, by a standard error at least.

        Half as much error again is too much, however large the standard error. The judgment leans
        to the safe candidate's side: weights are of fewer virtual targets, and networks of half the
        training.
        """
        return self.ratio >= min(self.standard_error, TOO_MUCH)


def stack(predictions: Sequence[Floats], truth: Sequence[Floats]) -> StackedMean:
    """Fit weights, and judge them where each virtual target is left out of their fit."""
    folds = range(len(truth))
    held_out = np.array(
        [
            stack_weights(
                [predictions[j] for j in folds if j != v], [truth[j] for j in folds if j != v]
            )
            for v in folds
        ]
    )
    errors = np.array(
        [np.abs(w @ p - y).mean() for w, p, y in zip(held_out, predictions, truth, strict=True)]
    )
    safe = _safe_errors(predictions, truth)
    judged = guard(np.maximum(np.stack((safe, errors), 1), _floor(safe)))
    ratio, spread = float(judged.ratios[:, 1].mean()), float(judged.standard_errors[1])
    return StackedMean(stack_weights(predictions, truth), held_out, errors, ratio, spread)
