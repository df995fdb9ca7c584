"""Covariance projection on both sides of a layer: its formula, its problem, plain expectations."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from helpers.tiny import (
    classes,
    cnn,
    generator,
    inputs_and_slopes,
    learn,
    make_steps,
    net,
    pictures,
    responses,
    start_matrices,
    values,
)
from vntransfer.continual import (
    CovarianceProjection,
    Replay,
    Task,
    accuracy_matrix,
    as_tasks,
    dense,
    load_checkpoint,
    save_checkpoint,
    summary,
)
from vntransfer.continual._projection import BUFFER
from vntransfer.divergences import log_det, von_neumann
from vntransfer.errors import ArgumentError

RATE, EVERY = 0.05, 5


def transcribed(tasks: list[Task], gamma: float, filter: str) -> list[NDArray[Any]]:
    """The method written with numpy and whole Kronecker products, batches of one sample."""
    W = start_matrices()
    A = [np.zeros((w.shape[1],) * 2) for w in W]
    G = [np.zeros((w.shape[0],) * 2) for w in W]
    P: list[Any] = []
    seen = 0
    for task in tasks:
        a_t, g_t = [np.zeros_like(m) for m in A], [np.zeros_like(m) for m in G]
        before = [w.copy() for w in W]
        for n, (x, y) in enumerate(zip(task.x.numpy(), task.y.numpy(), strict=True), start=1):
            a, slopes = inputs_and_slopes(W, x, y)
            for k in range(3):
                a_t[k] += np.outer(a[k], a[k])
                g_t[k] += np.outer(slopes[k], slopes[k])
                W[k] = W[k] - RATE * np.outer(slopes[k], a[k])
            if P and (n % EVERY == 0 or n == len(task)):
                for k in range(3):
                    change = (W[k] - before[k]).ravel()
                    W[k] = before[k] + (P[k] @ change).reshape(W[k].shape)
                before = [w.copy() for w in W]
        seen += len(task)
        A = [old + new for old, new in zip(A, a_t, strict=True)]
        G = [old + new for old, new in zip(G, g_t, strict=True)]
        P = []
        for a_k, g_k in zip(A, G, strict=True):
            values, V = np.linalg.eigh(np.kron(g_k / seen, RATE * a_k))
            damped = 1 / (1 + gamma * values) if filter == "inverse" else np.exp(-gamma * values)
            P.append((V * damped) @ V.T)
    return W


@pytest.mark.parametrize(("filter", "gamma"), [("inverse", 10.0), ("exponential", 2.0)])
def test_it_is_its_formula(filter: Any, gamma: float) -> None:
    tasks = classes(dtype=torch.float64)
    model = net(dtype=torch.float64)
    method = CovarianceProjection(model, gamma, filter=filter, every=EVERY)
    learn(method, tasks, lr=RATE, batch_size=1)
    for layer, W in zip(method.layers, transcribed(tasks, gamma, filter), strict=True):
        np.testing.assert_allclose(layer.matrix().numpy(), W, atol=1e-10)


def operator(method: CovarianceProjection, k: int) -> Tensor:
    """P as a matrix on flat changes."""
    layer = method.layers[k]
    size = layer.units * layer.width
    eye = torch.eye(size).double().reshape(size, layer.units, layer.width)
    return torch.stack([method.damp(k, change).flatten() for change in eye])


@pytest.mark.parametrize("filter", ["inverse", "exponential"])
def test_p_minimises_its_objective(filter: Any) -> None:
    method = CovarianceProjection(net(dtype=torch.float64), 0.7, filter=filter)
    learn(method, classes(dtype=torch.float64))
    P, g = operator(method, 2), generator()
    F = torch.kron(method.T[2] / method.weights[2], method.S[2])
    divergence = log_det if filter == "inverse" else von_neumann

    def objective(matrix: Tensor) -> Tensor:
        return 0.7 * (matrix @ F).trace() + divergence(matrix, torch.eye(len(P)).double())

    torch.testing.assert_close(P, P.mT)
    variable = P.clone().requires_grad_()
    (slope,) = torch.autograd.grad(objective(variable), variable)
    assert float((slope + slope.mT).abs().max()) < 1e-6
    for _ in range(5):
        other = 0.02 * torch.randn(P.shape, generator=g).double()
        assert objective(P + other @ other.mT) > objective(P)


def mean(method: CovarianceProjection, kept: str, k: int) -> Tensor:
    """Of what a method keeps of a layer, over time."""
    found: Tensor = getattr(method, kept)[k] / method.weights[k]
    return found


@pytest.mark.parametrize("batch_size", [1, 4, 24])
def test_the_batch_does_not_matter_to_the_means(batch_size: int) -> None:
    task = classes(1, dtype=torch.float64)
    one = CovarianceProjection(net(dtype=torch.float64))
    learn(one, task, lr=1e-12, batch_size=1)
    other = CovarianceProjection(net(dtype=torch.float64))
    learn(other, task, lr=1e-12, batch_size=batch_size)
    for k in range(3):
        for kept in ("S", "T"):
            torch.testing.assert_close(mean(one, kept, k), mean(other, kept, k))


def test_a_rank_has_a_tail() -> None:
    task = classes(1, dtype=torch.float64)
    whole, full, small = (
        CovarianceProjection(net(dtype=torch.float64), 40.0, rank=rank) for rank in (None, 7, 2)
    )
    for method in (whole, full, small):
        learn(method, task)
    change = torch.randn(12, 7, generator=generator(), dtype=torch.float64)
    torch.testing.assert_close(full.damp(0, change), whole.damp(0, change))
    s, U = torch.linalg.eigh(small.S[0])
    t, V = torch.linalg.eigh(small.T[0] / small.weights[0])
    s = torch.cat((s[:5].mean().expand(5), s[5:]))
    D = 1 / (1 + small.strength * t.clamp_min(0)[:, None] * s)
    torch.testing.assert_close(small.damp(0, change), V @ (D * (V.mT @ change @ U)) @ U.mT)


def test_ablations() -> None:
    tasks = classes(dtype=torch.float64)

    def after(**options: Any) -> CovarianceProjection:
        method = CovarianceProjection(net(dtype=torch.float64), 4e8, **options)
        learn(method, tasks, lr=1e-9)  # the same inputs and slopes, whatever is learned
        return method

    plain, diagonal, random = (after(directions=d) for d in ("all", "diagonal", "random"))
    change = torch.randn(12, 7, generator=generator(), dtype=torch.float64)
    F = (plain.T[0] / plain.weights[0]).diag()[:, None] * plain.S[0].diag()
    torch.testing.assert_close(diagonal.damp(0, change), change / (1 + 4e8 * F))
    assert float((random.damp(0, change) - plain.damp(0, change)).abs().max()) > 0.01
    first, last, fading = after(history="first"), after(history="last"), after(decay=0.5)
    torch.testing.assert_close(after(decay=0.0).S[0], last.S[0])
    torch.testing.assert_close(after(decay=0.0).T[0], last.T[0])
    assert fading.weights == pytest.approx([1.75 * 12e-9] * 3)
    A = [after(history=h).S[0] for h in ("first", "last")]
    middle = plain.S[0] - A[0] - A[1]
    torch.testing.assert_close(fading.S[0], 0.25 * A[0] + 0.5 * middle + A[1])
    assert not torch.equal(first.T[0], last.T[0])
    opened = after(open_share=1.0)
    torch.testing.assert_close(opened.damp(0, change), change)


def test_convolutions_count_their_positions() -> None:
    tasks, heads = pictures()
    method = CovarianceProjection(cnn().double(), criterion=heads)
    learn(method, [Task(tasks[0].x.double(), tasks[0].y)], lr=1e-12, batch_size=1)
    conv, x = method.layers[0], tasks[0].x.double()
    a = conv.rows(x)
    assert method.weights == pytest.approx([len(x) * 1e-12] * 2)  # the time of its steps
    torch.testing.assert_close(mean(method, "S", 0), a.mT @ a / len(x))
    assert [layer.name for layer in method.layers] == ["body.0", "body.4"]


def test_with_a_memory_and_no_strength_it_is_replay() -> None:
    plain, ours = net(), net()
    learn(Replay(plain, memory=6, replay=3), classes())
    learn(CovarianceProjection(ours, 0.0, memory=6, replay=3), classes())
    assert values(plain) == values(ours)


def test_remembered_samples_do_not_count_again() -> None:
    task = classes(1, dtype=torch.float64)
    plain, replaying = (CovarianceProjection(net(dtype=torch.float64), memory=m) for m in (0, 5))
    for method in (plain, replaying):
        learn(method, task, lr=1e-12, batch_size=2)
    for k in range(3):
        for kept in ("S", "T"):
            torch.testing.assert_close(mean(plain, kept, k), mean(replaying, kept, k))


def test_layers_have_the_time_of_their_own_rates() -> None:
    model = net()
    method = CovarianceProjection(model)
    weight, bias, *rest = model.parameters()
    groups = [{"params": [weight, bias], "lr": 0.25}, {"params": rest, "lr": 0.5}]
    optimizer = torch.optim.SGD(groups)
    (task,) = classes(1)
    method.before_task()
    for i in range(2):
        method.step(task.x[i : i + 1], task.y[i : i + 1], method.criterion, optimizer)
    assert method.times == [0.5, 1.0, 1.0]


def test_replayed_samples_are_not_time_for_the_new_ones() -> None:
    method = CovarianceProjection(net(), memory=10, replay=3)
    optimizer = torch.optim.SGD(method.parameters, lr=RATE)
    (task,) = classes(1)
    method.before_task()
    for i in range(4):
        method.step(task.x[i : i + 1], task.y[i : i + 1], method.criterion, optimizer)
    assert method.times == pytest.approx(
        [RATE * (1 + 3 / 4)] * 3
    )  # the first has nothing to go with


@pytest.mark.parametrize("memory", [0, 6])
def test_it_goes_on_from_a_checkpoint_amid_a_block(tmp_path: Path, memory: int) -> None:
    tasks, straight, first, second = classes(4), net(), net(), net(seed=9)

    def make(model: nn.Module) -> CovarianceProjection:
        return CovarianceProjection(model, 20.0, memory=memory, replay=3, every=4)

    learn(make(straight), tasks)
    stopped = make(first)
    for task in classes(4)[:2]:
        learn(stopped, [task])
        task.x.fill_(float("nan"))  # a finished task is not read again
    stopped.before_task()
    make_steps(stopped, tasks[2], 0, 5, lr=0.05, batch_size=2)
    assert stopped.since == 1
    save_checkpoint(tmp_path / "a", first, stopped)
    method = make(second)
    load_checkpoint(tmp_path / "a", second, method)
    make_steps(method, tasks[2], 5, None, lr=0.05, batch_size=2)
    method.after_task()
    learn(method, tasks[3:])
    assert values(straight) == values(second)


def test_weights_that_were_set_between_tasks_are_kept() -> None:
    model = net()
    method = CovarianceProjection(model, 100.0)
    learn(method, classes(1))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.ones_like(p))
    method.before_task()
    method.after_task()
    assert all(bool((p == 1).all()) for p in model.parameters())


def test_what_an_earlier_task_uses_hardly_moves() -> None:
    tasks = responses(1)
    moved = []
    for strength in (0.0, 1e6):
        model = nn.Sequential(nn.Linear(6, 1, bias=False))
        method = CovarianceProjection(model, strength)
        learn(method, tasks, batch_size=1)
        kept = model[0].weight.detach().clone()
        learn(method, [Task(tasks[0].x, -tasks[0].y)], batch_size=1)
        moved.append(float((model[0].weight.detach() - kept).norm()))
    assert moved[1] < 1e-3 * moved[0]


def test_any_optimiser_has_its_changes_damped() -> None:
    model = net(dtype=torch.float64)
    method = CovarianceProjection(model, 40.0, every=3)
    tasks = classes(2, dtype=torch.float64)
    learn(method, tasks[:1])
    method.before_task()
    before = [layer.matrix() for layer in method.layers]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        method.step(tasks[1].x, tasks[1].y, method.criterion, optimizer)
    plain = [layer.matrix() for layer in method.layers]
    method.since = 2
    with torch.no_grad():
        method.after_step()  # the third, which changes nothing more
    for k, layer in enumerate(method.layers):
        expected = before[k] + method.damp(k, plain[k] - before[k])
        torch.testing.assert_close(layer.matrix(), expected)


def test_evaluation_leaves_no_trace_and_large_batches_give_some_rows() -> None:
    task = classes(1, n=200)[0]
    model = net()
    method = CovarianceProjection(model)
    method.before_task()
    model(task.x).sum().backward()
    assert method.moments.counts == method.slopes.counts == [0, 0, 0]
    method.observe(task.x, task.y)
    model(task.x).sum().backward()
    method.adjust_gradients()
    assert method.moments.counts == method.slopes.counts == [BUFFER] * 3


def test_a_loop_of_ones_own_must_name_the_optimiser() -> None:
    task, model = classes(1)[0], net()
    method = CovarianceProjection(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    method.before_task()
    method.observe(task.x, task.y)
    with pytest.raises(ArgumentError, match=r"call method.use\(optimizer\)"):
        method.after_step()
    method.use(optimizer)
    method.after_step()
    assert method.times == [0.1] * 3
    optimizer.param_groups[0]["lr"] = 0.2
    method.after_step()
    assert method.times == pytest.approx([0.3] * 3)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ArgumentError, match="sides: expected one of"):
        CovarianceProjection(net(), sides="left")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="every: expected a whole number from 1"):
        CovarianceProjection(net(), every=0)


def test_on_rotated_digits_both_sides_keep_more_than_one(
    real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VNT_DATA", str(real))
    load = pytest.importorskip("vntransfer_lab.data").load
    tasks = as_tasks(load("mnistR", n_tasks=5, n_train=1000, n_test=500, seed=1000))
    kept = []
    for sides in ("input", "both"):
        model = dense([784, 50, 50, 10], generator=generator())
        method = CovarianceProjection(model, sides=sides)
        kept.append(summary(accuracy_matrix(model, tasks, method, lr=0.02))["RA"])
    assert kept[1] > kept[0] + 0.01
