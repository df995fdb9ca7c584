"""Moments stream, merge and mix exactly; covariance and correntropy are what they say."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from helpers.samples import EPS, normal, seeds
from vntransfer import ArgumentError, Moments, correntropy, covariance, jeffreys


def same(left: Moments, right: Moments, scale: float = 1.0) -> None:
    """Equal to 1e-10 of the scatter's size, beside what rounding means of size ``scale`` does."""
    rounding = 20 * EPS * scale * float(right.count * right.scatter.abs().max()) ** 0.5
    size = float(right.scatter.abs().max()) + scale * 1e-30
    assert torch.allclose(left.count, right.count, rtol=1e-12)
    assert torch.allclose(left.square_count, right.square_count, rtol=1e-12)
    assert torch.allclose(left.mean, right.mean, rtol=1e-10, atol=1e-10 * scale)
    assert torch.allclose(left.scatter, right.scatter, rtol=0, atol=1e-10 * size + rounding)


@given(
    seed=seeds,
    n=st.integers(4, 60),
    d=st.integers(1, 4),
    pieces=st.integers(1, 6),
    offset=st.sampled_from([0.0, 1.0, -1e4, 1e7]),
    weighted=st.booleans(),
)
def test_any_split_and_order_gives_the_whole(
    seed: int, n: int, d: int, pieces: int, offset: float, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) * 10 ** rng.uniform(-2, 2, d) + offset
    y = x @ rng.standard_normal(d)
    w = rng.exponential(size=n) if weighted else None
    whole = Moments.from_samples(x, y, weights=w)
    order = rng.permutation(n)
    cuts = np.sort(rng.choice(np.arange(1, n), min(pieces, n - 1), replace=False))
    parts = [
        Moments.from_samples(x[i], y[i], weights=None if w is None else w[i])
        for i in np.split(order, cuts)
    ]
    stream = parts[0]
    for i in np.split(order, cuts)[1:]:
        stream = stream.update(x[i], y[i], weights=None if w is None else w[i])
    while len(parts) > 1:  # a tree in random order
        i, j = sorted(rng.choice(len(parts), 2, replace=False))
        right = parts.pop(j)
        parts[i] = parts[i].merge(right)
    scale = abs(offset) * d + 1
    same(stream, whole, scale)
    same(parts[0], whole, scale)


@given(seed=seeds, n=st.integers(2, 40), d=st.integers(1, 5), offset=st.sampled_from([0.0, 1e6]))
def test_agrees_with_numpy(seed: int, n: int, d: int, offset: float) -> None:
    x = np.random.default_rng(seed).standard_normal((n, d)) + offset
    want = np.cov(x, rowvar=False).reshape(d, d)
    assert np.allclose(covariance(x), want, rtol=1e-8, atol=1e-9)
    frequency = np.random.default_rng(seed).integers(1, 5, n)
    want = np.cov(x, rowvar=False, aweights=frequency).reshape(d, d)
    assert np.allclose(covariance(x, weights=frequency.astype(float)), want, rtol=1e-8, atol=1e-9)


@given(seed=seeds, power=st.integers(-8, 8))
def test_scale_of_weights_does_not_matter(seed: int, power: int) -> None:
    x, w = normal(12, 3, seed=seed), normal(12, seed=seed + 1).abs() + 0.1
    assert torch.allclose(covariance(x, weights=w), covariance(x, weights=10.0**power * w))
    assert torch.allclose(
        covariance(x, weights=torch.full((12,), 10.0**power).double()), covariance(x)
    )


