"""What is special to each of the true distances."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import eigvalsh, logm, sqrtm

from helpers.samples import EPS, condition, normal, random_spd, seeds, spd
from vntransfer import (
    affine_invariant,
    bures_wasserstein,
    jeffreys,
    jensen_von_neumann,
    log_euclidean,
)


@pytest.mark.filterwarnings("ignore:logm result may be inaccurate")
@given(seed=seeds, n=st.integers(1, 6), decades=st.floats(0, 2))
def test_agree_with_scipy(seed: int, n: int, decades: float) -> None:
    s, r = (random_spd(n, seed + k, decades=decades).numpy() for k in range(2))
    tolerance = {"rel": 1e-9 + 100 * EPS * max(np.linalg.cond(s), np.linalg.cond(r)), "abs": 1e-13}
    want = np.linalg.norm(logm(s) - logm(r))
    assert float(log_euclidean(s, r)) == pytest.approx(want, **tolerance)
    want = np.linalg.norm(np.log(eigvalsh(s, r)))
    assert float(affine_invariant(s, r)) == pytest.approx(want, **tolerance)
    root = sqrtm(s)
    want = np.trace(s) + np.trace(r) - 2 * np.trace(np.real(sqrtm(root @ r @ root)))
    assert float(bures_wasserstein(s, r)) ** 2 == pytest.approx(
        want, rel=1e-8, abs=1e-10 * np.trace(s + r)
    )


@given(seed=seeds, n=st.integers(1, 5), scale=st.floats(-4, 4))
def test_affine_invariant_does_not_see_linear_maps(seed: int, n: int, scale: float) -> None:
    s, r = random_spd(n, seed), random_spd(n, seed + 1)
    change = 10**scale * (normal(n, n, seed=seed) + 3 * torch.eye(n).double())
    moved = [change @ m @ change.mT for m in (s, r)]
    moved = [(m + m.mT) / 2 for m in moved]
    worst = condition(change @ change.mT) * 100
    assert float(affine_invariant(*moved)) == pytest.approx(
        float(affine_invariant(s, r)), rel=1e-9 + 100 * EPS * worst
    )


@given(seed=seeds, n=st.integers(1, 5))
def test_inversion_is_an_isometry_of_the_log_distances(seed: int, n: int) -> None:
    s, r = random_spd(n, seed), random_spd(n, seed + 1)
    inverses = [torch.linalg.inv(m) for m in (s, r)]
    inverses = [(m + m.mT) / 2 for m in inverses]
    for distance in (log_euclidean, affine_invariant):
        assert float(distance(*inverses)) == pytest.approx(float(distance(s, r)), rel=1e-9)


@given(seed=seeds, n=st.integers(1, 5))
def test_closed_forms_for_commuting_matrices(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = np.exp(rng.uniform(-2, 2, (2, n)))
    s, r = spd(x, seed), spd(y, seed)
    middle = (x + y) / 2
    entropy = (x * np.log(x / middle) + y * np.log(y / middle)).sum() / 2
    for distance, want in (
        (bures_wasserstein, np.linalg.norm(np.sqrt(x) - np.sqrt(y))),
        (log_euclidean, np.linalg.norm(np.log(x / y))),
        (affine_invariant, np.linalg.norm(np.log(x / y))),
        (jensen_von_neumann, entropy**0.5),
    ):
        assert float(distance(s, r)) == pytest.approx(want, rel=1e-9)


@given(seed=seeds, n=st.integers(1, 5))
def test_jensen_von_neumann_is_below_the_root_of_half_jeffreys(seed: int, n: int) -> None:
    """D(σ‖μ) ≤ ½ D(σ‖ρ) by convexity, so that JS ≤ ½ J."""
    s, r = random_spd(n, seed), random_spd(n, seed + 1)
    assert float(jensen_von_neumann(s, r)) <= float(jeffreys(s, r) / 2) ** 0.5 * (1 + 1e-12)


@pytest.mark.parametrize(
    "distance", [affine_invariant, bures_wasserstein, jensen_von_neumann, log_euclidean]
)
def test_gradient_has_bounded_size_near_equality(distance: object) -> None:
    """A distance is like |x|: the gradient keeps its size, it neither vanishes nor explodes."""
    base, step = spd([1, 1, 2, 4], 0), spd([1, -1, 0.5, 0.3], 1)
    sizes = []
    for h in (1e-2, 1e-5, 1e-8):
        sigma = (base + h * step).requires_grad_()
        distance(sigma, base).backward()  # type: ignore[operator]
        sizes.append(float(sigma.grad.norm()))
    assert max(sizes) / min(sizes) < 1.5
