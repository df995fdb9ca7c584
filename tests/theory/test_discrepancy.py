"""Definition 1: the discrepancy and its maximum."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from helpers.samples import normal, seeds
from vntransfer import (
    DIVERGENCES,
    ArgumentError,
    Ascent,
    DomainError,
    covariance,
    discrepancy,
    jeffreys,
    max_discrepancy,
    response_divergence,
)
from vntransfer.theory import TanhHypothesis

KINDS = ["jeffreys", *(name for name, entry in DIVERGENCES.items() if entry.metric)]


def first(x: Tensor) -> Tensor:
    return x[:, 0]


def second(x: Tensor) -> Tensor:
    return torch.tanh(x[:, 1]) - x[:, 0]


@given(kind=st.sampled_from(KINDS), seed=seeds)
def test_is_symmetric_and_zero_for_equal_domains(kind: str, seed: int) -> None:
    s, t = normal(20, 2, seed=seed), 2 * normal(30, 2, seed=seed + 1)
    assert float(discrepancy(s, s.clone(), first, second, divergence=kind)) < 1e-12
    value = float(discrepancy(s, t, first, second, divergence=kind))
    assert value >= 0
    assert float(discrepancy(t, s, first, second, divergence=kind)) == pytest.approx(value)
    assert float(discrepancy(s, t, second, first, divergence=kind)) == pytest.approx(value)
    assert float(discrepancy(s, t, first, first, divergence=kind)) < 1e-5


@given(seed=seeds, ridge=st.floats(1e-3, 1))
def test_is_its_definition(seed: int, ridge: float) -> None:
    s, t = normal(20, 2, seed=seed), 2 * normal(30, 2, seed=seed + 1)
    roots = [
        jeffreys(
            covariance(x, first(x), ridge=ridge), covariance(x, second(x), ridge=ridge), sqrt=True
        )
        for x in (s, t)
    ]
    want = float((roots[0] - roots[1]).abs())
    assert float(discrepancy(s, t, first, second, ridge=ridge)) == pytest.approx(want, rel=1e-10)
    answer = discrepancy(s.numpy(), t.numpy(), first, second, ridge=ridge)
    assert isinstance(answer, np.ndarray)
    assert float(answer) == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("scale", [1.5, 3, 10])
def test_one_ridge_shows_more_of_a_difference_in_scale(scale: float) -> None:
    x = normal(200, 3, seed=0)
    separate = [
        float(response_divergence(z, first(z), second(z), sqrt=True)) for z in (x, scale * x)
    ]
    common = float(discrepancy(x, scale * x, first, second))
    assert common > 1.01 * abs(separate[0] - separate[1])


def test_is_differentiable_in_the_features() -> None:
    s = normal(20, 2, seed=0).requires_grad_()
    discrepancy(s, 2 * normal(20, 2, seed=1), first, second).backward()
    assert s.grad.isfinite().all()
    assert float(s.grad.norm()) > 0


@pytest.mark.parametrize("kind", ["jeffreys", "bures_wasserstein"])
def test_maximum_is_attained_and_at_least_any_start(kind: str) -> None:
    s, t = normal(60, 2, seed=0), 2 * normal(60, 2, seed=1)
    best = max_discrepancy(s, t, divergence=kind, ascent=Ascent(steps=20, restarts=2))
    attained = discrepancy(s, t, best.h, best.h_prime, divergence=kind)
    assert attained.item() == pytest.approx(best.value, rel=1e-9)
    assert len(best.history) == 2
    assert all(len(curve) == 21 for curve in best.history)
    assert best.value == max(max(curve) for curve in best.history)
    for seed in range(2):
        generator = torch.Generator().manual_seed(seed)
        samples = torch.cat((s, t))
        pair = [TanhHypothesis(samples, generator) for _ in range(2)]
        assert discrepancy(s, t, pair[1], pair[0], divergence=kind).item() <= best.value + 1e-12


def test_more_steps_and_restarts_never_give_less() -> None:
    s, t = normal(40, 2, seed=0), 1.5 * normal(40, 2, seed=1)
    values = [
        max_discrepancy(s, t, ascent=Ascent(steps=steps, restarts=restarts)).value
        for steps, restarts in ((0, 1), (5, 1), (15, 1), (15, 3))
    ]
    assert values == sorted(values)


def test_is_reproducible_and_leaves_the_global_generator_alone() -> None:
    s, t = normal(40, 2, seed=0), 1.5 * normal(40, 2, seed=1)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    one, two = (
        max_discrepancy(s, t, ascent=Ascent(steps=5, restarts=2, random_state=3)) for _ in range(2)
    )
    assert one.value == two.value
    assert one.history == two.history
    assert torch.equal(torch.get_rng_state(), before)
    other = max_discrepancy(s, t, ascent=Ascent(steps=5, restarts=2, random_state=100))
    assert other.value != one.value


def test_equal_domains_have_no_discrepancy_for_any_hypotheses() -> None:
    s = normal(40, 2, seed=0)
    assert max_discrepancy(s, s.clone(), ascent=Ascent(steps=5, restarts=1)).value < 1e-12


def test_a_fixed_hypothesis_is_kept() -> None:
    s, t = normal(40, 2, seed=0), 1.5 * normal(40, 2, seed=1)
    best = max_discrepancy(s, t, h=first, ascent=Ascent(steps=5, restarts=1))
    assert best.h is first
    assert discrepancy(s, t, first, best.h_prime).item() == pytest.approx(best.value)


def test_a_fixed_hypothesis_gets_no_gradient() -> None:
    """The user's module is not ours to train."""
    s, t = normal(9, 2, seed=0), 2 * normal(9, 2, seed=1)
    own = nn.Linear(2, 1).double()
    max_discrepancy(s, t, h=own, ascent=Ascent(steps=2, restarts=1))
    assert all(p.grad is None for p in own.parameters())


