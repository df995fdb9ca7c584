"""The closed form: the same as ridge regression on all rows, in any order and split."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from helpers.tiny import classes, net, pictures, responses
from vntransfer.continual import (
    ClosedForm,
    Heads,
    RandomFeatureNet,
    Task,
    load_checkpoint,
    save_checkpoint,
    score,
    train,
)
from vntransfer.errors import ArgumentError
from vntransfer.random_features import normal_numbers


def learned(tasks: list[Task], **options: Any) -> ClosedForm:
    method = ClosedForm(**{"classes": 3, "features": 40, "random_state": 1, **options})
    for task in tasks:
        method.learn(task)
    return method


def solution(method: ClosedForm) -> np.ndarray:
    head = method.solver.heads[0]
    return np.c_[head.weight.detach().numpy(), head.bias.detach().numpy()]


def test_it_is_ridge_regression_on_all_rows_at_once() -> None:
    tasks = classes(4, dtype=torch.float64)
    model = RandomFeatureNet(3, features=40, random_state=5).double()
    method = learned(tasks, model=model)
    x, y = (np.concatenate([getattr(t, name).numpy() for t in tasks]) for name in "xy")
    drawn = normal_numbers(5, 7 * 40).reshape(7, 40)
    z = np.maximum(x / np.linalg.norm(x, axis=1, keepdims=True) @ drawn[:6] + 0.3 * drawn[6], 0)
    Y, center = np.eye(3)[y], z - z.mean(0)
    S = center.T @ center
    V = np.linalg.solve(S + 0.03 * np.trace(S) / 40 * np.eye(40), center.T @ Y)
    expected = np.c_[V.T, Y.mean(0) - z.mean(0) @ V]
    np.testing.assert_allclose(solution(method), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("ridge", [0.03, 1e-4, "auto"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_order_of_the_tasks_does_not_matter(ridge: Any, dtype: torch.dtype) -> None:
    tasks = classes(5, dtype=dtype)
    coefficients = []
    for order in (tasks, tasks[::-1], [tasks[i] for i in (2, 0, 4, 1, 3)]):
        method = learned(order, ridge=ridge)
        method.model.double()  # float32 would hide a difference: solve again
        method.solver.solve()
        coefficients.append(solution(method))
    for other in coefficients[1:]:
        gap = np.linalg.norm(other - coefficients[0]) / np.linalg.norm(coefficients[0])
        assert gap < 1e-8


def test_any_split_into_batches_gives_the_same_bits() -> None:
    task = classes(1)[0]
    one, other = learned([task]), learned([])
    other.before_task()
    train(other.model, task, other, batch_size=1)
    other.after_task()
    np.testing.assert_array_equal(solution(one), solution(other))


def test_classes_that_arrive_two_by_two_share_one_head() -> None:
    g = torch.Generator().manual_seed(0)
    centers = 4 * torch.randn(6, 8, generator=g)
    y = torch.arange(600) % 6
    x = centers[y] + torch.randn(600, 8, generator=g)
    method = ClosedForm(classes=6, features=200)
    for c in (0, 2, 4):
        own = (y == c) | (y == c + 1)
        method.learn(Task(x[own], y[own]))
    assert float((method.predict(x) == y).float().mean()) > 0.95
    known = method.predict(x[y < 2].numpy(), columns=slice(0, 2))
    assert isinstance(known, np.ndarray)
    assert (known == y[y < 2].numpy()).mean() > 0.97


def test_several_heads_of_pictures() -> None:
    tasks, heads = pictures()
    method = ClosedForm(classes=6, features=300, criterion=heads)
    for task in tasks:
        method.learn(task)
    assert np.mean([score(method.model, task) for task in tasks]) > 0.9
    assert isinstance(heads, Heads)


def test_numbers_and_several_responses() -> None:
    method = ClosedForm(RandomFeatureNet(2, features=80, columns=6), 1e-4)
    every = responses(2, 300)
    for task in every:
        method.learn(Task(task.x, torch.stack((task.x[:, 0] + 5, task.x[:, 1] ** 2), 1)))
    found = method.predict(every[0].x_test)
    np.testing.assert_allclose(found[:, 0], every[0].x_test[:, 0] + 5, atol=0.05)
    assert float((found[:, 1] - every[0].x_test[:, 1] ** 2).square().mean()) < 0.5


def test_only_the_last_layer_moves() -> None:
    model = net()
    before = [p.detach().clone() for p in model.parameters()]
    learned(classes(), model=model)
    same = [torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True)]
    assert same == [True, True, True, True, False, False]


def test_random_weights_are_not_kept(tmp_path: Path) -> None:
    method = learned([Task(torch.rand(50, 784), torch.arange(50) % 3)])
    q = 43
    assert method.bytes_kept == 4 * 41 * 3 + 8 * (q * (q + 1) // 2 + q + 1)
    save_checkpoint(tmp_path / "a", method.model, method)
    assert (tmp_path / "a").stat().st_size < method.bytes_kept + 3000
    again = learned([])
    load_checkpoint(tmp_path / "a", again.model, again)
    x = torch.rand(20, 784)
    assert torch.equal(again.model(x), method.model(x))


@pytest.mark.parametrize(("precision", "share", "error"), [("single", 2, 1e-4), ("half", 4, 0.05)])
def test_lower_precision_keeps_fewer_bytes(precision: Any, share: int, error: float) -> None:
    tasks = classes(4, n=200)
    exact, rounded = learned(tasks, features=300), learned(tasks, features=300, precision=precision)
    kept = [method.bytes_kept - method.model.head.weight.nbytes for method in (exact, rounded)]
    assert kept[0] / share < kept[1] < 1.1 * kept[0] / share
    x = torch.cat([task.x_test for task in tasks])
    gap = (exact.model(x) - rounded.model(x)).detach().abs().max()
    assert 0 < float(gap) < error


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ClosedForm(classes=1), "classes: expected"),
        (lambda: ClosedForm(classes=3, features=0), "features: expected"),
        (lambda: ClosedForm(classes=3, ridge=-1.0), "ridge: expected"),
        (lambda: ClosedForm(classes=3, precision="quarter"), "precision: "),
        (lambda: ClosedForm(classes=3, ridge=1e-4, precision="half"), "ridge: .* at least 0.01"),
        (lambda: ClosedForm(classes=3, ridge="auto", precision="half"), "ridge: .* at least 0.01"),
        (lambda: ClosedForm(nn.Conv2d(1, 1, 1)), "model: no linear layer"),
        (lambda: learned([]).predict(torch.zeros(1, 2)), "nothing has been learned"),
        (lambda: learned(classes(1), ridge=0.0), "singular system"),
        (lambda: learned([*classes(1), *responses(1)]), "earlier tasks had classes"),
        (lambda: learned(classes(1), classes=2), "y: classes from 0 to 2"),
        (lambda: learned(responses(1)), "y: 24 responses|responses, shape"),
        (lambda: learned([*classes(1), Task(torch.zeros(3, 5), torch.arange(3))]), "5 numbers"),
        (lambda: learned(classes(1), model=nn.Sequential(nn.Linear(6, 3), nn.Flatten(0))), "shape"),
    ],
)
def test_wrong_arguments_are_named(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


def test_one_row_and_one_class_are_learned() -> None:
    method = learned([Task(torch.ones(1, 4), torch.tensor([2]))])
    assert method.predict(torch.rand(3, 4)).tolist() == [2, 2, 2]
    flat = learned([Task(torch.zeros(5, 4), torch.arange(5) % 2)])
    assert bool(flat.model(torch.zeros(2, 4)).isfinite().all())
