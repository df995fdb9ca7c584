"""response_divergence keeps its digits: against 50 digits, float32 against float64."""

import mpmath as mp
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from helpers import oracles
from helpers.samples import exact_divergence, normal, responses, seeds
from vntransfer import response_divergence

METHODS = ["features", "gram"]


def hard(case: str) -> tuple[Tensor, Tensor, Tensor, float]:
    x, a, b = responses(6, 3, None, 0)
    ridge = 1e-3
    if case == "two samples":
        x, a, b = responses(2, 3, None, 0)
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
        x, a, b = responses(4, 5, None, 0)
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
        x, a, b = responses(6, 2, 3, 0)
    elif case == "duplicate responses":
        x, a, b = responses(6, 2, 2, 0)
        a, b = a[:, [0, 0, 1]].clone(), b[:, [0, 1, 1]].clone()
    elif case == "near-equal, three responses":
        x, a, b = responses(6, 2, 3, 0)
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
    for side in METHODS:
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
            inputs = [t.clone().requires_grad_() for t in (x, a, b)]
            response_divergence(*inputs, ridge=ridge, method=method, sqrt=sqrt).backward()
            gradient = inputs[k].grad
            scale = float(gradient.norm() * direction.norm())
            loose = 1e-5 if "tiny ridge" in case or "large responses" in case else 1e-7
            got = float((gradient * direction).sum())
            assert got == pytest.approx(want, abs=scale * loose), (method, k)


# float32 and spectra of extreme spread, against full decompositions in float64


@given(seed=seeds, n=st.integers(2, 12), d=st.integers(1, 12), m=st.sampled_from([None, 1, 3]))
def test_float32_is_near_float64(seed: int, n: int, d: int, m: int | None) -> None:
    x, a, b = (t.float() for t in responses(n, d, m, seed))
    want = response_divergence(*(t.double() for t in (x, a, b)))
    assert float(response_divergence(x, a, b)) == pytest.approx(float(want), rel=1e-3)


def off_from_exact(
    inputs: tuple[Tensor, ...], method: str, ridge: float | str = "auto"
) -> tuple[float, float]:
    """Relative errors of the value and of the worst of the three gradients."""
    results = []
    for dtype in (inputs[0].dtype, torch.float64):
        leaves = [t.to(dtype).clone().requires_grad_() for t in inputs]
        if not results:
            value = response_divergence(*leaves, ridge=ridge, method=method)
        else:
            value = exact_divergence(*leaves, ridge)
        value.backward()
        results.append([value.detach().double(), *(t.grad.double() for t in leaves)])
    value, *gradients = (
        float((got - want).norm() / want.norm()) for got, want in zip(*results, strict=True)
    )
    return value, max(gradients)


@pytest.mark.parametrize("ratio", [1e3, 1e4, 1e6])
@pytest.mark.parametrize("method", METHODS)
def test_float32_responses_of_unequal_amplitude(ratio: float, method: str) -> None:
    """The larger response must not drown the smaller."""
    inputs = normal(8, 2, seed=0), ratio * normal(8, seed=1), normal(8, seed=2)
    value, gradient = off_from_exact(tuple(t.float() for t in inputs), method, ridge=1e-3)
    assert value <= 1e-3
    assert gradient <= 1e-2


def test_float64_responses_of_unequal_amplitude() -> None:
    x, a, b = normal(8, 2, seed=0), 1e9 * normal(8, seed=1), normal(8, seed=2)
    want = float(oracles.response_divergence(*map(oracles.exact, (x, a, b)), mp.mpf(1e-3)))
    assert float(response_divergence(x, a, b, ridge=1e-3)) == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("shape", [(64, 20, 10), (300, 100, 10), (5, 3, 4)])
@pytest.mark.parametrize("method", METHODS)
def test_float32_one_hot_labels_beside_small_features(
    shape: tuple[int, int, int], method: str
) -> None:
    """One-hot columns sum to one: rank-deficient responses, 1e8 above the ridge."""
    n, d, m = shape
    x = 1e-3 * normal(n, d, seed=0)
    probabilities = torch.softmax(normal(n, m, seed=1), -1)
    labels = torch.eye(m)[torch.arange(n) % m]
    value, gradient = off_from_exact((x.float(), probabilities.float(), labels), method)
    assert value <= 1e-3
    assert gradient <= 1e-2


@pytest.mark.parametrize("method", METHODS)
def test_float64_rank_deficient_responses_with_a_small_ridge(method: str) -> None:
    """Condition 1e12: rounding is eps x condition, 2e-4, times a constant of some hundreds."""
    inputs = 1e-3 * normal(3, 1, seed=0), 10 * normal(3, 3, seed=1), 10 * normal(3, 3, seed=2)
    _, gradient = off_from_exact(inputs, method, ridge=1e-10)
    assert gradient <= 0.2


def test_float32_responses_that_depend_on_each_other_are_computed_in_float64() -> None:
    """Three responses of three samples: rounding in float32 would leave fewer than three digits."""
    x, a, b = (t.float() for t in responses(3, 1, 3, 1))
    want = float(response_divergence(*(t.double() for t in (x, a, b))))
    assert float(response_divergence(x, a, b)) == pytest.approx(want, rel=1e-5)
