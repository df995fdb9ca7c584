"""Sentences on what `AutoTransferRegressor` chose, and why."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vntransfer.adaptation._selection import SAFE
from vntransfer.adaptation.blend import Blend
from vntransfer.display import counted, plus_minus

Floats = NDArray[np.float64]

TITLES = {SAFE: "a plain ensemble of networks", "linear_trees": "boosted linear trees"}
"""What candidates are called in sentences."""

SAME = 0.05
"""Percent below which errors are called equal."""


def counted_models(weights: Floats) -> str:
    """Say how many models have a weight."""
    n = int((weights > 0).sum())
    return "One model" if n == 1 else f"An average of {counted(n, 'model')}"


def reason_of(names: Sequence[str], weights: Floats, found: Blend) -> str:
    """Say what was chosen and what it gains on held-out sources."""
    first = TITLES.get(best := names[int(weights.argmax())], best)
    n = int((weights > 0).sum())
    said = f"A weighted average of {n} models, mostly {first}." if n > 1 else f"{_title(first)}."
    reference = TITLES.get(names[0], names[0])
    if n == 1 and weights[0] > 0:
        return f"{said} On held-out sources no other candidate lowers its error."
    apart, spread = 100 * np.expm1(found.ratio), 100 * np.expm1(found.standard_error)
    side = "below" if apart < 0 else "above"
    if abs(apart) + spread < SAME:
        return f"{said} On held-out sources its error equals that of {reference}."
    gain = plus_minus(abs(apart), spread)
    return f"{said} On held-out sources its error is {gain} % {side} {reference}."


def caution_text(names: Sequence[str], part: float) -> str:
    """Say that the average is used in part, and why; "" if that part is nearly all."""
    if round(100 * part) >= 100:
        return ""
    reference = TITLES.get(names[0], names[0])
    return (
        f" As a precaution it keeps only {100 * part:.0f} % of its difference from {reference}, "
        f"which is larger at the target than on a quarter of the held-out sources."
    )


def _title(text: str) -> str:
    return text[:1].upper() + text[1:]
