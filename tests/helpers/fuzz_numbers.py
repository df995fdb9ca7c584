"""Attacks on numbers in memory: divergences, estimators and loops of continual learning."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from helpers import oracles, tiny, worlds
from helpers.fuzzing import Part, require
from vntransfer import DIVERGENCES, load, response_divergence
from vntransfer.adaptation import METHODS
from vntransfer.continual import METHODS as CONTINUAL
from vntransfer.continual import ContinualMethod, Task, default_loss

EPS = float(np.finfo(np.float64).eps)


def numeric(seed: int, place: Path) -> str:
    """Divergences of matrices and samples of any scale, rank and type against 50 digits."""
    rng = np.random.default_rng(seed)
    kind = torch.float32 if rng.random() < 0.3 else torch.float64
    # mostly small: 50 digits of large matrices take long
    scale, d = 10 ** rng.uniform(-6, 6), int(rng.integers(2, 5 if rng.random() < 0.97 else 10))
    if rng.random() < 0.5:
        return _samples(rng, kind, scale, d)
    return _matrices(rng, kind, scale, d)


def _samples(rng: np.random.Generator, kind: torch.dtype, scale: float, d: int) -> str:
    """Three digits of J are promised, whatever cancels."""
    n = int(rng.integers(2, d + 1 if rng.random() < 0.5 else 10))
    rank, m = int(rng.integers(1, d + 1)), int(rng.choice([1, 1, 1, 2, 3]))
    x = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) * scale
    ratio = 10 ** (rng.uniform(-6, 6) if rng.random() < 0.5 else 0.0)
    ends = rng.normal(size=(2, n, m)) * scale * ratio
    if rng.random() < 0.2:
        ends[1] = ends[0] + ends[1] * 10 ** rng.uniform(-5, 0)
    if m > 1 and rng.random() < 0.3:  # responses that depend on each other
        ends[..., 1] = ends[..., 0] * rng.normal() + ends[..., 1] * 10 ** rng.uniform(-9, 0)
    for part in (x, *ends) if rng.random() < 0.2 else ():  # columns far from zero
        part += part.std() * 10 ** rng.uniform(0, 7)
    features, a, b = (torch.tensor(v).to(kind) for v in (x, *ends))
    ridge = float(torch.tensor(scale**2 * 10 ** rng.uniform(-4, 0)).to(kind))
    got = float(response_divergence(features, a, b, ridge=ridge))
    exact = [oracles.exact(part) for part in (features, a, b)]
    want = float(oracles.response_divergence(exact[0], exact[1], exact[2], ridge))
    require(abs(got - want) <= 1e-3 * abs(want), f"got {got!r}, expected {want!r}")
    return "right"


def _matrices(rng: np.random.Generator, kind: torch.dtype, scale: float, d: int) -> str:
    """Three digits, or what rounding the matrices changes."""
    name = str(rng.choice(sorted(oracles.ORACLES)))
    spread = rng.uniform(0, 3 if kind == torch.float64 else 1)

    def matrix(scale: float) -> Any:
        q = np.linalg.qr(rng.normal(size=(d, d)))[0]
        m = (q * 10 ** rng.uniform(-spread, spread, d)) @ q.T * scale
        return (m + m.T) / 2

    one, two = matrix(scale), matrix(scale)
    if rng.random() < 0.2:
        two = one + two * 10 ** rng.uniform(-6, 0)
    pair = [torch.tensor(m).to(kind) for m in (one, two)]
    got = float(DIVERGENCES[name].function(*pair))
    want = float(oracles.ORACLES[name](*map(oracles.exact, pair)))
    root = DIVERGENCES[name].degree == 0.5  # of something that cancels: compared by its square
    found, expected = (got**2, want**2) if root else (got, want)
    size = 10 ** (2 * spread) * scale ** (1.0 if root else DIVERGENCES[name].degree)
    room = 1e-3 * abs(expected) + 1e3 * EPS * size
    require(abs(found - expected) <= room, f"{name}: got {got!r}, expected {want!r}")
    return "right"


def _world(rng: np.random.Generator) -> worlds.World:
    x, y, domain = worlds.easy(int(rng.integers(12, 40)), int(rng.integers(1000)))
    x, y = x * 10 ** rng.uniform(-5, 5), y * 10 ** rng.uniform(-5, 5)
    for column in range(x.shape[1]):
        if rng.random() < 0.2:
            x[:, column] = rng.choice([0.0, 1e12, float(x[0, column])])
    if rng.random() < 0.2:
        bad = rng.choice([np.nan, np.inf, 1e308, -1e200, 1e155, 1e99, 1e30])
        part = x if rng.random() < 0.5 else y
        part[tuple(rng.integers(part.shape))] = bad
    keep = rng.random(len(x)) < rng.choice([1.0, 0.5, 0.1])
    kind = np.float32 if rng.random() < 0.2 else np.float64
    with np.errstate(over="ignore"):
        return x[keep].astype(kind), y[keep], domain[keep]


def estimators(seed: int, place: Path) -> str:
    """Any method on hostile data: finite predictions, the same again, and after loading."""
    rng = np.random.default_rng(seed)
    x, y, domain = _world(rng)
    names = sorted(METHODS)
    names = [name for name in names if name != "auto" or rng.random() < 0.1]  # which takes long
    method = METHODS[str(rng.choice(names))]
    short: dict[str, Any] = {"epochs": 1, "steps": 4, "batch_size": 8} if method.neural else {}
    if "random_state" in method.make().get_params():
        short["random_state"] = 0
    one, two = (method.make(**short).fit(x, y, sample_domain=domain) for _ in range(2))
    rows = x[np.isfinite(x).all(1)]
    predicted, name = one.predict(rows), method.estimator.__name__
    require(np.isfinite(predicted).all(), f"{name} predicts what is not finite")
    require(np.array_equal(predicted, two.predict(rows)), f"{name} is not reproducible")
    one.save(place / "model")
    again = load(place / "model").predict(rows)
    require(np.array_equal(predicted, again), f"{name} predicts something else when loaded")
    return "right"


def _network(rng: np.random.Generator, outputs: int) -> nn.Module:
    """A chain of dense layers, also with batch normalization, a shared or a frozen layer."""
    model = tiny.net(outputs)
    way = rng.choice(["plain", "plain", "normalized", "tied", "frozen"])
    if way == "normalized":
        model.insert(1, nn.BatchNorm1d(12))
    elif way == "tied":
        one, two = nn.Linear(6, 6), nn.Linear(6, 6)
        two.weight = one.weight
        model = nn.Sequential(one, nn.ReLU(), two, nn.ReLU(), nn.Linear(6, outputs))
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.from_numpy(rng.normal(0, 0.4, p.shape)))
    elif way == "frozen":
        list(model.parameters())[rng.integers(4)].requires_grad_(False)
    return model


def _accumulate(method: ContinualMethod, task: Task, lr: float) -> None:
    """Learn a task in a loop of your own with a step after every second batch."""
    optimizer = torch.optim.SGD(method.parameters, lr=lr)
    method.use(optimizer)
    method.before_task()
    for k, (x, y) in enumerate(task.batches(2)):
        a, b = method.observe(x, y)
        (default_loss(method.model(a), b) / 2).backward()
        if k % 2:
            method.adjust_gradients()
            optimizer.step()
            optimizer.zero_grad()
            method.after_step()
    method.after_task()


def continual(seed: int, place: Path) -> str:
    """Any method, network and loop on tasks of any scale: finite, and frozen layers rest."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(sorted(CONTINUAL)))
    make_tasks = tiny.classes if rng.random() < 0.5 else tiny.responses
    tasks = make_tasks(3, 2 * int(rng.integers(1, 5)))  # even: nothing normalizes a single row
    scale, lr = float(10 ** rng.uniform(-6, 6)), float(10 ** rng.uniform(-6, 0))
    tasks = [replace(task, x=task.x * scale) for task in tasks]
    model = _network(rng, 1 if tasks[0].y.is_floating_point() else 3)
    loop = str(rng.choice(["own", "own", "autocast", "accumulated", "copied", "compiled"]))
    if loop == "compiled" and rng.random() < 0.05:  # which takes long
        model.compile(backend="eager")
    resting = [(p, p.detach().clone()) for p in model.parameters() if not p.requires_grad]
    method = tiny.make(name, model)
    for k, task in enumerate(tasks):
        if loop == "accumulated" and not method.whole_step:
            _accumulate(method, task, lr)
            continue
        with torch.autocast("cpu", torch.bfloat16, enabled=loop == "autocast"):
            if loop == "copied" and k == 1:
                twin = copy.deepcopy(method)
                tiny.learn(twin, [task], lr=lr)
            tiny.learn(method, [task], lr=lr)
            if loop == "copied" and k == 1:
                same = torch.equal(tiny.flat(twin.model), tiny.flat(model))
                require(same, f"{name}: a copy learns something else")
    state: dict[str, Tensor] = model.state_dict()
    require(all(v.isfinite().all() for v in state.values()), f"{name}: not finite")
    require(all(torch.equal(p, old) for p, old in resting), f"{name}: a frozen layer moved")
    return "right"


PARTS: Mapping[str, Part] = {
    "numeric": numeric,
    "estimators": estimators,
    "continual": continual,
}
