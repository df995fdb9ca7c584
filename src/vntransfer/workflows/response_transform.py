"""The scale on which responses are learned, and a hint for those that are skewed."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from vntransfer.checks import Floats
from vntransfer.display import percent, rounded, short
from vntransfer.errors import ArgumentError

Kind = Literal["log", "none"]
Asked = Literal["auto", "log", "none"]

SKEWED = 2.5
"""Distance of the 95 % quantile from the median over that of the 5 % quantile."""

HEAVY = 0.2
"""Share of all absolute deviations from the median that the farthest 1 % of the rows make up."""

CLASSES = 10
"""Different values up to which responses are like classes: their shape means nothing."""

LARGEST = 700.0
"""Logarithms above this would overflow."""


@dataclass(frozen=True)
class ResponseTransform:
    """The scale on which responses are learned; predictions are in the user's units.

    Predicted logarithms are kept within the range of the sources' responses.

    Examples
    --------
    >>> scale = ResponseTransform.fitted("log", np.array([1.0, 100.0]))
    >>> scale.undo(scale.apply(np.array([10.0, 1e6]))).round(6)
    array([ 10., 100.])
    """

    kind: Kind = "none"
    low: float = 0.0  # of the transformed responses
    high: float = 0.0
    reason: str = ""

    @classmethod
    def fitted(cls, kind: Kind, y: Floats, reason: str = "") -> Self:
        """Remember the range of the sources' responses."""
        if kind == "none":
            return cls(reason=reason)
        if not (y > 0).all():
            raise ArgumentError(
                f"transform: the log scale needs positive responses, and {(y <= 0).sum():,} of "
                f"{len(y):,} are not (the smallest is {y.min():g}); use transform 'none'"
            )
        return cls(kind, float(np.log(y.min())), float(np.log(y.max())), reason)

    def apply(self, y: Floats) -> Floats:
        """Bring responses to the scale."""
        return y if self.kind == "none" else np.log(y)

    def bounded(self, t: Floats) -> Floats:
        """Keep values on the scale within the sources' range; what is not finite stays."""
        if self.kind == "none":
            return t
        return np.where(np.isfinite(t), np.clip(t, self.low, self.high), t)

    def undo(self, t: Floats) -> Floats:
        """Bring predictions on the scale back to the user's units."""
        return t if self.kind == "none" else self.shifted(t, 0.0)

    def shifted(self, t: Floats, half: float) -> Floats:
        """Give the end of an interval: a prediction on the scale plus ``half``, in user's units."""
        if self.kind == "none":
            return t + half
        return np.exp(np.minimum(self.bounded(t) + half, LARGEST))

    def reach(self, half: float) -> str:
        """Say how far an interval reaches: "± 38" or "a factor of 1.4"."""
        if self.kind == "none":
            return f"± {rounded(half)}"
        return f"a factor of {rounded(float(np.exp(min(half, LARGEST))))}"


def shape_hint(y: Floats, response: str) -> str:
    """Say that responses are skewed or have few extreme values, or "".

    Examples
    --------
    >>> shape_hint(np.exp(np.random.default_rng(0).normal(size=500)), "price")[:16]
    'price is skewed:'
    >>> shape_hint(np.arange(500.0), "price")
    ''
    """
    if len(np.unique(y)) <= CLASSES:
        return ""
    low, middle, high = np.quantile(y, (0.05, 0.5, 0.95))
    gaps = np.sort(np.abs(y - middle))[::-1]
    few = max(1, round(0.01 * len(y)))
    total = gaps.sum()
    share = gaps[:few].sum() / total if total > 0 and len(y) >= 100 else 0.0
    said = []
    if high - middle > SKEWED * (middle - low) and high > middle:
        said.append(f"half of the values are at most {rounded(middle)}, 5 % above {rounded(high)}")
    if share > HEAVY:
        said.append(f"1 % of the rows make up {percent(share)} of all deviations from the median")
    shape = "skewed" if said and said[0].startswith("half") else "heavy-tailed"
    return f"{short(response)} is {shape}: {' and '.join(said)}" if said else ""
