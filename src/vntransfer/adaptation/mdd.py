"""The paper's multi-source adaptation by matrix discrepancy."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from vntransfer._arrays import number
from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._objective import (
    EVERYTHING,
    Batch,
    Error,
    Objective,
    Setup,
    Step,
    choose,
    climbing,
    frozen,
    source_errors,
)
from vntransfer.adaptation._weights import UPDATES, Update
from vntransfer.divergences import response_divergence
from vntransfer.networks import Net, linear

FirstTerm = Literal["rmse", "jeffreys"]


class MatrixDiscrepancy(Objective):
    """The steps of `MatrixDiscrepancyRegressor`: one forward pass, all blocks at once."""

    slope: Tensor

    def __init__(self, setup: Setup, method: "MatrixDiscrepancyRegressor") -> None:
        super().__init__(setup)
        self.adversary = linear(setup.width, setup.n_responses, setup.generator)
        self.method = method

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch."""
        k, w, m = len(batch.y), self.weights, self.method
        z = net.extractor(batch.x)
        error = source_errors(m.first_term, batch, net.head(z[:k]))
        h = net.head if m.predictor_sees_discrepancy else frozen(net.head)
        j = response_divergence(z, h(z), climbing(self.adversary)(z), sqrt=True)
        gap = j[k] - w @ j[:k]
        loss = w @ error + m.trade_off * gap.abs()
        if m.anchor:
            anchored = source_errors("rmse", batch, self.adversary(z[:k].detach()))
            loss = loss + m.anchor * (w @ anchored)
        self.slope = -gap.detach().sign() * j[:k].detach()
        self.note(loss=w @ error, discrepancy=gap.abs())
        yield EVERYTHING, loss

    @torch.no_grad()
    def after_step(self) -> None:
        """Step w by -η ∂D/∂w, and back to the simplex."""
        moved = self.weights - self.method.weight_rate * self.slope
        self.weights = UPDATES[self.method.weight_update](moved)


@dataclass(eq=False, repr=False, kw_only=True)
class MatrixDiscrepancyRegressor(DomainRegressor):
    """Matrix-based discrepancy (MDD) of the paper; *not* Margin Disparity Discrepancy.

    With features z, predictor h, adversary h' and weights w of the sources (Eq. 8)::

        min over f, h, w  max over h'   Σ w_i e_i + μ D,
        D = | √J_t - Σ w_i √J_i |,  J_i = J(cov[z, h(z)] : cov[z, h'(z)]) on domain i.

    All four descend or climb from one forward pass, as in Algorithm 1; w by plain gradient steps
    (Adam would leave it uniform). D is one equation for K weights: a large weight does not have to
    mean a related source.

    Different from Algorithm 1 as printed: w_i enters the first term once, not squared; weights are
    projected onto the simplex, where dividing by the L1 norm can leave negative ones.

    Parameters
    ----------
    trade_off
        μ; the paper has 1.
    first_term
        e_i: "rmse", or "jeffreys" (√J between response and prediction on the inputs, with the mean
        residual of the sources added to predictions afterwards).
    weight_update
        What follows the gradient step on w: "simplex" (projection), "clamp" (to [1/(10K),
        1 - 1/(10K)], then divided by the sum) or "l1" (the paper's; w can leave the simplex).
    weight_rate
        Rate of the steps on w.
    predictor_sees_discrepancy
        Whether h descends D too (Eq. 8) or only the first term (Algorithm 1, the default).
    anchor
        Strength by which the adversary is also fitted to the sources' responses, which keeps it
        from running away; the paper has 0.
    hidden, width, dropout, activation
        The network; see `vntransfer.networks.mlp`.
    epochs, batch_size, lr, weight_decay, clip, average
        The training loop, the same for all methods: see `DomainRegressor`.
    patience, validation_fraction, random_state, callback
        Early stopping, seed and progress: see `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from vntransfer import MatrixDiscrepancyRegressor, stack
    >>> rng = np.random.default_rng(0)
    >>> near, far, new = (rng.normal(m, 1, size=(100, 2)) for m in (0, 3, 0))
    >>> X, y, domain = stack({"near": (near, near[:, 0]), "far": (far, far[:, 0])}, target=new)
    >>> model = MatrixDiscrepancyRegressor(epochs=5, random_state=0).fit(X, y, domain)
    >>> list(model.source_weights_), model.predict(new).shape
    (['far', 'near'], (100,))
    """

    trade_off: float = 0.1
    first_term: FirstTerm = "rmse"
    weight_update: Update = "simplex"
    weight_rate: float = 0.05
    predictor_sees_discrepancy: bool = False
    anchor: float = 1.0

    def _objective(self, setup: Setup) -> Objective:
        choose("first_term", self.first_term, FirstTerm)
        choose("weight_update", self.weight_update, Update)
        for name in ("trade_off", "weight_rate", "anchor"):
            number(name, getattr(self, name))
        return MatrixDiscrepancy(setup, self)

    def _error(self) -> Error:
        return self.first_term
