"""response_divergence: the fast kernel against full decompositions and against 50 digits."""

import warnings
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import oracles
from makers import normal, orthogonal, seeds
from vntransfer import (
    NotPositiveDefiniteError,
    NumericalWarning,
    VnError,
    conditional_von_neumann,
    covariance,
    jeffreys,
    response_divergence,
)

METHODS = ["features", "gram", "exact"]
SIDES = ["features", "gram"]


def samples(
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


def auto(x: Tensor) -> float:
    """The documented definition: 1e-3 times the mean eigenvalue of the feature covariance."""
    return 1e-3 * float(torch.linalg.eigvalsh(covariance(x)).mean())


shapes = {"n": st.integers(2, 12), "d": st.integers(1, 12), "m": st.sampled_from([None, 1, 3])}


@pytest.mark.parametrize("method", ["auto", *METHODS])
@given(seed=seeds, **shapes, power=st.floats(-8, 8), relative=st.floats(-6, 1))
def test_equals_jeffreys_of_covariances(
    method: str, seed: int, n: int, d: int, m: int | None, power: float, relative: float
) -> None:
    x, a, b = samples(n, d, m, seed, scale=10**power)
    ridge = 10 ** (relative + 2 * power)
    want = float(jeffreys(covariance(x, a, ridge=ridge), covariance(x, b, ridge=ridge)))
    got = float(response_divergence(x, a, b, ridge=ridge, method=method))
    assert got == pytest.approx(want, rel=1e-7)


@pytest.mark.parametrize("method", ["auto", *METHODS])
@given(seed=seeds, **shapes)
def test_auto_ridge_is_as_documented(method: str, seed: int, n: int, d: int, m: int | None) -> None:
    x, a, b = samples(n, d, m, seed)
    want = float(response_divergence(x, a, b, ridge=auto(x), method="exact"))
    assert float(response_divergence(x, a, b, method=method)) == pytest.approx(want, rel=1e-8)


@given(seed=seeds, **shapes)
def test_equals_the_conditional_divergence_as_features_are_shared(
    seed: int, n: int, d: int, m: int | None
) -> None:
    x, a, b = samples(n, d, m, seed)
    pair = covariance(x, a, ridge=0.1), covariance(x, b, ridge=0.1)
    want = float(conditional_von_neumann(*pair, n_response=m or 1))
    assert float(response_divergence(x, a, b, ridge=0.1)) == pytest.approx(want, rel=1e-8)


def hard(case: str) -> tuple[Tensor, Tensor, Tensor, float]:
    x, a, b = samples(6, 3, None, 0)
    ridge = 1e-3
    if case == "two samples":
        x, a, b = samples(2, 3, None, 0)
    elif case == "zero-variance column":
        x[:, 1] = 0.1
    elif case == "duplicate columns":
        x[:, 1] = x[:, 0]
    elif case == "constant response":
        b = torch.full_like(b, 0.7)
    elif case == "both constant":
        a, b = torch.full_like(a, -1.3), torch.full_like(b, 0.7)
    elif case == "near-equal responses":
        b = a + 1e-9 * b
    elif case == "nearly equal beyond rounding":
        a = a - a.mean()
        b = a * (1 + 4e-16)
    elif case == "response is a feature":
        a, b = x[:, 0].clone(), x[:, 1].clone()
    elif case == "tiny ridge":
        ridge = 1e-10
    elif case == "tiny ridge, more features than samples":
        x, a, b = samples(4, 5, None, 0)
        ridge = 1e-10
    elif case == "huge ridge":
        ridge = 1e6
    elif case == "small":
        x, a, b, ridge = 1e-8 * x, 1e-8 * a, 1e-8 * b, 1e-19
    elif case == "large":
        x, a, b, ridge = 1e8 * x, 1e8 * a, 1e8 * b, 1e13
    elif case == "large responses":
        a, b = 1e6 * a, 1e6 * b
    elif case == "small responses":
        a, b = 1e-6 * a, 1e-6 * b
    elif case == "three responses":
        x, a, b = samples(6, 2, 3, 0)
    elif case == "duplicate responses":
        x, a, b = samples(6, 2, 2, 0)
        a, b = a[:, [0, 0, 1]].clone(), b[:, [0, 1, 1]].clone()
    elif case == "near-equal, three responses":
        x, a, b = samples(6, 2, 3, 0)
        b = a + 1e-9 * b
    return x, a, b, ridge


HARD = [
    "generic",
    "two samples",
    "zero-variance column",
    "duplicate columns",
    "constant response",
    "both constant",
    "near-equal responses",
    "nearly equal beyond rounding",
    "response is a feature",
    "tiny ridge",
    "tiny ridge, more features than samples",
    "huge ridge",
    "small",
    "large",
    "large responses",
    "small responses",
    "three responses",
    "duplicate responses",
    "near-equal, three responses",
]


@pytest.mark.parametrize("case", HARD)
def test_agrees_with_fifty_digits(case: str) -> None:
    """Relative accuracy of the kernel, also where a - b is 1e-9 or 1e-16 of a: nothing cancels."""
    x, a, b, ridge = hard(case)
    want = float(oracles.response_divergence(*map(oracles.exact, (x, a, b)), mp.mpf(ridge)))
    loose = 1e-6 if "tiny ridge" in case or case == "large responses" else 2e-8
    if case == "nearly equal beyond rounding":
        loose = 0.2  # the mean of a - b is itself rounded
    for side in SIDES:
        got = float(response_divergence(x, a, b, ridge=ridge, method=side))
        assert got == pytest.approx(want, rel=loose, abs=1e-300), side


@pytest.mark.parametrize("sqrt", [False, True])
@pytest.mark.parametrize("case", [c for c in HARD if "constant" not in c and "beyond" not in c])
def test_gradients_agree_with_differences_at_fifty_digits(case: str, sqrt: bool) -> None:
    x, a, b, ridge = hard(case)
    exact = [oracles.exact(t) for t in (x, a, b)]
    near = "near-equal" in case

    def value(*arrays: object) -> mp.mpf:
        out = oracles.response_divergence(*arrays, mp.mpf(ridge))
        return mp.sqrt(out) if sqrt else out

    for k in range(3):
        direction = normal(*(x, a, b)[k].shape, seed=10 + k)
        # a step far below all scales of the problem
        size = mp.mpf(float((x, a, b)[k].abs().max())) * (mp.mpf("1e-10") if near else 1)
        step = oracles.exact(direction) * size

        def along(h: mp.mpf, k: int = k, step: object = step) -> mp.mpf:
            return value(*(t + h * step if i == k else t for i, t in enumerate(exact)))

        want = oracles.derivative(along) / float(size)
        for method in METHODS:
            if method == "exact" and (near or "tiny" in case or "large responses" in case):
                continue  # the plain formulation has no digits left there
            inputs = [t.clone().requires_grad_() for t in (x, a, b)]
            response_divergence(*inputs, ridge=ridge, method=method, sqrt=sqrt).backward()
            gradient = inputs[k].grad
            scale = float(gradient.norm() * direction.norm())
            loose = 1e-5 if "tiny ridge" in case or "large responses" in case else 1e-7
            got = float((gradient * direction).sum())
            assert got == pytest.approx(want, abs=scale * loose), (method, k)


@given(seed=seeds, **shapes, double=st.booleans())
def test_both_sides_agree(seed: int, n: int, d: int, m: int | None, double: bool) -> None:
    x, a, b = (t if double else t.float() for t in samples(n, d, m, seed))
    out = []
    for method in METHODS:
        inputs = [t.clone().requires_grad_() for t in (x, a, b)]
        value = response_divergence(*inputs, method=method)
        value.backward()
        assert value.dtype == x.dtype
        out.append((value.detach(), *(t.grad for t in inputs)))
    tolerance = 1e-6 if double else 1e-2
    for value, *gradients in out[:2]:
        assert float(value) == pytest.approx(float(out[2][0]), rel=1e-8 if double else 1e-3)
        for got, want in zip(gradients, out[2][1:], strict=True):
            assert float((got - want).norm()) <= tolerance * float(want.norm()) + 1e-30


@given(seed=seeds, **shapes)
def test_float32_is_near_float64(seed: int, n: int, d: int, m: int | None) -> None:
    x, a, b = (t.float() for t in samples(n, d, m, seed))
    want = response_divergence(*(t.double() for t in (x, a, b)))
    assert float(response_divergence(x, a, b)) == pytest.approx(float(want), rel=1e-3)


@given(seed=seeds, **shapes)
def test_laws(seed: int, n: int, d: int, m: int | None) -> None:
    """Symmetry, zero at equality, shift, rotation, order of samples, and the scaling law."""
    x, a, b = samples(n, d, m, seed)
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
    x, a, b = samples(n, d, None, seed)
    u, v = (float(y.var()) + 0.1 for y in (a, b))
    alone = (u - v) * np.log(u / v) / 2
    assert float(response_divergence(x, a, b, ridge=0.1)) >= alone * (1 - 1e-9)


@pytest.mark.parametrize("m", [None, 1, 3])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ridge", ["auto", 0.01])
def test_batched_equals_looped(method: str, m: int | None, ridge: float | str) -> None:
    sets = [samples(9, 4, m, 10 * k, scale=10.0**k) for k in range(6)]
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
    x, a, b = samples(9, 4, None, 0)
    assert float(response_divergence(x, a[:, None], b[:, None])) == float(
        response_divergence(x, a, b)
    )


def test_root_is_the_root() -> None:
    x, a, b = samples(9, 4, 2, 0)
    value = float(response_divergence(x, a, b))
    assert float(response_divergence(x, a, b, sqrt=True)) == pytest.approx(value**0.5, rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sqrt", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_gradient_is_finite_and_zero_at_equality(
    method: str, sqrt: bool, dtype: torch.dtype
) -> None:
    x, a, _ = (t.to(dtype) for t in samples(9, 4, 2, 0))
    inputs = [t.clone().requires_grad_() for t in (x, a, a)]
    value = response_divergence(*inputs, sqrt=sqrt, method=method)
    value.backward()
    assert float(value.detach()) <= (1e-12 if method == "exact" else 0)
    for t in inputs:
        assert t.grad.isfinite().all()
        assert float(t.grad.norm()) <= 1e-5


def test_root_has_a_sensible_gradient_near_equality() -> None:
    """√J is like |a - b|: its gradient keeps its size as b comes near a."""
    x, a, b = samples(20, 4, None, 0)
    sizes = []
    for h in (1e-2, 1e-6, 1e-10):
        moving = (a + h * b).requires_grad_()
        response_divergence(x, a, moving, sqrt=True).backward()
        sizes.append(float(moving.grad.norm()))
    assert max(sizes) / min(sizes) < 1.1


@pytest.mark.parametrize(
    "wanted", [(True, False, False), (False, True, False), (False, False, True)]
)
@pytest.mark.parametrize("method", SIDES)
def test_gradient_of_some_arguments_only(method: str, wanted: tuple[bool, bool, bool]) -> None:
    x, a, b = samples(9, 4, 2, 0)
    every = [t.clone().requires_grad_() for t in (x, a, b)]
    response_divergence(*every, method=method).backward()
    some = [t.clone().requires_grad_(w) for t, w in zip((x, a, b), wanted, strict=True)]
    response_divergence(*some, method=method).backward()
    for full, part, want in zip(every, some, wanted, strict=True):
        assert (part.grad is not None) == want
        if want:
            assert torch.allclose(full.grad, part.grad)


def test_auto_ridge_is_not_differentiated() -> None:
    x, a, b = samples(9, 4, None, 0)
    one, two = (x.clone().requires_grad_() for _ in range(2))
    response_divergence(one, a, b).backward()
    response_divergence(two, a, b, ridge=auto(x)).backward()
    assert torch.allclose(one.grad, two.grad, rtol=1e-8, atol=1e-12)


# ridge = 0


@given(seed=seeds, d=st.integers(1, 5), m=st.sampled_from([None, 2]), power=st.floats(-8, 8))
def test_no_ridge_for_full_rank(seed: int, d: int, m: int | None, power: float) -> None:
    x, a, b = samples(40, d, m, seed, scale=10**power)
    want = float(jeffreys(covariance(x, a), covariance(x, b)))
    got = [response_divergence(x, a, b, ridge=0.0, method=k) for k in ("features", "exact", "auto")]
    assert [float(g) for g in got] == pytest.approx([want] * 3, rel=1e-7)


def test_no_ridge_has_the_right_gradient() -> None:
    x, a, b = samples(20, 3, None, 0)
    results = []
    for method in ("features", "exact"):
        inputs = [t.clone().requires_grad_() for t in (x, a, b)]
        response_divergence(*inputs, ridge=0.0, method=method).backward()
        results.append([t.grad for t in inputs])
    for got, want in zip(*results, strict=True):
        assert torch.allclose(got, want, rtol=1e-6, atol=1e-9)


def singular(case: str) -> tuple[Tensor, Tensor, Tensor]:
    x, a, b = samples(20, 3, None, 0)
    if case == "fewer samples than columns":
        return samples(3, 3, None, 0)
    if case == "duplicate column":
        x[:, 2] = x[:, 1]
    if case == "dead column":
        x[:, 2] = 0
    if case == "dead features":
        x = torch.zeros_like(x)
    if case == "constant response":
        a = torch.ones_like(a)
    if case == "linear response":
        a = x @ torch.ones(3).double()
    return x, a, b


@pytest.mark.parametrize("method", ["auto", *METHODS])
@pytest.mark.parametrize(
    "case",
    [
        "fewer samples than columns",
        "duplicate column",
        "dead column",
        "dead features",
        "constant response",
        "linear response",
    ],
)
def test_no_ridge_where_one_is_needed_is_a_clear_error(case: str, method: str) -> None:
    with pytest.raises(NotPositiveDefiniteError, match="ridge"):
        response_divergence(*singular(case), ridge=0.0, method=method)


# dead features and rank deficiency


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("method", SIDES)
@pytest.mark.parametrize("response", ["random", "constant"])
def test_dead_features_warn_and_stay_finite(method: str, dtype: torch.dtype, response: str) -> None:
    inputs = [torch.zeros(9, 4, dtype=dtype), *(normal(9, seed=k, dtype=dtype) for k in (0, 1))]
    if response == "constant":
        inputs[1:] = [torch.ones(9, dtype=dtype), torch.zeros(9, dtype=dtype)]
    inputs = [t.requires_grad_() for t in inputs]
    with pytest.warns(NumericalWarning, match="features"):
        value = response_divergence(*inputs, method=method, sqrt=True)
    value.backward()
    assert value.isfinite()
    assert all(t.grad.isfinite().all() for t in inputs)
    if response == "random":
        # all that is left is the divergence of the response block
        u, v = (float(t.detach().double().var()) for t in inputs[1:])
        assert value.item() == pytest.approx(((u - v) * np.log(u / v) / 2) ** 0.5, rel=1e-2)


@pytest.mark.parametrize("method", SIDES)
def test_dead_features_in_one_set_do_not_change_the_others(method: str) -> None:
    x, a, b = (torch.stack(t) for t in zip(*(samples(9, 4, None, k) for k in (0, 9)), strict=True))
    x[0] = 0
    with pytest.warns(NumericalWarning, match="1 of 2"):
        out = response_divergence(x, a, b, method=method)
    alone = response_divergence(x[1], a[1], b[1], method=method)
    assert float(out[1]) == pytest.approx(float(alone), rel=1e-9)


@given(
    seed=seeds,
    n=st.integers(2, 20),
    d=st.integers(1, 20),
    m=st.sampled_from([None, 1, 3]),
    double=st.booleans(),
    power=st.integers(-8, 8),
    ratio=st.integers(-3, 3),
    sqrt=st.booleans(),
)
def test_never_nan(
    seed: int,
    n: int,
    d: int,
    m: int | None,
    double: bool,
    power: int,
    ratio: int,
    sqrt: bool,
) -> None:
    """Relu features (dead columns, rank deficiency), any scale, responses of another scale."""
    x, a, b = samples(n, d, m, seed, scale=10.0**power)
    x = torch.relu(x - 4 * 10.0**power)
    x[0, 0] = x[0, 0] + 10.0**power  # never dead altogether
    dtype = torch.float64 if double else torch.float32
    inputs = [t.to(dtype).requires_grad_() for t in (x, a * 10.0**ratio, b * 10.0**ratio)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = response_divergence(*(t * 1 for t in inputs), sqrt=sqrt)
    value.backward()
    assert value.isfinite()
    assert float(value.detach()) >= 0
    for t in inputs:
        assert t.grad.isfinite().all()


@pytest.mark.parametrize("method", SIDES)
@pytest.mark.parametrize("sqrt", [False, True])
def test_second_derivatives_are_a_clear_error(method: str, sqrt: bool) -> None:
    x, a, b = (t.requires_grad_() for t in samples(9, 4, None, 0))
    value = response_divergence(x, a, b, method=method, sqrt=sqrt)
    gradients = torch.autograd.grad(value, (x, a, b), create_graph=True)
    for gradient in gradients:
        with pytest.raises(VnError, match="second derivatives"):
            gradient.square().sum().backward(retain_graph=True)


def test_backward_twice_gives_the_same() -> None:
    x, a, b = (t.requires_grad_() for t in samples(9, 4, None, 0))
    value = response_divergence(x, a, b)
    first = torch.autograd.grad(value, x, retain_graph=True)[0]
    assert torch.equal(torch.autograd.grad(value, x)[0], first)


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.mT.contiguous().mT])
def test_memory_layout_does_not_matter(make: Callable[[Tensor], Tensor]) -> None:
    x, a, b = samples(9, 4, 2, 0)
    assert float(response_divergence(make(x), make(a), make(b))) == pytest.approx(
        float(response_divergence(x, a, b)), rel=1e-12
    )


def test_numpy_is_answered_in_numpy() -> None:
    x, a, b = samples(9, 4, 2, 0)
    out = response_divergence(x.numpy(), a.numpy(), b.numpy())
    assert isinstance(out, np.ndarray)
    assert float(out) == float(response_divergence(x, a, b))
