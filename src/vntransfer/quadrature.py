"""Quadrature of ∫ f(ε + t) dt over t > 0, the integral of resolvents that a logarithm is."""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np


class Rule(NamedTuple):
    """Accuracy of the quadrature: node spacing in u and e-folds beyond the spectrum."""

    spacing: float
    margin: float


RULES = {"float64": Rule(0.75, 12.0), "float32": Rule(1.4, 7.0)}
"""Relative errors, rounding apart, of 1e-11 and 1e-6: exp(-2π²/spacing) and exp(-2 margin)."""


class Nodes(NamedTuple):
    """Quadrature ∫ f(ε + t) dt ≈ Σ weight f(tau) with T nodes; all (T,), lists or arrays."""

    tau: Any  # ε + t
    share: Any  # t/τ
    weight: Any


def nodes_for(low: float, high: float, ridge: float, dtype: str = "float64") -> Nodes:
    """Trapezoid nodes in u = log t for spectra within [low, high].

    Raises `OverflowError` if the largest node is beyond the numbers of the dtype.
    """
    rule = RULES[dtype]
    start, stop = math.log(low) - rule.margin, math.log(high) + rule.margin
    if not stop + rule.spacing < math.log(np.finfo(dtype).max):
        raise OverflowError(f"nodes up to exp({stop:g}) in {dtype}")
    return _nodes(start, rule.spacing, math.ceil((stop - start) / rule.spacing) + 1, ridge)


@lru_cache(maxsize=128)
def _nodes(start: float, spacing: float, count: int, ridge: float) -> Nodes:
    """Nodes at u = start + k spacing."""
    t = [math.exp(start + k * spacing) for k in range(count)]
    weight = [spacing * v for v in t]
    # f -> const for t -> 0 and f ~ 1/t² for t -> inf: both cut tails are geometric series.
    weight[0] /= -math.expm1(-spacing)
    weight[-1] /= -math.expm1(-spacing)
    return Nodes([ridge + v for v in t], [v / (ridge + v) for v in t], weight)
