"""Matrices and samples for tests, from seeds."""

from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from vntransfer import covariance, jeffreys

EPS = float(np.finfo(float).eps)

seeds = st.integers(0, 2**32 - 1)


def orthogonal(n: int, seed: int) -> NDArray[Any]:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]


def spd(eigenvalues: Any, seed: int) -> Tensor:
    """A matrix with the given eigenvalues and random eigenvectors."""
    q = orthogonal(len(eigenvalues), seed)
    matrix = (q * np.asarray(eigenvalues, dtype=float)) @ q.T
    return torch.from_numpy((matrix + matrix.T) / 2)


def random_spd(n: int, seed: int, *, decades: float = 1.0) -> Tensor:
    """Eigenvalues log-uniform within ± ``decades``."""
    rng = np.random.default_rng([seed, n])
    return spd(10 ** rng.uniform(-decades, decades, n), seed)


def symmetric(n: int, seed: int) -> Tensor:
    """A direction: symmetric, entries of order one."""
    m = np.random.default_rng([seed, 7]).standard_normal((n, n))
    return torch.from_numpy((m + m.T) / 2)


def normal(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def responses(
    n: int, d: int, m: int | None, seed: int, *, scale: float = 1.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Features with correlated columns and two responses that depend on them."""
    x = normal(n, d, seed=seed) @ (normal(d, d, seed=seed + 1) + torch.eye(d).double()) + 3
    columns = m or 1
    a, b = (
        torch.tanh(x @ normal(d, columns, seed=seed + k)) + 0.3 * normal(n, columns, seed=seed + k)
        for k in (2, 3)
    )
    if m is None:
        a, b = a[:, 0], b[:, 0]
    return x * scale, a * scale, b * scale


def condition(matrix: Tensor) -> float:
    values = torch.linalg.eigvalsh(matrix)
    return float(values[-1] / values[0])


def exact_divergence(x: Tensor, a: Tensor, b: Tensor, ridge: float | str = "auto") -> Tensor:
    """`response_divergence` from decompositions of the full covariances, in float64."""
    x, a, b = x.double(), a.double(), b.double()
    if isinstance(ridge, str):
        ridge = 1e-3 * float(covariance(x.detach()).diagonal().mean())
    return jeffreys(covariance(x, a, ridge=ridge), covariance(x, b, ridge=ridge))
