"""Ratios of training steps and of the divergence kernel, for the table of `benchmarks/user.py`.

Ratios compare processor time of calls that take turns in one process, the shortest of several
rounds. ``rows(before, after)`` measures two checkouts, each in a process of its own. Alone:

    python benchmarks/user_steps.py      # this version

torch is imported where it is used: processes that `user.py` starts would inherit its memory.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from user_rows import Row, run

HERE = Path(__file__).resolve()
SMALL_RIDGE = 1e-5


class Goal(NamedTuple):
    """What a ratio was said to be before, what it is to be, and the work in words."""

    stated: float
    aim: float
    work: str
    more_is_better: bool = False


GOALS = {
    "align": Goal(2.0, 1.5, "a step of `align` / a plain step, table shape"),
    "mdd": Goal(4.1, 2.5, "an adversarial step of `mdd_paper` / a plain step, Amazon shape"),
    "500": Goal(3.5, 8, "`eigh` / `response_divergence`, 7 x 300 x 500, ridge 1e-5", True),
    "1000": Goal(16, 50, "`eigh` / `response_divergence`, 7 x 300 x 1000, ridge 1e-5", True),
    "rsp": Goal(1.2, 1.1, "a step of `rsp` at task 50 / at task 2"),
    "covp": Goal(1.9, 1.5, "a step of `covp` / a plain step"),
}


def adaptation_steps() -> Iterator[tuple[str, float]]:
    """Steps that adapt against plain ones: aligned at a table's shape, MDD at Amazon's."""
    from adaptation import AMAZON, FIXED, TABLE, training, world
    from measure import shortest
    from vntransfer import SourceOnlyRegressor
    from vntransfer.adaptation import METHODS

    for name, method, shape, rounds in (
        ("align", "align", TABLE, 15),
        ("mdd", "mdd_paper", AMAZON, 5),
    ):
        data = world(shape)
        runs = {
            "plain": training(SourceOnlyRegressor, shape, data),
            "own": training(METHODS[method].make, shape, data, **FIXED[method]),
        }
        times = shortest(runs, rounds)
        yield name, times["own"] / times["plain"]


def small_ridge() -> Iterator[tuple[str, float]]:
    """`response_divergence` with a small absolute ridge against plain `eigh`."""
    import torch

    from core import plain, sample, step
    from measure import shortest
    from vntransfer import response_divergence

    def ours(*arrays: Any) -> Any:
        return response_divergence(*arrays, ridge=SMALL_RIDGE)

    for d in (500, 1000):
        arrays = sample(300, d, torch.float32)
        runs = {
            "plain": step(partial(plain, ridge=SMALL_RIDGE), arrays),
            "ours": step(ours, arrays),
        }
        times = shortest(runs, 4)
        yield str(d), times["plain"] / times["ours"]


def continual_steps() -> Iterator[tuple[str, float]]:
    """RSP late in a stream against early, and covp against plain descent."""
    from continual import STEPS, at_task, task
    from measure import shortest
    from vntransfer.continual import train

    block = task(STEPS, seed=99)
    methods = {
        "rsp 2": at_task("rsp", 2),
        "rsp 50": at_task("rsp", 50),
        "covp": at_task("covp", 3),
        "sgd": at_task("sgd", 3),
    }
    times = shortest({n: partial(train, m.model, block, m) for n, m in methods.items()}, 15)
    yield "rsp", times["rsp 50"] / times["rsp 2"]
    yield "covp", times["covp"] / times["sgd"]


def ratios() -> Iterator[tuple[str, float]]:
    """All of them, of the package that is imported, with one thread."""
    import torch

    torch.set_num_threads(1)
    yield from adaptation_steps()
    yield from small_ridge()
    yield from continual_steps()


def rows(before: Path, after: Path) -> Iterator[Row]:
    """Measure two checkouts."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for tree in (before, after):
            out = Path(folder) / "ratios"
            run(tree, [HERE, "--out", out])
            found.append(json.loads(out.read_text(encoding="utf-8")))
    old, new = found
    for name, goal in GOALS.items():
        work, stated, aim, more = goal.work, goal.stated, goal.aim, goal.more_is_better
        yield Row(work, old[name], new[name], "x", stated, aim, more_is_better=more)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    measured = {}
    for name, ratio in ratios():
        measured[name] = ratio
        print(f"{GOALS[name].work:<70} {ratio:6.2f} x", flush=True)
    if given.out:
        given.out.write_text(json.dumps(measured), encoding="utf-8")
