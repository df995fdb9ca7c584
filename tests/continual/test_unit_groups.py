"""Groups of units: the mixture of connections and its rivals."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from helpers.tiny import generator
from vntransfer.continual import dense
from vntransfer.continual._layers import find_layers
from vntransfer.continual._unit_groups import Junction, bonds, find_groups, fit_mixture
from vntransfer.errors import ArgumentError, NumericalWarning


def random_bonds(seed: int, n: int = 15, share: float = 0.4) -> tuple[Tensor, Tensor]:
    g = generator(seed)
    return tuple((torch.rand(n, m, generator=g) < share).double() for m in (8, 6))  # type: ignore[return-value]


def planted(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Three groups of units with connections to parts of their own, mixed up."""
    truth = torch.arange(24) % 3
    strong = [torch.eye(3)[truth].repeat_interleave(m, 1) for m in (5, 4)]
    g = generator(seed)
    noise = [0.3 * torch.rand(w.shape, generator=g) for w in strong]
    return truth, strong[0] + noise[0], strong[1] + noise[1]


def same_partition(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a[:, None] == a, b[:, None] == b)


@given(seed=st.integers(0, 10_000), groups=st.integers(2, 6))
def test_em_increases_its_likelihood(seed: int, groups: int) -> None:
    A, B = random_bonds(seed)
    fit = fit_mixture(A, B, groups, starts=5, tolerance=1e-9, generator=generator(seed))
    assert len(fit.likelihood) > 3
    assert bool((fit.likelihood.diff(dim=0) >= -1e-6).all())
    torch.testing.assert_close(fit.q.sum(-1), torch.ones(5, 15).double())


def test_an_iteration_written_out() -> None:
    A, B = random_bonds(3, n=5)
    (start,) = fit_mixture(A, B, 2, starts=1, iterations=1, generator=generator(1)).likelihood
    noise = torch.rand(1, 5, 2, generator=generator(1), dtype=torch.float64)
    q = -(1 - noise).log()[0]
    q /= q.sum(-1, keepdim=True)
    total = 0.0
    joint = torch.zeros(5, 2).double()
    for k in range(5):
        for c in range(2):
            value = math.log(float(q[:, c].mean()))
            for side in (A, B):
                weight = [float((q[:, c] * side[:, i]).sum()) for i in range(side.shape[1])]
                for i in range(side.shape[1]):
                    if side[k, i]:
                        value += math.log(weight[i] / sum(weight))
            joint[k, c] = value
        total += math.log(math.exp(joint[k, 0]) + math.exp(joint[k, 1]))
    assert float(start) == pytest.approx(total, rel=1e-12)
    after = fit_mixture(A, B, 2, starts=1, iterations=1, generator=generator(1)).q[0]
    torch.testing.assert_close(after, joint.softmax(-1))


def test_no_underflow_on_a_wide_layer() -> None:
    model = dense([784, 100, 100, 10], generator=generator())
    for layers in pairwise(find_layers(model)):
        junction = Junction(*layers)
        A, B = (bonds(w, 0.069) for w in (junction.incoming(), junction.outgoing()))
        fit = fit_mixture(A, B, 20, starts=3, generator=generator())
        assert bool(fit.q.isfinite().all())
        assert bool(fit.score.isfinite().all())


def test_planted_groups_are_found() -> None:
    truth, incoming, outgoing = planted()
    labels = find_groups(incoming, outgoing, 3, threshold=0.5, generator=generator())
    assert same_partition(labels, truth)


@pytest.mark.parametrize("grouping", ["communities", "random"])
def test_groups_are_numbered_without_gaps_and_reproducible(grouping: str) -> None:
    incoming, outgoing = (torch.rand(30, m, generator=generator(m)) for m in (12, 9))
    one, two = (
        find_groups(incoming, outgoing, 20, grouping=grouping, generator=generator(5))
        for _ in range(2)
    )
    assert torch.equal(one, two)
    assert one.unique().tolist() == list(range(int(one.max()) + 1))
    assert 1 < int(one.max()) + 1 <= 20


def test_random_groups_have_equal_sizes() -> None:
    w = torch.rand(10, 4, generator=generator())
    labels = find_groups(w, w, 3, grouping="random", generator=generator())
    assert sorted(labels.bincount().tolist()) == [3, 3, 4]
    assert int(find_groups(w, w, 99, grouping="random").max()) == 9


def test_thresholds_that_tell_nothing_are_refused() -> None:
    w = torch.rand(10, 4, generator=generator())
    with pytest.raises(ArgumentError, match="no weight is above 2"):
        find_groups(w, w, 3, threshold=2.0)
    with pytest.raises(ArgumentError, match="every weight is above 0"):
        find_groups(w, w, 3, threshold=0.0)


def test_units_that_look_alike_come_together_with_a_warning() -> None:
    alike = torch.tensor([[1.0, 0.0, 1.0]]).expand(6, 3)
    with pytest.warns(NumericalWarning, match="all 6 units formed one group"):
        labels = find_groups(alike, alike, 3, threshold=0.5, generator=generator())
    assert labels.tolist() == [0] * 6
