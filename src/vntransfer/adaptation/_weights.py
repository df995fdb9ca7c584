"""Weights (..., K) on the simplex: projections after a gradient step, DARN's closed form."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

Update = Literal["simplex", "clamp", "l1"]


def project_simplex(w: Tensor) -> Tensor:
    """Nearest point with non-negative entries of sum one."""
    ordered = w.sort(descending=True).values
    excess = (ordered.cumsum(-1) - 1) / torch.arange(1, w.shape[-1] + 1).to(w)
    support = (ordered > excess).sum(-1, keepdim=True)
    out = (w - excess.gather(-1, support - 1)).clamp_min(0)
    return out / out.sum(-1, keepdim=True)


def clamp_weights(w: Tensor) -> Tensor:
    """Clamp to [1/(10K), 1 - 1/(10K)] and divide by the sum (Richard et al. 2020)."""
    edge = 1 / (10 * w.shape[-1])
    out = w.clamp(edge, max(1 - edge, edge))
    return out / out.sum(-1, keepdim=True)


def normalize_l1(w: Tensor) -> Tensor:
    """Divide by the L1 norm as the paper's Algorithm 1 does: entries can be negative."""
    norm = w.abs().sum(-1, keepdim=True)
    return torch.where(norm > 0, w / norm, 1 / w.shape[-1])


UPDATES: dict[Update, Callable[[Tensor], Tensor]] = {
    "simplex": project_simplex,
    "clamp": clamp_weights,
    "l1": normalize_l1,
}


def adam_slope(slope: Tensor, moments: Tensor, step: int) -> Tensor:
    """Direction of Adam's step number ``step``, from 1; ``moments`` (2, ...) change in place."""
    first, second = moments
    first.lerp_(slope, 0.1)
    second.lerp_(slope.square(), 0.001)
    return (first / (1 - 0.9**step)) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)


def darn_weights(g: Tensor) -> Tensor:
    """Minimizer of <g, a> + ‖a‖₂ over the simplex, in closed form.

    a is proportional to [ν - g]₊ where ‖[ν - g]₊‖₂ = 1. On a support of the k smallest g with mean
    m, ν = m + √((1 - Σ(g - m)²)/k); the largest support with ν > g on it is the right one.
    """
    above = (g - g.amin(-1, keepdim=True)).double()
    ordered = above.sort().values
    k = torch.arange(1, g.shape[-1] + 1).to(ordered)
    mean = ordered.cumsum(-1) / k
    spread = ordered.square().cumsum(-1) - k * mean.square()
    nu = mean + ((1 - spread).clamp_min(0) / k).sqrt()
    valid = (spread < 1) & (nu > ordered)
    last = (valid * k).argmax(-1, keepdim=True)
    out = (nu.gather(-1, last) - above).clamp_min(0)
    return (out / out.sum(-1, keepdim=True)).to(g)
