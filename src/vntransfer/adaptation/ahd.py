"""Adversarial hypothesis discrepancy."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._objective import (
    NETWORK,
    AdversarialAlignment,
    Auto,
    Batch,
    Step,
    dot,
    mean_square,
    source_errors,
)
from vntransfer.networks import Net

Sources = Literal["merged", "weighted"]
Update = Literal["simplex", "clamp", "l1", "adam"]


class HypothesisDiscrepancy(AdversarialAlignment):
    """The steps of `AHDRegressor`: four passes, each with a fresh forward pass."""

    adam_then = "clamp"

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give three steps; the weights follow in `after_step`."""
        w = self.weights

        z = batch.features(net)
        error = dot(w, source_errors(self.error, batch, net.head(z[:, :-1])))
        yield NETWORK, error

        with torch.no_grad():
            z = batch.features(net)
            h = net.head(z)
        guess = self.adversary(z)
        fitted = dot(w, source_errors("mse", batch, guess[:, :-1]))
        yield ("adversary",), fitted - mean_square(batch.masked(h - guess))[:, -1]

        z = batch.features(net)
        apart = mean_square(batch.masked(net.head(z) - self.adversary(z)))
        discrepancy = (apart[:, -1] - dot(w, apart[:, :-1])).abs()
        yield ("extractor",), self.trade_off * discrepancy

        self.slope = self.weight_slope(net, batch)
        self.note(loss=error, discrepancy=discrepancy)

    @torch.no_grad()
    def weight_slope(self, net: Net, batch: Batch) -> Tensor:
        """Gradient with respect to w of |MSE_t(h, h') - Σ w_i MSE_i(h, h')| + λ‖w‖₂."""
        w, z = self.weights, batch.features(net)
        apart = mean_square(batch.masked(net.head(z) - self.adversary(z)))
        sign = (apart[:, -1] - dot(w, apart[:, :-1])).sign()
        pull = self.method.weight_penalty * w / w.norm(dim=-1, keepdim=True)
        return pull - sign[:, None] * apart[:, :-1]


@dataclass(eq=False, repr=False, kw_only=True)
class AHDRegressor(DomainRegressor):
    """Adversarial hypothesis discrepancy (Richard et al. 2020): AHD-1S and AHD-MSDA.

    With MSE_i(h, h') between predictor and adversary on domain i, one batch has four passes::

        1. h, f   Σ w_i e_i, the errors of the sources (MSE in the public code)
        2. h'     Σ w_i MSE_i(h', y) - MSE_t(h, h')
        3. f      μ |MSE_t(h, h') - Σ w_i MSE_i(h, h')|
        4. w      |MSE_t(h, h') - Σ w_i MSE_i(h, h')| + λ ‖w‖₂

    There are four differences from the public code. f has one optimizer for passes 1 and 3, so that
    μ has an effect (with an optimizer of its own, Adam removes the scale of a loss). w moves by
    plain gradient steps (Adam removes differences in size). Pass 3 does not include a small share
    of the sources' error. The adversary takes one step.

    Parameters
    ----------
    sources
        "merged" into one (AHD-1S) or "weighted" (AHD-MSDA).
    trade_off
        μ; 1 in the public code.
    weight_rate, weight_penalty, weight_update
        Rate of pass 4, its λ, and what follows: "simplex" (projection), "clamp" or "l1"; "adam" is
        the public code's step, Adam's (at a rate of .001 there) and then "clamp".

    All further options are those of `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> X, domain = np.random.default_rng(0).normal(size=(150, 2)), np.repeat([0, 1, -1], 50)
    >>> model = AHDRegressor(epochs=2, random_state=0).fit(X, X[:, 0], domain)
    >>> sorted(model.source_weights_), model.predict(X[domain < 0]).shape
    ([0, 1], (50,))
    """

    sources: Sources = "weighted"
    trade_off: float | Auto = 0.1
    weight_rate: float = 0.05
    weight_penalty: float = 0.01
    weight_update: Update = "simplex"

    _steps = HypothesisDiscrepancy
    _trade_offs = (0.0, 0.1, 0.3, 1.0)

    def _merges(self) -> bool:
        return self.sources == "merged"
