"""The terms of Theorem 1 for given weights and hypothesis, and those of Proposition 1."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from vntransfer.arrays import take
from vntransfer.display import counted, one_line, rounded
from vntransfer.divergences import von_neumann
from vntransfer.errors import ArgumentError, DomainError
from vntransfer.linalg import spectrum
from vntransfer.theory._discrepancy import (
    Ascent,
    DomainMixture,
    Hypothesis,
    Ridge,
    check_features,
    distance_of,
    evaluate,
    maximize,
    one_ridge,
)


@dataclass(frozen=True)
class BoundTerms:
    """Every computable term of Theorem 1; d is √J or the chosen metric."""

    source_terms: tuple[float, ...]  # d between h and the labels, on each source
    weights: tuple[float, ...]  # of the sources, summing to one
    mixture_term: float  # d on the weighted mixture: what the proof replaces by `source_sum`
    discrepancy: float  # max over h' between target and mixture, for the given h: a lower bound
    joint_fit: float | None  # min over h* on target and mixture: an upper bound of it
    target_term: float | None  # d between h and the target's labels, the left side

    @property
    def source_sum(self) -> float:
        """Weighted sum of the source terms."""
        return sum(w * e for w, e in zip(self.weights, self.source_terms, strict=True))

    @property
    def convexity_holds(self) -> bool:
        """Whether the mixture's term is at most the weighted sum, as the proof asserts.

        Terms are square roots, so differences within rounding error are ignored.
        """
        return self.mixture_term <= self.source_sum * (1 + 1e-12) + 1e-12

    @property
    def bound(self) -> float | None:
        """The right side of the theorem as estimated; None without target labels."""
        if self.joint_fit is None:
            return None
        return self.source_sum + self.discrepancy + self.joint_fit

    def summary(self) -> str:
        """Describe the bound and its terms."""
        parts = (
            f"weighted source errors {rounded(self.source_sum)}, "
            f"discrepancy {rounded(self.discrepancy)}"
        )
        if self.bound is None or self.joint_fit is None or self.target_term is None:
            first = f"Without target labels the bound is unknown; its known terms: {parts}."
        else:
            holds = "holds" if self.target_term <= self.bound else "does not hold"
            first = (
                f"The bound {holds}: target error {rounded(self.target_term)}, bound "
                f"{rounded(self.bound)} ({parts}, joint fit {rounded(self.joint_fit)})."
            )
        step = "holds" if self.convexity_holds else "does not hold"
        return (
            f"{first}\nThe convexity step of the proof {step} here: error on the mixture "
            f"{rounded(self.mixture_term)}, weighted sum {rounded(self.source_sum)}."
        )

    def __repr__(self) -> str:
        sources = counted(len(self.source_terms), "source")
        if self.bound is None or self.target_term is None:
            said = f"discrepancy {rounded(self.discrepancy)}, bound unknown (no target labels)"
        else:
            said = f"target error {rounded(self.target_term)}, bound {rounded(self.bound)}"
        return one_line(f"BoundTerms of {sources}: {said}")


def bound_terms(
    sources: Sequence[tuple[Any, Any]],
    target: Any,
    h: Hypothesis,
    weights: Sequence[float] | None = None,
    *,
    target_response: Any = None,
    divergence: str = "jeffreys",
    ridge: Ridge = "auto",
    ascent: Ascent | None = None,
) -> BoundTerms:
    """Compute the terms of Theorem 1: weighted source errors, discrepancy, joint fit.

    The theorem: target_term ≤ Σ w_i source_term_i + discrepancy + joint_fit. Its proof uses the
    triangle inequality, which √J violates (choose a metric as ``divergence``), and convexity over
    sources, which no square root of a 1-homogeneous divergence has (compare `mixture_term`).

    Parameters
    ----------
    sources
        Labeled samples (X_i, y_i) of K sources.
    target
        Features of the target (N, d).
    h
        The hypothesis: features (a torch tensor) to responses (N,).
    weights
        Non-negative source weights, normalized to sum to one; uniform by default.
    target_response
        Labels of the target (N,), needed only to check the theorem.
    divergence, ridge, ascent
        See `max_discrepancy`.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> x = torch.randn(3, 100, 2, generator=generator, dtype=torch.float64)
    >>> y = x.sum(-1)
    >>> sources, quick = [(x[0], y[0]), (x[1], y[1])], Ascent(steps=10, restarts=1)
    >>> terms = bound_terms(sources, x[2], lambda z: z[:, 0], ascent=quick)
    >>> len(terms.source_terms), terms.weights, terms.bound
    (2, (0.5, 0.5), None)
    """
    features, responses, t, y_t = _check(sources, target, target_response)
    share, ascent = _normalize(weights, len(features)), ascent or Ascent()
    offset, distance = one_ridge(ridge, (*features, t)), distance_of(divergence)
    mixture, whole = DomainMixture(tuple(features), share), DomainMixture((t,))

    def error(domain: DomainMixture, g: Hypothesis, labels: Sequence[Tensor]) -> Tensor:
        predicted = [evaluate("h", g, x) for x in domain.parts]
        return domain.distance(predicted, labels, distance, offset)

    source_terms = tuple(
        float(error(DomainMixture((x,)), h, [y])) for x, y in zip(features, responses, strict=True)
    )
    gap = maximize((whole, mixture), h, distance, offset, ascent).value
    known = BoundTerms(source_terms, share, float(error(mixture, h, responses)), gap, None, None)
    if y_t is None:
        return known

    def both(modules: Sequence[nn.Module]) -> Tensor:
        return error(whole, modules[0], [y_t]) + error(mixture, modules[0], responses)

    runs = ascent.search(both, 1, torch.cat((*features, t)).detach())
    target_term = float(error(whole, h, [y_t]))
    return replace(known, joint_fit=min(run[0] for run in runs), target_term=target_term)


def _check(
    sources: Sequence[tuple[Any, Any]], target: Any, target_response: Any
) -> tuple[list[Tensor], list[Tensor], Tensor, Tensor | None]:
    if not sources:
        raise DomainError("sources: empty; give at least one (X, y)")
    named = {}
    for k, source in enumerate(sources):
        if not isinstance(source, tuple | list) or len(source) != 2:
            raise DomainError(f"sources[{k}]: expected (X, y), got {type(source).__name__}")
        named[f"sources[{k}][0]"], named[f"sources[{k}][1]"] = source
    named |= {"target": target, "target_response": target_response}
    tensors, _ = take(optional=("target_response",), **named)
    y_t = tensors.pop() if target_response is not None else None
    t = tensors.pop()
    features, responses = tensors[::2], tensors[1::2]
    pairs = {f"sources[{k}]": pair for k, pair in enumerate(zip(features, responses, strict=True))}
    for name, (x, y) in {**pairs, "target, target_response": (t, y_t)}.items():
        check_features(name, x, t)
        if y is not None and y.shape != x.shape[:1]:
            raise DomainError(
                f"{name}: expected {len(x)} responses ({len(x)},), got shape {tuple(y.shape)}"
            )
    return features, responses, t, y_t


def _normalize(weights: Sequence[float] | None, count: int) -> tuple[float, ...]:
    if weights is None:
        return (1 / count,) * count
    values = [float(w) for w in weights]
    good = all(math.isfinite(v) and v >= 0 for v in values) and sum(values) > 0
    if len(values) != count or not good:
        raise DomainError(
            f"weights: expected {count} non-negative numbers with a positive sum, got {values}"
        )
    return tuple(w / sum(values) for w in values)


@dataclass(frozen=True)
class ConvergenceTerms:
    """The terms of Proposition 1, and a correct first-order prediction.

    ``first_order`` = |⟨log Σ - log Θ, Σ̂ - Σ⟩ + ⟨L_Θ[Θ - Σ], Θ̂ - Θ⟩| is exact to second order in ε:
    the gap is O(ε) and hence O(N^-½) for distributions with finite fourth moments.
    """

    epsilon: float  # larger spectral-norm error of the two sample covariances
    gap: float  # |D(Σ̂‖Θ̂) - D(Σ‖Θ)|, what is to be bounded
    # last line of the paper's derivation, for the signs of eigenvectors that the solver returned:
    # these are arbitrary, and the overlaps, not squared, change sign with them
    printed_bound: float
    squared_bound: float  # the same with squares, as the spectral expansion has them: no signs
    log_step_holds: bool  # log((λ + ε)/λ) ≤ log(1 + ε) for all: only where λ ≥ 1
    first_order: float

    @property
    def squared_bound_holds(self) -> bool:
        """Whether the bound with squared overlaps is at least the gap."""
        return self.gap <= self.squared_bound

    def summary(self) -> str:
        """Describe whether the bound holds, and how close the first order is."""
        holds = "holds" if self.squared_bound_holds else "does not hold"
        step = "holds" if self.log_step_holds else "does not hold"
        return (
            f"With squared overlaps the bound {holds}: gap {rounded(self.gap)}, bound "
            f"{rounded(self.squared_bound)}. As printed it is {rounded(self.printed_bound)}, or "
            f"another number with other signs of the eigenvectors.\n"
            f"First-order prediction of the gap: {rounded(self.first_order)} at a spectral error "
            f"of {rounded(self.epsilon)}.\n"
            f"The step log((λ + ε)/λ) ≤ log(1 + ε) {step} for these eigenvalues."
        )

    def __repr__(self) -> str:
        holds = "holds" if self.squared_bound_holds else "does not hold"
        return one_line(
            f"ConvergenceTerms: gap {rounded(self.gap)}, bound with squared overlaps "
            f"{rounded(self.squared_bound)} ({holds})"
        )


def convergence_terms(sigma: Any, theta: Any, sigma_hat: Any, theta_hat: Any) -> ConvergenceTerms:
    """Evaluate Proposition 1 for true covariances Σ, Θ and sample covariances Σ̂, Θ̂.

    Treat the proposition as a sketch: overlaps v_i'u_j are not squared, so the bound depends on the
    arbitrary signs of eigenvectors; log((λ + ε)/λ) ≤ log(1 + ε) needs λ ≥ 1; only the largest
    eigenvalue's perturbation is bounded, but all are used; and Vershynin's factor (log log n)² is
    printed as a power of n. The evidence is in docs/theory.md.

    Parameters
    ----------
    sigma, theta
        True covariances (n, n), SPD.
    sigma_hat, theta_hat
        Sample covariances (n, n), SPD.

    Examples
    --------
    >>> eye = torch.eye(2, dtype=torch.float64)
    >>> terms = convergence_terms(eye, 2 * eye, 1.1 * eye, 2 * eye)
    >>> round(terms.epsilon, 3), round(terms.gap, 3), round(terms.first_order, 3)
    (0.1, 0.129, 0.139)
    """
    tensors, _ = take(sigma=sigma, theta=theta, sigma_hat=sigma_hat, theta_hat=theta_hat)
    names = ("sigma", "theta", "sigma_hat", "theta_hat")
    for name, tensor in zip(names, tensors, strict=True):
        if tensor.ndim != 2 or tensor.shape != tensors[0].shape:
            raise ArgumentError(
                f"{name}: expected one matrix (n, n) of the size of sigma, got shape "
                f"{tuple(tensor.shape)}"
            )
    S, T, Sh, Th = (tensor.double() for tensor in tensors)
    s, t, sh, _ = (spectrum(m, n) for m, n in zip((S, T, Sh, Th), names, strict=True))
    error_s, error_t = Sh - S, Th - T
    epsilon = max(float(torch.linalg.matrix_norm(e, ord=2)) for e in (error_s, error_t))
    gap = float((von_neumann(Sh, Th) - von_neumann(S, T)).abs())
    linear = ((s.log() - t.log()) * error_s).sum() + (t.dlog(T - S) * error_t).sum()
    overlap = s.vectors.mT @ t.vectors

    def bound(c: Tensor) -> float:
        one = torch.log1p(torch.tensor(epsilon, dtype=torch.float64))
        first = epsilon * (sh.values + epsilon).log() + sh.values * one
        second = c * (s.values.unsqueeze(1) * one + epsilon * (t.values + epsilon).log())
        return float(first.sum() + second.sum())

    smallest = min(float(s.values[0]), float(t.values[0]), float(sh.values[0]))
    return ConvergenceTerms(
        epsilon,
        gap,
        bound(overlap),
        bound(overlap.square()),
        smallest >= 1,
        float(linear.abs()),
    )
