"""response_divergence at its limits: no ridge, dead features, rank deficiency, bad values."""

import warnings

import mpmath as mp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from helpers import oracles
from helpers.samples import exact_divergence, normal, responses, seeds
from vntransfer import (
    ArgumentError,
    NotPositiveDefiniteError,
    NumericalWarning,
    response_divergence,
)

METHODS = ["features", "gram"]


# ridge = 0


@given(seed=seeds, d=st.integers(1, 5), m=st.sampled_from([None, 2]), power=st.floats(-8, 8))
def test_no_ridge_for_full_rank(seed: int, d: int, m: int | None, power: float) -> None:
    x, a, b = responses(40, d, m, seed, scale=10**power)
    want = float(exact_divergence(x, a, b, 0.0))
    got = [response_divergence(x, a, b, ridge=0.0, method=k) for k in ("features", "auto")]
    assert [float(g) for g in got] == pytest.approx([want] * 2, rel=1e-7)


def test_no_ridge_has_the_right_gradient() -> None:
    x, a, b = responses(20, 3, None, 0)
    results = []
    for divergence in (response_divergence, exact_divergence):
        inputs = [t.clone().requires_grad_() for t in (x, a, b)]
        divergence(*inputs, ridge=0.0).backward()
        results.append([t.grad for t in inputs])
    for got, want in zip(*results, strict=True):
        assert torch.allclose(got, want, rtol=1e-6, atol=1e-9)


def singular(case: str) -> tuple[Tensor, Tensor, Tensor]:
    x, a, b = responses(20, 3, None, 0)
    if case == "fewer samples than columns":
        return responses(3, 3, None, 0)
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


SINGULAR = [
    "duplicate column",
    "dead column",
    "dead features",
    "constant response",
    "linear response",
]


@pytest.mark.parametrize("method", ["auto", "features"])
@pytest.mark.parametrize("case", ["fewer samples than columns", *SINGULAR])
def test_no_ridge_where_one_is_needed_is_a_clear_error(case: str, method: str) -> None:
    with pytest.raises(NotPositiveDefiniteError, match="ridge"):
        response_divergence(*singular(case), ridge=0.0, method=method)


def test_no_ridge_for_fewer_samples_than_columns_is_a_clear_error_of_gram() -> None:
    with pytest.raises(NotPositiveDefiniteError, match="ridge"):
        response_divergence(*singular("fewer samples than columns"), ridge=0.0, method="gram")


@pytest.mark.parametrize("case", ["full rank", *SINGULAR])
def test_gram_without_ridge_says_why(case: str) -> None:
    """N x N is singular for N > d whatever the data: the method does not fit, not the data."""
    with pytest.raises(ArgumentError, match=r"^method: 'gram' needs a ridge"):
        response_divergence(*singular(case), ridge=0.0, method="gram")


def test_float32_constant_features_without_ridge_are_a_clear_error() -> None:
    a, b = (normal(9, seed=k, dtype=torch.float32) for k in (0, 1))
    with pytest.raises(NotPositiveDefiniteError, match="ridge"):
        response_divergence(torch.ones(9, 2), a, b, ridge=0.0)


# dead features and rank deficiency


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("method", METHODS)
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