@given(seed=seeds, sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4))
def test_mixture_equals_concatenated_weighted_samples(seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    sizes[0] += 1
    domains = [rng.standard_normal((n, 3)) + 5 * k for k, n in enumerate(sizes)]
    share = rng.dirichlet(np.ones(len(sizes)))
    mixture = Moments.weighted([Moments.from_samples(x) for x in domains], share)
    each = np.concatenate([np.full(n, w / n) for n, w in zip(sizes, share, strict=True)])
    same(mixture, Moments.from_samples(np.concatenate(domains), weights=each), 20)


def test_mixture_of_covariances_is_not_the_covariance_of_the_mixture() -> None:
    """Counter-example to the proof of Theorem 1, which replaces one by the other."""
    x = normal(1000, 2, seed=0)
    parts = [Moments.from_samples(x), Moments.from_samples(x + 10)]
    mixture = Moments.weighted(parts, [0.5, 0.5]).covariance()
    mean = (parts[0].covariance() + parts[1].covariance()) / 2
    assert float((mixture - mean).abs().max()) > 20


def test_zero_weight_drops_a_part() -> None:
    parts = [Moments.from_samples(normal(9, 2, seed=k)) for k in range(2)]
    one = Moments.weighted(parts, [0.0, 3.0]).covariance()
    assert torch.allclose(one, parts[1].covariance())
    x, w = normal(9, 2, seed=0), torch.ones(9).double()
    w[:4] = 0
    assert torch.allclose(covariance(x, weights=w), covariance(x[4:]))


@pytest.mark.parametrize("n", [10, 10_000])
def test_memory_does_not_grow_with_the_number_of_rows(n: int) -> None:
    moments = Moments.from_samples(normal(n, 3, seed=0)).update(normal(n, 3, seed=1))
    held = 0
    for field in dataclasses.fields(moments):
        value: Any = getattr(moments, field.name)
        if isinstance(value, Tensor):
            held += value.untyped_storage().nbytes()
    assert held <= 8 * (3 * 3 + 3 + 2)
    assert set(vars(moments)) == {field.name for field in dataclasses.fields(moments)}


@given(seed=seeds)
def test_permutation_of_samples(seed: int) -> None:
    x, y = normal(15, 3, seed=seed), normal(15, seed=seed + 1)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(15))
    assert torch.allclose(covariance(x, y), covariance(x[order], y[order]), atol=1e-12)
    assert torch.allclose(
        correntropy(x, y, width=1.0), correntropy(x[order], y[order], width=1.0), atol=1e-12
    )


def test_batches_are_looped() -> None:
    x, y = normal(2, 3, 10, 4, seed=0), normal(2, 3, 10, 2, seed=1)
    w = normal(2, 3, 10, seed=2).abs()
    out = covariance(x, y, weights=w, ridge=0.5)
    assert out.shape == (2, 3, 6, 6)
    for i in range(2):
        for j in range(3):
            one = covariance(x[i, j], y[i, j], weights=w[i, j], ridge=0.5)
            assert torch.allclose(out[i, j], one, atol=1e-13)


def test_ridge_is_added_to_the_diagonal() -> None:
    x = normal(10, 3, seed=0)
    assert torch.allclose(covariance(x, ridge=0.25) - covariance(x), 0.25 * torch.eye(3).double())
    moments = Moments.from_samples(x)
    assert torch.allclose(moments.covariance(ridge=0.25), covariance(x, ridge=0.25))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kind_and_dtype_are_kept(dtype: type) -> None:
    x = np.random.default_rng(0).standard_normal((10, 3)).astype(dtype)
    for matrix in (covariance, correntropy):
        out = matrix(x, x[:, 0])
        assert isinstance(out, np.ndarray)
        assert out.dtype == dtype
        tensor = matrix(torch.from_numpy(x), torch.from_numpy(x[:, 0]))
        assert tensor.dtype == torch.from_numpy(x).dtype
        assert np.array_equal(tensor.numpy(), out)
    assert isinstance(Moments.from_samples(x).covariance(), np.ndarray)
    assert isinstance(Moments.from_samples(torch.from_numpy(x)).covariance(), Tensor)


@pytest.mark.parametrize("n", [2, 3, 30])
def test_float32_is_near_float64_with_an_offset(n: int) -> None:
    x = normal(n, 3, seed=0).float() + 100
    assert torch.allclose(covariance(x).double(), covariance(x.double()), rtol=1e-5, atol=1e-5)


