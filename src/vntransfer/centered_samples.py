"""Centered samples in units of the ridge: the input of `vntransfer.bordered`."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from vntransfer.ridge import auto_ridge
from vntransfer.single_precision import check_means, check_responses


class NotFiniteError(ArithmeticError):
    """The samples contain NaN or infinity, or their variance overflows."""


class CenteredSamples(NamedTuple):
    """Centered samples in units of the ridge: z (B, N, d) and x = [δ, a, b] (B, N, 3m)."""

    z: Tensor
    x: Tensor
    variance: Tensor  # of the columns of x, (B, 3m), in their own units
    response: Tensor  # their total in units of the ridge, (B,)
    far: Tensor  # squared means of all columns, (B, d + 3m), in their own units
    unit: Tensor  # the ridge, (B,)
    scale: Tensor  # what z and x are divided by, (B, 1, 1): zz' is K in units of the ridge

    def check(self) -> None:
        """Raise if float32 cannot hold the means or the responses."""
        m = self.x.shape[-1] // 3
        check_means(self.far, self.variance[:, :m].sum(-1), self.unit, self.z.shape[-1])
        check_responses(self.response, m)


def centered(
    features: Tensor, a: Tensor, b: Tensor, ridge: float | Tensor | None
) -> CenteredSamples:
    """Center features (B, N, d) and responses (B, N, m); for ``ridge`` see `bordered_jeffreys`."""
    d = features.shape[-1]
    joint = torch.cat((features, a - b, a, b), -1)
    mean = joint.mean(-2, keepdim=True)
    joint -= mean
    far = mean.square_().squeeze(-2)
    variance = joint.square().sum(-2) / (features.shape[-2] - 1)
    spread, response = variance[:, :d].mean(-1), variance[:, d:].sum(-1)
    if not math.isfinite(float((spread + response).sum())):
        raise NotFiniteError
    if ridge is None:
        unit = auto_ridge(spread, response, far[:, :d].mean(-1))
    elif isinstance(ridge, Tensor):
        unit = ridge.to(spread)
    elif ridge:
        unit = torch.full_like(spread, ridge)
    else:
        unit = torch.where(spread > 0, spread, 1.0)
    scale = (unit * (features.shape[-2] - 1)).sqrt().view(-1, 1, 1)
    joint /= scale
    z, x = joint[..., :d], joint[..., d:]
    return CenteredSamples(z, x, variance[:, d:], response / unit, far, unit, scale)