def test_own_hypothesis_class() -> None:
    s, t = normal(40, 2, seed=0), 1.5 * normal(40, 2, seed=1)

    class Direction(nn.Module):
        def __init__(self, generator: torch.Generator) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(2, generator=generator, dtype=torch.float64))

        def forward(self, x: Tensor) -> Tensor:
            return x @ (self.weight / self.weight.norm())

    best = max_discrepancy(s, t, ascent=Ascent(hypothesis=Direction, steps=30, restarts=2))
    for angle in np.linspace(0, np.pi, 7):
        u = torch.tensor([np.cos(angle), np.sin(angle)])
        opposite = -u

        def along(x: Tensor, u: Tensor = u) -> Tensor:
            return x @ u

        def against(x: Tensor, u: Tensor = opposite) -> Tensor:
            return x @ u

        assert float(discrepancy(s, t, along, against)) <= best.value * 1.05
    assert isinstance(best.h, Direction)


def test_default_hypotheses_have_unit_variance_whatever_the_scale() -> None:
    for scale in (1e-6, 1.0, 1e6):
        x = scale * normal(50, 3, seed=0)
        h = TanhHypothesis(x, torch.Generator().manual_seed(0))
        assert h(x).std().item() == pytest.approx(1.0, rel=1e-6)


def test_bad_arguments_are_named() -> None:
    s, t = normal(40, 2, seed=0), 1.5 * normal(40, 2, seed=1)
    for kind in ("von_neumann", "nope", "conditional_von_neumann"):
        with pytest.raises(ArgumentError, match=r"divergence: .*bures_wasserstein"):
            discrepancy(s, t, first, second, divergence=kind)
        with pytest.raises(ArgumentError, match="divergence"):
            max_discrepancy(s, t, divergence=kind)
    with pytest.raises(ArgumentError, match="h: expected responses"):
        discrepancy(s, t, lambda x: x, second)
    with pytest.raises(ArgumentError, match="h_prime: expected responses"):
        discrepancy(s, t, first, lambda x: 3.0)
    with pytest.raises(ArgumentError, match="ridge"):
        discrepancy(s, t, first, second, ridge=-1.0)
    with pytest.raises(ArgumentError, match="steps: expected a whole number"):
        max_discrepancy(s, t, ascent=Ascent(steps=1.5))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"^restarts: .*from 1"):
        max_discrepancy(s, t, ascent=Ascent(restarts=0))


def test_whole_numbers_of_numpy_are_taken() -> None:
    s, t = normal(40, 2, seed=0), 1.5 * normal(40, 2, seed=1)
    found = [max_discrepancy(s, t, ascent=Ascent(steps=n, restarts=n)) for n in (2, np.int64(2))]
    assert found[0].value == found[1].value


@pytest.mark.parametrize(
    ("source", "target", "named"),
    [((9, 2), (9, 3), "target"), ((1, 2), (9, 2), "source"), ((9, 2), (1, 2), "target")],
)
def test_domains_that_do_not_fit_are_named(
    source: tuple[int, int], target: tuple[int, int], named: str
) -> None:
    s, t = normal(*source, seed=0), normal(*target, seed=1)
    with pytest.raises(DomainError, match=f"^{named}: "):
        discrepancy(s, t, first, second)
    with pytest.raises(DomainError, match=f"^{named}: "):
        max_discrepancy(s, t, ascent=Ascent(steps=1))
