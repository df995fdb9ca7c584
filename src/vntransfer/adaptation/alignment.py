"""Alignment of moments, with source weights that follow them and no adversary."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, bmm

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
Array = NDArray[Any]
Members = slice | NDArray[np.intp]
"""Some of the members: a slice if these are all, so that nothing is copied."""

EVERY = 4
"""Steps between two moves of the weights."""

AT_ONCE = 2**17
"""Entries of matrices that are decomposed together; of larger ones a few at a time."""


def with_ridge(pair: Array, ridge: float) -> Array:
    """Matrices (M, 2, n, n) with the same ridge for both, relative to their mean diagonal.

    In float64.
    """
    pair = pair.astype(np.float64)
    diagonal = np.einsum("...ii->...i", pair)
    level = np.einsum("mkii->m", pair) / (2 * pair.shape[-1])
    diagonal += np.maximum(ridge * level, np.finfo(np.float32).eps)[:, None, None]
    return pair


def jeffreys_slopes(pair: Array) -> tuple[Array, Array]:
    """J(X:Y) (M,) of positive definite (M, 2, n, n), and its gradients with respect to both.

    With H = X - Y, ∂J/∂X = ½ (log X + L_X[H] - log Y) and ∂J/∂Y = ½ (log Y + L_Y[-H] - log X), L
    the derivative of the logarithm: one call decomposes all matrices (some, if they are large), and
    nothing is checked, as the ridge makes them positive definite. The gradients take their place.
    """
    flat = pair.reshape(-1, *pair.shape[2:])
    logs, along = _logs(flat, (pair - pair[:, ::-1]).reshape(flat.shape))
    pair -= logs.reshape(pair.shape)[:, ::-1]
    pair /= 2
    return along.reshape(len(pair), -1).sum(1) / 2, pair


def _logs(matrices: Array, directions: Array) -> tuple[Array, Array]:
    """Logarithms of matrices X (., n, n), and the terms (., n) of tr[D log X] in directions D.

    X is replaced by log X + L_X[D]. With eigenvalues λ = exp l and eigenvectors U of X, W = U λ^-½
    and T = W'D W, this is U (T ∘ s + diag l) U': s = x/sinh x, x = (l_i - l_j)/2, are the divided
    differences of the logarithm times √(λ_i λ_j).
    """
    size = max(1, AT_ONCE // matrices[0].size)
    if size < len(matrices):
        starts = range(0, len(matrices), size)
        parts = [_logs(matrices[i : i + size], directions[i : i + size]) for i in starts]
        logs, along = zip(*parts, strict=True)
        return np.concatenate(logs), np.concatenate(along)
    values, U = (t.numpy() for t in torch.linalg.eigh(torch.from_numpy(matrices)))
    log = np.log(values)
    W = U / np.sqrt(values)[:, None]
    T = turned(W) @ directions @ W
    along = np.einsum("...ii->...i", T) * (values * log)
    x = (log[:, :, None] - log[:, None]) / 2
    x += 1e-100  # never zero
    T *= x
    T /= np.sinh(x, out=x)
    np.einsum("...ii->...i", T)[:] += log
    np.matmul(U @ T, turned(U), out=matrices)
    return (U * log[:, None]) @ turned(U), along


def metric_slopes(distance: Distance, pair: Array) -> tuple[Array, Array]:
    """Give the same of another function of matrices, by autograd."""
    with torch.enable_grad():
        both = torch.from_numpy(
            (pair + turned(pair)) / 2
        ).requires_grad_()  # products round either half
        value = distance(both[:, 0], both[:, 1])
        (slopes,) = torch.autograd.grad(value.sum(), both)
    return value.detach().numpy(), slopes.numpy()


class Prediction(NamedTuple):
    """Predictions (M, K + 1, B, m) of all rows for alignment, and the way back to the features."""

    h: Tensor
    weight: Array | None  # (M, d, m), of a linear head
    back: Callable[[Tensor], Tensor] | None  # of others: gradient with respect to h -> to z


def predict(net: Net, batch: Batch, z: Tensor) -> tuple[Tensor, Prediction]:
    """Give predictions (M, K, B, m) of the sources, and those of all rows with the head fixed."""
    if isinstance(net.head, Linear) and batch.mask is None:  # one product serves both
        whole, weight = net.head(z), net.head.weight
        return whole[:, :-1], Prediction(whole.detach(), array(weight), None)
    leaf = z.detach().requires_grad_()
    h = batch.response(frozen(net.head)(leaf))
    back = lambda g: torch.autograd.grad(h, leaf, g)[0]  # noqa: E731
    return net.head(z[:, :-1]), Prediction(h.detach(), None, back)


class MomentAlignment(Alignment):
    """The steps of `MomentAlignmentRegressor`.

    Rows are tensors. Their moments are few and small: numpy takes a third of torch's time for them.
    """

    prior: Tensor

    def __init__(self, setup: Setup, method: DomainRegressor) -> None:
        super().__init__(setup, method)
        self.ridge, divergence = self.method.ridge, self.method.divergence
        self.slopes = jeffreys_slopes
        if divergence != "von_neumann":
            self.slopes = partial(metric_slopes, DIVERGENCES[divergence].function)
        prior = self.weights if setup.prior is None else setup.prior
        self.register_buffer("prior", prior.to(self.weights).clone())
        self.aligned = chosen(array(self.trade_off) != 0)
        self.learned = chosen(array(setup.flag(method, "learn_weights")))
        self.raw = ~array(setup.flag(method, "standardize"))[:, None]
        if setup.support is not None:
            self.weights *= setup.support.to(self.weights)
        if self.learned is not None:
            self.weights[self.learned] = self.prior[self.learned]

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch; the weights move before it."""
        z = batch.features(net)
        prediction, known = predict(net, batch, z)
        error = source_errors(self.error, batch, prediction)
        seen = {}
        moved = self.learned if self.done % EVERY == 0 else None
        if moved is not None or self.aligned is not None:
            with torch.no_grad():
                moments = FeatureMoments(torch.cat((z, known.h), -1))
                if moved is not None:
                    self.move_weights(moved, moments)
                if self.aligned is not None:
                    seen["discrepancy"], slope = self.discrepancy(self.aligned, moments, known)
                    ramp = min(1.0, (self.done + 1) / max(self.method.warm_up, 1))
                    slope *= (self.trade_off * ramp).view(-1, 1, 1, 1)
                    if z.requires_grad:  # joins the gradient of the loss on its way back
                        z.register_hook(slope.add)
        loss = dot(self.weights, error)
        self.note(loss=loss, **seen)
        yield NETWORK, loss

    def discrepancy(
        self, own: Members, moments: "FeatureMoments", known: Prediction
    ) -> tuple[Tensor, Tensor]:
        """J(Σ w_i cov_i : cov_t) / n (M,) and its gradient in z, zero for members not aligned.

        With S = c'c, c the centered rows, the gradient in c of a function of S with gradient G is
        2 c G; of source i it is w_i times that of the mixture.
        """
        scatter, c, members = moments.scatter[own], moments.centered[own], len(self.weights)
        n_rows, n = c.shape[-2:]
        d = n - known.h.shape[-1]
        factor = np.where(self.raw, 1.0, moments.factor)[own]
        scaling = products(factor) / (n_rows - 1)
        w = parts_of(array(self.weights)[own])
        J, G = self.slopes(with_ridge(mixed(w, scatter) * scaling, self.ridge))
        G = G * scaling * (2 / n)
        if known.weight is not None:
            G = G[..., :d] + G[..., d:] @ turned(known.weight[own])[:, None]
        on_rows = torch.from_numpy(mixed(turned(w), G.astype(scatter.dtype))).to(c)
        slope = bmm(c.flatten(0, 1), on_rows.flatten(0, 1)).view(*c.shape[:-1], -1)
        if known.back is not None:
            on_h = among_all(members, own, slope[..., d:])
            slope = slope[..., :d] + known.back(on_h)[own]
        value = torch.from_numpy((J / n).astype(scatter.dtype)).to(c)
        return among_all(members, own, value), among_all(members, own, slope)

    def move_weights(self, own: Members, moments: "FeatureMoments") -> None:
        """Step log w by -rate (g - mean g + pull (log w - log prior)).

        g is the gradient of J(Σ w_i M_i : M_t) with respect to w, M second moments of
        [standardized q, 1]: M_i = [f S_i f/B, 0] + s_i s_i' with scatters S_i and
        s_i = [standardized mean, 1].
        """
        scatter, factor, mean = moments.scatter[own], moments.factor[own], moments.mean[own]
        w, prior = array(self.weights)[own], array(self.prior)[own]
        s = np.ones((*mean.shape[:2], mean.shape[2] + 1))
        s[..., :-1] = mean * factor[:, None]
        scaling, parts = products(factor) / moments.centered.shape[-2], parts_of(w)
        pair = turned(parts[..., None] * s[:, None]) @ s[:, None]
        pair[..., :-1, :-1] += mixed(parts, scatter) * scaling
        S = jeffreys_slopes(with_ridge(pair, self.ridge))[1][:, 0]
        inner = (S[:, :-1, :-1] * scaling[:, 0]).reshape(len(S), -1, 1).astype(scatter.dtype)
        g = (scatter.reshape(*scatter.shape[:2], -1) @ inner)[:, :-1, 0]
        g = g + ((s @ S) * s).sum(-1)[:, :-1]
        log_w = np.log(np.maximum(w, 1e-12))
        pull = self.method.weight_pull * (log_w - np.log(prior))
        log_w -= self.method.weight_rate * (g - g.mean(-1, keepdims=True) + pull)
        moved = np.exp(log_w - log_w.max(-1, keepdims=True))
        moved /= moved.sum(-1, keepdims=True)
        self.weights[own] = torch.from_numpy(moved).to(self.weights)


