"""Cost of protection: ratios of steps, streams and Fisher information, measured in one run.

python benchmarks/continual.py
python benchmarks/continual.py --tables  # what `auto` of `vnt learn` chooses, and its worth

Times are processor seconds of one thread, the shortest of several alternating rounds, because other
load only adds time. Images are random numbers of MNIST's shape, because times do not depend on
their content.
"""

import sys
from functools import partial
from typing import Any

import numpy as np
import torch

from measure import shortest
from vntransfer.continual import METHODS, ContinualMethod, Task, accuracy_matrix, dense, train
from vntransfer.continual import default_loss as loss_of
from vntransfer.continual._fisher import diagonal_fisher

STEPS = 100
CONSTANT = ("ewc", "rsp", "l2", "si")


def task(n: int, n_test: int = 0, *, seed: int = 0) -> Task:
    g = torch.Generator().manual_seed(seed)

    def rows(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        ink = torch.rand(count, 784, generator=g) * (torch.rand(count, 784, generator=g) < 0.2)
        return ink, torch.randint(10, (count,), generator=g)

    return Task(*rows(n), *(rows(n_test) if n_test else ()))


def make(name: str) -> ContinualMethod:
    net = dense([784, 100, 100, 10], generator=torch.Generator().manual_seed(0))
    return METHODS[name](net)


def at_task(name: str, number: int, n: int = 60) -> ContinualMethod:
    """A method in the midst of task ``number``, statistics of that task begun."""
    method = make(name)
    for t in range(number):
        method.before_task()
        train(method.model, task(n, seed=t), method)
        if t < number - 1:
            method.after_task()
    return method


def show(what: str, ratio: float, bound: str) -> None:
    print(f"{what:<58} {ratio:6.2f} x   ({bound})", flush=True)


def growth() -> None:
    """A step late in a stream against an early one."""
    block = task(STEPS, seed=99)
    for name in CONSTANT:
        early, late = at_task(name, 2), at_task(name, 50)
        times = shortest(
            {
                "early": partial(train, early.model, block, early),
                "late": partial(train, late.model, block, late),
            }
        )
        show(f"{name}: a step at task 50 / at task 2", times["late"] / times["early"], "<= 1.1")


def steps() -> None:
    """A step of each method against plain descent, in the third task."""
    block = task(STEPS, seed=99)
    methods = {name: at_task(name, 3) for name in METHODS}
    times = shortest({n: partial(train, m.model, block, m) for n, m in methods.items()})
    print(f"a step of plain descent: {times['sgd'] / STEPS * 1e6:.0f} microseconds")
    bounds = {"rsp": "<= 2.5", "covp": "<= 1.5"}
    for name in methods:
        if name != "sgd":
            show(f"{name}: a step / one of sgd", times[name] / times["sgd"], bounds.get(name, "-"))


def stream() -> None:
    """A whole stream with evaluation on all tasks after each."""
    tasks = [task(1000, 10_000, seed=t) for t in range(10)]

    def whole(name: str) -> None:
        method = make(name)
        accuracy_matrix(method.model, tasks, method)

    times = shortest({name: partial(whole, name) for name in ("sgd", "rsp")}, rounds=2)
    print(f"stream of 10 x 1000 with sgd and evaluation: {times['sgd']:.1f} s")
    show("the same with rsp / with sgd", times["rsp"] / times["sgd"], "<= 3")


def fisher() -> None:
    """Per-sample gradients by torch.func against one backward pass per sample."""
    method, data = make("sgd"), task(200)

    def loop() -> None:
        total = [torch.zeros_like(p) for p in method.parameters]
        for x, y in data.batches(1):
            loss = loss_of(method.model(x), y)
            parts = torch.autograd.grad(loss, method.parameters)
            torch._foreach_addcmul_(total, parts, parts)

    times = shortest({"loop": loop, "func": lambda: diagonal_fisher(method.model, data.x, data.y)})
    show("Fisher information, loop / torch.func", times["loop"] / times["func"], ">= 2.5")


TABLES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "cal_housing": ("cal_housing", {"k": 8}, "regression"),
    "bike": ("bike", {}, "regression"),
    "landmine": ("landmine", {}, "classification"),
}
ROWS = 400


def tables() -> None:
    """RA of `learn_tasks` on development tables: domains or clusters as tasks, three seeds."""
    from vntransfer import learn_tasks
    from vntransfer_lab.data import Domains, load

    print("RA (errors relative to the standard deviation, or accuracies), mean of three seeds")
    for name, (data, options, kind) in TABLES.items():
        loaded = load(data, **options)
        assert isinstance(loaded, Domains)
        domains = list(loaded.items())[:8]
        for epochs in (1, 5):
            found: dict[str, list[float]] = {}
            for seed in range(3):
                rng = np.random.default_rng(seed)
                parts = [(place, x, y, rng.permutation(len(x))[:ROWS]) for place, (x, y) in domains]
                y = np.concatenate([own[rows] for _, _, own, rows in parts])
                x = np.concatenate([own[rows] for _, own, _, rows in parts])
                table = {f"x{j}": x[:, j] for j in range(x.shape[1])}
                table["task"] = np.repeat([p for p, *_ in parts], [len(p[-1]) for p in parts])
                table["y"] = y
                for method in ("sgd", "covp", "closed_form", "closed_form_covp", "auto"):
                    model = learn_tasks(
                        table,
                        task="task",
                        response="y",
                        method=method,
                        kind=kind,
                        epochs=epochs,
                        random_state=seed,
                    )
                    unit = float(y.std()) if kind == "regression" else 1.0
                    found.setdefault(method, []).append(model.scores()["RA"] / unit)
                    if method == "auto":
                        found.setdefault("chose closed_form", []).append(
                            float(model.method == "closed_form")
                        )
            shown = ", ".join(f"{key} {np.mean(own):.3f}" for key, own in found.items())
            print(f"{name}, {epochs} passes: {shown}", flush=True)


def main() -> None:
    torch.set_num_threads(1)
    if "--tables" in sys.argv[1:]:
        tables()
        return
    fisher()
    steps()
    growth()
    stream()


if __name__ == "__main__":
    main()
