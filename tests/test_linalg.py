"""The matrix logarithm, its derivative, and what counts as positive definite."""

from typing import Any

import mpmath as mp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import logm
from torch import Tensor

from helpers import oracles
from helpers.samples import EPS, condition, orthogonal, random_spd, seeds, spd, symmetric
from vntransfer import ArgumentError, NotPositiveDefiniteError, VnError, jeffreys
from vntransfer.linalg import log_divided_differences, safe_sqrt, spectrum, sym_logm


@pytest.mark.filterwarnings("ignore:logm result may be inaccurate")
@given(seed=seeds, n=st.integers(1, 8), decades=st.floats(0, 4))
def test_agrees_with_scipy(seed: int, n: int, decades: float) -> None:
    matrix = random_spd(n, seed, decades=decades)
    want = np.real(logm(matrix.numpy()))
    assert np.allclose(
        sym_logm(matrix).numpy(), want, rtol=1e-9, atol=1e-12 + 100 * EPS * condition(matrix)
    )


@pytest.mark.parametrize("worst", [1.0, 1e4, 1e8, 1e12])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_agrees_with_fifty_digits(worst: float, scale: float) -> None:
    matrix = scale * spd(np.geomspace(1 / worst, 1, 4), 0)
    want = np.array(oracles.log(oracles.exact(matrix)).tolist(), dtype=float)
    assert np.abs(sym_logm(matrix).numpy() - want).max() <= 50 * EPS * worst + 20 * EPS * 20


@given(seed=seeds, n=st.integers(1, 6), scale=st.floats(-8, 8))
def test_logarithm_laws(seed: int, n: int, scale: float) -> None:
    """log A⁻¹ = -log A, log QAQ' = Q log A Q', log cA = log c + log A, tr log A = log det A."""
    a = random_spd(n, seed)
    log, eye = sym_logm(a), torch.eye(n).double()
    inverse = torch.linalg.inv(a)
    assert torch.allclose(sym_logm((inverse + inverse.mT) / 2), -log, atol=1e-10)
    q = torch.from_numpy(orthogonal(n, seed))
    turned = q @ a @ q.mT
    assert torch.allclose(sym_logm((turned + turned.mT) / 2), q @ log @ q.mT, atol=1e-10)
    want = log + scale * np.log(10) * eye
    assert torch.allclose(sym_logm(10**scale * a), want, atol=1e-10)
    assert float(log.trace()) == pytest.approx(float(torch.logdet(a)), abs=1e-9)


@pytest.mark.parametrize(
    "eigenvalues",
    [
        [1, 1, 1],
        [1, 1, 2],
        [1, 1 + 1e-9, 2],
        [1, 1 + 1e-14, 1 + 1e-4],
        [1e-6, 1e-6, 1],
        [1e-8, 1, 1e4],
        [3e-8, 1e-8, 2e-8],
        [3e8, 1e8, 2e8],
    ],
)
def test_gradient_agrees_with_differences_at_fifty_digits(eigenvalues: list[float]) -> None:
    matrix = spd(eigenvalues, 0).requires_grad_()
    upstream, direction = symmetric(3, 1), symmetric(3, 2)
    sym_logm(matrix).backward(upstream)
    exact, step, up = map(oracles.exact, (matrix, direction, upstream))
    size = mp.mpf(min(eigenvalues))  # steps small against the smallest eigenvalue
    want = oracles.derivative(lambda h: oracles.trace(oracles.log(exact + h * size * step) * up))
    want /= float(size)
    scale = float(matrix.grad.norm() * direction.norm())
    tolerance = scale * max(1e-12, 100 * EPS * max(eigenvalues) / min(eigenvalues))
    assert float((matrix.grad * direction).sum()) == pytest.approx(want, abs=tolerance)


@given(
    low=st.floats(-150, 150),
    gap=st.one_of(st.just(0.0), st.floats(1e-16, 1e16)),
)
def test_divided_differences_lie_between_the_derivatives(low: float, gap: float) -> None:
    small = 10**low
    large = small * (1 + gap)
    table = log_divided_differences(torch.tensor([small, large], dtype=torch.float64))
    between = float(table[0, 1])
    assert between == float(table[1, 0])
    assert 1 / large * (1 - 4 * EPS) <= between <= 1 / small * (1 + 4 * EPS)
    if large > small:
        x, y = mp.mpf(small), mp.mpf(large)
        assert between == pytest.approx(float((mp.log(y) - mp.log(x)) / (y - x)), rel=1e-14, abs=0)


@given(seed=seeds, n=st.integers(1, 6), double=st.booleans(), scale=st.integers(-8, 8))
def test_never_nan(seed: int, n: int, double: bool, scale: int) -> None:
    dtype = torch.float64 if double else torch.float32
    values = np.random.default_rng(seed).choice([0.1, 1.0, 2.0], n)  # mostly repeated
    matrix = (10.0**scale * spd(values, seed)).to(dtype).requires_grad_()
    out = sym_logm(matrix)
    out.sum().backward()
    assert out.dtype == dtype
    assert out.isfinite().all()
    assert matrix.grad.isfinite().all()


