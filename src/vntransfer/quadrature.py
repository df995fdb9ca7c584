"""Quadrature of ∫ f(ε + t) dt over t > 0, the integral of resolvents that a logarithm is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor


class Rule(NamedTuple):
    """Accuracy of the quadrature: node spacing in u and e-folds beyond the spectrum."""

    spacing: float
    margin: float


RULES = {torch.float64: Rule(0.75, 12.0), torch.float32: Rule(1.4, 7.0)}
"""Relative errors, rounding apart, of 1e-11 and 1e-6: exp(-2π²/spacing) and exp(-2 margin)."""


@dataclass
class Nodes:
    """Quadrature ∫ f(ε + t) dt ≈ Σ weight f(tau) with T nodes, shared by the batch; all (T,)."""

    tau: Tensor  # ε + t
    share: Tensor  # t/τ
    weight: Tensor


def nodes_for(low: float, high: Tensor, ridge: float) -> Nodes:
    """Trapezoid nodes in u = log t for spectra within [low, max(high)].

    Raises `OverflowError` if the largest node is beyond the numbers of the dtype of ``high``.
    """
    rule = RULES[high.dtype]
    start, stop = math.log(low) - rule.margin, math.log(float(high.max())) + rule.margin
    if not stop + rule.spacing < math.log(torch.finfo(high.dtype).max):
        raise OverflowError(f"nodes up to exp({stop:g}) in {high.dtype}")
    count = math.ceil((stop - start) / rule.spacing) + 1
    rows = _rows(start, rule.spacing, count, ridge)
    return Nodes(*torch.tensor(rows, dtype=high.dtype, device=high.device))


@lru_cache(maxsize=128)
def _rows(start: float, spacing: float, count: int, ridge: float) -> tuple[Sequence[float], ...]:
    """Rows of `Nodes` for u = start + k spacing."""
    t = [math.exp(start + k * spacing) for k in range(count)]
    weight = [spacing * v for v in t]
    # f -> const for t -> 0 and f ~ 1/t² for t -> inf: both cut tails are geometric series.
    weight[0] /= -math.expm1(-spacing)
    weight[-1] /= -math.expm1(-spacing)
    return [ridge + v for v in t], [v / (ridge + v) for v in t], weight
