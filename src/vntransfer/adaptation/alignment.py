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
from vntransfer.networks import Linear, Net
from vntransfer.ridge import AUTO_RIDGE

FirstTerm = Literal["rmse", "jeffreys"]
Distance = Callable[[Tensor, Tensor], Tensor]

EVERY = 4
"""Steps between two moves of the weights."""

AT_ONCE = 2**17
"""Entries of matrices that are decomposed together; of larger ones a few at a time."""


def with_ridge(pair: Tensor, ridge: float) -> Tensor:
    """Add the same ridge to both matrices (M, 2, n, n), relative to their mean diagonal."""
    diagonal = pair.diagonal(dim1=-2, dim2=-1)
    level = diagonal.mean((1, 2), keepdim=True)
    diagonal += level.mul_(ridge).clamp_min_(torch.finfo(torch.float32).eps)
    return pair


def jeffreys_slopes(pair: Tensor) -> tuple[Tensor, Tensor]:
    """J(X:Y) (M,) of positive definite (M, 2, n, n), and its gradients with respect to both.

    With H = X - Y, ∂J/∂X = ½ (log X + L_X[H] - log Y) and ∂J/∂Y = ½ (log Y + L_Y[-H] - log X), L
    the derivative of the logarithm: one call decomposes all matrices (some, if they are large), and
    nothing is checked, as the ridge makes them positive definite. The gradients take their place.
    """
    apart = pair - pair.flip(1)
    logs, along = _logs(pair.flatten(0, 1), apart.flatten(0, 1))
    J = along.view(len(pair), -1).sum(1) / 2
    return J, pair.sub_(logs.view_as(pair).flip(1)).div_(2)


