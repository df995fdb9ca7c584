"""Small streams and networks that the tests of continual learning share."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vntransfer.continual import (
    METHODS,
    ContinualMethod,
    Heads,
    MultiHead,
    Task,
    dense,
    steps,
)
from vntransfer.continual._projection import Projected

OPTIONS: dict[str, dict[str, Any]] = {
    "mer": {"beta": 0.3, "memory": 6, "replay": 2, "steps": 2},
    "er": {"memory": 6, "replay": 3},
    "derpp": {"memory": 6, "replay": 3},
    "agem": {"memory": 4, "margin": 0.1},
    "rsp": {"groups": 3},
}
"""Options under which a method has something to do on so little data."""


def make(name: str, model: nn.Module, **options: Any) -> ContinualMethod:
    return METHODS[name](model, **{**OPTIONS.get(name, {}), **options})


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def classes(n_tasks: int = 3, n: int = 24, *, dtype: torch.dtype = torch.float32) -> list[Task]:
    """Tasks of three classes in six dimensions, which move from task to task."""
    g = generator(1)
    tasks = []
    for _ in range(n_tasks):
        centers = 2 * torch.randn(3, 6, generator=g)
        parts = []
        for count in (n, 30):
            y = torch.randint(3, (count,), generator=g)
            parts += [(centers[y] + torch.randn(count, 6, generator=g)).to(dtype), y]
        x, y, x_test, y_test = parts
        tasks.append(Task(x, y, x_test, y_test))
    return tasks


def responses(n_tasks: int = 3, n: int = 24) -> list[Task]:
    """Tasks with a real response to the same six inputs."""
    g = generator(2)
    tasks = []
    for _ in range(n_tasks):
        w = torch.randn(6, generator=g)
        x, x_test = torch.randn(n, 6, generator=g), torch.randn(30, 6, generator=g)
        tasks.append(Task(x, x @ w / 3, x_test, x_test @ w / 3))
    return tasks


def pictures(n_tasks: int = 3, n: int = 12) -> tuple[list[Task], Heads]:
    """Tasks of two classes each, with a head each: pictures of 8 x 8 pixels."""
    g, heads = generator(3), Heads([2] * n_tasks)
    tasks = []
    for t in range(n_tasks):
        masks = torch.rand(2, 1, 8, 8, generator=g)
        y = torch.arange(n) % 2
        x = masks[y] + 0.3 * torch.randn(n, 1, 8, 8, generator=g)
        tasks.append(Task(x, y + 2 * t, x, y + 2 * t, heads.columns(t)))
    return tasks, heads


def net(outputs: int = 3, *, seed: int = 0, dtype: torch.dtype = torch.float32) -> nn.Sequential:
    return dense([6, 12, 9, outputs], generator=generator(seed)).to(dtype)


def cnn(n_tasks: int = 3) -> MultiHead:
    g = generator(4)
    conv = nn.Conv2d(1, 4, 3, padding=1)
    body = nn.Sequential(
        conv, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 10), nn.ReLU()
    )
    with torch.no_grad():
        for p in body.parameters():
            p.copy_(0.3 * torch.randn(p.shape, generator=g))
    return MultiHead(body, 10, [2] * n_tasks, generator=g)


def make_steps(
    method: ContinualMethod, task: Task, start: int, stop: int | None, lr: float, **options: Any
) -> None:
    """Make steps of a task from one on, up to another one (None: all)."""
    optimizer = torch.optim.SGD(method.parameters, lr=lr)
    for step in steps(method.model, task, method, optimizer=optimizer, start=start, **options):
        if step.made == stop:
            return


def learn(method: ContinualMethod, tasks: list[Task], **options: Any) -> ContinualMethod:
    for task in tasks:
        method.learn(task, **{"lr": 0.05, "batch_size": 2, **options})
    return method


def values(model: nn.Module) -> bytes:
    """All parameters, bit by bit."""
    return b"".join(p.detach().numpy().tobytes() for p in model.parameters())


def flat(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def projection(method: Projected, k: int) -> Tensor:
    """P of layer k, where a method multiplies inputs by it."""
    layer = method.layers[k]
    return method.damp(k, torch.eye(layer.width).to(layer.weight.detach()))


def start_matrices() -> list[NDArray[Any]]:
    """Weights of `net` in double precision, biases as last columns."""
    return [
        np.c_[layer.weight.detach().numpy(), layer.bias.detach().numpy()]
        for layer in net(dtype=torch.float64)
        if isinstance(layer, nn.Linear)
    ]


def inputs_and_slopes(
    W: list[NDArray[Any]], x: NDArray[Any], y: int
) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """What each of the three layers sees and sends back for one sample, written with numpy."""
    a = [np.append(x, 1.0)]
    for k in range(2):
        a.append(np.append(np.maximum(W[k] @ a[k], 0), 1.0))
    z = W[2] @ a[2]
    slopes = [np.exp(z - z.max()) / np.exp(z - z.max()).sum() - np.eye(len(z))[y]]
    for k in (2, 1):
        slopes.insert(0, (W[k].T @ slopes[0])[:-1] * (a[k][:-1] > 0))
    return a, slopes
