"""Domain aggregation network with spectral discrepancies."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._batch_matrices import gram
from vntransfer.adaptation._objective import (
    NETWORK,
    Auto,
    Batch,
    Objective,
    Setup,
    Step,
    dot,
    source_errors,
)
from vntransfer.adaptation._weights import darn_weights
from vntransfer.checks import number
from vntransfer.networks import Net


class SpectralAggregation(Objective):
    """The steps of `DARNRegressor`."""

    def __init__(self, setup: Setup, method: "DARNRegressor") -> None:
        super().__init__(setup)
        self.trade_off = setup.option(method, "trade_off")[:, None]
        self.sharpness = number("sharpness", method.sharpness, exclusive=True)
        self.error = method.loss

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch."""
        z = batch.features(net)
        error = source_errors(self.error, batch, net.head(z[:, :-1]))
        M = gram(z) / z.shape[-2]
        discrepancy = torch.linalg.eigvalsh(M[:, -1:] - M[:, :-1]).abs().amax(-1)
        g = self.sharpness * (error + self.trade_off * discrepancy)
        self.weights = darn_weights(g.detach())
        self.note(loss=dot(self.weights, error), discrepancy=dot(self.weights, discrepancy))
        yield NETWORK, dot(self.weights, g) + self.weights.norm(dim=-1)


@dataclass(eq=False, repr=False, kw_only=True)
class DARNRegressor(DomainRegressor):
    """Domain aggregation network (Wen et al. 2020) with the discrepancy for regression.

    With features z, M the mean of [z, 1]'[z, 1] and e_i the error of source i::

        disc_i = largest |eigenvalue| of M_t - M_i
        g_i = γ (e_i + μ disc_i),   loss = min over the simplex of <g, w> + ‖w‖₂

    The minimizing w is a closed form and, by the envelope theorem, the gradient of the loss is
    Σ w_i ∇g_i. The public code's bisection in float32 can run forever, and its Gram matrices are
    sums, which leave one source with all the weight.

    Parameters
    ----------
    trade_off
        μ; "auto": chosen without labels of the target, see `DomainRegressor`.
    sharpness
        γ: small gives equal weights, large one source only.

    All further options are those of `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from vntransfer import DARNRegressor, stack
    >>> rng = np.random.default_rng(0)
    >>> a, b, new = (rng.normal(m, 1, size=(50, 2)) for m in (0, 1, 2))
    >>> X, y, domain = stack({"a": (a, a[:, 0]), "b": (b, b[:, 0])}, target=new)
    >>> DARNRegressor(epochs=2, random_state=0).fit(X, y, domain).predict(new).shape
    (50,)
    """

    trade_off: float | Auto = 0.01
    sharpness: float = 1.0

    _trade_offs: ClassVar[tuple[float, ...]] = (0.0, 0.01, 0.1, 1.0)

    def _objective(self, setup: Setup) -> Objective:
        return SpectralAggregation(setup, self)
