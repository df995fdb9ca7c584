"""The contract that every entry of DIVERGENCES keeps, against mpmath at 50 digits and by laws."""

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import vntransfer
from helpers import oracles
from helpers.samples import EPS, condition, orthogonal, random_spd, seeds, spd, symmetric
from vntransfer import DIVERGENCES, VnError

every = pytest.mark.parametrize("name", DIVERGENCES)
names = st.sampled_from(list(DIVERGENCES))
METRICS = [name for name, entry in DIVERGENCES.items() if entry.metric]


def d(name: str, *matrices: Tensor) -> Tensor:
    return DIVERGENCES[name].function(*matrices)


def value(name: str, *matrices: Tensor) -> float:
    return float(d(name, *matrices))


def geometric(condition: float, seed: int, n: int = 4) -> Tensor:
    return spd(np.geomspace(1 / condition, 1, n), seed)


HARD: dict[str, tuple[Tensor, Tensor]] = {
    "condition 1e4": (geometric(1e4, 0), geometric(1e4, 1)),
    "condition 1e8": (geometric(1e8, 0), geometric(1e8, 1)),
    "condition 1e12": (geometric(1e12, 0), geometric(1e12, 1)),
    "condition 1e12 against 1": (geometric(1e12, 0), spd([1, 1, 1, 1], 1)),
    "repeated": (spd([1, 1, 1, 2], 0), spd([2, 2, 3, 3], 1)),
    "multiples of the identity": (spd([1, 1, 1, 1], 0), spd([5, 5, 5, 5], 1)),
    "clustered": (spd([1, 1 + 1e-9, 1 + 2e-9, 2], 0), spd([2, 2 + 1e-12, 3, 3 + 1e-7], 1)),
    "small": (1e-8 * random_spd(4, 0), 1e-8 * random_spd(4, 1)),
    "large": (1e8 * random_spd(4, 0), 1e8 * random_spd(4, 1)),
    "small against large": (1e-4 * random_spd(4, 0), 1e4 * random_spd(4, 1)),
    "one by one": (spd([0.01], 0), spd([1.0], 0)),
}
NEAR = (spd([1, 2, 3, 4], 0), spd([1, 2, 3, 4], 0) + 1e-9 * symmetric(4, 1))


def hard_pairs() -> list[object]:
    out = []
    for name in DIVERGENCES:
        for case, pair in HARD.items():
            if case == "one by one" and DIVERGENCES[name].conditional:
                continue
            out.append(pytest.param(name, *pair, id=f"{name}, {case}"))
    return out


@pytest.mark.parametrize(("name", "sigma", "rho"), hard_pairs())
def test_agrees_with_fifty_digits(name: str, sigma: Tensor, rho: Tensor) -> None:
    want = float(oracles.ORACLES[name](oracles.exact(sigma), oracles.exact(rho)))
    worst = max(condition(sigma), condition(rho), 10.0)
    assert value(name, sigma, rho) == pytest.approx(want, rel=50 * EPS * worst, abs=0)


@every
def test_keeps_relative_accuracy_near_equality(name: str) -> None:
    """Plain formulas give noise of 1e-16 where the truth is 1e-19; input rounding allows 1e-6."""
    want = float(oracles.ORACLES[name](*map(oracles.exact, NEAR)))
    assert want < 1e-8
    assert value(name, *NEAR) == pytest.approx(want, rel=2e-5, abs=0)


@pytest.mark.parametrize(
    "name", ["von_neumann", "jeffreys", "conditional_von_neumann", "jensen_von_neumann"]
)
@pytest.mark.parametrize("ratio", [1e-17, 1e-30])
def test_ratio_of_scales_below_rounding_gives_no_nan(name: str, ratio: float) -> None:
    """Ratios of eigenvalues below eps are small numbers, not zeros whose logarithm is infinite."""
    sigma, rho = (ratio * random_spd(3, 0)).requires_grad_(), random_spd(3, 1)
    want = float(oracles.ORACLES[name](oracles.exact(sigma), oracles.exact(rho)))
    out = d(name, sigma, rho)
    out.backward()
    assert out.item() == pytest.approx(want, rel=1e-9)
    assert sigma.grad.isfinite().all()


