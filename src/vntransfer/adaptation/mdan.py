"""Multi-source domain-adversarial training."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from vntransfer._arrays import number
from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._domain_heads import DomainHeads
from vntransfer.adaptation._objective import (
    EVERYTHING,
    Batch,
    Objective,
    Setup,
    Step,
    choose,
    reverse,
    source_errors,
)
from vntransfer.networks import Net

Aggregation = Literal["max", "dynamic"]
Index = Literal["one", "two"]


class MultiDomainAdversarial(Objective):
    """The steps of `MDANRegressor`."""

    def __init__(self, setup: Setup, method: "MDANRegressor") -> None:
        super().__init__(setup)
        self.heads = DomainHeads(setup)
        self.method = method

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch."""
        z = net.extractor(batch.x)
        error = source_errors("mse", batch, net.head(z[:-1]))
        domain = self.heads(reverse(z))
        self.note(loss=error.mean(), domain=domain.mean())
        yield EVERYTHING, self.aggregate(error, domain)

    def aggregate(self, error: Tensor, domain: Tensor) -> Tensor:
        """One number from those of all sources; sets the weights."""
        m = self.method
        if m.aggregation == "dynamic":
            both = m.sharpness * (error + m.trade_off * domain)
            self.weights = both.detach().softmax(0)
            return both.logsumexp(0) / m.sharpness
        worst = int((error - m.trade_off * domain).argmax()) if m.index == "one" else None
        first = int(error.argmax()) if worst is None else worst
        second = int(domain.argmin()) if worst is None else worst
        self.weights = torch.zeros_like(self.weights)
        self.weights[first] = 1
        return error[first] + m.trade_off * domain[second]


@dataclass(eq=False, repr=False, kw_only=True)
class MDANRegressor(DomainRegressor):
    """Multi-source domain-adversarial network (Zhao et al. 2018) for regression.

    One logistic head per source tells it from the target, with loss d_i, on reversed features; with
    e_i the mean squared error of source i::

        "max"       e_i + μ d_i of the worst source only
        "dynamic"   (1/γ) log Σ exp(γ (e_i + μ d_i))

    The worst source is the one of largest e_i - μ d_i (d_i is small where source and target are
    easily told apart). `source_weights_` are the shares of the sources in the last batch's gradient
    of the error.

    Parameters
    ----------
    aggregation
        "max" or "dynamic".
    trade_off
        μ.
    sharpness
        γ of "dynamic".
    index
        Of "max": "one" source for both terms, as in the bound, or "two" as in the public code: the
        largest error and, of possibly another source, the smallest d_i.
    hidden, width, dropout, activation
        The network; see `vntransfer.networks.mlp`.
    epochs, batch_size, lr, weight_decay, clip, average
        The training loop, the same for all methods: see `DomainRegressor`.
    patience, validation_fraction, random_state, callback
        Early stopping, seed and progress: see `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from vntransfer import MDANRegressor, stack
    >>> rng = np.random.default_rng(0)
    >>> a, b, new = (rng.normal(m, 1, size=(50, 2)) for m in (0, 1, 2))
    >>> X, y, domain = stack({"a": (a, a[:, 0]), "b": (b, b[:, 0])}, target=new)
    >>> MDANRegressor(epochs=2, random_state=0).fit(X, y, domain).predict(new).shape
    (50,)
    """

    aggregation: Aggregation = "dynamic"
    trade_off: float = 0.01
    sharpness: float = 10.0
    index: Index = "one"

    def _objective(self, setup: Setup) -> Objective:
        choose("aggregation", self.aggregation, Aggregation)
        choose("index", self.index, Index)
        number("trade_off", self.trade_off)
        number("sharpness", self.sharpness, exclusive=True)
        return MultiDomainAdversarial(setup, self)