def array(values: Tensor) -> Array:
    """Values of a tensor on the CPU."""
    return values.detach().cpu().numpy()


def turned(matrices: Array) -> Array:
    """Matrices transposed."""
    return matrices.swapaxes(-1, -2)


def chosen(flags: Array) -> Members | None:
    """Members whose flag (M,) is set, if any."""
    if flags.all():
        return slice(None)
    return flags.nonzero()[0] if flags.any() else None


def among_all(members: int, own: Members, values: Tensor) -> Tensor:
    """Values of some members, (., ...), among zeros of the others, (M, ...)."""
    if isinstance(own, slice):
        return values
    every = values.new_zeros(members, *values.shape[1:])
    every[own] = values
    return every


def products(factor: Array) -> Array:
    """Products of all pairs, (M, n) -> (M, 1, n, n)."""
    return (factor[:, :, None] * factor[:, None])[:, None]


def parts_of(w: Array) -> Array:
    """Parts (M, 2, K + 1) of the domains in the mixture of the sources and in the target."""
    parts = np.zeros((len(w), 2, w.shape[1] + 1), dtype=w.dtype)
    parts[:, 0, :-1], parts[:, 1, -1] = w, 1
    return parts


def mixed(parts: Array, matrices: Array) -> Array:
    """Mix matrices by their parts, (M, i, j), (M, j, n, n') -> (M, i, n, n')."""
    flat = parts @ matrices.reshape(*matrices.shape[:2], -1)
    return flat.reshape(*flat.shape[:2], *matrices.shape[2:])


