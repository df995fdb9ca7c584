"""The terms of Proposition 1: how the divergence of sample covariances approaches the truth."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from vntransfer.arrays import take
from vntransfer.display import one_line, rounded
from vntransfer.divergences import von_neumann
from vntransfer.errors import ArgumentError
from vntransfer.linalg import spectrum


@dataclass(frozen=True)
class ConvergenceTerms:
    """What Proposition 1 compares, and a correct first-order prediction.

    Attributes
    ----------
    epsilon : float
        Larger spectral-norm error of the two sample covariances.
    gap : float
        |D(Σ̂‖Θ̂) - D(Σ‖Θ)|, what is to be bounded.
    printed_bound : float
        Sum over i, j of the last line of the paper's derivation, as printed (overlaps not squared).
    squared_bound : float
        The same with squared overlaps, as the spectral expansion of the divergence has them.
    dominant : float
        ε Σ log(λ̂_i + ε) + ε Σ c_ij log(θ_j + ε), said to dominate; it can be negative.
    log_step_holds : bool
        Whether log((λ + ε)/λ) ≤ log(1 + ε) for all eigenvalues: true only where λ ≥ 1.
    first_order : float
        |⟨log Σ - log Θ, Σ̂ - Σ⟩ + ⟨L_Θ[Θ - Σ], Θ̂ - Θ⟩|: exact to second order in ε, so that the
        gap is O(ε) and hence O(N^-½) for distributions with finite fourth moments.
    """

    epsilon: float
    gap: float
    printed_bound: float
    squared_bound: float
    dominant: float
    log_step_holds: bool
    first_order: float

    @property
    def printed_bound_holds(self) -> bool:
        """Whether the printed bound is at least the gap."""
        return self.gap <= self.printed_bound

    def summary(self) -> str:
        """Say in words whether the printed bound holds, and how near the first order comes."""
        holds = "holds" if self.printed_bound_holds else "does not hold"
        step = "holds" if self.log_step_holds else "does not hold"
        return (
            f"The printed bound {holds}: gap {rounded(self.gap)}, bound "
            f"{rounded(self.printed_bound)} ({rounded(self.squared_bound)} with squares).\n"
            f"First-order prediction of the gap: {rounded(self.first_order)} at a spectral error "
            f"of {rounded(self.epsilon)}.\n"
            f"The step log((λ + ε)/λ) ≤ log(1 + ε) {step} for these eigenvalues."
        )

    def __repr__(self) -> str:
        holds = "holds" if self.printed_bound_holds else "does not hold"
        return one_line(
            f"ConvergenceTerms: gap {rounded(self.gap)}, printed bound "
            f"{rounded(self.printed_bound)} ({holds})"
        )


def convergence_terms(sigma: Any, theta: Any, sigma_hat: Any, theta_hat: Any) -> ConvergenceTerms:
    """Evaluate Proposition 1 for true covariances Σ, Θ and sample covariances Σ̂, Θ̂.

    Treat the proposition as a sketch: overlaps v_i'u_j lack their square, so that they can be
    negative and do not sum to one; log((λ + ε)/λ) ≤ log(1 + ε) needs λ ≥ 1; only the largest
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

    dominant = epsilon * (
        (sh.values + epsilon).log().sum() + (overlap * (t.values + epsilon).log()).sum()
    )
    smallest = min(float(s.values[0]), float(t.values[0]), float(sh.values[0]))
    return ConvergenceTerms(
        epsilon,
        gap,
        bound(overlap),
        bound(overlap.square()),
        float(dominant),
        smallest >= 1,
        float(linear.abs()),
    )
