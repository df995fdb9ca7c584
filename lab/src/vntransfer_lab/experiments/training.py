"""A small network and a plain training loop, for the experiments about losses."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn

from vntransfer.step_times import StepTimes
from vntransfer_lab.runner.schema import Settings


def mlp(sizes: list[int], generator: torch.Generator) -> nn.Sequential:
    """ReLU network in float64 whose start depends on the generator alone."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layer = nn.Linear(n_in, n_out, dtype=torch.float64)
        nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu", generator=generator)
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def train(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    loss: Callable[[Tensor, Tensor, Tensor], Tensor],
    settings: Settings,
    generator: torch.Generator,
) -> StepTimes:
    """Minimize ``loss(x, net(x), y)`` over shuffled batches by Adam, and time the steps.

    The experiment's settings say how many epochs, which batch size and rate. The rate falls to zero
    along a cosine, so that the last epoch is a fair one to judge by. A short last batch is left
    out: a covariance needs samples.
    """
    epochs, batch_size = settings["epochs"], settings["batch_size"]
    optimizer = torch.optim.Adam(net.parameters(), lr=settings["rate"])
    batches = max(1, len(x) // batch_size)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * batches)
    times = StepTimes()
    for _ in range(epochs):
        order = torch.randperm(len(x), generator=generator)
        for rows in order[: batches * batch_size].chunk(batches):
            with times.step():
                optimizer.zero_grad()
                loss(x[rows], net(x[rows]), y[rows]).backward()
                optimizer.step()
                schedule.step()
    return times
