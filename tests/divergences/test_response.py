"""response_divergence: the fast kernel against full decompositions and against 50 digits."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from helpers.samples import exact_divergence, orthogonal, responses, seeds
from vntransfer import (
    VnError,
    conditional_von_neumann,
    covariance,
    response_divergence,
)

METHODS = ["features", "gram"]


def auto(x: Tensor) -> float:
    """The documented definition: 1e-3 times the mean eigenvalue of the feature covariance."""
    return 1e-3 * float(torch.linalg.eigvalsh(covariance(x)).mean())


shapes = {"n": st.integers(2, 12), "d": st.integers(1, 12), "m": st.sampled_from([None, 1, 3])}


@given(
    method=st.sampled_from(["auto", *METHODS]),
    seed=seeds,
    **shapes,
    power=st.floats(-8, 8),
    relative=st.floats(-6, 1),
)
def test_equals_jeffreys_of_covariances(
    method: str, seed: int, n: int, d: int, m: int | None, power: float, relative: float
) -> None:
    x, a, b = responses(n, d, m, seed, scale=10**power)
    ridge = 10 ** (relative + 2 * power)
    want = float(exact_divergence(x, a, b, ridge))
    got = float(response_divergence(x, a, b, ridge=ridge, method=method))
    assert got == pytest.approx(want, rel=1e-7)


@given(method=st.sampled_from(["auto", *METHODS]), seed=seeds, **shapes)
def test_auto_ridge_is_as_documented(method: str, seed: int, n: int, d: int, m: int | None) -> None:
    x, a, b = responses(n, d, m, seed)
    want = float(exact_divergence(x, a, b, auto(x)))
    assert float(response_divergence(x, a, b, method=method)) == pytest.approx(want, rel=1e-8)


@given(seed=seeds, **shapes)
def test_equals_the_conditional_divergence_as_features_are_shared(
    seed: int, n: int, d: int, m: int | None
) -> None:
    x, a, b = responses(n, d, m, seed)
    pair = covariance(x, a, ridge=0.1), covariance(x, b, ridge=0.1)
    want = float(conditional_von_neumann(*pair, n_response=m or 1))
    assert float(response_divergence(x, a, b, ridge=0.1)) == pytest.approx(want, rel=1e-8)


@example(seed=1670487, n=2, d=1, m=None, double=False)  # residuals are nothing but rounding
@given(seed=seeds, **shapes, double=st.booleans())
def test_both_sides_agree(seed: int, n: int, d: int, m: int | None, double: bool) -> None:
    x, a, b = (t if double else t.float() for t in responses(n, d, m, seed))
    out = []
    for divergence in (
        exact_divergence,
        *(partial(response_divergence, method=method) for method in METHODS),
    ):
        inputs = [t.clone().requires_grad_() for t in (x, a, b)]
        value = divergence(*inputs)
        value.backward()
        out.append((value.detach(), *(t.grad for t in inputs)))
    (exact, *wanted), *ours = out
    tolerance = 1e-6 if double else 1e-2
    # rounding of a gradient that nearly vanishes is that of the others
    small = 0.01 * max(float(want.norm()) for want in wanted)
    for value, *gradients in ours:
        assert value.dtype == x.dtype
        assert float(value) == pytest.approx(float(exact), rel=1e-8 if double else 1e-3)
        for got, want in zip(gradients, wanted, strict=True):
            scale = max(float(want.norm()), small)
            assert float((got - want).norm()) <= tolerance * scale + 1e-30


@given(seed=seeds, **shapes)
def test_laws(seed: int, n: int, d: int, m: int | None) -> None:
    """Symmetry, zero at equality, shift, rotation, order of samples, and the scaling law."""
    x, a, b = responses(n, d, m, seed)
    want = float(response_divergence(x, a, b))

    def close(*arrays: Tensor, factor: float = 1.0) -> None:
        assert float(response_divergence(*arrays)) == pytest.approx(factor * want, rel=1e-8)

    assert want >= 0
    assert float(response_divergence(x, a, a.clone())) == 0
    close(x, b, a)
    close(x + 5, a - 7, b + 9)
    close(x, -a, -b)
    close(100 * x, 100 * a, 100 * b, factor=1e4)
    close(x @ torch.from_numpy(orthogonal(d, seed)), a, b)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(n))
    close(x[order], a[order], b[order])
    if m:
        q = torch.from_numpy(orthogonal(m, seed))
        close(x, a @ q, b @ q)


@given(seed=seeds, n=st.integers(3, 10), d=st.integers(1, 8))
def test_is_at_least_the_divergence_of_the_response_alone(seed: int, n: int, d: int) -> None:
    x, a, b = responses(n, d, None, seed)
    u, v = (float(y.var()) + 0.1 for y in (a, b))
    alone = (u - v) * np.log(u / v) / 2
    assert float(response_divergence(x, a, b, ridge=0.1)) >= alone * (1 - 1e-9)


@pytest.mark.parametrize("m", [None, 1, 3])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ridge", ["auto", 0.01])
def test_batched_equals_looped(method: str, m: int | None, ridge: float | str) -> None:
    sets = [responses(9, 4, m, 10 * k, scale=10.0**k) for k in range(6)]
    stacked = [torch.stack(t).unflatten(0, (2, 3)) for t in zip(*sets, strict=True)]
    stacked = [t.requires_grad_() for t in stacked]
    out = response_divergence(*stacked, method=method, ridge=ridge)
    assert out.shape == (2, 3)
    out.sum().backward()
    for k, one in enumerate(sets):
        inputs = [t.clone().requires_grad_() for t in one]
        value = response_divergence(*inputs, method=method, ridge=ridge)
        assert value.shape == ()
        assert out.flatten()[k].item() == pytest.approx(value.item(), rel=1e-8)
        value.backward()
        for whole, part in zip(stacked, inputs, strict=True):
            got = whole.grad.flatten(0, 1)[k]
            assert float((got - part.grad).norm()) <= 1e-6 * float(part.grad.norm())


def test_one_column_is_the_same_as_a_vector() -> None:
    x, a, b = responses(9, 4, None, 0)
    assert float(response_divergence(x, a[:, None], b[:, None])) == float(
        response_divergence(x, a, b)
    )


def test_root_is_the_root() -> None:
    x, a, b = responses(9, 4, 2, 0)
    value = float(response_divergence(x, a, b))
    assert float(response_divergence(x, a, b, sqrt=True)) == pytest.approx(value**0.5, rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sqrt", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_gradient_is_finite_and_zero_at_equality(
    method: str, sqrt: bool, dtype: torch.dtype
) -> None:
    x, a, _ = (t.to(dtype) for t in responses(9, 4, 2, 0))
    inputs = [t.clone().requires_grad_() for t in (x, a, a)]
    value = response_divergence(*inputs, sqrt=sqrt, method=method)
    value.backward()
    assert float(value.detach()) == 0
    for t in inputs:
        assert t.grad.isfinite().all()
        assert float(t.grad.norm()) <= 1e-5


def test_root_has_a_sensible_gradient_near_equality() -> None:
    """√J is like |a - b|: its gradient keeps its size as b comes near a."""
    x, a, b = responses(20, 4, None, 0)
    sizes = []
    for h in (1e-2, 1e-6, 1e-10):
        moving = (a + h * b).requires_grad_()
        response_divergence(x, a, moving, sqrt=True).backward()
        sizes.append(float(moving.grad.norm()))
    assert max(sizes) / min(sizes) < 1.1


@pytest.mark.parametrize(
    "wanted", [(True, False, False), (False, True, False), (False, False, True)]
)
@pytest.mark.parametrize("method", METHODS)
def test_gradient_of_some_arguments_only(method: str, wanted: tuple[bool, bool, bool]) -> None:
    x, a, b = responses(9, 4, 2, 0)
    every = [t.clone().requires_grad_() for t in (x, a, b)]
    response_divergence(*every, method=method).backward()
    some = [t.clone().requires_grad_(w) for t, w in zip((x, a, b), wanted, strict=True)]
    response_divergence(*some, method=method).backward()
    for full, part, want in zip(every, some, wanted, strict=True):
        assert (part.grad is not None) == want
        if want:
            assert torch.allclose(full.grad, part.grad)


def test_auto_ridge_is_not_differentiated() -> None:
    x, a, b = responses(9, 4, None, 0)
    one, two = (x.clone().requires_grad_() for _ in range(2))
    response_divergence(one, a, b).backward()
    response_divergence(two, a, b, ridge=auto(x)).backward()
    assert torch.allclose(one.grad, two.grad, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sqrt", [False, True])
def test_second_derivatives_are_a_clear_error(method: str, sqrt: bool) -> None:
    x, a, b = (t.requires_grad_() for t in responses(9, 4, None, 0))
    value = response_divergence(x, a, b, method=method, sqrt=sqrt)
    gradients = torch.autograd.grad(value, (x, a, b), create_graph=True)
    for gradient in gradients:
        with pytest.raises(VnError, match="second derivatives"):
            gradient.square().sum().backward(retain_graph=True)


def test_backward_twice_gives_the_same() -> None:
    x, a, b = (t.requires_grad_() for t in responses(9, 4, None, 0))
    value = response_divergence(x, a, b)
    first = torch.autograd.grad(value, x, retain_graph=True)[0]
    assert torch.equal(torch.autograd.grad(value, x)[0], first)


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.mT.contiguous().mT])
def test_memory_layout_does_not_matter(make: Callable[[Tensor], Tensor]) -> None:
    x, a, b = responses(9, 4, 2, 0)
    assert float(response_divergence(make(x), make(a), make(b))) == pytest.approx(
        float(response_divergence(x, a, b)), rel=1e-12
    )


def test_numpy_is_answered_in_numpy() -> None:
    x, a, b = responses(9, 4, 2, 0)
    out = response_divergence(x.numpy(), a.numpy(), b.numpy())
    assert isinstance(out, np.ndarray)
    assert float(out) == float(response_divergence(x, a, b))
