"""One-sided covariance projection: its formula, its minimization problem, plain expectations."""

from functools import partial
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
    projection,
    start_matrices,
    values,
)
from vntransfer.continual import (
    SGD,
    CovarianceProjection,
    Heads,
    Replay,
    Task,
    accuracy_matrix,
    as_tasks,
    dense,
    load_checkpoint,
    save_checkpoint,
    summary,
)
from vntransfer.continual._memory import SampleReservoir
from vntransfer.continual._projection import BUFFER
from vntransfer.divergences import log_det, von_neumann
from vntransfer.errors import ArgumentError

one_sided = partial(CovarianceProjection, sides="input")


def transcribed(
    tasks: list[Task], gamma: float, filter: str, memory: int = 0
) -> list[NDArray[Any]]:
    """Recipe written with numpy: two hidden layers, batches of one sample, rate .05.

    With a memory three remembered samples follow in each batch.
    """
    kept = SampleReservoir(memory, generator())
    W = start_matrices()
    S: list[Any] = [0.0] * 3
    P = [np.eye(w.shape[1]) for w in W]
    scale = [0.0] * 3
    for t, task in enumerate(tasks):
        C = [np.zeros_like(p) for p in P]
        for one in range(len(task)):
            X, Y = kept.extend(task.x[one : one + 1], task.y[one : one + 1], 3)
            G = [np.zeros_like(w) for w in W]
            for i, (x, y) in enumerate(zip(X.numpy(), Y.numpy(), strict=True)):
                a, slopes = inputs_and_slopes(W, x, y)
                for k in range(3):
                    if i == 0:  # the new one
                        C[k] += np.outer(a[k], a[k]) / len(task)
                    G[k] += np.outer(slopes[k], P[k] @ a[k]) / len(X)
            W = [w - 0.05 * g for w, g in zip(W, G, strict=True)]
        for k in range(3):
            if t == 0:
                scale[k] = np.trace(C[k]) / len(C[k])
            S[k] = S[k] + C[k] / scale[k]
            values, V = np.linalg.eigh(S[k])
            damped = 1 / (1 + gamma * values) if filter == "inverse" else np.exp(-gamma * values)
            P[k] = (V * damped) @ V.T
    return W


@pytest.mark.parametrize(("filter", "gamma"), [("inverse", 1.0), ("exponential", 0.3)])
def test_it_is_the_recipe(filter: Any, gamma: float) -> None:
    tasks = classes(dtype=torch.float64)
    model = net(dtype=torch.float64)
    method = one_sided(model, gamma, filter=filter)
    learn(method, tasks, batch_size=1)
    for layer, W in zip(method.layers, transcribed(tasks, gamma, filter), strict=True):
        np.testing.assert_allclose(layer.matrix().numpy(), W, atol=1e-10)


def test_with_a_memory_it_is_the_recipe_on_replayed_batches() -> None:
    tasks = classes(dtype=torch.float64)
    method = one_sided(net(dtype=torch.float64), memory=5, replay=3)
    learn(method, tasks, batch_size=1)
    assert method.stored_samples == 5
    for layer, W in zip(method.layers, transcribed(tasks, 1.0, "inverse", 5), strict=True):
        np.testing.assert_allclose(layer.matrix().numpy(), W, atol=1e-10)


def test_with_a_memory_and_no_strength_it_is_replay() -> None:
    plain, ours = net(), net()
    learn(Replay(plain, memory=6, replay=3), classes())
    learn(one_sided(ours, 0.0, memory=6, replay=3), classes())
    assert values(plain) == values(ours)


def test_with_a_memory_it_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    tasks, straight, first, second = classes(4), net(), net(), net(seed=9)

    def make(model: nn.Module) -> CovarianceProjection:
        return one_sided(model, memory=6, replay=3)

    learn(make(straight), tasks)
    stopped = make(first)
    for task in classes(4)[:2]:
        learn(stopped, [task])
        task.x.fill_(float("nan"))  # a finished task is not read again
    stopped.before_task()
    make_steps(stopped, tasks[2], 0, 5, lr=0.05, batch_size=2)
    save_checkpoint(tmp_path / "a", first, stopped)
    method = make(second)
    load_checkpoint(tmp_path / "a", second, method)
    make_steps(method, tasks[2], 5, None, lr=0.05, batch_size=2)
    method.after_task()
    learn(method, tasks[3:])
    assert values(straight) == values(second)


