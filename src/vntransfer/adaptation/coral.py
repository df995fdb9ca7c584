"""Alignment of feature covariances."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._batch_matrices import covariance
from vntransfer.adaptation._objective import (
    NETWORK,
    Auto,
    Batch,
    Objective,
    Setup,
    Step,
    source_errors,
)
from vntransfer.networks import Net


class CovarianceAlignment(Objective):
    """The steps of `DeepCORALRegressor`."""

    def __init__(self, setup: Setup, method: "DeepCORALRegressor") -> None:
        super().__init__(setup)
        self.trade_off = setup.option(method, "trade_off")
        self.error = method.loss

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch."""
        z = batch.features(net)
        error = source_errors(self.error, batch, net.head(z[:, :-1])).mean(-1)
        C, d = covariance(z), z.shape[-1]
        coral = (C[:, :-1] - C[:, -1:]).square().sum((-2, -1)).mean(-1) / (4 * d**2)
        self.note(loss=error, discrepancy=coral)
        yield NETWORK, error + self.trade_off * coral


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
    >>> from vntransfer import DeepCORALRegressor, stack
    >>> rng = np.random.default_rng(0)
    >>> a, b, new = (rng.normal(m, 1, size=(50, 2)) for m in (0, 1, 2))
    >>> X, y, domain = stack({"a": (a, a[:, 0]), "b": (b, b[:, 0])}, target=new)
    >>> DeepCORALRegressor(epochs=2, random_state=0).fit(X, y, domain).predict(new).shape
    (50,)
    """

    trade_off: float | Auto = 1.0

    _trade_offs: ClassVar[tuple[float, ...]] = (0.1, 1.0, 10.0, 100.0)

    def _objective(self, setup: Setup) -> Objective:
        return CovarianceAlignment(setup, self)
