"""Scales, equalities and inputs at the edge: values and gradients that rounding would spoil."""

from typing import Any

import numpy as np
import pytest
import torch

from vntransfer import (
    Ascent,
    Moments,
    covariance,
    pairwise,
    relate,
    relation_test,
    response_divergence,
)
from vntransfer.divergences import DIVERGENCES
from vntransfer.errors import ArgumentError, DomainError
from vntransfer.theory import BoundTerms, max_discrepancy


def stretched(condition: float, seed: int = 0) -> torch.Tensor:
    """An SPD matrix of a given condition number."""
    g = torch.Generator().manual_seed(seed)
    Q = torch.linalg.qr(torch.randn(4, 4, generator=g, dtype=torch.float64)).Q
    return (Q * torch.logspace(0, -np.log10(condition), 4, dtype=torch.float64)) @ Q.mT


@pytest.mark.parametrize("condition", [10.0, 1e4, 1e8])
@pytest.mark.parametrize("name", ["bures_wasserstein", "jensen_von_neumann", "log_euclidean"])
def test_gradients_of_metrics_vanish_at_equality(name: str, condition: float) -> None:
    sigma = stretched(condition)
    sigma = (sigma + sigma.mT) / 2
    one, other = (sigma.clone().requires_grad_() for _ in range(2))
    value = DIVERGENCES[name].function(one, other)
    value.backward()
    assert float(value) < 1e-12
    assert float(one.grad.abs().max()) == float(other.grad.abs().max()) == 0


def test_the_gradient_of_bures_keeps_its_digits_near_equality() -> None:
    sigma = torch.diag(torch.logspace(0, -6, 4, dtype=torch.float64))
    values, t = sigma.diagonal(), torch.tensor([1e-8, -2e-8, 3e-8, -1e-8], dtype=torch.float64)
    one = sigma.clone().requires_grad_()
    DIVERGENCES["bures_wasserstein"].function(one, torch.diag(values * (1 + t))).backward()
    gaps = values.sqrt() * -torch.expm1(t.log1p() / 2)  # of diagonal matrices: |√σ - √ρ|
    exact = gaps / (2 * values.sqrt() * gaps.norm())
    torch.testing.assert_close(one.grad.diagonal(), exact, rtol=1e-5, atol=0)


@pytest.mark.parametrize("spread", [1e3, 1e5, 1e6])
def test_tables_of_unequal_scales_do_not_cancel(spread: float) -> None:
    rng = np.random.default_rng(0)
    scale = np.array([spread, 1.0, 1.0])
    made = np.array([covariance(rng.normal(size=(50, 3)) * scale) for _ in range(3)])
    for name in ("jeffreys", "conditional_von_neumann"):
        table = pairwise(made, divergence=name)
        direct = DIVERGENCES[name].function(made[0], made[1])
        assert table[0, 1] == pytest.approx(float(direct), rel=1e-3)


def test_batches_of_moments_are_refused() -> None:
    batch = np.random.default_rng(0).normal(size=(2, 50, 3))
    with pytest.raises(DomainError, match=r"domains\[0\]: expected Moments of one set"):
        pairwise([Moments.from_samples(batch), Moments.from_samples(2 * batch)])


def test_variances_beyond_the_precision_are_an_error() -> None:
    with pytest.raises(ArgumentError, match=r"overflow torch.float32"):
        covariance(np.array([[1e25], [2e25], [4e25]], dtype=np.float32))
    x = np.random.default_rng(0).normal(size=(20, 2)) * 1e160
    with pytest.raises(DomainError, match="overflow"):
        relation_test([(x, x[:, 0]), (x, x[:, 1])])


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1.0, 1e200])
def test_only_ratios_of_weights_matter(scale: float) -> None:
    x = np.array([[0.0], [2.0], [5.0]])
    assert covariance(x, weights=np.full(3, scale))[0, 0] == pytest.approx(19 / 3)


def test_the_search_for_a_discrepancy_bears_frozen_parameters_and_no_grad() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))

    def hypothesis(generator: torch.Generator) -> torch.nn.Module:
        net = torch.nn.Linear(2, 1).double()
        net.bias.requires_grad_(False)
        return net

    with torch.no_grad():
        plain = max_discrepancy(x, 2 * x, ascent=Ascent(steps=3))
        frozen = max_discrepancy(x, 2 * x, ascent=Ascent(steps=3, hypothesis=hypothesis))
    assert plain.value > 0
    assert frozen.value > 0


def test_rounding_is_no_counter_example() -> None:
    terms = BoundTerms((8e-16, 8e-16), (0.5, 0.5), 1.1e-15, 0.0, None, None)
    assert terms.convexity_holds
    assert not BoundTerms((0.1, 0.1), (0.5, 0.5), 0.11, 0.0, None, None).convexity_holds


def test_names_that_are_written_alike_are_refused() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 2))
    twice: dict[Any, Any] = {1: (x, x[:, 0]), "1": (x, x[:, 1])}
    for function in (relate, relation_test):
        with pytest.raises(DomainError, match="two names are the same as text"):
            function(twice)


def test_one_response_is_not_none() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 2))
    known = {"a": (x, x[:, 0]), "b": (x, x[:, 1])}
    single = np.where(np.arange(20) == 3, 1.0, np.nan)
    found = relate({**known, "c": (x, single)})
    assert any("'c': only one response" in note for note in found.notes)


def test_masks_are_not_lost_and_ridges_may_be_arrays() -> None:
    with pytest.raises(ArgumentError, match="masked array"):
        covariance(np.ma.array([[0.0], [2.0], [1e6]], mask=[[0], [0], [1]]))
    x = np.random.default_rng(0).normal(size=(2, 10, 3))
    both = response_divergence(x, x[..., 0], x[..., 1], ridge=np.array([0.1, 0.2]))
    for k, ridge in enumerate((0.1, 0.2)):
        alone = response_divergence(x[k], x[k, :, 0], x[k, :, 1], ridge=ridge)
        assert both[k] == pytest.approx(float(alone))


@pytest.mark.parametrize("ridge", ["auto", 1e-3, 1e-6, 1e-8])
@pytest.mark.parametrize("offset", [0.0, 3.0])
def test_gradients_of_few_samples_keep_float32s_digits(offset: float, ridge: Any) -> None:
    """J does not depend on the mean; no ridge may blow up what rounding leaves along it."""
    g = torch.Generator().manual_seed(0)
    z = torch.randn(20, 300, generator=g, dtype=torch.float64).relu() + offset
    b = z[:, :3].sum(1) + torch.randn(20, generator=g, dtype=torch.float64)
    a = b + 0.3 * torch.randn(20, generator=g, dtype=torch.float64)
    gradients = []
    for dtype in (torch.float64, torch.float32):
        inputs = [v.detach().to(dtype, copy=True).requires_grad_() for v in (z, a, b)]
        response_divergence(*inputs, sqrt=True, ridge=ridge).backward()
        gradients.append([v.grad.double() for v in inputs])
    for exact, rounded in zip(*gradients, strict=True):
        assert float((rounded - exact).norm()) < 1e-4 * float(exact.norm())