@pytest.mark.parametrize("n", [7, 11, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("method", METHODS)
def test_constant_features_are_dead_whatever_the_constant(
    n: int, dtype: torch.dtype, method: str
) -> None:
    """The mean of n times 0.1 is not 0.1: what centering leaves is rounding, not spread."""
    x = torch.full((n, 2), 0.1, dtype=dtype)
    a, b = (normal(n, seed=k, dtype=dtype) for k in (1, 2))
    with pytest.warns(NumericalWarning, match="features"):
        assert response_divergence(x, a, b, method=method).isfinite()


@pytest.mark.parametrize("method", METHODS)
def test_dead_features_in_one_set_do_not_change_the_others(method: str) -> None:
    x, a, b = (
        torch.stack(t) for t in zip(*(responses(9, 4, None, k) for k in (0, 9)), strict=True)
    )
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
    x, a, b = responses(n, d, m, seed, scale=10.0**power)
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


@pytest.mark.parametrize("spoil", [float("nan"), float("inf")])
@pytest.mark.parametrize("argument", ["features", "a", "b"])
@pytest.mark.parametrize("method", ["auto", "gram"])
@pytest.mark.parametrize("ridge", ["auto", 0.1])
def test_bad_values_are_named(spoil: float, argument: str, method: str, ridge: float | str) -> None:
    """They are looked for only once the result is not finite: every way there must find them."""
    given_arrays = {
        "features": normal(9, 3, seed=0),
        "a": normal(9, seed=1),
        "b": normal(9, seed=2),
    }
    given_arrays[argument].view(-1)[0] = spoil
    finding = "1 NaN and 0" if np.isnan(spoil) else "0 NaN and 1"
    with pytest.raises(ArgumentError, match=f"^{argument}: {finding} infinite"):
        response_divergence(**given_arrays, method=method, ridge=ridge)


@pytest.mark.parametrize(
    ("dtype", "ridge"),
    [
        *((np.float32, 10.0**-k) for k in (36, 37, 38, 40, 46, 50)),
        *((np.float64, 10.0**-k) for k in (290, 307, 320)),
    ],
)
@pytest.mark.parametrize(("n", "d", "m"), [(50, 3, None), (50, 3, 2), (4, 9, None), (4, 9, 2)])
def test_a_ridge_beyond_the_numbers_is_named(
    dtype: type, ridge: float, n: int, d: int, m: int | None
) -> None:
    arrays = [t.numpy().astype(dtype) for t in responses(n, d, m, 0)]
    for own in (ridge, np.array([ridge])[::-1]):
        try:
            assert np.isfinite(response_divergence(*arrays, ridge=own))
        except ArgumentError as error:
            small = str(error).startswith(f"ridge: {ridge} is so small that")
            assert small or "take a larger ridge" in str(error)  # noqa: PT017


@given(
    seed=seeds,
    shape=st.tuples(st.integers(2, 20), st.integers(1, 12), st.integers(2, 5)),
    ratio=st.floats(9, 14),
    rank=st.integers(1, 5),
)
def test_several_responses_far_larger_than_the_features(
    seed: int, shape: tuple[int, int, int], ratio: float, rank: int
) -> None:
    """Right, or refused: responses of less than full rank leave no digits at such a ratio."""
    n, d, m = shape
    x = normal(n, d, seed=seed)
    a, b = (
        10**ratio * normal(n, rank, seed=seed + k) @ normal(rank, m, seed=seed + k + 2)
        for k in (1, 2)
    )
    for second in (b, a + 10**-ratio * b):
        try:
            values = [
                float(response_divergence(x, a, second, ridge=1e-3, method=k)) for k in METHODS
            ]
        except ArgumentError:
            assert min(rank, n - 1) < m
        else:
            want = float(
                oracles.response_divergence(*map(oracles.exact, (x, a, second)), mp.mpf("1e-3"))
            )
            assert values == pytest.approx([want, want], rel=2e-3)


@pytest.mark.parametrize("scale", [1.0, 1e-5, 1e-8, 1e-11])
def test_labels_of_nearly_dead_features_are_not_refused(scale: float) -> None:
    """One-hot labels lack one direction, but both lack the same, which costs no digits."""
    generator = torch.Generator().manual_seed(0)
    x = scale * normal(40, 6, seed=0)
    a, b = (torch.eye(4).double()[torch.randint(4, (40,), generator=generator)] for _ in "ab")
    exact = [oracles.exact(t) for t in (x, a, b)]
    ridge = 1e-3 * scale**2
    want = float(oracles.response_divergence(*exact, mp.mpf(ridge)))
    assert float(response_divergence(x, a, b, ridge=ridge)) == pytest.approx(want, rel=1e-6)


def test_responses_that_leave_no_digits_are_refused() -> None:
    x, a, b = normal(10, 3, seed=0), normal(10, 1, seed=1), normal(10, 1, seed=2)
    first, second = 1e9 * a @ normal(1, 2, seed=3), 1e9 * b @ normal(1, 2, seed=4)
    with pytest.raises(ArgumentError, match=r"a, b: .* larger ridge"):
        response_divergence(x, first, second)