def _logs(matrices: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Logarithms of matrices X (., n, n), and the terms (., n) of tr[D log X] in directions D.

    X is replaced by log X + L_X[D]. With eigenvalues λ = exp l and eigenvectors U of X, W = U λ^-½
    and T = W'D W, this is U (T ∘ s + diag l) U': s = x/sinh x, x = (l_i - l_j)/2, are the divided
    differences of the logarithm times √(λ_i λ_j).
    """
    size = max(1, AT_ONCE // matrices[0].numel())
    if size < len(matrices):
        parts = zip(matrices.split(size), directions.split(size), strict=True)
        logs, along = zip(*(_logs(*part) for part in parts), strict=True)
        return torch.cat(logs), torch.cat(along)
    values, U = torch.linalg.eigh(matrices)
    log = values.log()
    W = U * values.rsqrt().unsqueeze(-2)
    T = bmm(bmm(W.mT, directions), W)
    along = T.diagonal(dim1=-2, dim2=-1) * values.mul_(log)
    half = log / 2
    x = (half.unsqueeze(-1) - half.unsqueeze(-2)).add_(torch.finfo(half.dtype).tiny)  # never zero
    T.mul_(x).div_(x.sinh_())
    T.diagonal(dim1=-2, dim2=-1).add_(log)
    torch.bmm(bmm(U, T), U.mT, out=matrices)
    return bmm(U * log.unsqueeze(-2), U.mT), along


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
    weight: Tensor | None  # (M, d, m), of a linear head
    back: Callable[[Tensor], Tensor] | None  # of others: gradient with respect to h -> to z


def predict(net: Net, batch: Batch, z: Tensor) -> tuple[Tensor, Prediction]:
    """Give predictions (M, K, B, m) of the sources, and those of all rows with the head fixed."""
    if isinstance(net.head, Linear) and batch.mask is None:  # one product serves both
        whole, weight = net.head(z), net.head.effective_weight().detach()
        return whole[:, :-1], Prediction(whole.detach(), weight, None)
    leaf = z.detach().requires_grad_()
    h = batch.response(frozen(net.head)(leaf))
    back = lambda g: torch.autograd.grad(h, leaf, g)[0]  # noqa: E731
    return net.head(z[:, :-1]), Prediction(h.detach(), None, back)


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
        done, J = int(self.done), None
        moves = self.learned.numel() and done % EVERY == 0
        if moves or self.aligned.numel():
            with torch.no_grad():
                moments = FeatureMoments(torch.cat((z, known.h), -1))
                if moves:
                    self.move_weights(moments)
                if self.aligned.numel():
                    J, slope = self.discrepancy(moments, known)
        loss = dot(self.weights, error)
        if J is None:
            self.note(loss=loss)
            yield NETWORK, loss
            return
        self.note(loss=loss, discrepancy=self.among_all(J))
        strength = min(1.0, (done + 1) / max(self.method.warm_up, 1)) * self.strength
        aligned = strength * _Known.apply(of_members(self.aligned, z), J, slope)
        yield NETWORK, loss + self.among_all(aligned)

    def among_all(self, values: Tensor) -> Tensor:
        """Values (M, ...) of the members that are aligned, and zeros of the others."""
        if values.shape[0] == self.weights.shape[0]:
            return values
        shape = self.weights.shape[:1] + values.shape[1:]
        return values.new_zeros(shape).index_copy(0, self.aligned, values)

    def discrepancy(self, moments: "FeatureMoments", known: Prediction) -> tuple[Tensor, Tensor]:
        """J(Σ w_i cov_i : cov_t) / n of the members that are aligned, and its gradient in z.

        With S = c'c, c the centered rows, the gradient in c of a function of S with gradient G is
        2 c G; of source i it is w_i times that of the mixture.
        """
        own = self.aligned
        c, scatter = (of_members(own, v) for v in (moments.centered, moments.scatter))
        n_rows, n = c.shape[-2:]
        d = n - known.h.shape[-1]
        factor = moments.factor if self.raw is None else moments.factor.where(~self.raw, 1.0)
        scaling = products(of_members(own, factor)) / (n_rows - 1)
        w = parts_of(of_members(own, self.weights))
        J, G = self.slopes(with_ridge(mixed(w, scatter).double().mul_(scaling), self.ridge))
        G = G.mul_(scaling).to(c).mul_(2 / n)
        if known.weight is not None:
            rows, weight = G.flatten(1, 2), of_members(own, known.weight)
            G = torch.baddbmm(rows[..., :d], rows[..., d:], weight.mT).view(*G.shape[:-1], d)
        slope = bmm(c.flatten(0, 1), mixed(w.mT, G).flatten(0, 1)).view(*c.shape[:-1], -1)
        if known.back is not None:
            on_h = self.among_all(slope[..., d:])
            slope = slope[..., :d] + of_members(own, known.back(on_h))
        return J.to(c) / n, slope

    def move_weights(self, moments: "FeatureMoments") -> None:
        """Step log w by -rate (g - mean g + pull (log w - log prior)).

        g is the gradient of J(Σ w_i M_i : M_t) with respect to w, M second moments of
        [standardized q, 1]: M_i = [f S_i f/B, 0] + s_i s_i' with scatters S_i and
        s_i = [standardized mean, 1].
        """
        own = self.learned
        scatter, factor = (of_members(own, v) for v in (moments.scatter, moments.factor))
        mean = of_members(own, moments.mean[:, :, 0])
        s = pad((mean - mean.mean(1, keepdim=True)) * factor[:, None], (0, 1), value=1.0)
        scaling = products(factor) / moments.centered.shape[-2]
        w = of_members(own, self.weights)
        parts = parts_of(w)
        pair = (parts.unsqueeze(-1) * s.unsqueeze(1)).mT @ s.unsqueeze(1)
        pair[..., :-1, :-1] += mixed(parts, scatter) * scaling
        S = jeffreys_slopes(with_ridge(pair.double(), self.ridge))[1][:, 0].to(s)
        sources = s[:, :-1]
        inner = S[:, :-1, :-1] * scaling[:, 0]
        g = bmm(scatter[:, :-1].flatten(2), inner.flatten(1).unsqueeze(-1)).squeeze(-1)
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


def products(factor: Tensor) -> Tensor:
    """Products of all pairs, (M, n) -> (M, 1, n, n)."""
    return (factor.unsqueeze(-1) * factor.unsqueeze(-2)).unsqueeze(1)


def parts_of(w: Tensor) -> Tensor:
    """Parts (M, 2, K + 1) of the domains in the mixture of the sources and in the target."""
    sources = pad(w, (0, 1))
    target = torch.zeros_like(sources)
    target[:, -1] = 1
    return torch.stack((sources, target), 1)


def mixed(parts: Tensor, matrices: Tensor) -> Tensor:
    """Mix matrices by their parts, (M, i, j), (M, j, n, n') -> (M, i, n, n')."""
    return bmm(parts, matrices.flatten(2)).unflatten(2, matrices.shape[2:])


class FeatureMoments:
    """Moments of rows q (M, K + 1, B, n), which are centered in place.

    ``mean`` (M, K + 1, 1, n) and ``scatter`` (M, K + 1, n, n), products of centered rows, are those
    of each domain; ``factor`` (M, n) is one over the standard deviation over the rows of all
    domains, one where there is none.
    """

    def __init__(self, q: Tensor) -> None:
        self.mean = q.mean(-2, keepdim=True)
        self.centered = q.sub_(self.mean)
        rows = q.flatten(0, 1)
        self.scatter = bmm(rows.mT, rows).view(*q.shape[:2], *q.shape[-1:] * 2)
        within = self.scatter.diagonal(dim1=-2, dim2=-1).mean(1) / q.shape[-2]
        scale = (within + self.mean[:, :, 0].var(1, correction=0)).sqrt_()
        self.factor = torch.where(scale > 1e-6, scale, 1.0).reciprocal_()


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
