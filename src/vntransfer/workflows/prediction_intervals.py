"""Prediction intervals from sources that were held out, weighted like the sources themselves.

With e = |y - ŷ| the errors on the rows of source i, predicted without its responses, and w_i the
learned weight of that source, the half width at level 1 - α is the (1 - α) quantile of

    F = Σ_i w_i F_i,    F_i the distribution of e on source i.

If the target were drawn like one more source (and all weights were equal), the interval would cover
a new row with probability 1 - α up to a term of order 1/(K + 1): with K sources no method can know
how unusual a further one is beyond that. A target unlike all sources gets no guarantee.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import number
from vntransfer.display import counted, one_line, rounded
from vntransfer.errors import ArgumentError

Floats = NDArray[np.float64]

KEPT = 2000
"""Errors of a source that are kept at most, evenly spaced quantiles of all."""


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
    def from_errors(cls, errors: Mapping[str, Floats], weights: Mapping[str, float]) -> Self:
        """Join the errors of the sources' rows, predicted without their responses.

        The rows of a source share its weight; signs of errors do not matter.
        """
        parts: list[tuple[Floats, Floats]] = []
        for name, own in errors.items():
            size = np.abs(own[np.isfinite(own)])
            if weights[name] <= 0 or not len(size):
                continue
            if len(size) > KEPT:
                size = np.quantile(size, (np.arange(KEPT) + 0.5) / KEPT)
            parts.append((size, np.full(len(size), weights[name] / len(size))))
        if not parts:
            raise ArgumentError("errors: none of a source with a weight; nothing to calibrate on")
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
