"""The quadrature behind response_divergence: converged, and the same for both sides."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.samples import normal, seeds
from vntransfer import bordered, covariance, jeffreys, quadrature, response_divergence

DTYPES = (torch.float32, torch.float64)


def problem(spread: float, m: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Feature variances from 1 to 10^-spread."""
    x = normal(12, 6, seed=0) * torch.logspace(0, -spread / 2, 6).double()
    return x, normal(12, m, seed=1) + x[:, :1], normal(12, m, seed=2) - x[:, :1]


@pytest.mark.parametrize("side", ["features", "gram"])
@pytest.mark.parametrize("m", [1, 3])
def test_more_nodes_change_nothing(side: str, m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, a, b = problem(8, m)
    coarse, fine = [], []
    for out, rule in ((coarse, None), (fine, quadrature.Rule(0.2, 25.0))):
        if rule:
            monkeypatch.setitem(quadrature.RULES, "float64", rule)
        inputs = [t.clone().requires_grad_() for t in (x, a, b)]
        value = response_divergence(*inputs, ridge=1e-6, method=side)
        value.backward()
        out.extend([value.detach(), *(t.grad for t in inputs)])
    assert float(coarse[0]) == pytest.approx(float(fine[0]), rel=1e-9)
    for got, want in zip(coarse[1:], fine[1:], strict=True):
        assert float((got - want).norm()) <= 1e-8 * float(want.norm())


@pytest.mark.parametrize("side", ["features", "gram"])
@pytest.mark.parametrize("ridge", [1e-10, 1e-6, 1e-2, 1e2, 1e6])
@pytest.mark.parametrize("spread", [0, 8])
def test_any_window_of_eigenvalues(side: str, ridge: float, spread: float) -> None:
    x, a, b = problem(spread)
    want = float(jeffreys(covariance(x, a, ridge=ridge), covariance(x, b, ridge=ridge)))
    got = float(response_divergence(x, a, b, ridge=ridge, method=side))
    assert got == pytest.approx(want, rel=1e-7)


@pytest.mark.parametrize("m", [1, 2])
def test_scalar_and_matrix_integrand_are_the_same(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, a, b = problem(3)
    if m == 2:  # an empty second response adds nothing
        wide = [torch.cat((t, torch.zeros_like(t)), -1) for t in (a, b)]
        assert float(response_divergence(x, *wide, ridge=0.1)) == pytest.approx(
            float(response_divergence(x, a, b, ridge=0.1)), rel=1e-10
        )
        return
    fast = float(response_divergence(x, a, b, ridge=0.1))
    monkeypatch.setattr(bordered, "scalar_integrand", bordered.matrix_integrand)
    assert float(response_divergence(x, a, b, ridge=0.1)) == pytest.approx(fast, rel=1e-12)


@pytest.mark.parametrize("side", ["features", "gram"])
def test_value_is_the_same_with_and_without_gradients(side: str) -> None:
    x, a, b = problem(3)
    plain = response_divergence(x, a, b, method=side)
    tracked = response_divergence(x.clone().requires_grad_(), a, b, method=side)
    assert float(plain) == tracked.item()
    with torch.no_grad():
        assert not response_divergence(x.requires_grad_(), a, b, method=side).requires_grad


@pytest.mark.parametrize("shape", [(30, 50, 1), (50, 30, 1), (40, 40, 4)])
def test_float32_keeps_its_promise(shape: tuple[int, int, int]) -> None:
    """Values to 1e-3 and gradients to 1e-2 of float64, relu features with dead units included."""
    n, d, m = shape
    x = torch.relu(normal(n, d, seed=0) @ normal(d, d, seed=1) / d**0.5)
    a, b = x @ normal(d, m, seed=2) / d, x @ normal(d, m, seed=3) / d
    results = []
    for dtype in (torch.float32, torch.float64):
        inputs = [t.float().to(dtype).requires_grad_() for t in (x, a, b)]
        value = response_divergence(*inputs)
        value.backward()
        results.append([value.detach().double(), *(t.grad.double() for t in inputs)])
    assert float(results[0][0]) == pytest.approx(float(results[1][0]), rel=1e-3)
    for got, want in zip(results[0][1:], results[1][1:], strict=True):
        assert float((got - want).norm()) <= 1e-2 * float(want.norm())


@pytest.mark.parametrize("side", ["features", "gram"])
@pytest.mark.parametrize("ridge", [0.1, None])
@pytest.mark.parametrize("scale", [1.0, 1e3])  # beyond float32's range float64 is used inside
def test_a_few_sets_at_a_time_give_the_same(
    side: str, ridge: float | None, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(0)
    sizes = ((5, 12, 6), (5, 12, 1), (5, 12, 1))
    leaves = [scale * torch.randn(size, generator=generator) for size in sizes]
    found = []
    for at_once in (bordered.AT_ONCE, 2 * 12 * 6):
        monkeypatch.setattr(bordered, "AT_ONCE", at_once)
        own = [leaf.clone().requires_grad_() for leaf in leaves]
        value = bordered.bordered_jeffreys(*own, ridge=ridge, side=side)
        value.sum().backward()
        found.append([value.detach(), *(leaf.grad for leaf in own)])
    for whole, parts in zip(*found, strict=True):
        torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-6 * float(whole.abs().max()))


@pytest.mark.parametrize("rank", [1, 2, 5, 20, 64])
@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("m", [1, 3])
def test_float32_keeps_three_digits_of_features_with_few_directions(
    rank: int, scale: float, m: int
) -> None:
    """Rounded eigenvalues must not pass for variance that the features do not have."""
    rows, columns, sets = 64, 90, 20
    x = (normal(sets, rows, rank, seed=0) @ normal(sets, rank, columns, seed=1)).float()
    a, b = (scale * normal(sets, rows, m, seed=seed).float() for seed in (2, 3))
    for other in (b, a + 0.01 * b):
        got = response_divergence(x, a, other, method="gram").double()
        want = response_divergence(*(t.double() for t in (x, a, other)), method="gram")
        torch.testing.assert_close(got, want, rtol=1e-3, atol=0)


PRECISIONS: dict[str, list[torch.dtype]] = {
    "full rank": [torch.float32],
    "full rank, small ridge": [torch.float32],
    "nearly one direction": [torch.float32],
    "rounding of one direction": [torch.float32, torch.float64],
}


@pytest.mark.parametrize("case", PRECISIONS)
def test_float32_decides_by_what_limits_it(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Float64 is used only where float32 cannot keep its promise."""
    z, ridge = normal(64, 90, seed=0).float(), 1e-6 if "small ridge" in case else "auto"
    a, b = (0.01 * normal(64, 1, seed=seed).float() for seed in (2, 3))
    if "one direction" in case:
        one = normal(64, 1, seed=0) @ normal(1, 90, seed=1)
        z = (one + (1e-2 * z.double() if "nearly" in case else 0)).float()
    used = []
    integrals = bordered._integrals
    monkeypatch.setattr(
        bordered, "_integrals", lambda *args: used.append(args[1].z.dtype) or integrals(*args)
    )
    response_divergence(z.requires_grad_(), a, b, ridge=ridge)
    assert used == PRECISIONS[case]


def relative_errors(arrays: list[torch.Tensor], ridge: float | str) -> list[float]:
    """Errors of float32 against float64: the value's, and those of the three gradients."""
    found = []
    for dtype in DTYPES:
        leaves = [t.to(dtype).clone().requires_grad_() for t in arrays]
        value = response_divergence(*leaves, ridge=ridge)
        found.append([value.detach(), *torch.autograd.grad(value, leaves)])
    return [float((g.double() - w).norm() / w.norm()) for g, w in zip(*found, strict=True)]


@given(
    seed=seeds,
    shape=st.sampled_from([(64, 90), (90, 64), (40, 40)]),
    rank=st.sampled_from([1, 2, 5, 20]),
    noise=st.sampled_from([0.0, 1e-4, 1e-2, 0.1]),
    scale=st.sampled_from([1e-4, 1e-2, 1.0, 100.0]),
    kind=st.sampled_from(["noise", "linear", "nearly equal"]),
    ridge=st.sampled_from(["auto", 1e-3, 1e-5, 1e-7]),
)
def test_float32_keeps_its_promise_for_features_of_nearly_low_rank(
    seed: int,
    shape: tuple[int, int],
    rank: int,
    noise: float,
    scale: float,
    kind: str,
    ridge: float | str,
) -> None:
    """Values to 1e-3 and all gradients to 1e-2 of float64, whatever limits the precision."""
    n, d = shape
    z = normal(n, rank, seed=seed) @ normal(rank, d, seed=seed + 1)
    z = z + noise * normal(n, d, seed=seed + 2)
    a, b = (normal(n, 1, seed=seed + k) for k in (3, 4))
    if kind != "noise":
        a, b = (z @ normal(d, 1, seed=seed + k) for k in (3, 4))
    if kind == "nearly equal":
        b = a + 0.01 * b
    value, *gradients = relative_errors([t.float() for t in (z, scale * a, scale * b)], ridge)
    assert value <= 1e-3
    assert max(gradients) <= 1e-2


@pytest.mark.parametrize("offset", [1e3, 1e5, 1e6])
@pytest.mark.parametrize("shape", [(200, 20), (64, 90), (8, 4)])
def test_float32_keeps_three_digits_of_columns_far_from_zero(
    shape: tuple[int, int], offset: float
) -> None:
    """A mean of many times the spread is rounded, too: that must not pass for variance."""
    x = normal(*shape, seed=0)
    a, b = (x[:, k] + normal(len(x), seed=k) for k in (1, 2))
    rounded = [(part + offset).float() for part in (x, a, b)]
    got, want = (response_divergence(*(t.to(k) for t in rounded)) for k in DTYPES)
    torch.testing.assert_close(got.double(), want, rtol=1e-3, atol=0)


@pytest.mark.parametrize("n", [2, 3])
def test_float32_of_few_samples_whose_responses_vary_much(n: int) -> None:
    """Rounded differences of three responses must not give them a direction of their own."""
    x = normal(n, 2, seed=0).float()
    a, b = (1e5 * normal(n, 3, seed=seed).float() for seed in (1, 2))
    got, want = (response_divergence(*(t.to(k) for t in (x, a, b)), ridge=0.01) for k in DTYPES)
    torch.testing.assert_close(got.double(), want, rtol=1e-6, atol=0)
