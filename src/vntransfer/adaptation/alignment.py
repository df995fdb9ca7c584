"""Alignment of moments, with source weights that follow them and no adversary."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, bmm
from torch.nn.functional import pad

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._objective import (
    NETWORK,
    Alignment,
    Auto,
    Batch,
    Error,
    Setup,
    Step,
    dot,
    frozen,
    source_errors,
)
from vntransfer.checks import one_of
from vntransfer.divergences import DIVERGENCES
from vntransfer.linalg import log_divided_differences
from vntransfer.networks import Linear, Net
from vntransfer.ridge import AUTO_RIDGE

FirstTerm = Literal["rmse", "jeffreys"]
Distance = Callable[[Tensor, Tensor], Tensor]

EVERY = 4
"""Steps between two moves of the weights."""

AT_ONCE = 2**17
"""Entries of matrices that are decomposed together; of larger ones a few at a time."""


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
    the derivative of the logarithm: one call decomposes all matrices (some, if they are large), and
    nothing is checked, as the ridge makes them positive definite. The gradients take their place.
    """
    H = pair[:, :1] - pair[:, 1:]
    log = _logs(pair.flatten(0, 1), H.expand_as(pair).flatten(0, 1)).view_as(pair)
    log_gap = log[:, :1] - log[:, 1:]
    J = bmm(H.flatten(1)[:, None], log_gap.flatten(1)[:, :, None])[:, 0, 0] / 2
    half = torch.tensor([0.5, -0.5]).to(pair)[:, None, None]
    return J, pair.add_(log_gap).mul_(half)


