"""The closed form beside covariance projection: trained as the one, solved as the other."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from helpers.tiny import classes, cnn, learn, make_steps, net, pictures, responses, values
from vntransfer.continual import (
    ClosedForm,
    ClosedFormProjection,
    CovarianceProjection,
    JoinedNet,
    load_checkpoint,
    save_checkpoint,
    score,
)
from vntransfer.errors import ArgumentError


def joined(outputs: int = 3, **options: Any) -> JoinedNet:
    network = net(outputs, dtype=torch.float64)
    return JoinedNet(network, **{"features": 30, "random_state": 1, **options})


def state_of(model: torch.nn.Module) -> list[Tensor]:
    return [value.clone() for value in model.state_dict().values()]


def test_training_is_that_of_covariance_projection_bit_for_bit() -> None:
    tasks = classes(3, dtype=torch.float64)
    plain, model = net(dtype=torch.float64), joined()
    learn(CovarianceProjection(plain), tasks)
    method = learn(ClosedFormProjection(model), tasks)
    assert isinstance(method, ClosedFormProjection)
    body = list(model.network[:-1].parameters())  # type: ignore[index]
    for own, other in zip([*body, *method.trained_heads], plain.parameters(), strict=True):
        assert torch.equal(own, other)


def test_the_outputs_are_ridge_regression_on_hidden_layer_and_random_features() -> None:
    tasks = classes(2, dtype=torch.float64)
    model = joined()
    method = ClosedFormProjection(model, ridge=0.1)
    rows, labels = [], []
    for task in tasks:
        learn(method, [task])
        with torch.no_grad():  # the hidden layer as it is at the end of the task
            hidden = model.network[:-1](task.x)  # type: ignore[index]
            rows.append(torch.cat((hidden, model.random(task.x)), 1).numpy())
        labels.append(np.eye(3)[task.y.numpy()])
    z, Y = np.concatenate(rows), np.concatenate(labels)
    center = z - z.mean(0)
    S = center.T @ center
    V = np.linalg.solve(S + 0.1 * S.diagonal().mean() * np.eye(len(S)), center.T @ Y)
    expected = Y.mean(0) + (rows[-1] - z.mean(0)) @ V
    with torch.no_grad():
        np.testing.assert_allclose(model(tasks[-1].x), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("stop", [0, 5])
def test_a_checkpoint_resumes_with_random_features(stop: int, tmp_path: Path) -> None:
    tasks, file = classes(3, dtype=torch.float64), tmp_path / "here.safetensors"
    straight, first, second = joined(), joined(), joined()
    learn(ClosedFormProjection(straight), tasks)
    method = learn(ClosedFormProjection(first), tasks[:1])
    if stop:
        method.before_task()
        make_steps(method, tasks[1], 0, stop, 0.05, batch_size=2)
    save_checkpoint(file, first, method)
    again = ClosedFormProjection(second)
    load_checkpoint(file, second, again)
    if not stop:
        again.before_task()
    make_steps(again, tasks[1], stop, None, 0.05, batch_size=2)
    again.after_task()
    learn(again, tasks[2:])
    assert values(straight) == values(second)
    for own, other in zip(state_of(straight), state_of(second), strict=True):
        assert torch.equal(own, other)


def test_several_heads_and_numbers() -> None:
    tasks, heads = pictures()
    model = JoinedNet(cnn(), features=100)
    learn(ClosedFormProjection(model, criterion=heads), tasks)
    assert np.mean([score(model, task) for task in tasks]) > 0.9
    regression = JoinedNet(net(1), features=100, columns=6)
    before = score(regression, responses()[0])
    learn(ClosedFormProjection(regression), responses())
    assert np.mean([score(regression, task) for task in responses()]) < before


def test_the_closed_form_alone_uses_the_random_features_as_well() -> None:
    task = classes(1, dtype=torch.float64)[0]
    model = joined()
    before = state_of(model.network)
    method = ClosedForm(model, ridge=0.1).learn(task)
    assert len(method.solver.mean) == 9 + 30 + 3
    assert all(
        torch.equal(a, b) for a, b in zip(before[:-2], state_of(model.network), strict=False)
    )
    other = joined()
    method = ClosedFormProjection(other, strength=0.0, ridge=0.1).learn(task, lr=1e-30)
    torch.testing.assert_close(model(task.x), other(task.x))


def test_rows_are_kept_within_a_task_only() -> None:
    method = ClosedFormProjection(joined())
    task = classes(1, dtype=torch.float64)[0]
    method.before_task()
    make_steps(method, task, 0, 3, 0.05, batch_size=2)
    assert sum(len(y) for _, y in method.waiting_rows) == 6
    make_steps(method, task, 3, None, 0.05, batch_size=2)
    method.after_task()
    assert method.waiting_rows == []


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ArgumentError, match="precision: "):
        ClosedFormProjection(net(), precision="quarter")  # type: ignore[arg-type]
    method = learn(ClosedFormProjection(net()), classes(1))
    with pytest.raises(ArgumentError, match="earlier tasks had classes"):
        learn(method, responses(1))