class FeatureMoments:
    """Moments of rows q (M, K + 1, B, n), which are centered in place.

    ``mean`` (M, K + 1, n), less that of all, and ``scatter`` (M, K + 1, n, n), products of centered
    rows, are those of each domain; ``factor`` (M, n) is one over the standard deviation over the
    rows of all domains, one where there is none.
    """

    def __init__(self, q: Tensor) -> None:
        mean = q.mean(-2, keepdim=True)
        self.centered = q.sub_(mean)
        rows = q.flatten(0, 1)
        domains, n = q.shape[1], q.shape[-1]
        self.scatter = array(bmm(rows.mT, rows)).reshape(-1, domains, n, n)
        means = array(mean)[:, :, 0]
        self.mean = means - means.sum(1, keepdims=True) / domains
        within = np.einsum("mkii->mi", self.scatter) / q.shape[2]
        scale = np.sqrt((within + np.einsum("mkn,mkn->mn", self.mean, self.mean)) / domains)
        self.factor = 1 / np.where(scale > 1e-6, scale, 1.0)


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

    with J the Jeffreys von Neumann divergence between the weighted sources and the target in the
    network's features. Features descend both terms, the head of h only the first. At every fourth
    step, w descends J between second moments, so that means count as well, plus ``weight_pull``
    times KL(w ‖ shares of rows). μ is chosen without labels from the target: each source is held
    out once, and alignment is used only as far as it helped there (``trade_off="auto"``,
    `selection_`). `MDDRegressor` is the paper's own form.

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
