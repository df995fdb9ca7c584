"""The automatic ridge of functions that take samples."""

import warnings

import torch
from torch import Tensor

from vntransfer.errors import NumericalWarning

AUTO_RIDGE = 1e-3
"""The automatic ridge, relative to the mean eigenvalue of the feature covariance."""


def auto_ridge(variance: Tensor, response: Tensor, mean_square: Tensor) -> Tensor:
    """1e-3 times the mean variance of the features, (B,), with a floor.

    Where features do not vary beyond rounding, the responses' variance takes their place (or, if
    they are constant too, one), with a warning.

    Parameters
    ----------
    variance
        Mean variance of the feature columns.
    response
        Total variance of the response columns.
    mean_square
        Mean squared mean of the feature columns: what their rounding is relative to.
    """
    finfo = torch.finfo(variance.dtype)
    noise, least = (4 * finfo.eps) ** 2, finfo.tiny / finfo.eps
    dead = variance <= mean_square * noise + least
    if not dead.any():
        return AUTO_RIDGE * variance
    unit = torch.where(dead, torch.where(response > least, response, 1.0), variance)
    warnings.warn(
        f"features: constant in {int(dead.sum())} of {dead.numel()} sample sets, where 'auto' "
        f"would give a ridge of zero; a ridge of up to "
        f"{AUTO_RIDGE * float(unit[dead].max()):.2g} is used there",
        NumericalWarning,
        stacklevel=2,
    )
    return AUTO_RIDGE * unit