@pytest.mark.parametrize("filter", ["inverse", "exponential"])
def test_p_minimises_its_objective(filter: Any) -> None:
    method = one_sided(net(dtype=torch.float64), 0.7, filter=filter)
    learn(method, classes(dtype=torch.float64))
    P, S, g = projection(method, 1), method.S[1], generator()
    divergence = log_det if filter == "inverse" else von_neumann

    def objective(matrix: Tensor) -> Tensor:
        return 0.7 * (matrix @ S).trace() + divergence(matrix, torch.eye(len(P)).double())

    variable = P.clone().requires_grad_()
    (slope,) = torch.autograd.grad(objective(variable), variable)
    assert float((slope + slope.mT).abs().max()) < 1e-8
    for _ in range(5):
        other = 0.02 * torch.randn(P.shape, generator=g).double()
        assert objective(P + other @ other.mT) > objective(P)


@pytest.mark.parametrize("batch_size", [1, 4, 11, 40])
def test_any_batch_size_multiplies_the_gradient_by_p(batch_size: int) -> None:
    task, other = classes(2, n=40, dtype=torch.float64)
    model = net(dtype=torch.float64)
    method = learn(one_sided(model), [task])
    assert isinstance(method, CovarianceProjection)
    method.before_task()
    _check_projected(method, other.x[:batch_size], other.y[:batch_size])


def _check_projected(method: CovarianceProjection, x: Tensor, y: Tensor) -> None:
    method.observe(x, y)
    method.criterion(method.model(x), y).backward()  # type: ignore[no-untyped-call]
    expected = [layer.gradient() @ projection(method, k) for k, layer in enumerate(method.layers)]
    method.adjust_gradients()
    for layer, G in zip(method.layers, expected, strict=True):
        torch.testing.assert_close(layer.gradient(), G)


def test_convolutions_have_their_patches_damped() -> None:
    tasks, heads = pictures()
    model = cnn().double()
    method = one_sided(model, criterion=heads)
    learn(method, tasks[:1])
    conv = method.layers[0]
    assert conv.width == 10
    assert float(projection(method, 0).logdet()) < -0.5
    method.before_task()
    _check_projected(method, tasks[1].x.double(), tasks[1].y)


def test_accumulated_gradients_are_projected_once() -> None:
    task, other = classes(2, dtype=torch.float64)
    both = []
    for parts in ([slice(0, 6)], [slice(0, 2), slice(2, 6)]):
        model = net(dtype=torch.float64)
        method = learn(one_sided(model), [task])
        method.before_task()
        for part in parts:
            x, y = method.observe(other.x[part], other.y[part])
            nn.functional.cross_entropy(model(x), y, reduction="sum").backward()  # type: ignore[no-untyped-call]
        method.adjust_gradients()
        both.append([p.grad for p in model.parameters()])
    for one, two in zip(*both, strict=True):
        torch.testing.assert_close(one, two)


def test_a_full_rank_is_no_rank_and_a_small_one_has_a_tail() -> None:
    task = classes(1, dtype=torch.float64)
    P = {}
    for rank in (None, 7, 99, 2):
        method = one_sided(net(dtype=torch.float64), rank=rank)
        learn(method, task)
        P[rank] = projection(method, 0)
        S = method.S[0]
    torch.testing.assert_close(P[7], P[None])
    torch.testing.assert_close(P[99], P[None])
    values, V = torch.linalg.eigh(S)
    damped = 1 / (1 + torch.cat((values[:5].mean().expand(5), values[5:])))
    torch.testing.assert_close(P[2], (V * damped) @ V.mT)


def test_open_directions_are_those_used_least() -> None:
    method = one_sided(net(dtype=torch.float64), open_share=0.5)
    learn(method, classes(dtype=torch.float64))
    values, V = torch.linalg.eigh(method.S[0])
    damped = (V.mT @ projection(method, 0) @ V).diag()
    torch.testing.assert_close(damped[:4], torch.ones(4).double())
    torch.testing.assert_close(damped[4:], 1 / (1 + values[4:] - values[3]))


