"""Laws of the von Neumann and LogDet divergences, and where the paper's claims about them fail."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import logm
from torch import Tensor

from helpers import oracles
from helpers.samples import EPS, condition, normal, random_spd, seeds, spd
from vntransfer import (
    conditional_log_det,
    conditional_von_neumann,
    covariance,
    jeffreys,
    log_det,
    response_divergence,
    von_neumann,
)


@given(seed=seeds, n=st.integers(2, 7), m=st.integers(1, 3), decades=st.floats(0, 2))
def test_joint_less_features_is_at_least_the_response_block(
    seed: int, n: int, m: int, decades: float
) -> None:
    """D(joint) - D(features) ≥ D(response block) ≥ 0, one way, the other and both."""
    m = min(m, n - 1)
    sigma, rho = (random_spd(n, seed + k, decades=decades) for k in range(2))
    blocks = sigma[-m:, -m:], rho[-m:, -m:]
    noise = 1e3 * EPS * max(condition(sigma), condition(rho)) * 10**decades
    for function, block in (
        (lambda s, r: conditional_von_neumann(s, r, n_response=m, symmetric=False), von_neumann),
        (lambda s, r: conditional_von_neumann(s, r, n_response=m), jeffreys),
    ):
        assert float(function(sigma, rho)) >= float(block(*blocks)) - noise
        assert float(block(*blocks)) >= 0


@given(seed=seeds, n=st.integers(2, 6), m=st.integers(1, 2))
def test_conditional_is_joint_less_features(seed: int, n: int, m: int) -> None:
    m = min(m, n - 1)
    sigma, rho = random_spd(n, seed), random_spd(n, seed + 1)
    blocks = sigma[:-m, :-m], rho[:-m, :-m]
    for conditional, base in (
        (conditional_von_neumann, von_neumann),
        (conditional_log_det, log_det),
    ):
        there = float(base(sigma, rho) - base(*blocks))
        back = float(base(rho, sigma) - base(*blocks[::-1]))
        one = conditional(sigma, rho, n_response=m, symmetric=False)
        assert float(one) == pytest.approx(there, rel=1e-8, abs=1e-12)
        both = conditional(sigma, rho, n_response=m)
        assert float(both) == pytest.approx((there + back) / 2, rel=1e-8, abs=1e-12)


@given(seed=seeds, n=st.integers(1, 6))
def test_jeffreys_is_the_mean_of_both_directions(seed: int, n: int) -> None:
    sigma, rho = random_spd(n, seed), random_spd(n, seed + 1)
    mean = float(von_neumann(sigma, rho) + von_neumann(rho, sigma)) / 2
    assert float(jeffreys(sigma, rho)) == pytest.approx(mean, rel=1e-12)
    assert float(jeffreys(sigma, rho, sqrt=True)) == pytest.approx(mean**0.5, rel=1e-12)


@pytest.mark.filterwarnings("ignore:logm result may be inaccurate")
@given(seed=seeds, n=st.integers(1, 7), decades=st.floats(0, 3))
def test_agrees_with_scipy_logm(seed: int, n: int, decades: float) -> None:
    sigma, rho = (random_spd(n, seed + k, decades=decades).numpy() for k in range(2))
    logs = np.real(logm(sigma)), np.real(logm(rho))
    want = np.trace(sigma @ (logs[0] - logs[1]) - sigma + rho)
    tolerance = 100 * EPS * max(np.linalg.cond(sigma), np.linalg.cond(rho)) * 10**decades
    assert float(von_neumann(sigma, rho)) == pytest.approx(want, rel=1e-9, abs=tolerance)
    want = np.trace((sigma - rho) @ (logs[0] - logs[1])) / 2
    assert float(jeffreys(sigma, rho)) == pytest.approx(want, rel=1e-9, abs=tolerance)


@given(seed=seeds, n=st.integers(1, 5), scale=st.floats(-8, 8))
def test_log_det_is_invariant_under_any_linear_map(seed: int, n: int, scale: float) -> None:
    sigma, rho = random_spd(n, seed), random_spd(n, seed + 1)
    change = normal(n, n, seed=seed) + 3 * torch.eye(n).double()
    change = change * 10**scale
    moved = [change @ m @ change.mT for m in (sigma, rho)]
    moved = [(m + m.mT) / 2 for m in moved]
    worst = condition(change @ change.mT) * 100
    assert float(log_det(*moved)) == pytest.approx(
        float(log_det(sigma, rho)), rel=1e-9 + 100 * EPS * worst, abs=1e-9
    )


def test_gradient_of_the_root_at_equality_is_zero() -> None:
    sigma = random_spd(3, 0).requires_grad_()
    jeffreys(sigma, sigma.detach().clone(), sqrt=True).backward()
    assert float(sigma.grad.norm()) < 1e-6


def test_conditional_does_not_cancel_in_float32() -> None:
    """The difference of joint and features is small against both: taken in float64."""
    sigma, rho = torch.eye(3), torch.diag(torch.tensor([1000.0, 1.0, 1.01]))
    want = float(conditional_von_neumann(sigma.double(), rho.double()))
    assert float(conditional_von_neumann(sigma, rho)) == pytest.approx(want, rel=1e-3)


# ---------------------------------------------------------------------------------------------
# Counter-examples to the paper. They are meant: do not "repair" the code until these fail.


def test_counter_example_root_of_jeffreys_breaks_the_triangle_inequality() -> None:
    """COUNTER-EXAMPLE to the paper's claim that √J is a metric (used twice by Theorem 1)."""

    def d(x: float, y: float) -> float:
        return float(jeffreys(np.array([[float(x)]]), np.array([[float(y)]]), sqrt=True))

    assert d(0.01, 1) == pytest.approx(1.510, abs=5e-4)
    assert d(0.01, 0.1) + d(0.1, 1) == pytest.approx(1.340, abs=5e-4)
    for small, ratio in ((0.5, 1.0037), (0.1, 1.039), (0.01, 1.127), (1e-4, 1.292), (1e-8, 1.400)):
        middle = small**0.5
        seen = d(small, 1) / (d(small, middle) + d(middle, 1))
        assert seen == pytest.approx(ratio, abs=5e-3)
        assert seen > 1