def _logs(matrices: Tensor, directions: Tensor) -> Tensor:
    """Logarithms of matrices (., n, n), whose place their derivatives in the directions take."""
    size = max(1, AT_ONCE // matrices[0].numel())
    if size < len(matrices):
        parts = zip(matrices.split(size), directions.split(size), strict=True)
        return torch.cat([_logs(own, along) for own, along in parts])
    values, V = torch.linalg.eigh(matrices)
    turned = bmm(bmm(V.mT, directions), V).mul_(log_divided_differences(values))
    torch.bmm(bmm(V, turned), V.mT, out=matrices)
    return bmm(V * values.log().unsqueeze(-2), V.mT)


def metric_slopes(distance: Distance, pair: Tensor) -> tuple[Tensor, Tensor]:
    """Give the same of another function of matrices, by autograd."""
    with torch.enable_grad():
        both = ((pair + pair.mT) / 2).detach().requires_grad_()  # products round either half apart
        value = distance(both[:, 0], both[:, 1])
        (slopes,) = torch.autograd.grad(value.sum(), both)
    return value.detach(), slopes


class _Known(torch.autograd.Function):
    """A value (M,) whose gradient with respect to z, the slope (M, ...), is known already."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, value: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(slope)
        return value

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None]:
        return upstream[0].view(-1, 1, 1, 1) * ctx.saved_tensors[0], None, None


class Prediction(NamedTuple):
    """Predictions (M, K + 1, B, m) of all rows for alignment, and the way back to the features."""

    h: Tensor
    back: Callable[[Tensor], Tensor]  # gradient with respect to h -> gradient with respect to z


def predict(net: Net, batch: Batch, z: Tensor) -> tuple[Tensor, Prediction]:
    """Give predictions (M, K, B, m) of the sources, and those of all rows with the head fixed."""
    if isinstance(net.head, Linear) and batch.mask is None:  # one product serves both
        whole, weight = net.head(z), net.head.weight.detach()
        return whole[:, :-1], Prediction(
            whole.detach(), lambda g: bmm(g.flatten(1, 2), weight.mT).view(*g.shape[:-1], -1)
        )
    leaf = z.detach().requires_grad_()
    h = batch.response(frozen(net.head)(leaf))
    return net.head(z[:, :-1]), Prediction(h.detach(), lambda g: torch.autograd.grad(h, leaf, g)[0])


class MomentAlignment(Alignment):
    """The steps of `MomentAlignmentRegressor`."""

    prior: Tensor
    done: Tensor

    def __init__(self, setup: Setup, method: DomainRegressor) -> None:
        super().__init__(setup, method)
        self.ridge, divergence = self.method.ridge, self.method.divergence
        self.slopes = jeffreys_slopes
        if divergence != "von_neumann":
            self.slopes = partial(metric_slopes, DIVERGENCES[divergence].function)
        prior = self.weights if setup.prior is None else setup.prior
        self.register_buffer("prior", prior.to(self.weights).clone())
        self.register_buffer("done", torch.zeros((), device=setup.device))
        self.aligned = self.trade_off.nonzero()[:, 0]
        self.strength = self.trade_off[self.aligned]
        self.learned = setup.flag(method, "learn_weights").nonzero()[:, 0]
        raw = setup.flag(method, "standardize").logical_not()[:, None]
        self.raw = raw if bool(raw.any()) else None
        self.weights[self.learned] = self.prior[self.learned]

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch; the weights move before it."""
        z = batch.features(net)
        prediction, known = predict(net, batch, z)
        error = source_errors(self.error, batch, prediction)
        seen = {}
        aligned: Tensor | float = 0.0
        done = int(self.done)
        moves = self.learned.numel() and done % EVERY == 0
        if moves or self.aligned.numel():
            with torch.no_grad():
                moments = FeatureMoments(torch.cat((z, known.h), -1))
                if moves:
                    self.move_weights(moments)
            if self.aligned.numel():
                J = self.discrepancy(z, moments, known.back)
                ramp = min(1.0, (done + 1) / max(self.method.warm_up, 1))
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

    def discrepancy(
        self, z: Tensor, moments: "FeatureMoments", back: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """J(Σ w_i cov_i : cov_t) / n of the members that are aligned.

        Its gradient with respect to q is taken in closed form: with C = c'c/(B - 1), c the
        centered rows, that of a function of C with gradient G is 2 c G/(B - 1); of source i it is
        w_i times that of the mixture.
        """
        own = self.aligned
        with torch.no_grad():
            w, c = of_members(own, self.weights), of_members(own, moments.centered)
            n_rows, n = c.shape[-2:]
            factor = 1 / moments.scale
            if self.raw is not None:
                factor = torch.where(self.raw, 1.0, factor)
            factor = of_members(own, factor)
            J, slopes = self.slopes(with_ridge(scaled_by(factor, mixtures(w, c)), self.ridge))
            G = scaled_by(factor, slopes.to(c)).mul_(2 / ((n_rows - 1) * n))
            on_sources = bmm(c[:, :-1].flatten(1, 2), G[:, 0]).view_as(c[:, :-1])
            on_target = bmm(c[:, -1], G[:, 1])
            slope = torch.cat((on_sources.mul_(w[:, :, None, None]), on_target[:, None]), 1)
        d = z.shape[-1]
        on_h = slope[..., d:]
        if len(own) < len(z):  # the head is that of all members
            on_h = on_h.new_zeros(z.shape[0], *on_h.shape[1:]).index_copy(0, own, on_h)
        slope = slope[..., :d] + of_members(own, back(on_h))
        found: Tensor = _Known.apply(of_members(own, z), J.to(c) / n, slope)
        return found

    def move_weights(self, moments: "FeatureMoments") -> None:
        """Step log w by -rate (g - mean g + pull (log w - log prior)).

        g is the gradient of J(Σ w_i M_i : M_t) with respect to w, M second moments of
        [standardized q, 1]: M_i = [f c'c f/B, 0] + s_i s_i' with centered rows c and
        s_i = [standardized mean, 1], so that neither mixture nor g needs the M_i themselves.
        """
        own = self.learned
        w, c = of_members(own, self.weights), of_members(own, moments.centered)
        factor = of_members(own, 1 / moments.scale)
        mean = of_members(own, moments.mean[:, :, 0])
        s = pad((mean - mean.mean(1, keepdim=True)) * factor[:, None], (0, 1), value=1.0)
        S = jeffreys_slopes(with_ridge(second_moments(w, c, s, factor), self.ridge))[1]
        S, sources = S[:, :1].to(c), s[:, :-1]
        inner, S = scaled_by(factor, S[:, :, :-1, :-1].clone())[:, 0], S[:, 0]
        turned = bmm(c[:, :-1].flatten(1, 2), inner).view_as(c[:, :-1])
        g = turned.mul_(c[:, :-1]).sum((-2, -1)) / c.shape[-2]
        g = (g + (bmm(sources, S) * sources).sum(-1)).double()
        log_w = w.double().clamp_min(1e-12).log()
        step = (
            g - g.mean(-1, keepdim=True) + self.method.weight_pull * (log_w - self.prior[own].log())
        )
        self.weights[own] = (log_w - self.method.weight_rate * step).softmax(-1).to(self.weights)

    def after_step(self) -> None:
        """Count the steps."""
        self.done += 1


def of_members(own: Tensor, values: Tensor) -> Tensor:
    """Values (M, ...) of some members; as they are if these are all."""
    return values if own.shape[0] == values.shape[0] else values[own]


def scaled_by(factor: Tensor, matrices: Tensor) -> Tensor:
    """Rows and columns of matrices (M, ., n, n) times a factor (M, n), in place."""
    return matrices.mul_(factor[:, None, :, None]).mul_(factor[:, None, None, :])


def mixtures(w: Tensor, c: Tensor) -> Tensor:
    """Σ w_i cov_i of the sources, and the target's covariance, (M, 2, n, n), of centered rows.

    Weights (M, K), rows (M, K + 1, B, n); no covariance of a single source is formed.
    """
    sources, target = c[:, :-1].flatten(1, 2), c[:, -1]
    weighted = (c[:, :-1] * w[:, :, None, None]).flatten(1, 2)
    pair = torch.stack((bmm(weighted.mT, sources), bmm(target.mT, target)), 1)
    return pair.div_(c.shape[-2] - 1)


def second_moments(w: Tensor, c: Tensor, s: Tensor, factor: Tensor) -> Tensor:
    """Σ w_i M_i of the sources, and the target's M: (M, 2, n + 1, n + 1).

    M_i = [f c'c f/B, 0] + s_i s_i' of centered rows c (M, K + 1, B, n), standardized by a factor f
    (M, n), and of means with a one, s (M, K + 1, n + 1).
    """
    sources, target = s[:, :-1], s[:, -1:]
    pair = torch.stack((sources.mT @ (w[:, :, None] * sources), target.mT @ target), 1)
    n_rows = c.shape[-2]
    pair[..., :-1, :-1] += scaled_by(factor, mixtures(w, c)).mul_((n_rows - 1) / n_rows)
    return pair


class FeatureMoments:
    """Moments of rows q (M, K + 1, B, n), which are centered in place.

    ``mean`` (M, K + 1, 1, n) is that of each domain; ``scale`` (M, n) the standard deviation over
    the rows of all domains, one where there is none.
    """

    def __init__(self, q: Tensor) -> None:
        self.mean = q.mean(-2, keepdim=True)
        self.centered = q.sub_(self.mean)
        within = self.centered.square().mean((1, 2))
        scale = (within + self.mean[:, :, 0].var(1, correction=0)).sqrt()
        self.scale = torch.where(scale > 1e-6, scale, 1.0)


@dataclass(eq=False, repr=False, kw_only=True)
class DivergenceRegressor(DomainRegressor):
    """What the methods share that compare covariances of features by a divergence.

    Parameters
    ----------
    trade_off
        μ, the weight of the divergence beside the errors e_i of the sources. "auto": chosen by
        leaving one source out at a time.
    first_term
        e_i: "rmse", or "jeffreys" (√J between response and prediction on the inputs, with the mean
        residual of the sources added to predictions afterwards); None: ``loss``.
    learn_weights
        Whether the weights w of the sources are learned; otherwise all sources count equally.
    weight_rate
        Rate of the steps on w.
    divergence
        "von_neumann" (J), or a metric: "jensen_von_neumann", "log_euclidean", "affine_invariant",
        "bures_wasserstein".
    ridge
        Added to the diagonals of covariances, relative to their mean.
    warm_up
        Steps over which μ rises to its value.

    All further options are those of `DomainRegressor`.
    """

    trade_off: float | Auto = 0.1
    first_term: FirstTerm | None = None
    learn_weights: bool = True
    weight_rate: float = 0.05
    divergence: str = "von_neumann"
    ridge: float = AUTO_RIDGE
    warm_up: int = 150

    def _check_options(self, rows: int = 2) -> None:
        super()._check_options(rows)
        metrics = (name for name, entry in DIVERGENCES.items() if entry.metric)
        one_of("divergence", self.divergence, ["von_neumann", *metrics])

    def _error(self) -> Error:
        return self.loss if self.first_term is None else self.first_term


@dataclass(eq=False, repr=False, kw_only=True)
class MomentAlignmentRegressor(DivergenceRegressor):
    """Alignment of moments with learned source weights: the paper's idea without an adversary.

    With q = [z, h(z)], features and prediction, weights w of the sources and e_i their errors::

        Σ w_i e_i + μ J(Σ w_i cov_i[q] : cov_t[q]) / dim q,

    the Jeffreys von Neumann divergence between what the weighted sources and the target look like
    to the network. Features descend both terms, the head of h the first alone; every fourth step w
    descends J between second moments (means count too) plus ``weight_pull`` times KL(w ‖ shares of
    rows). μ is chosen without labels of the target: each source is held out once, and alignment is
    used as far as it helped there (``trade_off="auto"``, `selection_`). `MDDRegressor` is the
    paper's own form.

    Parameters
    ----------
    weight_pull
        Weight of KL(w ‖ the sources' shares of rows) in what w descends.
    standardize
        Whether q is divided by its standard deviation over all domains before it is aligned.

    All further options are those of `DivergenceRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from vntransfer import MomentAlignmentRegressor, stack
    >>> rng = np.random.default_rng(0)
    >>> near, far, new = (rng.normal(m, 1, size=(100, 2)) for m in (0, 3, 0))
    >>> X, y, domain = stack({"near": (near, near[:, 0]), "far": (far, far[:, 0])}, target=new)
    >>> model = MomentAlignmentRegressor(trade_off=1.0, epochs=5, random_state=0)
    >>> weights = model.fit(X, y, domain).source_weights_
    >>> weights["near"] > weights["far"], model.predict(new).shape
    (True, (100,))
    """

    members: int = 5
    trade_off: float | Auto = "auto"
    weight_rate: float = 0.04
    weight_pull: float = 10.0
    standardize: bool = True

    _steps = MomentAlignment

    def _candidates(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"trade_off": 0.0},
            {"trade_off": 1.0, "learn_weights": False, "standardize": False},
            {"trade_off": 1.0},
            {"trade_off": 10.0},
        ]
