"""Prediction intervals from sources that were held out, weighted to look like the target.

With e = |y - ŷ| the errors on the rows of source i, predicted without its responses, the half width
at level 1 - α is the (1 - α) quantile of e over all rows, where a row of source i weighs w_i q(d).
d is the disagreement there (standard deviation of the predictions of the model and two fast
learners), and q the ratio of its densities on the target and on held-out sources (weighted
conformal prediction under a shift of d; Tibshirani et al. 2019): where models disagree errors are
larger, and that can be seen without responses. w_i does not depend on resemblance to the target: on
targets of known response that did not help.

If the target were drawn like one more source, the interval would cover a new row with probability
1 - α up to a term of order 1/(K + 1): with K sources no method can know how unusual a further one
is beyond that. A target unlike all sources gets no guarantee.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from vntransfer.checks import Floats, number
from vntransfer.display import counted, one_line, rounded
from vntransfer.errors import ArgumentError

KEPT = 2000
"""Errors of a source that are kept at most, evenly spaced quantiles of all."""

BINS, SOFT = 5, 0.1
"""Bins of the disagreement, and what is added to the shares of both before their ratio is taken."""

UNUSUAL = 0.95
"""Quantile of the disagreement on held-out rows above which it is unusual."""


class Disagreement(NamedTuple):
    """How far predictions of several models are apart: on held-out sources' rows, on the target's.

    Examples
    --------
    >>> held_out = {"a": np.arange(10.0), "b": np.arange(10.0)}
    >>> near, far = (Disagreement(held_out, x) for x in (np.arange(10.0), np.full(10, 20.0)))
    >>> near.unusual(), far.unusual()
    (0.0, 1.0)
    >>> far.factors()["a"].round(1)
    array([0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 3.7, 3.7])
    """

    held_out: Mapping[str, Floats]
    target: Floats

    def unusual(self) -> float:
        """Share of the target's rows where it is larger than on 95 % of held-out rows."""
        every = np.concatenate([own[np.isfinite(own)] for own in self.held_out.values()])
        if not len(every) or not len(self.target):
            return 0.0
        return float((self.target > np.quantile(every, UNUSUAL)).mean())

    def factors(self) -> dict[str, Floats]:
        """Ratio of the target's to the held-out density of the disagreement, for held-out rows.

        By five bins of equal numbers of held-out rows, each source counting the same.
        """
        every = [own[np.isfinite(own)] for own in self.held_out.values()]
        pooled = np.concatenate(every)
        if not len(pooled) or not len(self.target):
            return {name: np.ones(len(own)) for name, own in self.held_out.items()}
        cuts = np.unique(np.quantile(pooled, np.arange(1, BINS) / BINS))
        n = len(cuts) + 1
        seen = [np.bincount(np.searchsorted(cuts, own), minlength=n) for own in every if len(own)]
        source = np.mean([own / own.sum() for own in seen], axis=0)
        here = np.bincount(np.searchsorted(cuts, self.target), minlength=n) / len(self.target)
        ratio = (here + SOFT) / (source + SOFT)
        return {
            name: ratio[np.searchsorted(cuts, np.nan_to_num(own))]
            for name, own in self.held_out.items()
        }


@dataclass(frozen=True, eq=False)
class Calibration:
    """Errors on held-out sources and their weights.

    Examples
    --------
    >>> held_out = {"near": np.array([1.0, 2.0]), "far": np.array([10.0, 20.0])}
    >>> Calibration.from_errors(held_out, {"near": 0.9, "far": 0.1}).half_width(0.9)
    2.0
    """

    errors: Floats  # absolute, (n,), in rising order
    weights: Floats  # (n,), of sum one

    @classmethod
    def from_errors(
        cls,
        errors: Mapping[str, Floats],
        weights: Mapping[str, float],
        counts: Mapping[str, Floats] | None = None,
        factors: Mapping[str, Floats] | None = None,
    ) -> Self:
        """Join the errors of the sources' rows, predicted without their responses.

        The rows of a source share its weight; signs of errors do not matter. ``counts`` say how
        many rows each error stands for (at most `KEPT` errors, all finite); None: one. ``factors``
        multiply the weights of single rows (at most `KEPT` errors), see `Disagreement`.
        """
        parts: list[tuple[Floats, Floats]] = []
        for name, own in errors.items():
            many = np.ones(len(own)) if counts is None else counts[name].astype(np.float64)
            factor = np.ones(len(own)) if factors is None else factors[name]
            fine = np.isfinite(own)
            size, many, factor = np.abs(own[fine]), many[fine], factor[fine]
            if weights[name] <= 0 or not len(size):
                continue
            if counts is None and factors is None and len(size) > KEPT:
                size = np.quantile(size, (np.arange(KEPT) + 0.5) / KEPT)
                many = factor = np.ones(KEPT)
            parts.append((size, weights[name] * factor * many / many.sum()))
        if not parts:
            raise ArgumentError(
                "errors: no source has errors and a weight; nothing to calibrate on"
            )
        size, w = (np.concatenate(own) for own in zip(*parts, strict=True))
        order = np.argsort(size, kind="stable")
        return cls(size[order], w[order] / w.sum())

    def half_width(self, level: float) -> float:
        """Half width of an interval that would have covered ``level`` of the weighted rows."""
        check_level(level)
        at = np.searchsorted(np.cumsum(self.weights), level * (1 - 1e-12))
        return float(self.errors[min(int(at), len(self.errors) - 1)])

    def __repr__(self) -> str:
        rows, half = counted(len(self.errors), "held-out row"), rounded(self.half_width(0.9))
        return one_line(f"Calibration on {rows}: 90 % by weight lie within ± {half}")


def check_level(level: float) -> None:
    """Raise unless a level is a share between 0 and 1."""
    if not 0 < number("level", level) < 1:
        raise ArgumentError(f"level: expected a share between 0 and 1, got {level!r}")
