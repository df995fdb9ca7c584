"""Weights of candidates in a mean, fitted to what they predicted on virtual targets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vntransfer.adaptation.guarded_choice import guard

Floats = NDArray[np.float64]

STEPS, RATE = 400, 0.5
ROWS = 1000
"""Rows of a virtual target that are used at most."""
LEAST_ERROR = 0.1
"""Of the median error: what errors are measured by where the safe candidate makes hardly any."""
TOO_MUCH = float(np.log(1.5))
"""Ratio of errors that no doubt excuses."""


def stack_weights(predictions: Sequence[Floats], truth: Sequence[Floats]) -> Floats:
    """Weights (C,) on the simplex of the least error on virtual targets.

    With e_v(w) the mean absolute error of the mean by w on virtual target v, the mean over v of
    e_v(w)/e_v(safe) is minimized by mirror descent from equal weights: w ← w exp(-η_t g), η_t
    falling like 1/√t; the best w on the way is kept. No e_v(safe) counts as less than a tenth of
    their median: where nothing can go wrong, nothing can be learned about who is better.

    Parameters
    ----------
    predictions
        (C, n) for each virtual target, the safe candidate first.
    truth
        (n,) for each.

    Examples
    --------
    >>> y = np.arange(10.0)
    >>> stack_weights([np.stack((y + 2, y - 1, y + 30))], [y]).round(1)
    array([0.3, 0.7, 0. ])
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
    """Weights of the candidates, and whether the mean by them is worse than the safe candidate.

    Parameters
    ----------
    weights
        (C,), from all virtual targets.
    held_out
        (V, C): for each virtual target, the weights that the others give.
    errors
        (V,): error of the mean by these on each.
    ratio
        Mean log ratio of these errors to the safe candidate's; neither counts as less than a tenth
        of the median of the latter.
    standard_error
        Of that mean.
    """

    weights: Floats
    held_out: Floats
    errors: Floats
    ratio: float
    standard_error: float

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
