"""Alignment of moments with weights that follow them: matrix discrepancy without an adversary."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import pad

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


def mixtures(w: Tensor, matrices: Tensor) -> Tensor:
    """Σ w_i A_i of the sources and the target's matrix: (M, K), (M, K + 1, n, n) -> (M, 2, n, n).

    Examples
    --------
    >>> mixtures(torch.tensor([[0.5, 0.5]]), torch.tensor([[[[1.0]], [[3.0]], [[7.0]]]])).flatten()
    tensor([2., 7.])
    """
    return torch.bmm(shares(w), matrices.flatten(2)).unflatten(2, matrices.shape[2:])


def shares(w: Tensor) -> Tensor:
    """Shares of the K + 1 domains in the mixture of the sources and in the target, (M, 2, K + 1).

    Examples
    --------
    >>> shares(torch.tensor([[0.5, 0.5]]))
    tensor([[[0.5000, 0.5000, 0.0000],
             [0.0000, 0.0000, 1.0000]]])
    """
    out = w.new_zeros(w.shape[0], 2, w.shape[1] + 1)
    out[:, 0, :-1] = w
    out[:, 1, -1] = 1
    return out


def with_ridge(pair: Tensor, ridge: float) -> Tensor:
    """Matrices (M, 2, n, n) with the same ridge for both, relative to their mean diagonal.

    In float64.
    """
    pair = pair.to(torch.float64, copy=True)
    diagonal = pair.diagonal(dim1=-2, dim2=-1)
    level = diagonal.mean((1, 2), keepdim=True)
    diagonal += (ridge * level).clamp_min(torch.finfo(torch.float32).eps)
    return pair


def jeffreys_slopes(pair: Tensor) -> tuple[Tensor, Tensor]:
    """J(X:Y) (M,) of positive definite (M, 2, n, n), and its gradients with respect to both.

    With H = X - Y, ∂J/∂X = ½ (log X - log Y + L_X[H]) and ∂J/∂Y = -½ (log X - log Y + L_Y[H]), L
    the derivative of the logarithm: one call decomposes all matrices, and nothing is checked, as
    the ridge makes them positive definite.

    Examples
    --------
    >>> J, slopes = jeffreys_slopes(torch.tensor([[[[1.0]], [[2.0]]]]))
    >>> round(float(J), 4), slopes.flatten().tolist()
    (0.3466, [-0.8465735912322998, 0.5965735912322998])
    """
    H = pair[:, :1] - pair[:, 1:]
    every = pair.flatten(0, 1)
    spectrum = Spectrum(*torch.linalg.eigh(every))
    logs = spectrum.log().unflatten(0, pair.shape[:2])
    log_gap = logs[:, :1] - logs[:, 1:]
    J = torch.linalg.vecdot(H.flatten(1), log_gap.flatten(1)) / 2
    slopes = spectrum.dlog(H.expand_as(pair).flatten(0, 1)).unflatten(0, pair.shape[:2])
    half = torch.tensor([0.5, -0.5]).to(pair)[:, None, None]
    return J, slopes.add_(log_gap).mul_(half)


def metric_slopes(distance: Distance, pair: Tensor) -> tuple[Tensor, Tensor]:
    """Give the same of another function of matrices, by autograd."""
    with torch.enable_grad():
        both = pair.detach().requires_grad_()
        value = distance(both[:, 0], both[:, 1])
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
        raw = setup.flag(method, "standardise").logical_not()[:, None]
        self.raw = raw if bool(raw.any()) else None
        self.weights[self.learned] = self.prior[self.learned]

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch; the weights move before it."""
        z = batch.features(net)
        error = source_errors(self.error, batch, net.head(z[:, :-1]))
        seen = {}
        aligned: Tensor | float = 0.0
        done = int(self.done)
        moves = self.learned.numel() and done % EVERY == 0
        if moves or self.aligned.numel():
            q = torch.cat((z, batch.response(frozen(net.head)(z))), -1)
            with torch.no_grad():
                moments = Moments(q)
                if moves:
                    self.move_weights(moments)
            if self.aligned.numel():
                J = self.discrepancy(q, moments)
                ramp = min(1.0, (done + 1) / max(self.warm_up, 1))
                aligned = self.among_all(ramp * self.strength * J)
                seen["discrepancy"] = self.among_all(J)
        loss = dot(self.weights, error)
        self.note(loss=loss, **seen)
        yield NETWORK, loss + aligned

    def among_all(self, values: Tensor) -> Tensor:
        """Values of the members that are aligned, and zeros of the others, (M,)."""
        if values.shape[0] == self.weights.shape[0]:
            return values
        return values.new_zeros(self.weights.shape[0]).index_copy(0, self.aligned, values)

    def discrepancy(self, q: Tensor, moments: "Moments") -> Tensor:
        """J(Σ w_i cov_i : cov_t) / n of the members that are aligned.

        Its gradient with respect to q is taken in closed form: with C = c'c/(B - 1) of centred rows
        c, that of a function of C with gradient G is 2 c G/(B - 1); of source i it is w_i times
        that of the mixture.
        """
        own, n_rows, n = self.aligned, *q.shape[-2:]
        with torch.no_grad():
            w, c, covariance = (
                of_members(own, value)
                for value in (self.weights, moments.centred, moments.covariance)
            )
            factor = 1 / moments.scale
            if self.raw is not None:
                factor = torch.where(self.raw, 1.0, factor)
            outer = outer_square(of_members(own, factor))[:, None]
            J, slopes = self.slopes(with_ridge(mixtures(w, covariance).mul_(outer), self.ridge))
            G = slopes.to(q).mul_(2 / ((n_rows - 1) * n) * outer)
            on_sources = torch.bmm(c[:, :-1].flatten(1, 2), G[:, 0]).view_as(c[:, :-1])
            on_target = torch.bmm(c[:, -1], G[:, 1])
            slope = torch.cat((on_sources.mul_(w[:, :, None, None]), on_target[:, None]), 1)
        known: Tensor = _Known.apply(of_members(own, q), J.to(q) / n, slope)
        return known

    def move_weights(self, moments: "Moments") -> None:
        """Step log w by -rate (g - mean g + pull (log w - log prior)).

        g is the gradient of J(Σ w_i M_i : M_t) with respect to w, M second moments of
        [standardised q, 1]: M_i = [f cov_i f, 0] + s_i s_i' with s_i = [standardised mean, 1], so
        that neither mixture nor g needs the M_i themselves.
        """
        own = self.learned
        w, covariance = of_members(own, self.weights), of_members(own, moments.covariance)
        factor = of_members(own, 1 / moments.scale)
        mean = of_members(own, moments.mean[:, :, 0])
        s = pad((mean - mean.mean(1, keepdim=True)) * factor[:, None], (0, 1), value=1.0)
        outer = moments.shrink * outer_square(factor)
        within = pad(mixtures(w, covariance) * outer[:, None], (0, 1, 0, 1))
        pair = within + (shares(w).unsqueeze(-2) * s.mT[:, None]) @ s[:, None]
        _, slopes = jeffreys_slopes(with_ridge(pair, self.ridge))
        S = slopes[:, 0].to(w)
        sources, s = covariance[:, :-1].flatten(2), s[:, :-1]
        g = torch.bmm(sources, (outer * S[:, :-1, :-1]).flatten(1)[:, :, None])[:, :, 0]
        g = (g + (torch.bmm(s, S) * s).sum(-1)).double()
        log_w = w.double().clamp_min(1e-12).log()
        step = g - g.mean(-1, keepdim=True) + self.pull * (log_w - self.prior[own].log())
        self.weights[own] = (log_w - self.rate * step).softmax(-1).to(self.weights)

    def after_step(self) -> None:
        """Count the steps."""
        self.done += 1


def of_members(own: Tensor, values: Tensor) -> Tensor:
    """Values (M, ...) of some members; as they are if these are all."""
    return values if own.shape[0] == values.shape[0] else values[own]


def outer_square(x: Tensor) -> Tensor:
    """Outer products of vectors with themselves, (M, n) -> (M, n, n)."""
    return x.unsqueeze(-1) * x.unsqueeze(-2)


class Moments:
    """Moments of q (M, K + 1, B, n): of each domain, and the scale over all domains of a member.

    Attributes
    ----------
    mean, centred, covariance : Tensor
        (M, K + 1, 1, n), the rows less it, and (M, K + 1, n, n), unbiased.
    shrink : float
        What makes the covariances those of the rows themselves, (B - 1)/B.
    scale : Tensor
        Standard deviation over the rows of all domains, (M, n); one where there is none.

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
        scale = (within + self.mean[:, :, 0].var(1, correction=0)).sqrt()
        self.scale = torch.where(scale > 1e-6, scale, 1.0)
