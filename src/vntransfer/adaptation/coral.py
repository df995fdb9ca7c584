"""Alignment of feature covariances."""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from vntransfer._arrays import number
from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._objective import (
    NETWORK,
    Batch,
    Objective,
    Setup,
    Step,
    source_errors,
)
from vntransfer.networks import Net


def feature_covariance(z: Tensor) -> Tensor:
    """Unbiased covariance of features, differentiable: (..., B, d) -> (..., d, d)."""
    centred = z - z.mean(-2, keepdim=True)
    return centred.mT @ centred / (z.shape[-2] - 1)


class CovarianceAlignment(Objective):
    """The steps of `DeepCORALRegressor`."""

    def __init__(self, setup: Setup, trade_off: float) -> None:
        super().__init__(setup)
        self.trade_off = trade_off

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch."""
        z = net.extractor(batch.x)
        error = source_errors("mse", batch, net.head(z[:-1])).mean()
        C, d = feature_covariance(z), z.shape[-1]
        coral = (C[:-1] - C[-1]).square().sum((-2, -1)).mean() / (4 * d**2)
        self.note(loss=error, discrepancy=coral)
        yield NETWORK, error + self.trade_off * coral


@dataclass(eq=False, repr=False, kw_only=True)
class DeepCORALRegressor(DomainRegressor):
    """Deep CORAL (Sun and Saenko 2016) for regression, over all sources.

    With C the covariance of features of a batch and d their number::

        mean squared error + μ mean_i ‖C_i - C_t‖²_F / (4 d²)

    Parameters
    ----------
    trade_off
        μ.
    hidden, width, dropout, activation
        The network; see `vntransfer.networks.mlp`.
    epochs, batch_size, lr, weight_decay, clip, average
        The training loop, the same for all methods: see `DomainRegressor`.
    patience, validation_fraction, random_state, callback
        Early stopping, seed and progress: see `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from vntransfer import DeepCORALRegressor, stack
    >>> rng = np.random.default_rng(0)
    >>> a, b, new = (rng.normal(m, 1, size=(50, 2)) for m in (0, 1, 2))
    >>> X, y, domain = stack({"a": (a, a[:, 0]), "b": (b, b[:, 0])}, target=new)
    >>> DeepCORALRegressor(epochs=2, random_state=0).fit(X, y, domain).predict(new).shape
    (50,)
    """

    trade_off: float = 1.0

    def _objective(self, setup: Setup) -> Objective:
        return CovarianceAlignment(setup, number("trade_off", self.trade_off))
