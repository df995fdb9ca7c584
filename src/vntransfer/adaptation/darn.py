"""Domain aggregation network with spectral discrepancies."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._objective import (
    NETWORK,
    Alignment,
    Auto,
    Batch,
    Step,
    dot,
    source_errors,
)
from vntransfer.adaptation._weights import darn_weights
from vntransfer.networks import Net


def gram(z: Tensor) -> Tensor:
    """Gram matrix of [z, 1], the sum over rows: (..., B, d) -> (..., d + 1, d + 1)."""
    phi = pad(z, (0, 1), value=1.0)
    return phi.mT @ phi


class SpectralAggregation(Alignment):
    """The steps of `DARNRegressor`."""

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch."""
        z = batch.features(net)
        error = source_errors(self.error, batch, net.head(z[:, :-1]))
        M = gram(z) / z.shape[-2]
        discrepancy = torch.linalg.eigvalsh(M[:, -1:] - M[:, :-1]).abs().amax(-1)
        g = self.method.sharpness * (error + self.trade_off[:, None] * discrepancy)
        self.weights = darn_weights(g.detach())
        self.note(loss=dot(self.weights, error), discrepancy=dot(self.weights, discrepancy))
        yield NETWORK, dot(self.weights, g) + self.weights.norm(dim=-1)


@dataclass(eq=False, repr=False, kw_only=True)
class DARNRegressor(DomainRegressor):
    """Domain aggregation network (Wen et al. 2020) with the discrepancy for regression.

    With features z, M the mean of [z, 1]'[z, 1] and e_i the error of source i::

        disc_i = largest |eigenvalue| of M_t - M_i
        g_i = γ (e_i + μ disc_i),   loss = min over the simplex of <g, w> + ‖w‖₂

    The minimizing w has a closed form and, by the envelope theorem, the gradient of the loss is Σ
    w_i ∇g_i. In the public code, the bisection in float32 can run forever, and Gram matrices are
    sums, which gives one source all the weight.

    Parameters
    ----------
    trade_off
        μ; "auto": chosen without labels of the target, see `DomainRegressor`.
    sharpness
        γ: a small value gives equal weights, a large one a single source.

    All further options are those of `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> X, domain = np.random.default_rng(0).normal(size=(150, 2)), np.repeat([0, 1, -1], 50)
    >>> model = DARNRegressor(epochs=2, random_state=0).fit(X, X[:, 0], domain)
    >>> sorted(model.source_weights_), model.predict(X[domain < 0]).shape
    ([0, 1], (50,))
    """

    trade_off: float | Auto = 0.01
    sharpness: float = 1.0

    _steps = SpectralAggregation
    _trade_offs = (0.0, 0.01, 0.1, 1.0)
