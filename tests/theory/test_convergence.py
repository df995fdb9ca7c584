"""Proposition 1: its terms, its defects, and the first-order prediction that does hold."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.samples import normal, orthogonal, random_spd, seeds, spd, symmetric
from vntransfer import (
    ArgumentError,
    NotPositiveDefiniteError,
    convergence_terms,
    covariance,
    von_neumann,
)


@given(seed=seeds, n=st.integers(1, 5))
def test_first_order_predicts_the_gap_for_small_perturbations(seed: int, n: int) -> None:
    sigma, theta = random_spd(n, seed, decades=0.5), random_spd(n, seed + 1, decades=0.5)
    moves = symmetric(n, seed), symmetric(n, seed + 2)
    errors = []
    for h in (1e-4, 1e-5):
        terms = convergence_terms(sigma, theta, sigma + h * moves[0], theta + h * moves[1])
        errors.append(abs(terms.gap - terms.first_order))
        norms = [float(torch.linalg.matrix_norm(h * m, ord=2)) for m in moves]
        assert terms.epsilon == pytest.approx(max(norms), rel=1e-6)
    # second order: a tenth of the step, a hundredth of the error
    assert errors[1] <= 0.03 * errors[0] + 1e-12


def test_no_error_no_gap() -> None:
    sigma, theta = random_spd(3, 0), random_spd(3, 1)
    terms = convergence_terms(sigma, theta, sigma, theta)
    assert terms.epsilon == 0
    assert terms.gap < 1e-12
    assert terms.first_order < 1e-12


def test_gap_is_the_difference_of_divergences() -> None:
    matrices = [random_spd(3, k) for k in range(4)]
    sigma, theta, sigma_hat, theta_hat = matrices
    terms = convergence_terms(sigma, theta, sigma_hat, theta_hat)
    want = abs(float(von_neumann(sigma_hat, theta_hat) - von_neumann(sigma, theta)))
    assert terms.gap == pytest.approx(want)
    arrays = convergence_terms(*(m.numpy() for m in matrices))
    assert arrays == terms


def test_gap_shrinks_like_the_root_of_the_number_of_samples() -> None:
    sigma, theta = spd([1, 2, 3], 0), spd([2, 1, 0.5], 1)
    gaps = []
    for n in (100, 10_000):
        one = []
        for k in range(30):
            hats = [
                covariance(normal(n, 3, seed=1000 * k + i) @ torch.linalg.cholesky(m).mT)
                for i, m in enumerate((sigma, theta))
            ]
            one.append(convergence_terms(sigma, theta, *hats).gap)
        gaps.append(np.mean(one))
    assert gaps[0] / gaps[1] == pytest.approx(10, rel=0.5)


def test_counter_example_log_step_needs_eigenvalues_of_at_least_one() -> None:
    """COUNTER-EXAMPLE to log((λ + ε)/λ) ≤ log(1 + ε): λ = .1, ε = .05: .405 > .049."""
    assert np.log(0.15 / 0.1) == pytest.approx(0.405, abs=1e-3)
    assert np.log1p(0.05) == pytest.approx(0.049, abs=1e-3)
    eye = torch.eye(2).double()
    small = convergence_terms(0.1 * eye, 0.1 * eye, 0.15 * eye, 0.1 * eye)
    assert small.epsilon == pytest.approx(0.05)
    assert not small.log_step_holds
    assert convergence_terms(2 * eye, 3 * eye, 2.1 * eye, 3 * eye).log_step_holds


def test_counter_example_printed_bound_fails() -> None:
    """COUNTER-EXAMPLE to Proposition 1: the printed bound is below the gap, even negative.

    Small eigenvalues make log(λ + ε) negative, and unsquared overlaps can be negative as well.
    """
    eye = torch.eye(2).double()
    terms = convergence_terms(0.1 * eye, 0.5 * eye, 0.15 * eye, 0.5 * eye)
    assert terms.gap > 0.01
    assert terms.printed_bound < 0
    assert terms.squared_bound < terms.gap
    assert not terms.squared_bound_holds


def test_counter_example_overlaps_must_be_squared() -> None:
    """COUNTER-EXAMPLE: as printed, the sign of an eigenvector, which is arbitrary, decides."""
    q = torch.from_numpy(orthogonal(3, 1))
    sigma, theta = torch.diag(torch.tensor([2.0, 3.0, 4.0]).double()), spd([2, 5, 9], 0)
    hats = sigma + 0.01 * q @ q.mT, theta
    terms = convergence_terms(sigma, theta, *hats)
    assert terms.printed_bound != pytest.approx(terms.squared_bound, rel=1e-3)
    (s, v), (t, u) = torch.linalg.eigh(sigma), torch.linalg.eigh(theta)

    def expansion(overlaps: torch.Tensor) -> torch.Tensor:
        return (s * s.log()).sum() - s @ overlaps @ t.log() - (s.sum() - t.sum())

    truth = float(von_neumann(sigma, theta))
    assert float(expansion((v.mT @ u).square())) == pytest.approx(truth)
    assert float(expansion(v.mT @ u)) != pytest.approx(truth, rel=0.1)


@pytest.mark.parametrize("which", ["sigma", "theta", "sigma_hat", "theta_hat"])
def test_singular_matrices_are_named(which: str) -> None:
    names = ["sigma", "theta", "sigma_hat", "theta_hat"]
    matrices = {name: torch.eye(2).double() for name in names}
    matrices[which] = torch.ones(2, 2).double()
    with pytest.raises(NotPositiveDefiniteError, match=f"^{which}:"):
        convergence_terms(**matrices)


@pytest.mark.parametrize("which", ["theta", "sigma_hat", "theta_hat"])
def test_matrices_of_another_size_are_named(which: str) -> None:
    names = ["sigma", "theta", "sigma_hat", "theta_hat"]
    matrices = {name: torch.eye(2).double() for name in names}
    matrices[which] = torch.eye(3).double()
    with pytest.raises(ArgumentError, match=f"^{which}: .*size of sigma"):
        convergence_terms(**matrices)
