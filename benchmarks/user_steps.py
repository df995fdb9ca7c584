"""Ratios of training steps and of the divergence kernel: importable, for `benchmarks/user.py`.

Each function returns rows of (work, ratio). Ratios compare processor time of calls that take turns
in one process, the shortest of several rounds.

python benchmarks/user_steps.py
"""

from functools import partial

import torch
from torch import Tensor

from adaptation import AMAZON, FIXED, TABLE, training, world
from continual import STEPS, at_task, task
from core import plain, sample, step
from measure import shortest
from vntransfer import SourceOnlyRegressor, response_divergence
from vntransfer.adaptation import METHODS
from vntransfer.continual import train

Row = tuple[str, float]
SMALL_RIDGE = 1e-5


def adaptation_steps() -> list[Row]:
    """Steps that adapt against plain ones: aligned at a table's shape, MDD at Amazon's."""
    rows = []
    for title, method, shape, rounds in (
        ("an aligned step / plain step, table shape", "align", TABLE, 15),
        ("an adversarial MDD step / plain step, Amazon shape", "mdd_paper", AMAZON, 5),
    ):
        data = world(shape)
        runs = {
            "plain": training(SourceOnlyRegressor, shape, data),
            "own": training(METHODS[method].make, shape, data, **FIXED[method]),
        }
        times = shortest(runs, rounds)
        rows.append((title, times["own"] / times["plain"]))
    return rows


def small_ridge() -> list[Row]:
    """`response_divergence` with a small absolute ridge against plain `eigh`."""

    def ours(*arrays: Tensor) -> Tensor:
        out: Tensor = response_divergence(*arrays, ridge=SMALL_RIDGE)
        return out

    rows = []
    for d in (500, 1000):
        arrays = sample(300, d, torch.float32)
        runs = {
            "plain": step(partial(plain, ridge=SMALL_RIDGE), arrays),
            "ours": step(ours, arrays),
        }
        times = shortest(runs, 4)
        title = f"plain eigh / response_divergence, 7 x 300 x {d}, ridge {SMALL_RIDGE:g}"
        rows.append((title, times["plain"] / times["ours"]))
    return rows


def continual_steps() -> list[Row]:
    """RSP late in a stream against early, and covp against plain descent."""
    block = task(STEPS, seed=99)
    methods = {
        "rsp 2": at_task("rsp", 2),
        "rsp 50": at_task("rsp", 50),
        "covp": at_task("covp", 3),
        "sgd": at_task("sgd", 3),
    }
    times = shortest({n: partial(train, m.model, block, m) for n, m in methods.items()}, 15)
    return [
        ("rsp: a step at task 50 / at task 2", times["rsp 50"] / times["rsp 2"]),
        ("covp: a step / plain step", times["covp"] / times["sgd"]),
    ]


def rows() -> list[Row]:
    """All of them."""
    return [*adaptation_steps(), *small_ridge(), *continual_steps()]


if __name__ == "__main__":
    torch.set_num_threads(1)
    for work, ratio in rows():
        print(f"{work:<70} {ratio:6.2f} x", flush=True)
