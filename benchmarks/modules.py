"""Are the modules of RSP a property of a network, and independent of each other?

A network 784-100-100-10 learns the first task of mnistP; its hidden units are then grouped five
times, each time as the best of eleven starts of EM. Prints, over these partitions, the mean
adjusted Rand index of pairs (0 is chance, 1 equality), and the mean absolute correlation of two
units' activations on the task's samples: in different groups, in one group, and in different groups
that are drawn at random with the same sizes. The tables of docs/continual-methods.md.

    python benchmarks/modules.py [--seed 0]
"""

import argparse
from dataclasses import dataclass
from itertools import combinations
from statistics import mean
from typing import Literal

import torch
from sklearn.metrics import adjusted_rand_score
from torch import Tensor, nn

from vntransfer.continual import RSP, SGD, as_tasks, dense, train
from vntransfer.continual._unit_groups import Junction, find_groups
from vntransfer_lab.data import load

PARTITIONS = 5


@dataclass(frozen=True)
class Layer:
    """A hidden layer: its connections, and |correlation| of its units' activations."""

    junction: Junction
    correlation: Tensor


def learned(seed: int) -> list[Layer]:
    """The hidden layers after the first task."""
    model = dense([784, 100, 100, 10], generator=torch.Generator().manual_seed(seed))
    (task,) = as_tasks(load("mnistP", n_tasks=1, n_test=2, seed=seed))
    plain = SGD(model)
    plain.before_task()
    train(model, task, plain)
    junctions = RSP(model).junctions
    return [
        Layer(junction, units.T.corrcoef().abs())
        for junction, units in zip(junctions, activations(model, task.x), strict=True)
    ]


@torch.no_grad()
def activations(model: nn.Sequential, x: Tensor) -> list[Tensor]:
    """Outputs of the rectifiers."""
    found = []
    for layer in model:
        x = layer(x)
        if isinstance(layer, nn.ReLU):
            found.append(x)
    return found


def partitions(
    junction: Junction, groups: int, threshold: float | Literal["median"]
) -> list[Tensor]:
    """Groups of one layer from different starts."""
    return [
        find_groups(
            junction.incoming(),
            junction.outgoing(),
            groups,
            threshold=threshold,
            generator=torch.Generator().manual_seed(start),
        )
        for start in range(PARTITIONS)
    ]


def agreement(found: list[Tensor]) -> float:
    """Mean adjusted Rand index of pairs."""
    return mean(adjusted_rand_score(a, b) for a, b in combinations(found, 2))


def dependence(correlation: Tensor, found: list[Tensor]) -> tuple[float, float, float]:
    """Mean |correlation| between groups, within them, between random ones; dead units left out."""
    generator = torch.Generator().manual_seed(0)
    pairs = correlation.isfinite() & ~torch.eye(len(correlation), dtype=torch.bool)

    def among(chosen: Tensor) -> float:
        return float(correlation[pairs & chosen].mean())

    def apart(groups: Tensor) -> Tensor:
        return groups[:, None] != groups

    drawn = [groups[torch.randperm(len(groups), generator=generator)] for groups in found]
    return (
        mean(among(apart(groups)) for groups in found),
        mean(among(~apart(groups)) for groups in found),
        mean(among(apart(groups)) for groups in drawn),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    layers = learned(parser.parse_args().seed)
    print("| | layer | agreement | between groups | within | between random groups |")
    print("| --- | --- | --- | --- | --- | --- |")
    for threshold in (0.069, "median"):
        name = "the median" if threshold == "median" else f"{threshold:g}".lstrip("0")
        for groups in (5, 20):
            for number, layer in enumerate(layers, 1):
                found = partitions(layer.junction, groups, threshold)
                values = (agreement(found), *dependence(layer.correlation, found))
                shown = " | ".join(f"{value:.2f}".lstrip("0") for value in values)
                print(f"| K = {groups}, bonds above {name} | {number} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
