"""Groups of hidden units: communities of their connections, or random ones.

The communities are those of Watanabe, Hiramatsu and Kashino (2018), a mixture model after Newman
and Leicht: a connection counts if its weight is large, unit k belongs to community c with
probability π_c, its incoming connections come from unit i with probability τ_ci and its outgoing
ones go to unit j with probability τ'_cj. EM, with bonds A (units, before) and B (units, after) ::

    M:  π_c = mean_k q_kc,   τ_ci ∝ Σ_k q_kc A_ki,   τ'_cj ∝ Σ_k q_kc B_kj
    E:  log q_kc = log π_c + Σ_i A_ki log τ_ci + Σ_j B_kj log τ'_cj - log Σ_c' ...

It groups units with similar connections, which is not functional independence, and different
starts may give quite different groups (see docs/continual-methods.md).
"""

import warnings
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from vntransfer.errors import ArgumentError, NumericalWarning

Grouping = Literal["communities", "random"]
FLOOR = 1e-10
"""Least probability: a connection that no member of a community has does not exclude a unit."""


@dataclass(frozen=True)
class BondMixture:
    """Result of EM from several starts, all at once.

    Parameters
    ----------
    q
        Memberships (starts, units, communities).
    likelihood
        Log-likelihood (iterations, starts) before every step; a start that has converged repeats
        its last value.
    score
        Log-likelihood (starts,) of the most probable memberships.
    """

    q: Tensor
    likelihood: Tensor
    score: Tensor


def bonds(weights: Tensor, threshold: float | Literal["median"]) -> Tensor:
    """Give the connections (units, others) that count, as zeros and ones in float64.

    Examples
    --------
    >>> bonds(torch.tensor([[0.1, -0.5], [0.3, 0.2]]).abs(), "median")
    tensor([[0., 1.],
            [1., 0.]], dtype=torch.float64)
    """
    cut = float(weights.median()) if threshold == "median" else threshold
    return (weights > cut).double()


def fit_mixture(
    A: Tensor,
    B: Tensor,
    groups: int,
    *,
    starts: int = 11,
    iterations: int = 1000,
    tolerance: float = 0.1,
    generator: torch.Generator | None = None,
) -> BondMixture:
    """Fit the mixture by EM from several random starts.

    A and B are incoming and outgoing bonds (units, before) and (units, after). A start ends when
    Σ|Δq| falls below the tolerance.

    Examples
    --------
    >>> A = torch.kron(torch.eye(2), torch.ones(3, 4)).double()
    >>> fit = fit_mixture(A, A, 2, generator=torch.Generator().manual_seed(0))
    >>> fit.q[fit.score.argmax()].argmax(-1).unique_consecutive().numel()
    2
    """
    noise = torch.rand(starts, len(A), groups, generator=generator, dtype=torch.float64)
    q = -(1 - noise).log()  # exponential variables, divided by their sum: uniform on the simplex
    q = (q / q.sum(-1, keepdim=True)).to(A)
    running = torch.ones(starts, dtype=torch.bool, device=A.device)
    history = []
    for _ in range(iterations):
        log_joint = _log_joint(q, A, B)
        history.append(log_joint.logsumexp(-1).sum(-1))
        new = log_joint.softmax(-1)
        moved = (new - q).abs().sum((-1, -2))
        q = torch.where(running[:, None, None], new, q)
        running = running & (moved >= tolerance)
        if not running.any():
            break
    score = _log_joint(q, A, B).gather(-1, q.argmax(-1, keepdim=True)).sum((-1, -2))
    return BondMixture(q, torch.stack(history), score)


def _log_joint(q: Tensor, A: Tensor, B: Tensor) -> Tensor:
    """M step, and log π_c + Σ A log τ + Σ B log τ' (starts, units, communities) with its result."""

    def log_share(counts: Tensor) -> Tensor:
        return (counts / counts.sum(-1, keepdim=True).clamp_min(FLOOR)).clamp_min(FLOOR).log()

    log_pi = q.mean(1, keepdim=True).clamp_min(FLOOR).log()
    log_tau, log_tau_out = log_share(q.mT @ A), log_share(q.mT @ B)
    return log_pi + A @ log_tau.mT + B @ log_tau_out.mT


def find_groups(
    incoming: Tensor,
    outgoing: Tensor,
    groups: int,
    *,
    grouping: Grouping = "communities",
    threshold: float | Literal["median"] = "median",
    starts: int = 11,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Group (units,) of every unit of a layer; numbers without gaps, so that no group is empty.

    Parameters
    ----------
    incoming, outgoing
        Absolute weights (units, before) and (units, after).
    groups, grouping
        Number of groups at most: "communities" (the best of several starts of EM in which not all
        units came together) or "random" ones of equal size.
    threshold
        A weight above it is a bond: a number, or "median" of each side's weights.
    starts, generator
        Starts of EM, and what they are drawn by.

    Examples
    --------
    >>> W = torch.kron(torch.eye(2), torch.ones(3, 4))
    >>> g = torch.Generator().manual_seed(0)
    >>> find_groups(W, W, 2, threshold=0.5, generator=g).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    n = len(incoming)
    groups = min(groups, n)
    if grouping == "random":
        labels = torch.arange(n)[torch.randperm(n, generator=generator)] % groups
    else:
        A, B = bonds(incoming, threshold).cpu(), bonds(outgoing, threshold).cpu()
        both = torch.cat((A, B), 1)
        if not both.any() or both.all():
            raise ArgumentError(
                f"threshold: {'every' if both.any() else 'no'} weight is above {threshold}, so "
                f"that all units look alike; take 'median' or a number among the weights"
            )
        labels = _communities(A, B, groups, starts, generator)
    # Numbered by their first unit, so that empty groups drop out.
    number: dict[int, int] = {}
    renamed = [number.setdefault(int(label), len(number)) for label in labels]
    return torch.tensor(renamed, device=incoming.device)


def _communities(
    A: Tensor, B: Tensor, groups: int, starts: int, generator: torch.Generator | None
) -> Tensor:
    fit = fit_mixture(A, B, groups, starts=starts, generator=generator)
    labels = fit.q.argmax(-1)
    several = (labels != labels[:, :1]).any(-1)
    if not several.any() and groups > 1:
        warnings.warn(
            f"groups: all {len(A)} units came together in each of {starts} starts; one group is "
            f"used; another threshold may tell them apart",
            NumericalWarning,
            stacklevel=3,
        )
        return labels[0]
    best = torch.where(several, fit.score, -torch.inf).argmax() if groups > 1 else 0
    return labels[best]
