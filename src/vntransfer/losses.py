"""√J as a training loss."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from vntransfer.divergences import response_divergence
from vntransfer.errors import ArgumentError

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
