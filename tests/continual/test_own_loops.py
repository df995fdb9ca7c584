"""Loops, networks and optimizers that are not the plain ones of the tables."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from helpers.tiny import classes, generator, learn, make, net, values
from vntransfer.continual import (
    EWC,
    GPM,
    KFAC,
    METHODS,
    REWC,
    RSP,
    ContinualMethod,
    CovarianceProjection,
    DarkReplay,
    Task,
    default_loss,
    diagonal_fisher,
    score,
    train,
)
from vntransfer.continual._layers import find_layers
from vntransfer.errors import ArgumentError

PROJECTIONS: dict[str, Any] = {
    "gpm": GPM,
    "covp": CovarianceProjection,
    "covp input": lambda model: CovarianceProjection(model, sides="input"),
}
projections = pytest.mark.parametrize("make_one", PROJECTIONS.values(), ids=PROJECTIONS)


def taught(method: ContinualMethod, **options: Any) -> ContinualMethod:
    """Give a method that knows one task."""
    return learn(method, classes(1), **options)


def gradients(model: nn.Module) -> list[Tensor]:
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


@projections
def test_what_is_frozen_later_stays(make_one: Any) -> None:
    model = net()
    method = taught(make_one(model))
    for p in (model[2].weight, model[0].bias):
        p.requires_grad_(False)
    kept = [p.detach().clone() for p in (model[2].weight, model[0].bias)]
    other = model[0].weight.detach().clone()
    method.before_task()
    for batch_size in (1, 20):
        train(model, classes(2)[1], method, batch_size=batch_size)
    method.after_task()
    torch.testing.assert_close([model[2].weight, model[0].bias], kept, rtol=0, atol=0)
    assert not torch.equal(model[0].weight, other)


def test_parameters_that_came_later_are_named() -> None:
    model = net()
    method = taught(EWC(model))
    model.append(nn.Linear(3, 2))
    with pytest.raises(ArgumentError, match=r"model: '5.weight' was added"):
        method.before_task()
    model.pop(5)
    learn(method, classes(2)[1:])  # nothing is lost by the refusal


def test_momentum_counts_in_the_rate() -> None:
    model = net()
    method = EWC(model)
    for options, rate in (
        ({}, 0.1),
        ({"momentum": 0.9}, 1.0),
        ({"momentum": 0.9, "dampening": 0.5}, 0.5),
    ):
        method.use(torch.optim.SGD(model.parameters(), lr=0.1, **options))
        assert method.rate() == pytest.approx(rate)
    method.use(torch.optim.SGD(model[0].parameters(), lr=0.1))
    assert method.rate() == [0.1, 0.1, 0, 0, 0, 0]


@projections
@pytest.mark.parametrize("backward", [False, True])
def test_a_skipped_step_leaves_no_trace(make_one: Any, backward: bool) -> None:
    found = []
    x, y = classes(2)[1].x[:8], classes(2)[1].y[:8]
    for skip in (False, True):
        model = net()
        method = taught(make_one(model))
        method.before_task()
        if skip:
            a, b = method.observe(x[:4], y[:4])
            loss = default_loss(model(a), b)
            if backward:
                loss.backward()
                model.zero_grad()
        a, b = method.observe(x[4:], y[4:])
        default_loss(model(a), b).backward()
        method.adjust_gradients()
        found.append(gradients(model))
    torch.testing.assert_close(*found, rtol=0, atol=0)


def test_rsp_bears_a_skipped_step() -> None:
    model, task = net(), classes(2)[1]
    method = taught(RSP(model, groups=3))
    method.before_task()
    method.observe(task.x[:4], task.y[:4])
    model(task.x[:4])
    method.step(task.x[4:8], task.y[4:8], default_loss, torch.optim.SGD(model.parameters(), 0.1))
    assert method.running.count == 4


def gathered(method: ContinualMethod, task: Task, parts: int) -> None:
    """Learn a task in batches of eight, each in equal parts, the loss being their mean."""
    optimizer = torch.optim.SGD(method.model.parameters(), lr=1e-9)
    method.use(optimizer)
    method.before_task()
    for x, y in zip(task.x.split(8), task.y.split(8), strict=True):
        for a, b in zip(x.chunk(parts), y.chunk(parts), strict=True):
            a, b = method.observe(a, b)
            (default_loss(method.model(a), b) / parts).backward()
        method.adjust_gradients()
        optimizer.step()
        optimizer.zero_grad()
        method.after_step()
    method.after_task()


@pytest.mark.parametrize("parts", [2, 8])
def test_gathered_gradients_count_as_one_batch(parts: int) -> None:
    task = classes(1, dtype=torch.float64)[0]
    one, other = (CovarianceProjection(net(dtype=torch.float64)) for _ in range(2))
    gathered(one, task, 1)
    gathered(other, task, parts)
    for k in range(3):
        torch.testing.assert_close(one.T[k], other.T[k], rtol=1e-6, atol=1e-20)
        torch.testing.assert_close(one.S[k], other.S[k], rtol=1e-6, atol=1e-20)
    dark = DarkReplay(net(dtype=torch.float64), memory=100)
    gathered(dark, task, parts)
    assert len(dark.memory) == len(task.x)


def test_sequences_of_different_length_count_their_positions() -> None:
    found = []
    for lengths in ((2, 7), (7, 2)):
        model = net()
        method = CovarianceProjection(model)
        method.use(torch.optim.SGD(model.parameters(), lr=1e-9))
        method.before_task()
        g = generator(1)
        batches = {n: torch.randn(4, n, 6, generator=g) for n in (2, 7)}
        for n in lengths:
            x, y = method.observe(batches[n], torch.zeros(4, 3))
            default_loss(model(x).mean(1), y).backward()
            method.adjust_gradients()
            method.after_step()
        method.after_task()
        found.append(method.S[0])
    torch.testing.assert_close(*found)


@projections
@pytest.mark.parametrize("low", [False, True])
def test_mixed_precision_protects_as_much(make_one: Any, low: bool) -> None:
    changes = []
    for mixed in (False, True):
        model = net()
        method = make_one(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        scaler = torch.amp.GradScaler("cpu", enabled=mixed and not low)
        method.use(optimizer, scaler if mixed and not low else None)
        for task in classes(2):
            start = torch.cat([p.detach().flatten() for p in model.parameters()])
            method.before_task()
            for x, y in zip(task.x.split(4), task.y.split(4), strict=True):
                a, b = method.observe(x, y)
                with torch.autocast("cpu", torch.bfloat16, enabled=mixed and low):
                    loss = functional.cross_entropy(model(a).float(), b)
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
                method.adjust_gradients()
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                method.after_step()
            method.after_task()
        end = torch.cat([p.detach().flatten() for p in model.parameters()])
        changes.append(float((end - start).norm()))
    assert changes[0] == pytest.approx(changes[1], rel=0.1)


def test_a_step_that_the_scaler_skips_is_not_counted() -> None:
    model, task = net(), classes(1)[0]
    method = CovarianceProjection(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    method.use(optimizer, scaler)
    method.before_task()
    x, y = method.observe(task.x, task.y)
    scaler.scale(1e3 * default_loss(model(x), y)).backward()
    method.adjust_gradients()
    assert method.slopes.counts == [0, 0, 0]


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.b.weight = self.a.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.b(self.a(x).relu()))


def test_layers_that_are_no_matrix_of_their_own_are_refused() -> None:
    with pytest.raises(ArgumentError, match="'a' and 'b' share one weight"):
        find_layers(Tied())
    assert [layer.name for layer in find_layers(Tied(), ["head"])] == ["head"]
    normed = nn.Sequential(weight_norm(nn.Linear(6, 4)), nn.ReLU(), nn.Linear(4, 3))
    with pytest.raises(ArgumentError, match="'0' computes its weight"):
        find_layers(normed, ["0"])
    attention = nn.ModuleDict({"att": nn.MultiheadAttention(4, 2)})
    with pytest.raises(ArgumentError, match=r"'att.out_proj' is a part of nn.MultiheadAttention"):
        find_layers(attention, ["att.out_proj"])


def test_rewc_turns_features_of_dense_layers_whatever_their_shape() -> None:
    body = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Flatten(), nn.Linear(20, 3))
    method, x = REWC(body), torch.randn(12, 2, 2, 6, generator=generator())
    method.before_task()
    train(body, Task(x, torch.arange(12) % 3), method, batch_size=4)
    before = body(x)
    method.after_task()
    torch.testing.assert_close(body(x), before, rtol=1e-5, atol=1e-5)


class Recurrent(nn.Module):
    """A network that vmap cannot run, with a branch on its values."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRU(6, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        out = self.cell(x[:, None])[0][:, -1]
        return self.head(out if bool(out.sum() > -1e9) else -out)


