"""Multi-source domain-adversarial training."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._objective import (
    EVERYTHING,
    Alignment,
    Auto,
    Batch,
    Setup,
    Step,
    reverse,
    source_errors,
)
from vntransfer.adaptation.dann import DomainHeads
from vntransfer.networks import Net

Aggregation = Literal["max", "dynamic"]
Index = Literal["one", "two"]


class MultiDomainAdversarial(Alignment):
    """The steps of `MDANRegressor`."""

    def __init__(self, setup: Setup, method: DomainRegressor) -> None:
        super().__init__(setup, method)
        self.heads = DomainHeads(setup)
        self.trade_off = self.trade_off[:, None]

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch."""
        z = batch.features(net)
        error = source_errors(self.error, batch, net.head(z[:, :-1]))
        domain = self.heads(reverse(z))
        self.note(loss=error.mean(-1), domain=domain.mean(-1))
        yield EVERYTHING, self.aggregate(error, domain)

    def aggregate(self, error: Tensor, domain: Tensor) -> Tensor:
        """One number from those of all sources (M, K); sets the weights."""
        m = self.method
        if m.aggregation == "dynamic":
            both = m.sharpness * (error + self.trade_off * domain)
            self.weights = both.detach().softmax(-1)
            return both.logsumexp(-1) / m.sharpness
        if m.index == "one":
            first = second = (error - self.trade_off * domain).argmax(-1, keepdim=True)
        else:
            first, second = error.argmax(-1, keepdim=True), domain.argmin(-1, keepdim=True)
        self.weights = torch.zeros_like(self.weights).scatter(-1, first, 1.0)
        return (error.gather(-1, first) + self.trade_off * domain.gather(-1, second)).squeeze(-1)


@dataclass(eq=False, repr=False, kw_only=True)
class MDANRegressor(DomainRegressor):
    """Multi-source domain-adversarial network (Zhao et al. 2018) for regression.

    One logistic head per source distinguishes it from the target, with loss d_i, on reversed
    features; with e_i the error of source i::

        "max"       e_i + μ d_i of the worst source only
        "dynamic"   (1/γ) log Σ exp(γ (e_i + μ d_i))

    The worst source is the one of largest e_i - μ d_i (d_i is small where source and target are
    easily distinguished). `source_weights_` are the shares of the sources in the last batch's
    gradient of the error.

    Parameters
    ----------
    aggregation
        "max" or "dynamic".
    trade_off
        μ; "auto": chosen without labels of the target, see `DomainRegressor`.
    sharpness
        γ of "dynamic".
    index
        Of "max": "one" source for both terms, as in the bound, or "two" as in the public code: the
        largest error and, possibly of another source, the smallest d_i.

    All further options are those of `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> X, domain = np.random.default_rng(0).normal(size=(150, 2)), np.repeat([0, 1, -1], 50)
    >>> model = MDANRegressor(epochs=2, random_state=0).fit(X, X[:, 0], domain)
    >>> sorted(model.source_weights_), model.predict(X[domain < 0]).shape
    ([0, 1], (50,))
    """

    aggregation: Aggregation = "dynamic"
    trade_off: float | Auto = 0.01
    sharpness: float = 10.0
    index: Index = "one"

    _steps = MultiDomainAdversarial
    _trade_offs = (0.0, 0.01, 0.1, 1.0)