def test_batched_equals_looped() -> None:
    stack = torch.stack([random_spd(3, k) for k in range(4)]).reshape(2, 2, 3, 3)
    out = sym_logm(stack)
    for i in range(2):
        for j in range(2):
            assert torch.allclose(out[i, j], sym_logm(stack[i, j]), atol=1e-14)


def singular(kind: str) -> Tensor:
    return {
        "singular": spd([0, 1, 2], 0),
        "negative definite": spd([-3, -2, -1], 0),
        "indefinite": spd([-1, 1, 2], 0),
        "zero": torch.zeros(3, 3).double(),
        "singular up to rounding": spd([1e-17, 1, 2], 0),
        "singular up to float32 rounding": spd([1e-9, 1, 2], 0).float(),
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [
        "singular",
        "negative definite",
        "indefinite",
        "zero",
        "singular up to rounding",
        "singular up to float32 rounding",
    ],
)
def test_not_positive_definite_is_named_with_remedy(kind: str) -> None:
    matrix = singular(kind)
    with pytest.raises(NotPositiveDefiniteError, match=r"matrix: 1 of 1 .*eigenvalues.*ridge"):
        sym_logm(matrix)
    batch = torch.stack((torch.eye(3).to(matrix), matrix))
    with pytest.raises(NotPositiveDefiniteError, match=r"1 of 2 matrices.*index \(1,\)"):
        sym_logm(batch)


def test_not_symmetric_is_named_with_remedy() -> None:
    with pytest.raises(NotPositiveDefiniteError, match=r"matrix: not symmetric.*mT"):
        sym_logm(torch.tensor([[2.0, 1.0], [0.0, 2.0]]))


def test_asymmetry_is_not_hidden_by_a_larger_neighbor() -> None:
    """What is rounding is judged by each matrix's own size, not by the largest of the batch."""
    asymmetric = torch.tensor([[2.0, 1.0], [0.0, 2.0]]).double()
    with pytest.raises(NotPositiveDefiniteError, match="matrix: not symmetric"):
        sym_logm(torch.stack((1e16 * torch.eye(2).double(), asymmetric)))


@given(seed=seeds, n=st.integers(2, 6), double=st.booleans(), scale=st.integers(-8, 8))
def test_asymmetry_of_rounding_is_accepted(seed: int, n: int, double: bool, scale: int) -> None:
    dtype = torch.float64 if double else torch.float32
    x = torch.from_numpy(np.random.default_rng(seed).standard_normal((3 * n, n))).to(dtype)
    q = torch.from_numpy(orthogonal(n, seed)).to(dtype)
    a = 10.0**scale * (q @ (x.mT @ x + torch.eye(n).to(dtype)) @ q.mT)
    assert sym_logm(a).isfinite().all()


@pytest.mark.parametrize(
    ("bad", "finding"),
    [
        (torch.eye(2) * float("nan"), "4 NaN"),
        (torch.eye(2) * float("inf"), "infinite"),
        (torch.eye(2).long(), "int64"),
        ([[1.0]], "list"),
    ],
)
def test_bad_arrays_are_named(bad: Any, finding: str) -> None:
    with pytest.raises(ArgumentError, match=f"^matrix: .*{finding}"):
        sym_logm(bad)


def test_numpy_is_answered_in_numpy() -> None:
    matrix = random_spd(3, 0)
    out = sym_logm(matrix.numpy())
    assert isinstance(out, np.ndarray)
    assert np.array_equal(out, sym_logm(matrix).numpy())


def test_spectrum_reassembles() -> None:
    matrix = random_spd(5, 0)
    parts = spectrum(matrix, "matrix")
    assert torch.allclose(parts.apply(parts.values), matrix, atol=1e-12)
    assert (parts.values.diff() >= 0).all()


def test_second_derivative_is_a_clear_error() -> None:
    matrix = random_spd(3, 0).requires_grad_()
    (gradient,) = torch.autograd.grad(sym_logm(matrix).sum(), matrix, create_graph=True)
    with pytest.raises(VnError, match="second derivatives"):
        gradient.sum().backward()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_safe_sqrt(dtype: torch.dtype) -> None:
    x = torch.tensor([0.0, -1e-20, 1e-12, 4.0], dtype=dtype, requires_grad=True)
    root = safe_sqrt(x)
    root.sum().backward()
    assert root.tolist() == pytest.approx([0, 0, 1e-6, 2], rel=1e-6)
    assert x.grad.tolist() == pytest.approx([0, 0, 5e5, 0.25], rel=1e-6)


def test_input_is_left_alone() -> None:
    sigma, rho = random_spd(3, 0), random_spd(3, 1)
    before = sigma.clone(), rho.clone()
    jeffreys(sigma, rho)
    sym_logm(sigma)
    assert torch.equal(sigma, before[0])
    assert torch.equal(rho, before[1])
