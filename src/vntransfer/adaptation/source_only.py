"""No adaptation: the baseline that every method has to beat."""

from dataclasses import dataclass
from typing import ClassVar

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._objective import Error, Objective, Setup, SourceLoss


@dataclass(eq=False, repr=False, kw_only=True)
class SourceOnlyRegressor(DomainRegressor):
    """Regression on the labelled sources; the target only takes part in scaling the inputs.

    Parameters
    ----------
    loss
        "mixed" (half RMSE, half Huber loss), "mse", "rmse", "huber", or "jeffreys": the paper's
        √J(cov[x, y] : cov[x, ŷ]) on the inputs, with the mean residual of the sources added to
        predictions afterwards; see `JeffreysLoss` for what it cannot see.
    members, hidden, width, dropout, activation, extractor, head
        The networks; see `DomainRegressor`.
    epochs, steps, batch_size, lr, weight_decay, clip, average
        The training loop, the same for all methods: see `DomainRegressor`.
    patience, validation_fraction, bounded, device, warm_start, checkpoint, random_state, callback
        See `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from vntransfer import SourceOnlyRegressor
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = SourceOnlyRegressor(random_state=0).fit(X, X[:, 0] + X[:, 1] ** 2)
    >>> bool(model.score(X, X[:, 0] + X[:, 1] ** 2) > 0.95)
    True
    """

    loss: Error = "mixed"

    _uses_target: ClassVar[bool] = False

    def _objective(self, setup: Setup) -> Objective:
        return SourceLoss(setup, self.loss)

    def _error(self) -> Error:
        return self.loss
