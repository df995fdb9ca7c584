"""No adaptation: the baseline that every method has to beat."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from vntransfer.adaptation._base import DomainRegressor, SourceLoss
from vntransfer.adaptation._objective import Error, Objective, Setup, choose

Loss = Literal["mse", "huber", "jeffreys"]


@dataclass(eq=False, repr=False, kw_only=True)
class SourceOnlyRegressor(DomainRegressor):
    """Regression on the labelled sources; the target only takes part in scaling the inputs.

    Parameters
    ----------
    loss
        "mse", "huber", or "jeffreys": the paper's √J(cov[x, y] : cov[x, ŷ]) on the inputs, with the
        mean residual of the sources added to predictions afterwards; see `JeffreysLoss` for what it
        cannot see.
    hidden, width, dropout, activation
        The network; see `vntransfer.networks.mlp`.
    epochs, batch_size, lr, weight_decay, clip, average
        The training loop, the same for all methods: see `DomainRegressor`.
    patience, validation_fraction, random_state, callback
        Early stopping, seed and progress: see `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from vntransfer import SourceOnlyRegressor
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = SourceOnlyRegressor(random_state=0).fit(X, X[:, 0] + X[:, 1] ** 2)
    >>> bool(model.score(X, X[:, 0] + X[:, 1] ** 2) > 0.95)
    True
    """

    loss: Loss = "mse"

    _uses_target: ClassVar[bool] = False

    def _objective(self, setup: Setup) -> Objective:
        choose("loss", self.loss, Loss)
        return SourceLoss(setup, self.loss)

    def _error(self) -> Error:
        return self.loss
