"""Alignment of moments with weights that follow them: matrix discrepancy without an adversary."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vntransfer.adaptation._matrices import centre, covariance
from vntransfer.adaptation._objective import (
    NETWORK,
    Batch,
    Objective,
    Setup,
    Step,
    dot,
    frozen,
    source_errors,
)
from vntransfer.divergences import DIVERGENCES
from vntransfer.linalg import Spectrum
from vntransfer.networks import Net

if TYPE_CHECKING:
    from vntransfer.adaptation.mdd import MatrixDiscrepancyRegressor

Distance = Callable[[Tensor, Tensor], Tensor]

EVERY = 4
"""Steps between two moves of the weights."""


def mixture(w: Tensor, matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Σ w_i A_i of the sources, and the target's matrix: (M, K), (M, K + 1, n, n).

    Examples
    --------
    >>> mixture(torch.tensor([[0.5, 0.5]]), torch.tensor([[[[1.0]], [[3.0]], [[7.0]]]]))
    (tensor([[[2.]]]), tensor([[[7.]]]))
    """
    return (w[:, :, None, None] * matrices[:, :-1]).sum(1), matrices[:, -1]


def with_ridge(a: Tensor, b: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """Both matrices (M, n, n) with the same ridge, relative to their mean diagonal, in float64."""
    a, b = a.double(), b.double()
    level = (a + b).detach().diagonal(dim1=-2, dim2=-1).mean(-1) / 2
    eye = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    eye = (ridge * level).clamp_min(torch.finfo(torch.float32).eps)[:, None, None] * eye
    return a + eye, b + eye


def jeffreys_slopes(X: Tensor, Y: Tensor) -> tuple[Tensor, Tensor]:
    """J(X:Y) (M,) of positive definite matrices, and its gradients with respect to both, stacked.

    With H = X - Y, ∂J/∂X = ½ (log X - log Y + L_X[H]) and ∂J/∂Y = -½ (log X - log Y + L_Y[H]), L
    the derivative of the logarithm: one call decomposes all matrices, and nothing is checked, as
    the ridge makes them positive definite.

    Examples
    --------
    >>> J, slopes = jeffreys_slopes(torch.eye(1)[None], 2 * torch.eye(1)[None])
    >>> round(float(J), 4), slopes.flatten().tolist()
    (0.3466, [-0.8465735912322998, 0.5965735912322998])
    """
    both = torch.stack((X, Y))
    spectrum = Spectrum(*torch.linalg.eigh(both))
    H = X - Y
    logs = spectrum.log()
    log_gap = logs[0] - logs[1]
    J = (H * log_gap).sum((-2, -1)) / 2
    turn = torch.tensor([0.5, -0.5]).to(both)[:, None, None, None]
    return J, turn * (log_gap + spectrum.dlog(H.expand_as(both)))


def metric_slopes(distance: Distance, X: Tensor, Y: Tensor) -> tuple[Tensor, Tensor]:
    """Give the same of another function of matrices, by autograd."""
    with torch.enable_grad():
        both = torch.stack((X, Y)).requires_grad_()
        value = distance(both[0], both[1])
        (slopes,) = torch.autograd.grad(value.sum(), both)
    return value.detach(), slopes


class _Known(torch.autograd.Function):
    """A value whose gradient is known already."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, value: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(slope)
        return value

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None]:
        return upstream[0][:, None, None, None] * ctx.saved_tensors[0], None, None


class MomentAlignment(Objective):
    """The steps of `MatrixDiscrepancyRegressor` without an adversary."""

    prior: Tensor
    done: Tensor

    def __init__(self, setup: Setup, method: "MatrixDiscrepancyRegressor") -> None:
        super().__init__(setup)
        self.error, self.warm_up, self.ridge = method._error(), method.warm_up, method.ridge
        self.rate, self.pull = method._rate(), method.weight_pull
        self.slopes = jeffreys_slopes
        if method.divergence != "von_neumann":
            self.slopes = partial(metric_slopes, DIVERGENCES[method.divergence].function)
        prior = self.weights if setup.prior is None else setup.prior
        self.register_buffer("prior", prior.to(self.weights).clone())
        self.register_buffer("done", torch.zeros((), device=setup.device))
        trade_off = setup.option(method, "trade_off")
        self.aligned = trade_off.nonzero()[:, 0]
        self.strength = trade_off[self.aligned]
        self.learned = setup.flag(method, "learn_weights").nonzero()[:, 0]
        self.raw = ~setup.flag(method, "standardise")[:, None]
        self.weights[self.learned] = self.prior[self.learned]

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch; the weights move before it."""
        z = batch.features(net)
        error = source_errors(self.error, batch, net.head(z[:, :-1]))
        seen = {}
        aligned: Tensor | float = 0.0
        moves = len(self.learned) and int(self.done) % EVERY == 0
        if moves or len(self.aligned):
            q = torch.cat((z, batch.response(frozen(net.head)(z))), -1)
            moments = Moments(q.detach())
            if moves:
                self.move_weights(moments)
            if len(self.aligned):
                J = self.discrepancy(q, moments)
                ramp = min(1.0, (float(self.done) + 1) / max(self.warm_up, 1))
                zero = torch.zeros_like(error[:, 0])
                aligned = zero.index_copy(0, self.aligned, ramp * self.strength * J)
                seen["discrepancy"] = zero.index_copy(0, self.aligned, J)
        loss = dot(self.weights, error)
        self.note(loss=loss, **seen)
        yield NETWORK, loss + aligned

    def discrepancy(self, q: Tensor, moments: "Moments") -> Tensor:
        """J(Σ w_i cov_i : cov_t) / n of the members that are aligned.

        Its gradient with respect to q is taken in closed form: with C = c'c/(B - 1) of centred rows
        c, that of a function of C with gradient G is 2 c G/(B - 1).
        """
        own, w = self.aligned, self.weights[self.aligned]
        with torch.no_grad():
            factor = torch.where(self.raw, 1.0, 1 / moments.scale)[own]
            factor = factor[:, None, :, None] * factor[:, None, None, :]
            pair = mixture(w, moments.covariance[own] * factor)
            J, slopes = self.slopes(*with_ridge(*pair, self.ridge))
            on_sources = w[:, :, None, None] * slopes[0][:, None].to(q)
            G = torch.cat((on_sources, slopes[1][:, None].to(q)), 1) * factor
            n_rows, n = q.shape[-2:]
            slope = moments.centred[own] @ (2 / ((n_rows - 1) * n) * G)
            J = J.to(q) / n
        known: Tensor = _Known.apply(q[own], J, slope)
        return known

    @torch.no_grad()
    def move_weights(self, moments: "Moments") -> None:
        """Step log w by -rate (g - mean g + pull (log w - log prior)).

        g is the gradient of J(Σ w_i M_i : M_t) with respect to w, M second moments.
        """
        matrices = moments.second()[self.learned].double()
        w = self.weights[self.learned].double()
        _, slopes = jeffreys_slopes(*with_ridge(*mixture(w, matrices), self.ridge))
        g = (matrices[:, :-1] * slopes[0][:, None]).sum((-2, -1))
        log_w = w.clamp_min(1e-12).log()
        step = g - g.mean(-1, keepdim=True) + self.pull * (log_w - self.prior[self.learned].log())
        self.weights[self.learned] = (log_w - self.rate * step).softmax(-1).to(self.weights)

    def after_step(self) -> None:
        """Count the steps."""
        self.done += 1


class Moments:
    """Moments of q (M, K + 1, B, n): of each domain, and the scale over all domains of a member.

    Attributes
    ----------
    mean, centred, covariance : Tensor
        (M, K + 1, 1, n), the rows less it, and (M, K + 1, n, n), unbiased.
    centre, scale : Tensor
        Mean and standard deviation over all domains, (M, n).

    Examples
    --------
    >>> Moments(torch.tensor([[[[0.0], [2.0]], [[4.0], [6.0]]]])).scale
    tensor([[2.2361]])
    """

    def __init__(self, q: Tensor) -> None:
        n_rows = q.shape[-2]
        self.mean, self.centred = centre(q)
        self.covariance = covariance(self.centred)
        self.shrink = (n_rows - 1) / n_rows
        within = self.shrink * self.covariance.diagonal(dim1=-2, dim2=-1).mean(1)
        means = self.mean[:, :, 0]
        self.centre = means.mean(1)
        scale = (within + means.var(1, correction=0)).sqrt()
        self.scale = torch.where(scale > 1e-6, scale, 1.0)

    def second(self) -> Tensor:
        """Second moments of [standardised q, 1], (M, K + 1, n + 1, n + 1)."""
        factor = 1 / self.scale
        shift = (self.mean[:, :, 0] - self.centre[:, None]) * factor[:, None]
        scaled = self.covariance * (factor[:, None, :, None] * factor[:, None, None, :])
        out = torch.nn.functional.pad(self.shrink * scaled, (0, 1, 0, 1))
        one = torch.nn.functional.pad(shift, (0, 1), value=1.0)
        return out + one.unsqueeze(-1) * one.unsqueeze(-2)
