"""The formulas once more, in mpmath at 50 digits: slow, naive and right.

Nothing here shares code with the package: every divergence is its textbook definition, matrix
functions go through mpmath's symmetric eigensolver, derivatives are central differences whose error
at 50 digits is far below what float64 can show.
"""

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import torch

DIGITS = 50
mp.mp.dps = DIGITS

Matrix = Any


def exact(array: Any) -> Matrix:
    """The mpmath matrix of exactly the given floating-point numbers; vectors become columns."""
    array = array.detach().numpy() if isinstance(array, torch.Tensor) else np.asarray(array)
    array = array[:, None] if array.ndim == 1 else array
    return mp.matrix([[mp.mpf(float(v)) for v in row] for row in array])


def fun(f: Callable[[Any], Any], matrix: Matrix) -> Matrix:
    """F of a symmetric matrix."""
    values, vectors = mp.eigsy(matrix)
    return vectors * mp.diag([f(v) for v in values]) * vectors.T


def log(matrix: Matrix) -> Matrix:
    return fun(mp.log, matrix)


def trace(matrix: Matrix) -> Any:
    return mp.fsum(matrix[i, i] for i in range(matrix.rows))


def _norm(matrix: Matrix) -> Any:
    return mp.sqrt(mp.fsum(v * v for v in matrix))


def von_neumann(s: Matrix, r: Matrix) -> Any:
    return trace(s * log(s) - s * log(r) - s + r)


def jeffreys(s: Matrix, r: Matrix) -> Any:
    return trace((s - r) * (log(s) - log(r))) / 2


def log_det(s: Matrix, r: Matrix) -> Any:
    ratio = s * r**-1
    return trace(ratio) - mp.log(mp.det(s)) + mp.log(mp.det(r)) - s.rows


def _features(m: Matrix, n_response: int) -> Matrix:
    k = m.rows - n_response
    return m[:k, :k]


def _conditional(base: Callable[[Matrix, Matrix], Any]) -> Callable[..., Any]:
    def both(s: Matrix, r: Matrix, n_response: int = 1) -> Any:
        blocks = _features(s, n_response), _features(r, n_response)
        there = base(s, r) - base(*blocks)
        return (there + base(r, s) - base(*blocks[::-1])) / 2

    return both


def jensen_von_neumann(s: Matrix, r: Matrix) -> Any:
    middle = (s + r) / 2
    return mp.sqrt((von_neumann(s, middle) + von_neumann(r, middle)) / 2)


def log_euclidean(s: Matrix, r: Matrix) -> Any:
    return _norm(log(s) - log(r))


def affine_invariant(s: Matrix, r: Matrix) -> Any:
    half = fun(lambda v: 1 / mp.sqrt(v), r)
    whole = half * s * half
    return _norm(log((whole + whole.T) / 2))


def bures_wasserstein(s: Matrix, r: Matrix) -> Any:
    half = fun(mp.sqrt, s)
    inner = half * r * half
    return mp.sqrt(trace(s) + trace(r) - 2 * trace(fun(mp.sqrt, (inner + inner.T) / 2)))


ORACLES: dict[str, Callable[[Matrix, Matrix], Any]] = {
    "von_neumann": von_neumann,
    "jeffreys": jeffreys,
    "conditional_von_neumann": _conditional(von_neumann),
    "log_det": log_det,
    "conditional_log_det": _conditional(log_det),
    "jensen_von_neumann": jensen_von_neumann,
    "log_euclidean": log_euclidean,
    "affine_invariant": affine_invariant,
    "bures_wasserstein": bures_wasserstein,
}


def covariance(x: Matrix, ridge: Any = 0) -> Matrix:
    """Unbiased covariance of the rows of x, plus ridge times the identity."""
    n = x.rows
    means = [mp.fsum(x[k, i] for k in range(n)) / n for i in range(x.cols)]
    z = mp.matrix(n, x.cols)
    for k in range(n):
        for i in range(x.cols):
            z[k, i] = x[k, i] - means[i]
    return z.T * z / (n - 1) + ridge * mp.eye(x.cols)


def beside(x: Matrix, y: Matrix) -> Matrix:
    """Columns of y appended to x."""
    out = mp.matrix(x.rows, x.cols + y.cols)
    out[:, : x.cols] = x
    out[:, x.cols :] = y
    return out


def response_divergence(x: Matrix, a: Matrix, b: Matrix, ridge: Any) -> Any:
    return jeffreys(covariance(beside(x, a), ridge), covariance(beside(x, b), ridge))


def derivative(f: Callable[[Any], Any]) -> float:
    """f'(0) by central differences: the error is O(1e-30)."""
    h = mp.mpf(10) ** -15
    return float((f(h) - f(-h)) / (2 * h))