def test_fisher_of_networks_that_vmap_cannot_run() -> None:
    torch.manual_seed(0)
    model, task = Recurrent(), classes(1, 10)[0]
    found = diagonal_fisher(model, task.x, task.y)
    squares = [torch.zeros_like(p) for p in model.parameters()]
    for x, y in zip(task.x.split(1), task.y.split(1), strict=True):
        slopes = torch.autograd.grad(default_loss(model(x), y), list(model.parameters()))
        for total, slope in zip(squares, slopes, strict=True):
            total += slope.square() / len(task.x)
    torch.testing.assert_close(found, squares, rtol=1e-4, atol=1e-7)
    learn(EWC(model), classes(2))


def test_labels_are_drawn_as_the_criterion_means_them() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(2, 1), torch.randn(4000, 2)
    p = model(x).sigmoid()
    y = torch.bernoulli(p.detach())
    own = diagonal_fisher(
        model, x, y, kind="sampled", criterion=nn.BCEWithLogitsLoss(), generator=generator()
    )
    torch.testing.assert_close(own[1], (p * (1 - p)).mean(0).detach(), rtol=0.1, atol=0)
    sequence = Task(torch.randn(6, 2, 5), torch.zeros(6, 5, dtype=torch.long))
    with pytest.raises(ArgumentError, match="use fisher='observed'"):
        learn(KFAC(OverTime()), [sequence])


