"""The divergences as training losses."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from vntransfer.arrays import take
from vntransfer.checks import number
from vntransfer.divergences import conditional_von_neumann, response_divergence
from vntransfer.errors import ArgumentError
from vntransfer.linalg import safe_sqrt
from vntransfer.moments import Moments
from vntransfer.ridge import auto_ridge

Ridge = float | Literal["auto"]


class JeffreysLoss(nn.Module):
    """The paper's loss √J(cov[x, y] : cov[x, ŷ]) over a batch (Section 3), with its bias.

    It is zero if and only if ŷ has the variance of y and the same covariance with every x_i. It
    cannot see the mean of ŷ (use `fit_bias` to correct it) nor any part of y that is uncorrelated
    with every column of x. For strongly nonlinear responses it is not a proper loss.

    Parameters
    ----------
    sqrt
        √J as in the paper, or J.
    ridge
        See `response_divergence`.

    Attributes
    ----------
    bias : Tensor
        Bias that `correct` adds to predictions; zero until `fit_bias` is called.

    Examples
    --------
    >>> x = torch.arange(6.0).reshape(6, 1)
    >>> y = torch.tensor([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    >>> loss = JeffreysLoss()
    >>> loss(x, y + 1, y)
    tensor(0.)
    >>> loss.fit_bias(y + 1, y)
    tensor([-1.])
    """

    bias: Tensor

    def __init__(self, *, sqrt: bool = True, ridge: Ridge = "auto") -> None:
        super().__init__()
        self.sqrt = sqrt
        self.ridge = ridge
        self.register_buffer("bias", torch.zeros(1))

    def forward(self, x: Tensor, prediction: Tensor, target: Tensor) -> Tensor:
        """Loss of a batch, averaged over leading batch dimensions.

        Parameters
        ----------
        x
            Inputs (..., N, d), with which response and prediction are correlated.
        prediction
            (..., N) or (..., N, m).
        target
            Same shape; or integer class labels (..., N), which become m one-hot columns
            (give probabilities as ``prediction`` then).
        """
        value = response_divergence(
            x, prediction, _columns(target, prediction), sqrt=self.sqrt, ridge=self.ridge
        )
        return value.mean()

    @torch.no_grad()
    def fit_bias(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Set and return b = mean(y - f(x)) over the training set, (N,) or (N, m)."""
        columns = _columns(target, prediction)
        if columns.shape != prediction.shape or prediction.ndim not in (1, 2):
            raise ArgumentError(
                f"prediction, target: expected one shape, (N,) or (N, m), got "
                f"{tuple(prediction.shape)} and {tuple(target.shape)}"
            )
        self.bias = (columns - prediction).reshape(len(prediction), -1).mean(0)
        return self.bias

    def correct(self, prediction: Tensor) -> Tensor:
        """Predictions with the bias added."""
        return prediction + self.bias

    def _load_from_state_dict(self, state: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        if f"{prefix}bias" in state:
            self.bias = torch.zeros_like(state[f"{prefix}bias"])
        super()._load_from_state_dict(state, prefix, *rest)


def _columns(target: Tensor, prediction: Tensor) -> Tensor:
    """Targets in the form of the predictions: class labels become one-hot columns."""
    for name, value in (("target", target), ("prediction", prediction)):
        if not isinstance(value, Tensor):
            raise ArgumentError(f"{name}: expected a torch tensor, got {type(value).__name__}")
    if target.is_floating_point():
        return target
    if prediction.ndim != target.ndim + 1:
        raise ArgumentError(
            f"target: integer labels of shape {tuple(target.shape)} need predictions with a "
            f"column per class, got shape {tuple(prediction.shape)}; for regression use .float()"
        )
    classes = prediction.shape[-1]
    low, high = int(target.min()), int(target.max())
    if low < 0 or high >= classes:
        raise ArgumentError(
            f"target: labels from {low} to {high} do not fit {classes} columns of prediction"
        )
    return nn.functional.one_hot(target.long(), classes).to(prediction)


class ConditionalDivergenceLoss(nn.Module):
    """Symmetric conditional divergence (Eq. 4) between two samples of (features, response).

    Parameters
    ----------
    sqrt
        Give the square root.
    ridge
        Added to both covariances: a number, or "auto" = 1e-3 times the mean variance of both
        samples' features, not differentiated.

    Examples
    --------
    >>> x = torch.randn(200, 2, dtype=torch.float64)
    >>> loss = ConditionalDivergenceLoss()
    >>> bool(loss(x, x[:, 0], x, x[:, 0]) < 1e-12)
    True
    >>> bool(loss(x, x[:, 0], x, -x[:, 0]) > 1)
    True
    """

    def __init__(self, *, sqrt: bool = False, ridge: Ridge = "auto") -> None:
        super().__init__()
        self.sqrt = sqrt
        self.ridge = ridge

    def forward(self, x1: Tensor, y1: Tensor, x2: Tensor, y2: Tensor) -> Tensor:
        """Divergence between samples (x1, y1) and (x2, y2), averaged over batch dimensions."""
        tensors, _ = take(x1=x1, y1=y1, x2=x2, y2=y2)
        if x1.shape[:-2] != x2.shape[:-2] or x1.shape[-1] != x2.shape[-1]:
            raise ArgumentError(
                f"x2: expected {x1.shape[-1]} features and the batch of x1, shape "
                f"{tuple(x1.shape)}, got {tuple(x2.shape)}"
            )
        sigma, rho = (
            Moments.from_samples(x, y).covariance_tensor() for x, y in (tensors[:2], tensors[2:])
        )
        d = x1.shape[-1]
        if sigma.shape != rho.shape:
            raise ArgumentError(
                f"y2: expected {sigma.shape[-1] - d} response columns as in y1, got "
                f"{rho.shape[-1] - d}"
            )
        if self.ridge == "auto":
            ridge = self._auto(sigma.detach(), rho.detach(), torch.cat((x1, x2), -2).detach())
        else:
            ridge = sigma.new_full(sigma.shape[:-2], number("ridge", self.ridge))
        offset = ridge[..., None, None] * torch.eye(sigma.shape[-1]).to(sigma)
        value = conditional_von_neumann(
            sigma + offset, rho + offset, n_response=sigma.shape[-1] - d
        )
        return (safe_sqrt(value) if self.sqrt else value).mean().to(x1.dtype)

    @staticmethod
    def _auto(sigma: Tensor, rho: Tensor, x: Tensor) -> Tensor:
        """One ridge per pair of samples, relative to their mean feature variance."""
        variances = ((sigma + rho) / 2).diagonal(dim1=-2, dim2=-1)
        d = x.shape[-1]
        mean_square = x.double().mean(-2).square().mean(-1)
        return auto_ridge(variances[..., :d].mean(-1), variances[..., d:].sum(-1), mean_square)
