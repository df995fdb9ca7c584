"""All divergences between K domains, with K decompositions instead of K²."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from vntransfer.arrays import take, to_numpy
from vntransfer.checks import number, one_of
from vntransfer.divergences._matrix import features_of
from vntransfer.divergences._registry import DIVERGENCES
from vntransfer.errors import ArgumentError, DomainError
from vntransfer.linalg import log_of, safe_sqrt, spectrum
from vntransfer.moments import Moments
from vntransfer.ridge import AUTO_RIDGE

_BLOCK = 4_000_000
"""Matrix entries per batch if pairs must be computed one by one."""


def pairwise(
    domains: Any,
    *,
    divergence: str = "conditional_von_neumann",
    n_response: int = 1,
    ridge: float | Literal["auto"] = "auto",
) -> Any:
    """Divergences between all pairs of K domains, as a K x K matrix (row σ, column ρ).

    Directed von Neumann and LogDet divergences are sums of traces here, exact to 1e-15 of these
    traces. For domains that nearly coincide, the functions of two matrices are more accurate.

    Parameters
    ----------
    domains
        A sequence (or a mapping, whose names are ignored) of K domains, each a pair of samples
        (X, y), y possibly None, or a `Moments`; or ready SPD matrices, as one array (K, n, n).
    divergence
        An id of `DIVERGENCES`.
    n_response
        Number of response columns, the last ones; used by conditional divergences and by
        "auto". For samples (X, y) it is the number of columns of y.
    ridge
        Added to the diagonals of matrices made from samples or moments: a number, or "auto" = 1e-3
        times the mean diagonal of the feature blocks, the same for all domains. Ready matrices
        never get one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((3, 200, 2))
    >>> same, other = x[..., 0] + x[..., 1], x[..., 0] - x[..., 1]
    >>> table = pairwise([(x[0], same[0]), (x[1], same[1]), (x[2], other[2])], ridge=0.1)
    >>> bool(table[0, 1] < table[0, 2] / 10)
    True
    """
    one_of("divergence", divergence, DIVERGENCES)
    if isinstance(domains, Mapping):
        domains = list(domains.values())
    if isinstance(domains, Tensor | np.ndarray):
        (stack,), back = take(domains=domains)
        if stack.ndim != 3:
            raise ArgumentError(f"domains: expected (K, n, n), got shape {tuple(stack.shape)}")
        eps, dtype, stack = torch.finfo(stack.dtype).eps, stack.dtype, stack.double()
    else:
        stack, n_response, dtype, back = _matrices(domains, n_response)
        stack = stack + _ridge(ridge, stack, n_response) * torch.eye(stack.shape[-1]).to(stack)
        eps = torch.finfo(torch.float64).eps
    table = _table(stack, divergence, n_response, eps)
    own = torch.eye(len(stack), dtype=torch.bool, device=table.device)
    return back(table.masked_fill(own, 0).to(dtype))


def _ridge(ridge: float | Literal["auto"], stack: Tensor, n_response: int) -> float:
    if ridge != "auto":
        return number("ridge", ridge)
    block = features_of(stack, n_response) if stack.shape[-1] > n_response else stack
    return AUTO_RIDGE * float(block.detach().diagonal(dim1=-2, dim2=-1).mean())


def _matrices(
    domains: Any, n_response: int
) -> tuple[Tensor, int, torch.dtype, Callable[[Tensor], Any]]:
    """Matrices (K, n, n) of domains given as samples or moments, and the way back."""
    if not isinstance(domains, Sequence) or not domains:
        raise DomainError(
            f"domains: expected a sequence or mapping of at least one domain, or ready matrices "
            f"(K, n, n), got {domains!r:.60}"
        )
    named: dict[str, Any] = {}
    for k, domain in enumerate(domains):
        if isinstance(domain, Moments):
            continue
        if not isinstance(domain, tuple | list) or len(domain) != 2:
            raise DomainError(
                f"domains[{k}]: expected samples (X, y) or Moments, got {type(domain).__name__}; "
                f"ready matrices are passed as one array (K, n, n)"
            )
        named[f"domains[{k}][0]"], named[f"domains[{k}][1]"] = domain
    tensors, back = take(optional=[name for name in named if name.endswith("[1]")], **named)
    if not tensors and domains[0].numpy:
        back = to_numpy
    found = dict(zip((name for name in named if named[name] is not None), tensors, strict=True))
    made, widths = list[Tensor](), set[int]()
    for k, domain in enumerate(domains):
        x, y = (found.get(f"domains[{k}][{i}]") for i in (0, 1))
        if x is not None:
            if x.ndim != 2 or (y is not None and (y.ndim > 2 or y.shape[:1] != x.shape[:1])):
                seen = [tuple(t.shape) for t in (x, y) if t is not None]
                raise DomainError(
                    f"domains[{k}]: expected X (N, d) and y (N,) or (N, m), got shapes {seen}"
                )
            domain = Moments.from_samples(x, y)
            widths |= {domain.n_features - x.shape[1]} if y is not None else set()
        made.append(domain.covariance_tensor())
        if made[-1].ndim != 2:
            raise DomainError(
                f"domains[{k}]: expected Moments of one set of samples, got a batch "
                f"{tuple(made[-1].shape[:-2])}"
            )
    sizes = {m.shape[-1] for m in made}
    if len(sizes) > 1 or len(widths) > 1:
        raise DomainError(
            f"domains: columns differ between domains: matrices of sizes {sorted(sizes)}, "
            f"{sorted(widths)} response columns"
        )
    dtype = tensors[0].dtype if tensors else torch.float64
    return torch.stack(made).double(), next(iter(widths), n_response), dtype, back


def _table(stack: Tensor, divergence: str, n_response: int, eps: float) -> Tensor:
    """K x K divergences of ready matrices."""
    entry = DIVERGENCES[divergence]
    base = divergence.removeprefix("conditional_")
    if base not in _FAST:
        spectrum(stack, "domains", eps)
        return _one_by_one(stack, entry.function)
    # conditional divergences are symmetrized in any case
    fast = _jeffreys if entry.conditional and base == "von_neumann" else _FAST[base]
    table = fast(stack, eps)
    if entry.conditional:
        table = (table - fast(features_of(stack, n_response), eps)).clamp_min(0)
        table = (table + table.mT) / 2
    return table


def _von_neumann(stack: Tensor, eps: float) -> Tensor:
    """D_ij = tr S_i log S_i - tr S_i log S_j - tr S_i + tr S_j: one product of K x n² matrices."""
    logs = log_of(stack, "domains", eps).flatten(1)
    cross = stack.flatten(1) @ logs.mT
    trace = stack.diagonal(dim1=-2, dim2=-1).sum(-1)
    return (cross.diagonal().unsqueeze(1) - cross - trace.unsqueeze(1) + trace).clamp_min(0)


def _jeffreys(stack: Tensor, eps: float) -> Tensor:
    """J_ij = ½⟨S_i - S_j, log S_i - log S_j⟩: differences first, so that nothing cancels."""
    logs, flat = log_of(stack, "domains", eps).flatten(1), stack.flatten(1)
    rows = [((flat - a) * (logs - b)).sum(-1) for a, b in zip(flat, logs, strict=True)]
    return (torch.stack(rows) / 2).clamp_min(0)


def _log_det(stack: Tensor, eps: float) -> Tensor:
    """Tr S_i S_j⁻¹ - log det S_i + log det S_j - n from K inverses."""
    spectrum(stack, "domains", eps)
    root = torch.linalg.cholesky(stack)
    cross = stack.flatten(1) @ torch.cholesky_inverse(root).flatten(1).mT
    log_det = 2 * root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return (cross - log_det.unsqueeze(1) + log_det - stack.shape[-1]).clamp_min(0)


def _log_euclidean(stack: Tensor, eps: float) -> Tensor:
    logs = log_of(stack, "domains", eps).flatten(1)
    rows = [(logs - one).square().sum(-1) for one in logs]
    return safe_sqrt(torch.stack(rows))


def _one_by_one(stack: Tensor, function: Callable[..., Any]) -> Tensor:
    """Symmetric divergences that need every pair: the upper triangle, in blocks."""
    k = len(stack)
    rows, columns = torch.triu_indices(k, k, offset=1)
    block = max(1, _BLOCK // stack[0].numel())
    parts = [
        function(stack[i], stack[j])
        for i, j in zip(rows.split(block), columns.split(block), strict=True)
        if len(i)
    ]
    table = stack.new_zeros(k, k)
    if parts:
        table = table.index_put((rows, columns), torch.cat(parts))
    return table + table.mT


_FAST = {
    "von_neumann": _von_neumann,
    "jeffreys": _jeffreys,
    "log_det": _log_det,
    "log_euclidean": _log_euclidean,
}