class OverTime(nn.Module):
    """A class for each of several positions."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(2, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.dense(x.mT).mT


def test_the_score_of_several_labels_per_sample_is_a_share() -> None:
    x = torch.randn(6, 2, 5)
    model = OverTime()
    right = model(x).argmax(1)
    assert score(model, Task(x, right, x, right)) == 1


def test_all_of_few_directions_are_taken_and_no_more() -> None:
    for seed in range(4):
        g = generator(seed)
        model = nn.Linear(40, 3)
        method = GPM(model, threshold=1.0)
        task = Task(torch.randn(5, 40, generator=g), torch.arange(5) % 3)
        learn(method, [task])
        assert method.used == [5]


@pytest.mark.parametrize("name", METHODS)
def test_a_copy_goes_on_like_the_original(name: str) -> None:
    method = make(name, net())
    taught(method)
    other = copy.deepcopy(method)
    learn(method, classes(2)[1:])
    learn(other, classes(2)[1:])
    assert values(method.model) == values(other.model)


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("ewc", {"strength": 1.0}, {"strength": 2.0}),
        ("ewc", {"update": "proximal"}, {"update": "explicit"}),
        ("er", {"memory": 5}, {"memory": 6}),
        ("agem", {"memory": 5}, {"memory": 6}),
        ("covp", {"centered": True}, {"centered": False}),
        ("gpm", {"samples": 5}, {"samples": 6}),
    ],
)
def test_options_of_parts_are_options(name: str, one: Any, other: Any) -> None:
    assert make(name, net(), **one).options() != make(name, net(), **other).options()
    assert make(name, net(), **one).options() == make(name, net(), **one).options()