def test_counter_example_triangle_inequality_with_a_shared_feature_block() -> None:
    """COUNTER-EXAMPLE: also on the matrices that the paper uses, cov[x, f(x)] with the same x."""
    x = normal(200, 3, seed=0)
    g = torch.tanh(x @ normal(3, seed=1)) + torch.cos(x[:, 0])

    def d(left: Tensor, right: Tensor) -> float:
        return float(response_divergence(x, left, right, sqrt=True, ridge=0.0))

    direct, detour = d(0.1 * g, 10 * g), d(0.1 * g, g) + d(g, 10 * g)
    assert direct > 1.05 * detour
    # and it is not a matter of amplitude alone
    rng, broken = np.random.default_rng(0), 0
    for _ in range(100):
        f = [
            np.exp(rng.uniform(-2, 2))
            * (torch.tanh(x @ normal(3, seed=int(s))) + torch.cos(x @ normal(3, seed=int(s) + 1)))
            for s in rng.integers(0, 2**31, 3)
        ]
        broken += d(f[0], f[1]) > (d(f[0], f[2]) + d(f[2], f[1])) * (1 + 1e-9)
    assert broken >= 3


def test_counter_example_printed_gradient_is_wrong_unless_matrices_commute() -> None:
    """COUNTER-EXAMPLE to ∂D(X‖Y)/∂Y = I - XY⁻¹."""

    def both(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        rho = y.clone().requires_grad_()
        von_neumann(x, rho).backward()
        printed = torch.eye(len(x)).double() - x @ torch.linalg.inv(y)
        return rho.grad, printed

    right, printed = both(spd([1, 2, 5], 0), spd([4, 0.3, 7], 0))
    assert torch.allclose(right, printed, rtol=1e-10, atol=1e-12)

    x, y = spd(np.exp([-3, -1, 0, 2, 3]), 0), spd(np.exp([3, -2, 0, 1, -3]), 1)
    right, printed = both(x, y)
    assert float((right - printed).norm() / right.norm()) > 0.1
    assert float((printed - printed.mT).norm() / printed.norm()) > 0.1  # not even symmetric
    symmetrized = (printed + printed.mT) / 2
    assert float((right - symmetrized).norm() / right.norm()) > 0.05
    # the judge: differences at 50 digits
    direction = right - symmetrized
    along = oracles.derivative(
        lambda h: oracles.von_neumann(
            oracles.exact(x), oracles.exact(y) + h * oracles.exact(direction)
        )
    )
    assert float((right * direction).sum()) == pytest.approx(along, rel=1e-9)
    assert float((symmetrized * direction).sum()) != pytest.approx(along, rel=1e-2)


def test_gradient_with_respect_to_the_first_matrix_is_as_printed() -> None:
    sigma, rho = spd([1, 2, 5], 0).requires_grad_(), spd([4, 0.3, 7], 1)
    von_neumann(sigma, rho).backward()
    want = logm(sigma.detach().numpy()) - logm(rho.numpy())
    assert np.allclose(sigma.grad.numpy(), want, rtol=1e-10, atol=1e-12)


def test_counter_example_root_of_jeffreys_is_not_convex() -> None:
    """COUNTER-EXAMPLE to the convexity step of Theorem 1: X₁ = Y₁ ≈ 0, w = ½: .589 > .416."""
    tiny = 1e-12 * np.eye(2)
    x, y = np.diag([1.0, 2.0]), np.diag([2.0, 1.0])
    mixture = float(jeffreys((tiny + x) / 2, (tiny + y) / 2, sqrt=True))
    mean = float(jeffreys(tiny, tiny, sqrt=True) + jeffreys(x, y, sqrt=True)) / 2
    assert mixture == pytest.approx(0.589, abs=5e-4)
    assert mean == pytest.approx(0.416, abs=5e-4)
    assert mixture > mean
    # J itself is jointly convex and 1-homogeneous: equality here
    assert float(jeffreys((tiny + x) / 2, (tiny + y) / 2)) == pytest.approx(
        float(jeffreys(x, y)) / 2, rel=1e-9
    )


@pytest.mark.parametrize(("variance", "want"), [(1.5, 0.35), (2.0, 1.23), (4.0, 7.6), (10.0, 38.7)])
def test_counter_example_equal_conditionals_are_not_at_distance_zero(
    variance: float, want: float
) -> None:
    """COUNTER-EXAMPLE to "quantifies closeness of conditionals": y = 2x + e, only p(x) differs."""

    def joint(v: float) -> np.ndarray:
        return np.array([[v, 2 * v], [2 * v, 4 * v + 1]])

    assert float(conditional_von_neumann(joint(1.0), joint(variance))) == pytest.approx(
        want, rel=0.02
    )


def test_counter_example_a_square_is_not_identified() -> None:
    """COUNTER-EXAMPLE to J as a proper loss: y = x² looks like -y, and like independent noise."""
    half = torch.linspace(0.1, 3, 500).double()
    x = torch.cat((half, -half))[:, None]
    y = x[:, 0].square()
    noise = normal(1000, seed=0)
    noise = noise - noise.mean() - x[:, 0] * (noise @ x[:, 0]) / x.square().sum()
    noise = noise * y.std() / noise.std()

    def loss(p: Tensor) -> float:
        return float(response_divergence(x, p, y, sqrt=True, ridge=0.0))

    assert loss(-y) < 1e-6
    assert loss(noise) < 1e-6
    assert loss(y / 2) > 1


def test_counter_example_the_mean_of_the_response_is_not_seen() -> None:
    """The paper's own example: [0 0 0 1 1 1] and [1 1 1 2 2 2], same divergence, different MSE."""
    x = np.arange(6.0)[:, None]
    y = np.array([0.0, 0, 0, 1, 1, 1])
    guess = np.array([0.1, 0, 0.3, 1, 0.8, 1.2])
    for other in (y, y + 1):
        assert float(jeffreys(covariance(x, guess), covariance(x, other))) == pytest.approx(
            float(jeffreys(covariance(x, guess), covariance(x, y))), rel=1e-9
        )
    assert float(response_divergence(x, y, y + 1)) == 0
    assert np.mean((y - guess) ** 2) < np.mean((y + 1 - guess) ** 2)


def test_counter_example_the_exponential_of_the_divergence_has_no_temperature() -> None:
    """COUNTER-EXAMPLE: exp(-D) of the same data in other units goes from .7 to 0."""
    x = normal(500, 3, seed=0)
    sigma, rho = covariance(x, 2 * x[:, 0] + x[:, 1]), covariance(x, -5 * x[:, 0] + x[:, 2])
    noise = 0.1 * torch.eye(4).double()
    weights = [
        float(torch.exp(-conditional_von_neumann(c**2 * (sigma + noise), c**2 * (rho + noise))))
        for c in (0.1, 1.0, 10.0)
    ]
    assert weights[0] > 0.3
    assert weights[1] < 1e-10
    assert weights[2] == 0