def test_covariance_has_the_gradient_of_its_formula() -> None:
    x = normal(7, 3, seed=0).requires_grad_()
    w = normal(7, seed=1).abs()
    assert torch.autograd.gradcheck(lambda z: covariance(z, weights=w), x)
    assert torch.autograd.gradcheck(lambda z: correntropy(z, width=1.0), x)


def test_gradient_flows_through_streams() -> None:
    x = normal(12, 2, seed=0).requires_grad_()
    target = torch.eye(2).double()
    whole = torch.autograd.grad(jeffreys(covariance(x), target), x)[0]
    stream = Moments.from_samples(x[:5]).update(x[5:]).covariance()
    assert torch.allclose(torch.autograd.grad(jeffreys(stream, target), x)[0], whole, atol=1e-10)


def test_one_sample_has_moments_but_no_covariance() -> None:
    one = Moments.from_samples(normal(1, 3, seed=0))
    assert float(one.count) == 1
    with pytest.raises(ArgumentError, match=r"x: .*two samples"):
        one.covariance()
    assert one.merge(Moments.from_samples(normal(1, 3, seed=1))).covariance().shape == (3, 3)
    assert np.array_equal(covariance(np.array([[0.0], [2.0]])), [[2.0]])


def test_overflow_of_covariance_is_an_error() -> None:
    with pytest.raises(ArgumentError, match=r"^x: variances overflow"):
        covariance(1e200 * normal(9, 2, seed=0))


def test_moments_do_not_change() -> None:
    first = Moments.from_samples(normal(5, 2, seed=0))
    before = [t.clone() for t in (first.count, first.mean, first.scatter)]
    first.update(normal(5, 2, seed=1)).merge(first)
    Moments.weighted([first, first], [0.5, 0.5])
    for kept, now in zip(before, (first.count, first.mean, first.scatter), strict=True):
        assert torch.equal(kept, now)
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.count = torch.ones(())  # type: ignore[misc]


# correntropy


@given(seed=seeds, n=st.integers(2, 12), d=st.integers(1, 4), width=st.floats(0.1, 10))
def test_correntropy_is_its_formula(seed: int, n: int, d: int, width: float) -> None:
    x = np.random.default_rng(seed).standard_normal((n, d))
    want = np.empty((d, d))
    for i in range(d):
        for j in range(d):
            kernel = np.exp(-((x[:, None, i] - x[None, :, j]) ** 2) / (2 * width**2))
            want[i, j] = np.trace(kernel) / n - kernel.mean()
    out = correntropy(x, width=width)
    assert np.allclose(out, want, rtol=1e-10, atol=1e-13)
    assert np.array_equal(out, out.T)


def test_correntropy_of_columns_of_unequal_size_is_a_valid_matrix() -> None:
    """Small entries come from cancelling large ones: exactly symmetric, or divergences refuse."""
    c = correntropy(normal(690, 10, seed=0) * torch.logspace(-2, 0, 10).double(), width=10.0)
    assert torch.equal(c, c.mT)
    assert float(jeffreys(c, c)) < 1e-12


@given(seed=seeds)
def test_correntropy_tends_to_covariance_for_wide_kernels(seed: int) -> None:
    """κ(u) ≈ 1 - u²/2s²: s² C is the (biased) covariance in the limit."""
    x = normal(20, 3, seed=seed)
    limit = 1e4**2 * correntropy(x, width=1e4)
    assert torch.allclose(limit, covariance(x) * 19 / 20, rtol=1e-4, atol=1e-4)


def test_correntropy_median_width() -> None:
    x = np.array([[0.0], [1.0], [3.0]])  # gaps 1, 2, 3
    assert np.allclose(correntropy(x), correntropy(x, width=2.0))


def test_correntropy_in_blocks_equals_in_one() -> None:
    x = normal(1300, 3, seed=0)  # more than one block
    biased = torch.exp(-(x[:, None, :, None] - x[None, :, None, :]).square() / 2).mean((0, 1))
    paired = torch.exp(-(x[:, :, None] - x[:, None, :]).square() / 2).mean(0)
    assert torch.allclose(correntropy(x, width=1.0), paired - biased, atol=1e-12)
