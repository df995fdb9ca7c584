"""The paper's multi-source adaptation by matrix-based discrepancy (MDD)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from vntransfer.adaptation._objective import (
    EVERYTHING,
    AdversarialAlignment,
    Batch,
    Step,
    climbing,
    dot,
    frozen,
    source_errors,
)
from vntransfer.adaptation.alignment import DivergenceRegressor
from vntransfer.divergences import DIVERGENCES, response_divergence
from vntransfer.moments import covariance
from vntransfer.networks import Net

Update = Literal["simplex", "clamp", "l1", "adam"]
RidgePer = Literal["all", "domain"]


class MatrixDiscrepancy(AdversarialAlignment):
    """The steps of `MDDRegressor`."""

    adam_then = "l1"

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch."""
        m = self.method
        ramp = min(1.0, (self.done + 1) / max(m.warm_up, 1))
        z = batch.features(net)
        error = dot(self.weights, source_errors(self.error, batch, net.head(z[:, :-1])))
        h = net.head if m.predictor_sees_discrepancy else frozen(net.head)
        anchor: Tensor | float = 0.0
        if m.anchor:
            guess = self.adversary(z[:, :-1].detach())
            anchor = m.anchor * dot(self.weights, source_errors("rmse", batch, guess))
        roots = self.roots(batch, z, h(z), climbing(self.adversary)(z))
        signed = roots[:, -1] - dot(self.weights, roots[:, :-1])
        gap = signed.abs()
        self.slope = -signed.detach().sign()[:, None] * roots[:, :-1].detach()
        self.note(loss=error, discrepancy=gap)
        yield EVERYTHING, error + self.trade_off * ramp * gap + anchor

    def roots(self, batch: Batch, z: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """√J, or a metric, between cov[z, a] and cov[z, b] of two predictions: (M, K + 1)."""
        m, a, b = self.method, batch.response(a), batch.response(b)
        variance = z.detach().var(-2).mean(-1)
        if m.ridge_per == "all":
            variance = variance.mean(-1, keepdim=True).expand_as(variance)
        ridge = m.ridge * variance.clamp_min(1e-12)
        if m.divergence == "von_neumann":
            value: Tensor = response_divergence(z, a, b, sqrt=True, ridge=ridge)
            return value
        eye = torch.eye(z.shape[-1] + a.shape[-1], dtype=torch.float64, device=z.device)
        eye = ridge.double()[..., None, None] * eye
        X, Y = (covariance(z.double(), c.double()) + eye for c in (a, b))
        out: Tensor = DIVERGENCES[m.divergence].function(X, Y)
        return out.to(z)


@dataclass(eq=False, repr=False, kw_only=True)
class MDDRegressor(DivergenceRegressor):
    """Matrix-based discrepancy (MDD), the paper's method; *not* Margin Disparity Discrepancy.

    Eq. 8: with a predictor h, an adversary h', weights w of the sources and e_i their errors::

        min over f, h, w  max over h'   Σ w_i e_i + μ D,
        D = | √J_t - Σ w_i √J_i |,  J_i = J(cov[z, h(z)] : cov[z, h'(z)]) on domain i,

    all four from one forward pass as in Algorithm 1, and w by plain gradient steps. (Adam leaves w
    nearly uniform: the gradients of all weights have the same sign, Adam makes them equally large,
    and the normalization cancels a common step.) D is one equation for K weights, so a large weight
    need not mean a related source. Prefer `MomentAlignmentRegressor`, which aligns without an
    adversary, unless you compare with the paper.

    As printed, training collapses on some data. The defaults differ from Algorithm 1 in the
    following; in brackets is what it has: weights are projected onto the simplex, because dividing
    by the L1 norm can leave negative ones (``weight_update="l1"``); the adversary is anchored
    (``anchor=0``); μ is .1 and rises slowly (``trade_off=1``, ``warm_up=0``); and e_i is ``loss``
    (``first_term="jeffreys"``, or "rmse" by the paper's footnote). w_i enters the first term once,
    as in Eq. 8. Algorithm 1 squares it, which with equal weights is the same as a ``trade_off`` K
    times as high. It has no ``ridge``; batches with fewer rows than features need one.

    Parameters
    ----------
    weight_update
        What follows the gradient step on w: "simplex" (projection), "clamp" (to
        [1/(10K), 1 - 1/(10K)], then divided by the sum) or "l1" (the paper's; w can leave the
        simplex). "adam": Adam's step, as the paper states for all parameters (at a rate of .001),
        then "l1".
    predictor_sees_discrepancy
        Whether h descends D as well (Eq. 8) or only the first term (Algorithm 1).
    anchor
        Strength with which the adversary is also fitted to the sources' responses, which keeps it
        from diverging; the paper has 0.
    ridge_per
        What ``ridge`` is relative to: the mean feature variance of "all" domains of a batch, or of
        each "domain" by itself, which was the rule up to 0.1. D subtracts distances of different
        domains, so these must be the same function of the covariances. A ridge for each domain
        grows with the domain's scale, and D shows less of a difference in scale. `discrepancy` has
        the same rule.

    All further options are those of `DivergenceRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from vntransfer import MDDRegressor, stack
    >>> rng = np.random.default_rng(0)
    >>> near, far, new = (rng.normal(m, 1, size=(100, 2)) for m in (0, 3, 0))
    >>> X, y, domain = stack({"near": (near, near[:, 0]), "far": (far, far[:, 0])}, target=new)
    >>> model = MDDRegressor(epochs=5, random_state=0).fit(X, y, domain)
    >>> sorted(model.source_weights_), model.predict(new).shape
    (['far', 'near'], (100,))
    """

    weight_update: Update = "simplex"
    predictor_sees_discrepancy: bool = False
    anchor: float = 1.0
    ridge_per: RidgePer = "all"

    _steps = MatrixDiscrepancy
    _trade_offs = (0.0, 0.1, 0.3, 1.0)
