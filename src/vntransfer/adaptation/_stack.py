"""Weights of candidates in a mean, fitted to what they predicted on virtual targets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vntransfer.adaptation._guard import guard

Floats = NDArray[np.float64]

STEPS, RATE = 400, 0.5
ROWS = 1000
"""Rows of a virtual target that are used at most."""


def stack_weights(predictions: Sequence[Floats], truth: Sequence[Floats]) -> Floats:
    """Weights (C,) on the simplex of the least error on virtual targets.

    With e_v(w) the mean absolute error of the mean by w on virtual target v, the mean over v of
    e_v(w)/e_v(safe) is minimised by mirror descent from equal weights: w ← w exp(-η_t g), η_t
    falling like 1/√t; the best w on the way is kept.

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
    pairs = []
    for p, y in zip(predictions, truth, strict=True):
        step = -(-len(y) // ROWS)
        base = max(float(np.abs(p[0] - y).mean()), 1e-12)
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


@dataclass(frozen=True)
class Stacked:
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
        Mean log ratio of these errors to the safe candidate's.
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

        The judgement leans to the safe candidate's side: weights are of fewer virtual targets, and
        networks of half the training.
        """
        return self.ratio >= self.standard_error


def stack(predictions: Sequence[Floats], truth: Sequence[Floats]) -> Stacked:
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
    safe = np.array([np.abs(p[0] - y).mean() for p, y in zip(predictions, truth, strict=True)])
    judged = guard(np.stack((safe, errors), 1))
    ratio, spread = float(judged.ratios[:, 1].mean()), float(judged.standard_errors[1])
    return Stacked(stack_weights(predictions, truth), held_out, errors, ratio, spread)