GRADIENT_CASES = {
    "generic": (random_spd(3, 0), random_spd(3, 1)),
    "repeated": (spd([1, 1, 2], 0), spd([2, 2, 2], 1)),
    "clustered": (spd([1, 1 + 1e-9, 2], 0), spd([3, 3 + 1e-7, 3 + 2e-7], 1)),
    "commuting": (torch.diag(torch.tensor([1.0, 2.0, 2.0]).double()), spd([4, 4, 4], 0)),
    "rank deficient plus ridge": (spd([1e-6, 1e-6, 1], 0), spd([1e-6, 2, 3], 1)),
    "condition 1e8": (geometric(1e8, 0, 3), geometric(1e8, 1, 3)),
}


@pytest.mark.parametrize("case", GRADIENT_CASES)
@every
def test_gradient_agrees_with_differences_at_fifty_digits(name: str, case: str) -> None:
    pair = [m.clone().requires_grad_() for m in GRADIENT_CASES[case]]
    d(name, *pair).backward()
    exact = [oracles.exact(m) for m in pair]
    worst = max(condition(m) for m in GRADIENT_CASES[case])
    for side in (0, 1):
        gradient = pair[side].grad
        assert gradient is not None
        direction = symmetric(3, side)
        step = oracles.exact(direction)

        def along(h: mp.mpf, side: int = side, step: object = step) -> mp.mpf:
            moved = [m + h * step if k == side else m for k, m in enumerate(exact)]
            return oracles.ORACLES[name](*moved)

        want = oracles.derivative(along)
        scale = float(gradient.norm() * direction.norm())
        assert float((gradient * direction).sum()) == pytest.approx(
            want, abs=scale * max(1e-11, 100 * EPS * worst)
        )
        assert torch.allclose(gradient, gradient.mT, rtol=1e-9, atol=1e-9 * scale)


@given(name=names, seed=seeds, n=st.integers(2, 6), scale=st.floats(-8, 8), decades=st.floats(0, 3))
def test_is_not_negative_and_zero_at_equality(
    name: str, seed: int, n: int, scale: float, decades: float
) -> None:
    sigma = 10**scale * random_spd(n, seed, decades=decades)
    rho = 10**scale * random_spd(n, seed + 1, decades=decades)
    size = 10 ** (scale + decades)
    assert value(name, sigma, rho) >= 0
    noise = EPS * condition(sigma) * n * 10
    assert value(name, sigma, sigma.clone()) <= noise * size ** DIVERGENCES[name].degree


@given(name=names, seed=seeds, n=st.integers(2, 5))
def test_symmetry_is_as_declared(name: str, seed: int, n: int) -> None:
    sigma, rho = random_spd(n, seed), random_spd(n, seed + 1)
    there, back = value(name, sigma, rho), value(name, rho, sigma)
    if DIVERGENCES[name].symmetric:
        assert there == pytest.approx(back, rel=1e-10)
    else:
        assert there != pytest.approx(back, rel=1e-6)


@given(
    name=st.sampled_from(METRICS),
    seed=seeds,
    n=st.integers(1, 4),
    decades=st.floats(0.1, 3),
    mix=st.floats(0, 1),
)
def test_metrics_satisfy_the_triangle_inequality(
    name: str, seed: int, n: int, decades: float, mix: float
) -> None:
    x, y, random = (random_spd(n, seed + k, decades=decades) for k in range(3))
    # the midpoints that break √J: geometric means, and anything on the segment
    for z in (random, mix * x + (1 - mix) * y, log_mean(x, y, mix)):
        assert value(name, x, y) <= (value(name, x, z) + value(name, z, y)) * (1 + 1e-7)


def log_mean(x: Tensor, y: Tensor, t: float) -> Tensor:
    """Log-Euclidean mean exp((1 - t) log x + t log y)."""

    def apply(f: Callable[[Tensor], Tensor], m: Tensor) -> Tensor:
        values, vectors = torch.linalg.eigh(m)
        return (vectors * f(values)) @ vectors.mT

    return apply(torch.exp, (1 - t) * apply(torch.log, x) + t * apply(torch.log, y))


@given(name=names, seed=seeds, n=st.integers(2, 5))
def test_is_invariant_under_rotations(name: str, seed: int, n: int) -> None:
    """Under any common rotation; conditional divergences: of features and response separately."""
    sigma, rho = random_spd(n, seed), random_spd(n, seed + 1)
    q = np.eye(n)
    if DIVERGENCES[name].conditional:
        q[:-1, :-1], q[-1, -1] = orthogonal(n - 1, seed + 2), -1
    else:
        q = orthogonal(n, seed + 2)
    turn = torch.from_numpy(q)
    turned = [turn @ m @ turn.mT for m in (sigma, rho)]
    turned = [(m + m.mT) / 2 for m in turned]
    assert value(name, *turned) == pytest.approx(value(name, sigma, rho), rel=1e-9)


