"""Projections and DARN's weights against searches."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vntransfer.adaptation._weights import (
    UPDATES,
    adam_slope,
    clamp_weights,
    darn_weights,
    project_simplex,
)

vectors = st.integers(1, 8).flatmap(
    lambda n: arrays(np.float64, n, elements=st.floats(-1e3, 1e3, allow_subnormal=False))
)


@given(vectors)
def test_projection_is_the_nearest_point(v: np.ndarray) -> None:
    w = project_simplex(torch.from_numpy(v)).numpy()
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)
    # variational inequality: no vertex lies ahead
    assert max((v - w) @ (vertex - w) for vertex in np.eye(len(v))) <= 1e-9 * (1 + np.abs(v).max())


@given(vectors)
def test_darn_weights_are_the_minimum(g: np.ndarray) -> None:
    a = darn_weights(torch.from_numpy(g)).numpy()
    assert a.min() >= 0
    assert a.sum() == pytest.approx(1)
    others = np.concatenate(
        (np.eye(len(g)), np.random.default_rng(0).dirichlet(np.full(len(g), 0.3), size=500))
    )
    others = np.concatenate((others, 0.9 * a + 0.1 * others))
    best = (others @ g + np.linalg.norm(others, axis=1)).min()
    assert a @ g + np.linalg.norm(a) <= best + 1e-9 * (1 + np.abs(g).max())


@given(vectors)
def test_clamped_weights_are_on_the_simplex(v: np.ndarray) -> None:
    w = clamp_weights(torch.from_numpy(v))
    assert float(w.min()) > 0
    assert float(w.sum()) == pytest.approx(1)


def test_the_printed_rule_can_leave_the_simplex() -> None:
    """Why dividing by the L1 norm is not the default."""
    assert UPDATES["l1"](torch.tensor([0.9, 0.2, -0.1])).min() < 0
    assert UPDATES["l1"](torch.zeros(4)).tolist() == [0.25] * 4


def test_adams_direction_is_torchs() -> None:
    g = torch.Generator().manual_seed(0)
    w = torch.randn(3, 4, generator=g, dtype=torch.float64).requires_grad_()
    own, moments = w.detach().clone(), torch.zeros(2, 3, 4, dtype=torch.float64)
    optimizer = torch.optim.Adam([w], lr=0.01)
    for step in range(1, 6):
        w.grad = torch.randn(3, 4, generator=g, dtype=torch.float64)
        own -= 0.01 * adam_slope(w.grad, moments, step)
        optimizer.step()
    torch.testing.assert_close(own, w.detach(), rtol=0, atol=1e-12)
