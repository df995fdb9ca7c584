"""Gradient projection memory, also scaled, against its definition."""

from typing import Any

import pytest
import torch
from torch import Tensor

from helpers.tiny import classes, generator, learn, net, projection
from vntransfer.continual import GPM, ScaledGPM
from vntransfer.continual._layers import layer_inputs
from vntransfer.continual.gpm import new_directions
from vntransfer.errors import ArgumentError


def defined(R: Tensor, M: Tensor, share: float) -> Tensor:
    """Add right singular vectors of the residual one by one until the share is reached."""
    _, values, V = torch.linalg.svd(R - R @ M @ M.mT)
    basis = M
    for k in range(len(values)):
        if float((R @ basis).square().sum() / R.square().sum()) >= share:
            break
        basis = torch.cat((basis, V[k : k + 1].mT), 1)
    return basis


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_directions_are_those_of_the_definition(share: float) -> None:
    g = generator()
    first, second = (
        torch.randn(40, 9, generator=g).double() @ torch.randn(9, 9, generator=g).double()
        for _ in range(2)
    )
    M = new_directions(first, first.new_zeros(9, 0), share)
    both = torch.cat((M, new_directions(second, M, share)), 1)
    expected = defined(second, defined(first, first.new_zeros(9, 0), share), share)
    torch.testing.assert_close(both @ both.mT, expected @ expected.mT)
    torch.testing.assert_close(both.mT @ both, torch.eye(both.shape[1]).double())


def test_nothing_is_added_where_enough_is_held() -> None:
    R = torch.eye(3).double()[:2]
    M = torch.eye(3).double()[:, :2]
    assert new_directions(R, M, 1.0).shape == (3, 0)


def test_gradients_are_orthogonal_to_what_earlier_tasks_use() -> None:
    tasks = classes(2, dtype=torch.float64)
    model = net(dtype=torch.float64)
    method = GPM(model, threshold=0.8, samples=None)
    learn(method, tasks[:1])
    rows = [
        layer.rows(x)
        for layer, x in zip(
            method.layers, layer_inputs(model, method.layers, tasks[0].x), strict=True
        )
    ]
    for k, R in enumerate(rows):
        P = projection(method, k)
        torch.testing.assert_close(P @ P, P)
        assert float((R @ P).square().sum() / R.square().sum()) <= 0.2
        assert round(float(P.trace())) == len(P) - method.used[k] < len(P)
    method.before_task()
    for n in (1, 24):
        model.zero_grad()
        x, y = method.observe(tasks[1].x[:n], tasks[1].y[:n])
        method.criterion(model(x), y).backward()  # type: ignore[no-untyped-call]
        expected = [
            layer.gradient() @ projection(method, k) for k, layer in enumerate(method.layers)
        ]
        method.adjust_gradients()
        for layer, G in zip(method.layers, expected, strict=True):
            torch.testing.assert_close(layer.gradient(), G)


def test_directions_run_out_and_learning_stops() -> None:
    model = net(dtype=torch.float64)
    method = GPM(model, threshold=1.0, samples=None)
    learn(method, classes(4, dtype=torch.float64))
    for layer, used in zip(method.layers, method.used, strict=True):
        assert used <= layer.width
    assert method.used[0] == 7
    before = method.layers[0].matrix()
    learn(method, classes(1, dtype=torch.float64))
    torch.testing.assert_close(method.layers[0].matrix(), before)


def importance(R: Tensor, M: Tensor, scale: float) -> Tensor:
    """Give the importance of directions for one task as it is printed.

    By the singular value decomposition of inputs that are projected on the directions.
    """
    _, values, V = torch.linalg.svd(R @ M @ M.mT, full_matrices=False)
    surrogate = ((M.mT @ V.mT) ** 2 @ values**2).sqrt()
    return (scale + 1) * surrogate / (scale * surrogate + surrogate.max())


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
def test_scaled_steps_are_those_of_the_definition(scale: float) -> None:
    tasks, model = classes(3, dtype=torch.float64), net(dtype=torch.float64)
    method = ScaledGPM(model, threshold=0.8, scale=scale, samples=None)
    expected = [torch.zeros(layer.width, dtype=torch.float64) for layer in method.layers]
    for task in tasks:
        learn(method, [task])
        inputs = layer_inputs(model, method.layers, task.x)
        for k, (layer, x) in enumerate(zip(method.layers, inputs, strict=True)):
            M = method.bases[k][:, : method.used[k]]
            expected[k][: method.used[k]] += importance(layer.rows(x), M, scale)
            expected[k].clamp_(max=1)
            torch.testing.assert_close(method.importance[k], expected[k])
            D = torch.diag(expected[k][: method.used[k]])
            torch.testing.assert_close(projection(method, k), torch.eye(len(M)) - M @ D @ M.mT)


def test_a_large_scale_is_gradient_projection_memory() -> None:
    tasks, models = classes(3, dtype=torch.float64), [net(dtype=torch.float64) for _ in range(2)]
    learn(ScaledGPM(models[0], threshold=0.8, scale=1e12), tasks)
    learn(GPM(models[1], threshold=0.8), tasks)
    for ours, theirs in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 1.5}, "threshold: expected .*from 0 to 1, got 1.5"),
        ({"samples": 0}, "expected a whole number from 1"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        GPM(net(), **options)
