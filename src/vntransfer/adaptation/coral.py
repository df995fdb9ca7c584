"""Alignment of feature covariances."""

from dataclasses import dataclass

from torch import Tensor

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._objective import Alignment, Auto


class CovarianceAlignment(Alignment):
    """The steps of `DeepCORALRegressor`."""

    def term(self, z: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Give the mean squared distance of covariances."""
        centered, d = z - z.mean(-2, keepdim=True), z.shape[-1]
        C = centered.mT @ centered / (z.shape[-2] - 1)
        coral = (C[:, :-1] - C[:, -1:]).square().sum((-2, -1)).mean(-1) / (4 * d**2)
        return coral, {"discrepancy": coral}


@dataclass(eq=False, repr=False, kw_only=True)
class DeepCORALRegressor(DomainRegressor):
    """Deep CORAL (Sun and Saenko 2016) for regression, over all sources.

    With C the covariance of features of a batch and d their number::

        mean error of the sources + μ mean_i ‖C_i - C_t‖²_F / (4 d²)

    Parameters
    ----------
    trade_off
        μ; "auto": chosen without labels of the target, see `DomainRegressor`.

    All further options are those of `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> X, domain = np.random.default_rng(0).normal(size=(150, 2)), np.repeat([0, 1, -1], 50)
    >>> model = DeepCORALRegressor(epochs=2, random_state=0).fit(X, X[:, 0], domain)
    >>> sorted(model.source_weights_), model.predict(X[domain < 0]).shape
    ([0, 1], (50,))
    """

    trade_off: float | Auto = 1.0

    _steps = CovarianceAlignment
    _trade_offs = (0.1, 1.0, 10.0, 100.0)
