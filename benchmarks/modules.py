"""Are the modules of RSP a property of a network? Partitions of one network from different starts.

A network 784-100-100-10 learns the first task of mnistP; its hidden units are then grouped five
times, each time as the best of eleven starts of EM. Prints the mean adjusted Rand index over pairs
of partitions (0 is chance, 1 equality), the table of docs/continual-methods.md.

    python benchmarks/modules.py [--seed 0]
"""

import argparse
from itertools import combinations
from statistics import mean
from typing import Literal

import torch
from sklearn.metrics import adjusted_rand_score

from vntransfer.continual import RSP, SGD, as_tasks, dense, train
from vntransfer.continual._layers import Junction
from vntransfer.continual._modules import find_groups
from vntransfer.data import load

PARTITIONS = 5


def learnt(seed: int) -> RSP:
    """A network after the first task, with its layers as RSP sees them."""
    model = dense([784, 100, 100, 10], generator=torch.Generator().manual_seed(seed))
    (task,) = as_tasks(load("mnistP", n_tasks=1, n_test=2, seed=seed))
    plain = SGD(model)
    plain.before_task()
    train(model, task, plain)
    return RSP(model)


def agreement(junction: Junction, groups: int, threshold: float | Literal["median"]) -> float:
    """Mean adjusted Rand index of the partitions of one layer."""
    found = [
        find_groups(
            junction.incoming(),
            junction.outgoing(),
            groups,
            threshold=threshold,
            generator=torch.Generator().manual_seed(start),
        )
        for start in range(PARTITIONS)
    ]
    return mean(adjusted_rand_score(a, b) for a, b in combinations(found, 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    method = learnt(parser.parse_args().seed)
    print("| | hidden layer 1 | hidden layer 2 |\n| --- | --- | --- |")
    for threshold in (0.069, "median"):
        name = "the median" if threshold == "median" else f"{threshold:g}".lstrip("0")
        for groups in (5, 20):
            found = [agreement(junction, groups, threshold) for junction in method.junctions]
            values = " | ".join(f"{value:.2f}".lstrip("0") for value in found)
            print(f"| K = {groups}, bonds above {name} | {values} |", flush=True)


if __name__ == "__main__":
    main()
