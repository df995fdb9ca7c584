"""Matrix-based discrepancy of domains (Definition 1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vntransfer.arrays import take
from vntransfer.checks import number, one_of, whole
from vntransfer.display import counted, one_line, rounded
from vntransfer.divergences import DIVERGENCES, jeffreys
from vntransfer.errors import ArgumentError, DomainError
from vntransfer.moments import Moments
from vntransfer.ridge import AUTO_RIDGE

Hypothesis = Callable[[Tensor], Tensor]
"""A map from features (N, d) to responses (N,)."""

Ridge = float | Literal["auto"]
Distance = Callable[[Tensor, Tensor], Tensor]
Loss = Callable[[Sequence[nn.Module]], Tensor]
Run = tuple[float, list[nn.Module], tuple[float, ...]]
"""Smallest loss of a search, the hypotheses that attain it, and the loss at every step."""

WIDTH = 16
"""Hidden units of the default hypothesis class."""


class TanhHypothesis(nn.Module):
    """The default hypothesis class: one tanh layer plus a linear part, scaled to unit variance.

    √J grows with the amplitude of a hypothesis, so that the maximum over an unbounded class is
    infinite; dividing by the standard deviation over the given samples (N, d) of all domains bounds
    it.
    """

    shift: Tensor
    spread: Tensor
    samples: Tensor

    def __init__(self, samples: Tensor, generator: torch.Generator) -> None:
        super().__init__()
        d = samples.shape[-1]
        self.register_buffer("shift", samples.mean(0))
        self.register_buffer("spread", samples.std(0).clamp_min(1e-12))
        self.register_buffer("samples", samples)

        def draw(*shape: int) -> nn.Parameter:
            noise = torch.randn(*shape, generator=generator, dtype=torch.float64)
            return nn.Parameter(noise.to(samples) / shape[0] ** 0.5)

        self.first, self.bias = draw(d, WIDTH), draw(WIDTH)
        self.second, self.linear = draw(WIDTH), draw(d)

    def _raw(self, x: Tensor) -> Tensor:
        z = (x - self.shift) / self.spread
        return torch.tanh(z @ self.first + self.bias) @ self.second + z @ self.linear

    def forward(self, x: Tensor) -> Tensor:
        """Responses (N,) of features (N, d)."""
        return self._raw(x) / self._raw(self.samples).std().clamp_min(1e-12)


def evaluate(name: str, h: Hypothesis, x: Tensor) -> Tensor:
    """Responses (N,) of a hypothesis, checked."""
    out = h(x)
    if not isinstance(out, Tensor) or out.shape not in (x.shape[:1], (x.shape[0], 1)):
        seen = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise ArgumentError(f"{name}: expected responses of shape ({x.shape[0]},), got {seen}")
    return out.reshape(x.shape[0])


def check_features(name: str, x: Tensor, like: Tensor) -> None:
    """Raise unless a domain has two rows and as many features as another."""
    if x.ndim != 2 or len(x) < 2 or x.shape[1] != like.shape[-1]:
        raise DomainError(
            f"{name}: expected at least two rows of {like.shape[-1]} features, the same for source "
            f"and target, got shape {tuple(x.shape)}"
        )


def two_domains(source: Any, target: Any) -> tuple[list[Tensor], Callable[[Tensor], Any]]:
    """Check the features of two domains."""
    tensors, back = take(source=source, target=target)
    for name, x in zip(("source", "target"), tensors, strict=True):
        check_features(name, x, tensors[0])
    return tensors, back


def distance_of(divergence: str) -> Distance:
    """√J, or a metric of the registry, between matrices."""
    if divergence == "jeffreys":
        return lambda sigma, rho: jeffreys(sigma, rho, sqrt=True)
    metrics = (name for name, entry in DIVERGENCES.items() if entry.metric)
    one_of("divergence", divergence, ["jeffreys", *metrics])
    return DIVERGENCES[divergence].function


def one_ridge(ridge: Ridge, samples: Sequence[Tensor]) -> float:
    """One ridge for all domains, so that their distances are one function of the covariances.

    `MDDRegressor` has the same rule.
    """
    if ridge != "auto":
        return number("ridge", ridge)
    return AUTO_RIDGE * float(torch.stack([x.detach().var(0).mean() for x in samples]).mean())


@dataclass(frozen=True)
class DomainMixture:
    """A weighted mixture of sample sets; a single domain is a mixture of one."""

    parts: tuple[Tensor, ...]
    weights: tuple[float, ...] = (1.0,)

    def distance(
        self, left: Sequence[Tensor], right: Sequence[Tensor], distance: Distance, ridge: float
    ) -> Tensor:
        """Distance between cov[x, left] and cov[x, right] over the mixture."""
        sigma, rho = (
            Moments.weighted(
                [Moments.from_samples(x, y) for x, y in zip(self.parts, responses, strict=True)],
                self.weights,
            ).covariance_tensor(ridge=ridge)
            for responses in (left, right)
        )
        return distance(sigma, rho)

    def between(self, h: Hypothesis, g: Hypothesis, distance: Distance, ridge: float) -> Tensor:
        """Distance between two hypotheses over the mixture."""
        left = [evaluate("h", h, x) for x in self.parts]
        right = [evaluate("h_prime", g, x) for x in self.parts]
        return self.distance(left, right, distance, ridge)


def discrepancy(
    source: Any,
    target: Any,
    h: Hypothesis,
    h_prime: Hypothesis,
    *,
    divergence: str = "jeffreys",
    ridge: Ridge = "auto",
) -> Any:
    """Matrix-based discrepancy of two domains for two given hypotheses (Definition 1, inside max).

    |√J(σ^s_{x,h(x)} : σ^s_{x,h'(x)}) - √J(σ^t_{x,h(x)} : σ^t_{x,h'(x)})|.

    Parameters
    ----------
    source, target
        Features (N_s, d) and (N_t, d).
    h, h_prime
        Maps from features (a torch tensor) to responses (N,).
    divergence
        "jeffreys" for the paper's √J, or the id of a metric.
    ridge
        Ridge of both domains; "auto" = 1e-3 times their mean feature variance.

    Examples
    --------
    >>> x = torch.randn(100, 2, dtype=torch.float64)
    >>> first, second = (lambda z: z[:, 0]), (lambda z: z[:, 1])
    >>> float(discrepancy(x, x, first, second))
    0.0
    """
    (s, t), back = two_domains(source, target)
    distance, offset = distance_of(divergence), one_ridge(ridge, (s, t))
    values = [DomainMixture((x,)).between(h, h_prime, distance, offset) for x in (s, t)]
    return back((values[0] - values[1]).abs())


@dataclass(frozen=True)
class MaxDiscrepancy:
    """Result of `max_discrepancy`: the value, the hypotheses that attain it, and the ascent."""

    value: float
    h: Hypothesis
    h_prime: Hypothesis
    history: tuple[tuple[float, ...], ...]

    def summary(self) -> str:
        """Describe the result, and how much the restarts differ."""
        best = [max(curve) for curve in self.history]
        return (
            f"The discrepancy is at least {rounded(self.value)}.\n"
            f"Best of {counted(len(best), 'start')}, which reached {rounded(min(best))} to "
            f"{rounded(max(best))}."
        )

    def __repr__(self) -> str:
        starts = counted(len(self.history), "start")
        return one_line(f"MaxDiscrepancy: at least {rounded(self.value)}, best of {starts}")


@dataclass(frozen=True)
class Ascent:
    """Gradient search over a hypothesis class.

    Parameters
    ----------
    steps, learning_rate
        Adam steps per restart.
    restarts
        Independent starts; the best one is used.
    random_state
        Seed of the starts.
    hypothesis
        Makes a module (N, d) -> (N,) from a generator; it should bound the amplitude of its
        responses. Default: `TanhHypothesis` on all samples.

    Examples
    --------
    >>> Ascent(restarts=0)
    Traceback (most recent call last):
    vntransfer.errors.ArgumentError: restarts: expected a whole number from 1 on, got 0
    """

    steps: int = 100
    learning_rate: float = 0.05
    restarts: int = 3
    random_state: int = 0
    hypothesis: Callable[[torch.Generator], nn.Module] | None = None

    def __post_init__(self) -> None:
        whole("steps", self.steps)
        number("learning_rate", self.learning_rate, exclusive=True)
        whole("restarts", self.restarts, minimum=1)

    def search(self, loss: Loss, count: int, samples: Tensor) -> list[Run]:
        """Minimize a loss of ``count`` hypotheses from every start; the best step is used."""
        seeds = (self.random_state + k for k in range(self.restarts))
        return [self._search(loss, count, samples, seed) for seed in seeds]

    def _search(self, loss: Loss, count: int, samples: Tensor, seed: int) -> Run:
        generator = torch.Generator().manual_seed(seed)
        make = self.hypothesis or (lambda g: TanhHypothesis(samples, g))
        modules = [make(generator) for _ in range(count)]
        parameters = [p for module in modules for p in module.parameters() if p.requires_grad]
        optimizer = torch.optim.Adam(parameters, lr=self.learning_rate)
        curve: list[float] = []
        best = [p.detach().clone() for p in parameters]
        for _ in range(self.steps):
            with torch.enable_grad():
                value = loss(modules)
            curve.append(float(value.detach()))
            if curve[-1] <= min(curve):
                best = [p.detach().clone() for p in parameters]
            # not backward(): a hypothesis that the user gave keeps its own gradients
            slopes = torch.autograd.grad(value, parameters, allow_unused=True)
            for parameter, slope in zip(parameters, slopes, strict=True):
                parameter.grad = slope
            optimizer.step()
        with torch.no_grad():
            curve.append(float(loss(modules)))
            if curve[-1] > min(curve):
                for parameter, kept in zip(parameters, best, strict=True):
                    parameter.copy_(kept)
        return min(curve), modules, tuple(curve)


def max_discrepancy(
    source: Any,
    target: Any,
    *,
    h: Hypothesis | None = None,
    divergence: str = "jeffreys",
    ridge: Ridge = "auto",
    ascent: Ascent | None = None,
) -> MaxDiscrepancy:
    """Maximize the discrepancy over h and h' by gradient ascent: a *lower bound* of Definition 1.

    The problem is not concave, so the result is a lower bound of the true maximum. It does not
    decrease with more steps or restarts of the ascent.

    Parameters
    ----------
    source, target
        Features (N_s, d) and (N_t, d).
    h
        Fix the first hypothesis: D(P_s, P_t; h).
    divergence, ridge
        See `discrepancy`.
    ascent
        Hypothesis class, steps, restarts and seed (default: ``Ascent()``).

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> x = torch.randn(100, 2, generator=generator, dtype=torch.float64)
    >>> quick = Ascent(steps=30, restarts=1)
    >>> near, far = (max_discrepancy(x, shift * x, ascent=quick) for shift in (1.1, 3.0))
    >>> near.value < far.value
    True
    """
    (s, t), _ = two_domains(source, target)
    offset, distance = one_ridge(ridge, (s, t)), distance_of(divergence)
    sides = DomainMixture((s,)), DomainMixture((t,))
    return maximize(sides, h, distance, offset, ascent or Ascent())


def maximize(
    sides: tuple[DomainMixture, DomainMixture],
    h: Hypothesis | None,
    distance: Distance,
    ridge: float,
    ascent: Ascent,
) -> MaxDiscrepancy:
    """Maximize the discrepancy between two mixtures over h' (and h, if it is not given)."""

    def gap(modules: Sequence[nn.Module]) -> Tensor:
        first = h if h is not None else modules[1]
        one, other = (side.between(first, modules[0], distance, ridge) for side in sides)
        return -(one - other).abs()

    samples = torch.cat((*sides[0].parts, *sides[1].parts)).detach()
    runs = ascent.search(gap, 1 if h is not None else 2, samples)
    value, modules, _ = min(runs, key=lambda run: run[0])
    curves = tuple(tuple(-v for v in curve) for _, _, curve in runs)
    return MaxDiscrepancy(-value, h if h is not None else modules[1], modules[0], curves)
