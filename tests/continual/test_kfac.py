"""Kronecker EWC: its factors sample by sample, its step as a minimizer."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from helpers.tiny import classes, cnn, generator, learn, net, pictures, values
from vntransfer.continual import KFAC, SGD
from vntransfer.continual._layers import find_layers
from vntransfer.continual.kfac import kronecker_factors
from vntransfer.errors import ArgumentError


def test_factors_sample_by_sample() -> None:
    task, model = classes(1, dtype=torch.float64)[0], net(dtype=torch.float64)
    layers = find_layers(model)
    factors = kronecker_factors(model, layers, task.x, task.y, functional.cross_entropy)
    A, G = [torch.zeros_like(a) for a, _ in factors], [torch.zeros_like(g) for _, g in factors]
    for x, y in task.batches(1):
        a, outs = x, []
        for k, module in enumerate(model):
            if isinstance(module, nn.Linear):
                row = torch.cat((a.detach(), torch.ones(1, 1)), 1)
                A[k // 2] += row.mT @ row / len(task)
                a = module(a)
                outs.append(a)
            else:
                a = module(a)
        for k, d in enumerate(torch.autograd.grad(functional.cross_entropy(a, y), outs)):
            G[k] += d.mT @ d / len(task)
    for k, (a, g) in enumerate(factors):
        torch.testing.assert_close(a, A[k])
        torch.testing.assert_close(g, G[k])


def test_of_one_linear_layer_the_factors_are_the_fisher_information() -> None:
    """A Gaussian response with unit variance: Fisher information x'x ⊗ I, slopes of size one."""
    model = nn.Linear(3, 2, bias=False).double()
    x = torch.randn(400, 3, generator=generator()).double()
    method = KFAC(model)
    method.before_task()
    method.observe(x, torch.zeros(400, 2).double())
    method.after_task()
    torch.testing.assert_close(method.A[0], x.mT @ x / 400)
    torch.testing.assert_close(method.G[0], torch.eye(2).double(), atol=0.15, rtol=0)


def test_a_pull_is_the_minimiser() -> None:
    tasks = classes(2, dtype=torch.float64)
    model = net(dtype=torch.float64)
    method = KFAC(model, strength=3.0, every=4)
    learn(method, tasks)
    g = generator()
    start = [torch.randn(W.shape, generator=g).double() for W in method.anchors]
    for layer, W in zip(method.layers, start, strict=True):
        layer.set_matrix(W)
    method.use(torch.optim.SGD(model.parameters(), lr=0.05))
    for step in range(4):
        assert torch.equal(method.layers[0].matrix(), start[0]), step
        method.after_step()
    for layer, W, W0, A, G in zip(
        method.layers, start, method.anchors, method.A, method.G, strict=True
    ):
        found = layer.matrix().requires_grad_()
        gap = found - W0
        energy = 3.0 * (G @ gap @ A @ gap.mT).trace() + (found - W).square().sum() / (2 * 4 * 0.05)
        (slope,) = torch.autograd.grad(energy, found)
        assert float(slope.abs().max()) < 1e-9


def test_factors_add_up_and_the_anchor_is_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vntransfer.continual.kfac.sample_labels", lambda model, x, y, *_: y)
    tasks = classes(2, dtype=torch.float64)
    model = net(dtype=torch.float64)
    method = KFAC(model, strength=1.0, every=7)
    parts = []
    for task in tasks:
        learn(method, [task])
        parts.append(
            kronecker_factors(model, method.layers, task.x, task.y, functional.cross_entropy)
        )
    torch.testing.assert_close(method.A[1], parts[0][1][0] + parts[1][1][0])
    torch.testing.assert_close(method.G[1], (parts[0][1][1] + parts[1][1][1]) / 2)
    assert torch.equal(method.anchors[1], method.layers[1].matrix())
    assert method.since == 0


def test_convolutions() -> None:
    tasks, heads = pictures()
    model = cnn()
    method = KFAC(model, strength=1e4, criterion=heads)
    learn(method, tasks[:1])
    held = [layer.matrix() for layer in method.layers]
    learn(method, tasks[1:])
    free = cnn()
    learn(SGD(free, criterion=heads), tasks)
    moved, loose = (
        sum(
            float((layer.matrix() - W).square().sum())
            for layer, W in zip(find_layers(m), held, strict=True)
        )
        for m in (model, free)
    )
    assert moved < 0.3 * loose
    assert values(model) != values(free)


def test_wrong_options_are_named() -> None:
    with pytest.raises(ArgumentError, match="every: expected a whole number from 1"):
        KFAC(net(), every=0)