@given(name=names, seed=seeds, n=st.integers(2, 5), power=st.floats(-8, 8))
def test_scaling_law(name: str, seed: int, n: int, power: float) -> None:
    """Scaling data by c scales matrices by c²: J and D by c², distances of roots by c."""
    c2 = 10**power
    sigma, rho = random_spd(n, seed), random_spd(n, seed + 1)
    want = c2 ** DIVERGENCES[name].degree * value(name, sigma, rho)
    assert value(name, c2 * sigma, c2 * rho) == pytest.approx(want, rel=1e-9)


@every
def test_batched_equals_looped_and_broadcasts(name: str) -> None:
    sigma = torch.stack([random_spd(3, k) for k in range(6)]).reshape(2, 3, 3, 3)
    rho = torch.stack([random_spd(3, 10 + k) for k in range(3)])
    table = d(name, sigma, rho)
    assert table.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            assert float(table[i, j]) == pytest.approx(value(name, sigma[i, j], rho[j]), rel=1e-12)


@every
def test_batched_gradient_equals_looped(name: str) -> None:
    sigma = torch.stack([spd([1, 1, 2], 0), random_spd(3, 1)]).requires_grad_()
    rho = random_spd(3, 2).requires_grad_()
    d(name, sigma, rho).sum().backward()
    total = torch.zeros(3, 3, dtype=torch.float64)
    for k in range(2):
        s, r = sigma[k].detach().requires_grad_(), rho.detach().requires_grad_()
        d(name, s, r).backward()
        assert torch.allclose(sigma.grad[k], s.grad, rtol=1e-9, atol=1e-12)
        total += r.grad
    assert torch.allclose(rho.grad, total, rtol=1e-9, atol=1e-12)


@given(name=names, seed=seeds, n=st.integers(2, 6))
def test_float32_is_near_float64(name: str, seed: int, n: int) -> None:
    sigma, rho = (random_spd(n, seed + k, decades=0.5).float() for k in range(2))
    single = d(name, sigma, rho)
    assert single.dtype == torch.float32
    assert float(single) == pytest.approx(value(name, sigma.double(), rho.double()), rel=1e-3)


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradient_is_finite_at_equality(name: str, dtype: torch.dtype) -> None:
    for matrix in (torch.eye(4), spd([1, 1, 2, 5], 0), random_spd(4, 1, decades=2)):
        sigma, rho = (matrix.to(dtype).clone().requires_grad_() for _ in range(2))
        d(name, sigma, rho).backward()
        assert sigma.grad.isfinite().all()
        assert rho.grad.isfinite().all()


@given(
    name=names,
    seed=seeds,
    n=st.integers(2, 6),
    double=st.booleans(),
    scale=st.integers(-8, 8),
    decades=st.floats(0, 2),
)
def test_never_nan(name: str, seed: int, n: int, double: bool, scale: int, decades: float) -> None:
    dtype = torch.float64 if double else torch.float32
    pair = [
        (10.0**scale * random_spd(n, seed + k, decades=decades)).to(dtype).requires_grad_()
        for k in range(2)
    ]
    out = d(name, *pair)
    out.backward()
    assert out.isfinite()
    assert all(m.grad.isfinite().all() for m in pair)


@every
@pytest.mark.parametrize("sigma", [2 * torch.eye(3).double(), random_spd(3, 0)])
def test_second_derivatives_are_a_clear_error(name: str, sigma: Tensor) -> None:
    sigma = sigma.clone().requires_grad_()
    value = d(name, sigma, torch.eye(3).double())
    (gradient,) = torch.autograd.grad(value, sigma, create_graph=True)
    with pytest.raises(VnError, match="second derivative"):
        gradient.square().sum().backward(retain_graph=True)
    with pytest.raises(VnError, match="second derivative"):
        torch.autograd.grad(gradient.sum(), sigma)


@every
def test_answers_in_kind(name: str) -> None:
    sigma, rho = random_spd(3, 0), random_spd(3, 1)
    out = DIVERGENCES[name].function(sigma.numpy(), rho.numpy())
    assert isinstance(out, np.ndarray)
    assert out.dtype == np.float64
    assert float(out) == value(name, sigma, rho)


@every
def test_entry_says_what_it_is(name: str) -> None:
    entry = DIVERGENCES[name]
    assert entry.function.__name__ == name
    assert entry.summary
    assert getattr(vntransfer, name, entry.function) is entry.function
    assert not entry.metric or entry.symmetric
    assert set(oracles.ORACLES) == set(DIVERGENCES)