def test_ablations() -> None:
    tasks = classes(dtype=torch.float64)

    def after(**options: Any) -> CovarianceProjection:
        method = one_sided(net(dtype=torch.float64), **options)
        learn(method, tasks, lr=1e-9)  # the same inputs to all layers, whatever is learned
        return method

    plain, diagonal, random = (after(directions=d) for d in ("all", "diagonal", "random"))
    torch.testing.assert_close(projection(diagonal, 1), (1 / (1 + plain.S[1].diag())).diag())
    torch.testing.assert_close(
        torch.linalg.eigvalsh(projection(random, 1)), torch.linalg.eigvalsh(projection(plain, 1))
    )
    assert float((projection(random, 1) - projection(plain, 1)).abs().max()) > 0.05
    first, last = after(history="first"), after(history="last")
    x = [torch.cat((task.x, torch.ones(24, 1)), 1).double() for task in tasks]
    C = [a.mT @ a / 24 for a in x]
    scale = C[0].trace() / 7
    torch.testing.assert_close(plain.S[0], sum(C[1:], C[0]) / scale)
    torch.testing.assert_close(first.S[0], C[0] / scale)
    torch.testing.assert_close(last.S[0], C[2] / scale)
    centered = after(centered=True, history="first")
    covariance = torch.cov(x[0].mT, correction=0)
    torch.testing.assert_close(centered.S[0], covariance / (covariance.trace() / 7))


def test_forgetting_lies_between_the_last_task_and_all() -> None:
    def summed(**options: Any) -> Tensor:
        method = one_sided(net(dtype=torch.float64), **options)
        learn(method, classes(dtype=torch.float64), lr=1e-9)  # the same inputs for all
        return method.S[0]

    torch.testing.assert_close(summed(decay=0.0), summed(history="last"))
    torch.testing.assert_close(summed(decay=1.0), summed())
    x = [torch.cat((task.x, torch.ones(24, 1)), 1).double() for task in classes()]
    C = [a.mT @ a / 24 for a in x]
    faded = (0.25 * C[0] + 0.5 * C[1] + C[2]) / (C[0].trace() / 7)
    torch.testing.assert_close(summed(decay=0.5), faded)


def test_inputs_that_do_not_overlap_do_not_interfere() -> None:
    g = generator()
    x = torch.zeros(2, 200, 8)
    x[0, :, :4], x[1, :, 4:] = (torch.randn(200, 4, generator=g) for _ in range(2))
    tasks = [Task(a, a[:, k] - a[:, k + 1]) for a, k in zip(x, (0, 4), strict=True)]
    lost = []
    for strength in (0.0, 100.0):
        model = nn.Linear(8, 1, bias=False)
        nn.init.zeros_(model.weight)
        learn(one_sided(model, strength), tasks, batch_size=1)
        lost.append(float((model(x[0]).detach()[:, 0] - tasks[0].y).square().mean()))
    assert max(lost) < 1e-3
    model = nn.Linear(8, 1, bias=False)
    method = one_sided(model, 100.0)
    learn(method, tasks[:1], batch_size=1)
    kept = model.weight.detach().clone()
    learn(method, [Task(x[0], -tasks[0].y)], batch_size=1)  # the same inputs, the opposite
    assert float((model.weight.detach() - kept).abs().max()) < 0.2


def test_evaluation_leaves_no_trace_and_large_batches_give_some_rows() -> None:
    task = classes(1, n=200)[0]
    model = net()
    method = one_sided(model)
    method.before_task()
    model(task.x).sum().backward()
    with torch.no_grad():
        model(task.x)
    assert method.moments.counts == [0, 0, 0]
    method.observe(task.x, task.y)
    model(task.x).sum().backward()
    method.adjust_gradients()
    assert method.moments.counts == [BUFFER] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filter": "square"}, "filter: expected one of"),
        ({"rank": 0}, "rank: expected a whole number from 1"),
        ({"open_share": 2}, "^open_share: "),
        ({"directions": "some"}, "directions: expected one of"),
        ({"history": "none"}, "history: expected one of"),
        ({"layers": ["x"]}, "layers: the network has no layer"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        one_sided(net(), **options)


def test_heads_are_left_free() -> None:
    method = one_sided(cnn(), criterion=Heads([2, 2, 2]))
    assert [layer.name for layer in method.layers] == ["body.0", "body.4"]


def test_on_permuted_digits_it_keeps_far_more_than_plain_training(
    real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VNT_DATA", str(real))
    load = pytest.importorskip("vntransfer_lab.data").load
    tasks = as_tasks(load("mnistP", n_tasks=4, n_train=400, n_test=500))
    kept = []
    for kind in (SGD, one_sided):
        model = dense([784, 50, 50, 10], generator=generator())
        matrix = accuracy_matrix(model, tasks, kind(model), lr=0.02)
        kept.append(summary(matrix)["RA"])
    assert kept[1] > kept[0] + 0.04
