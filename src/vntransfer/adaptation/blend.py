"""Weights of candidates from their predictions of held-out sources."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ANCHORED = 0.4
"""Share of the anchor in the weights, whatever held-out sources say."""
TRIMMED = 0.25
"""Share of the weight that is cut at either end of the candidates' predictions of a row."""
LEAST_ERROR = 0.25
"""Of the median over held-out sources of the smallest error: no error counts as less."""
STEPS, RATE = 300, 0.3
ROWS = 1000
"""Rows of a held-out source that are used at most."""
TYPICAL = 0.25
"""Quantile, over held-out sources, of how far the average is from the reference."""
FACTORS = (1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0)
"""Stretches that are tried."""


def blend_weights(predictions: Sequence[Floats], truth: Sequence[Floats], anchor: Floats) -> Floats:
    """Weights (C,) of candidates by the formula of `AutoTransferRegressor`, with errors on sources.

    Mirror descent from equal weights finds w. The errors of a source count at least .25 of the
    median over sources.

    Parameters
    ----------
    predictions, truth
        (C, n) and (n,) for each held-out source.
    anchor
        Weights (C,) that are given without evidence.

    Examples
    --------
    >>> y = np.random.default_rng(0).normal(size=(3, 50))
    >>> good_and_bad = [np.stack((own + 0.1, own + 1)) for own in y]
    >>> blend_weights(good_and_bad, list(y), np.array([0.5, 0.5])).round(2)
    array([0.8, 0.2])
    """
    least = errors_of(predictions, truth).min(1)
    least = np.maximum(least, max(LEAST_ERROR * float(np.median(least)), 1e-12 * least.max()))
    spread = np.array([np.abs(y - np.median(y)).mean() for y in truth])
    counts = np.minimum(1.0, spread / spread.mean()) if spread.any() else np.ones(len(truth))
    factors = counts / counts.sum() / np.where(least > 0, least, 1.0)
    pairs = []
    for p, y, factor in zip(predictions, truth, factors, strict=True):
        step = -(-len(y) // ROWS)
        pairs.append((p[:, ::step] * factor, y[::step] * factor))
    w = np.full(len(anchor), 1 / len(anchor))
    best, lowest = w, np.inf
    for t in range(STEPS):
        f, g = 0.0, np.zeros(len(w))
        for p, y in pairs:
            gap = w @ p - y
            f += float(np.abs(gap).mean())
            g += p @ np.sign(gap) / len(y)
        if f < lowest:
            best, lowest = w, f
        w = w * np.exp(np.clip(-RATE / np.sqrt(t + 1) * (g - g @ w), -20, 20))
        w = w / w.sum()
    return ANCHORED * anchor + (1 - ANCHORED) * best


def middle_average(predictions: Floats, weights: Floats) -> Floats:
    """Average (n,) of predictions (C, n) over the middle half of their weights.

    For each row, predictions are sorted, a quarter of the weight is cut at either end, and the rest
    is averaged: halfway between a weighted mean and a weighted median. A candidate that goes astray
    at a target cannot take the others along.

    Examples
    --------
    >>> three = np.array([[1.0], [2.0], [90.0]])
    >>> middle_average(three, np.array([0.4, 0.4, 0.2])).round(2)
    array([1.7])
    """
    order = np.argsort(predictions, 0, kind="stable")
    values, own = np.take_along_axis(predictions, order, 0), (weights / weights.sum())[order]
    end = np.cumsum(own, 0)
    kept = np.minimum(end, 1 - TRIMMED) - np.maximum(end - own, TRIMMED)
    kept = np.maximum(kept, 0.0)
    return np.asarray((kept * values).sum(0) / kept.sum(0))


def caution(held_out: Sequence[Floats], here: Floats, weights: Floats) -> float:
    """Part f of the difference from the reference to the average that is used, 0 <= f <= 1.

    The step is the mean over rows of |average - reference|, the reference being the first
    candidate. Gains were measured on held-out sources, where the step has a certain size; f keeps
    the step at a target at or below the lower quartile of these sizes::

        f = min(1, quartile_v(step_v) / step_target)

    A larger step is a sign that the candidates contradict each other.

    Parameters
    ----------
    held_out, here
        Predictions (C, n) for each held-out source, and for the target.
    weights
        Those of the candidates, (C,).

    Examples
    --------
    >>> near, far = np.array([[0.0], [1.0]]), np.array([[0.0], [4.0]])
    >>> caution([near, near], far, np.array([0.5, 0.5])), caution([far, far], near, np.ones(2))
    (0.25, 1.0)
    """

    def step(p: Floats) -> float:
        return float(np.abs(middle_average(p, weights) - p[0]).mean())

    usual, own = float(np.quantile([step(p) for p in held_out], TYPICAL)), step(here)
    return 1.0 if own <= usual else usual / own


def cautious_average(predictions: Floats, weights: Floats, factor: float) -> Floats:
    """Move (n,) from the first of predictions (C, n) toward their middle average by a factor."""
    average = middle_average(predictions, weights)
    return average if factor == 1 else predictions[0] + factor * (average - predictions[0])


def errors_of(predictions: Sequence[Floats], truth: Sequence[Floats]) -> Floats:
    """Mean absolute errors (V, C)."""
    return np.array([np.abs(p - y).mean(1) for p, y in zip(predictions, truth, strict=True)])


def _without_each(folds: Sequence[Floats]) -> list[list[Floats]]:
    """Give for each held-out source what belongs to the others."""
    return [[*folds[:v], *folds[v + 1 :]] for v in range(len(folds))]


@dataclass(frozen=True)
class Blend:
    """Weights of candidates, and how they do where they were not fitted."""

    weights: Floats  # (C,), from all held-out sources
    held_out: Floats  # (V, C): for each held-out source, the weights that the others give
    cautions: Floats  # (V,): for each, the `caution` that the others ask for
    errors: Floats  # (V,): error of their cautious average on each
    ratio: float  # mean log ratio of these errors to the reference's, the first candidate
    standard_error: float  # of that mean


def blend(predictions: Sequence[Floats], truth: Sequence[Floats], anchor: Floats) -> Blend:
    """Fit weights, and evaluate them on each held-out source without it in their fit."""
    rest = list(zip(_without_each(predictions), _without_each(truth), strict=True))
    held_out = np.array([blend_weights(p, y, anchor) for p, y in rest])
    cautions = np.ones(len(truth))
    for v, (others, _) in enumerate(rest):
        if others:
            cautions[v] = caution(others, predictions[v], held_out[v])
    errors = np.array(
        [
            np.abs(cautious_average(p, w, f) - y).mean()
            for w, f, p, y in zip(held_out, cautions, predictions, truth, strict=True)
        ]
    )
    reference = errors_of(predictions, truth)[:, 0]
    least = max(LEAST_ERROR * float(np.median(reference)), np.finfo(np.float64).tiny)
    ratios = np.log(np.maximum(errors, least) / np.maximum(reference, least))
    spread = float(ratios.std(ddof=1) / np.sqrt(len(ratios)))
    weights = blend_weights(predictions, truth, anchor)
    return Blend(weights, held_out, cautions, errors, float(ratios.mean()), spread)


class Stretch(NamedTuple):
    """A map of predictions, p -> clip(c + b (p - c), low, high), with factor b and center c.

    An average of models lies between them, and so avoids both ends where responses gather there, as
    stars of reviews do. The mean absolute error asks for the middle of the likely responses, which
    is then at one end or the other.
    """

    factor: float = 1.0
    center: float = 0.0

    def __call__(self, p: Floats, limits: tuple[float, float]) -> Floats:
        """Map predictions."""
        if self.factor == 1:
            return p
        return np.asarray(np.clip(self.center + self.factor * (p - self.center), *limits))


def find_stretch(predictions: Sequence[Floats], truth: Sequence[Floats]) -> list[Stretch]:
    """Stretches of least error on held-out sources: of all, and then of all but each.

    No stretch, unless those of the other sources lower the error on a source: the mean log ratio
    of its errors with and without must be below minus its standard error.

    Parameters
    ----------
    predictions, truth
        (n,) for each held-out source.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice([1.0, 5.0], size=(4, 200))
    >>> shy = [3 + 0.4 * (own - 3) + rng.normal(0, 0.3, size=200) for own in y]
    >>> find_stretch(shy, list(y))[0].factor
    3.0
    """
    every, none = np.concatenate(truth), [Stretch()] * (1 + len(truth))
    limits = float(every.min()), float(every.max())
    if len(truth) < 3 or limits[0] == limits[1]:
        return none
    rest = zip(_without_each(predictions), _without_each(truth), strict=True)
    own = [_best_stretch(np.concatenate(p), np.concatenate(y), limits) for p, y in rest]
    gains = np.array(
        [
            np.log(max(np.abs(s(p, limits) - y).mean(), least) / max(np.abs(p - y).mean(), least))
            for s, p, y in zip(own, predictions, truth, strict=True)
            for least in [1e-9 * (limits[1] - limits[0])]
        ]
    )
    if gains.mean() >= -gains.std(ddof=1) / np.sqrt(len(gains)):
        return none
    return [_best_stretch(np.concatenate(predictions), every, limits), *own]


def _best_stretch(p: Floats, y: Floats, limits: tuple[float, float]) -> Stretch:
    tried = [Stretch()]
    centers = np.quantile(p, np.arange(0.1, 0.95, 0.1)).tolist()
    tried += [Stretch(factor, center) for factor in FACTORS for center in centers]
    return min(tried, key=lambda stretch: float(np.abs(stretch(p, limits) - y).mean()))


class Bounds(NamedTuple):
    """Bounds on an average of candidates."""

    limits: tuple[float, float]  # lowest and highest prediction
    caution: float = 1.0  # part of the step from the first candidate to the average
    stretch: Stretch = Stretch()

    def average(self, every: Floats, weights: Floats) -> Floats:
        """Average predictions (C, n), the reference's first."""
        kept = np.clip(every, *self.limits)
        return self.stretch(cautious_average(kept, weights, self.caution), self.limits)
