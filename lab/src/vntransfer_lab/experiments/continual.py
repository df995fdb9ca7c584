"""``continual``: streams of tasks, learned one after another by each method.

A cell learns one stream with one seed (of the stream and of the network) and reports, in percent,
the accuracy on every task seen so far after each task (``task/j``), and at the end RA, LA and BT.

Hyper-parameters that a preset gives as lists are chosen by RA on another stream: other seed, hence
other permutations or angles and other rows, with test pictures held out of the training part (of
Omniglot: other alphabets). The
rule "short_stream" uses the paper's 5 tasks of 300 samples, "full_stream" the table's own length;
"fixed" accepts one value each. A candidate that diverges has an RA of 0 where the method notices it
(`DivergedError`), and otherwise that of guessing: a network of NaN answers with the first class.
The choice is the same for all seeds of a method, and the cells that it is made from are computed
once (see `vntransfer_lab.experiments.continual_search`).
"""

import json
from collections.abc import Generator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from vntransfer.errors import DivergedError
from vntransfer.step_times import StepTimes
from vntransfer.storage.files import fingerprint
from vntransfer_lab.errors import PresetError
from vntransfer_lab.experiments.continual_figures import figures
from vntransfer_lab.experiments.continual_methods import VARIANTS, options
from vntransfer_lab.experiments.continual_report import tables
from vntransfer_lab.experiments.continual_search import SETTINGS, candidates, choose, first
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.checkpoints import scratch
from vntransfer_lab.runner.kinds import CellSteps, Kind
from vntransfer_lab.runner.metering import TimedRun
from vntransfer_lab.runner.options import Option, Settings

if TYPE_CHECKING:
    from vntransfer.continual import Task

STREAMS = (
    "mnistP",
    "mnistR",
    "mnistS",
    "fashionP",
    "fashionS",
    "notmnistP",
    "digitsP",
    "omniglot",
)
WATCHING = "rsp_watching"


def _check(data: str) -> None:
    if data not in STREAMS:
        raise PresetError(f"data: continual needs one of {', '.join(STREAMS)}, got {data!r}")


def _canonical(data: str, settings: Settings) -> Settings:
    """Set what a stream does not have to one value."""
    unused = {"mnistR": ("size", "channels"), "omniglot": ("n_test", "max_angle")}
    names = unused.get(data, ("size", "channels", "max_angle"))
    return {**settings, **{name: KIND.settings[name].default for name in names}}


@lru_cache(maxsize=8)
def _files(data: str) -> str:
    """Hashes of the files that a stream is made of; how it is made is the version's matter."""
    from vntransfer_lab.data import TaskStream, load

    _check(data)
    few: dict[str, Any] = {} if data == "omniglot" else {"n_train": 2, "n_test": 2}
    loaded = load(data, n_tasks=1, **few)
    found = loaded.provenance.sha256
    if not found and isinstance(loaded, TaskStream):  # embedded
        return fingerprint(loaded[0].x, loaded[0].x_test)
    return " ".join(f"{name}:{value}" for name, value in sorted(found.items()))


@lru_cache(maxsize=2)
def _stream(data: str, chosen: str) -> "list[Task]":
    from vntransfer.continual import as_tasks
    from vntransfer_lab.data import load

    return as_tasks(load(data, **json.loads(chosen)))


def _tasks(data: str, settings: Settings, seed: int) -> "list[Task]":
    """Tasks of a stream; the last ones are kept for the next cell."""
    _check(data)
    own = {"omniglot": ["size"], "mnistR": ["n_test", "max_angle"]}.get(data, ["n_test"])
    names = ("n_tasks", "n_train", "held_out", *own)
    chosen: dict[str, Any] = {name: settings[name] for name in names} | {"seed": seed}
    return _stream(data, json.dumps(chosen, sort_keys=True))


def _make(name: str, hyper: Settings, settings: Settings, tasks: "list[Task]", seed: int) -> Any:
    """Network and method."""
    import torch

    from vntransfer.continual import METHODS, Heads, MultiHead, character_cnn, dense

    variant = VARIANTS[name]
    chosen = {**variant.options, **{key: hyper[key] for key in variant.tuned}}
    memory, fisher = settings["memory"], settings["fisher_samples"]
    if variant.memory == "fisher":
        chosen["fisher_samples"] = fisher or None
    elif variant.memory:
        chosen["memory"] = memory * (len(tasks) if variant.memory == "stream" else 1)
    if "replay" in chosen:
        chosen["replay"] = round(chosen["replay"])
    generator = torch.Generator().manual_seed(seed)
    sizes = [tasks[0].x[0].numel(), *settings["hidden"]]
    if tasks[0].columns is None:
        return METHODS[variant.id](dense([*sizes, 10], generator=generator), **chosen)
    heads = Heads([task.columns.stop - task.columns.start for task in tasks if task.columns])
    if tasks[0].x.dim() == 2:
        body = dense(sizes, generator=generator).append(torch.nn.ReLU())
        model = MultiHead(body, sizes[-1], heads.sizes, generator=generator)
    else:
        model = character_cnn(
            heads.sizes,
            size=settings["size"],
            channels=settings["channels"],
            hidden=sizes[-1],
            generator=generator,
        )
    return METHODS[variant.id](model, criterion=heads, **chosen)


def _learn(
    name: str,
    hyper: Settings,
    settings: Settings,
    tasks: "list[Task]",
    seed: int,
    stage: str = "stream",
) -> Generator[tuple[list[float], list[float]], None, StepTimes]:
    """After each task: accuracies in percent on all tasks so far, and their divergences from it.

    Divergences are those of a method that watches them. An interrupted stream goes on where its
    last checkpoint was written, in the midst of a task as well; ``stage`` names its file.
    """
    from vntransfer.continual import load_checkpoint, save_checkpoint, score, steps
    from vntransfer.continual.descent import Descent

    method = _make(name, hyper, settings, tasks, seed)
    optimizer = Descent(method.parameters, lr=hyper["lr"])
    epochs = hyper["epochs"] or settings["epochs"]
    kept = scratch()
    file = None if kept is None else kept / f"{stage}.safetensors"
    learned: list[tuple[list[float], list[float]]] = []
    start, times = 0, StepTimes()
    if file is not None and file.path.exists():
        place = load_checkpoint(file.path, method.model, method)
        learned, start = place["learned"], place["step"]
        yield from learned

    def keep(step: int) -> None:
        if file is not None and file.pace.due():
            place = {"learned": learned, "step": step}
            save_checkpoint(file.path, method.model, method, position=place)

    for i in range(len(learned), len(tasks)):
        if not start:
            method.before_task()
        spent = StepTimes()
        for step in steps(
            method.model,
            tasks[i],
            method,
            optimizer=optimizer,
            batch_size=hyper["batch_size"] or settings["batch_size"],
            epochs=epochs,
            random_state=seed if epochs > 1 else None,  # a single pass keeps the order of the rows
            start=start,
        ):
            keep(step.made)
            spent = step.times
        times += spent
        method.after_task()
        start = 0
        accuracies = [100 * score(method.model, seen) for seen in tasks[: i + 1]]
        learned.append((accuracies, _mean_divergences(method) if name == WATCHING and i else []))
        keep(0)
        yield learned[-1]
    method.close()
    return times


def _final(trial: Cell) -> float:
    """RA of a cell of the search, for a cell that was not given it."""
    tasks = _tasks(trial.data, trial.settings, trial.seed)
    (hyper,) = candidates(trial.method, trial.hyper, trial.settings)
    stage = f"search-{trial.key}"
    try:
        *_, (last, _) = _learn(trial.method, hyper, trial.settings, tasks, trial.seed, stage)
    except DivergedError:
        return 0.0
    return float(np.mean(last))


def _run(cell: Cell) -> CellSteps:
    try:
        return (yield from _stream_of(cell))
    except DivergedError:
        if not cell.settings["held_out"]:
            raise
        yield cell.settings["n_tasks"], {"ra": 0.0, "la": 0.0, "bt": 0.0}
        return StepTimes()


def _stream_of(cell: Cell) -> CellSteps:
    """After each task: what was found on all tasks so far, and at the end what it comes to."""
    hyper = choose(cell, _final)
    tasks = _tasks(cell.data, cell.settings, cell.seed)
    T = len(tasks)
    R = np.full((T, T), np.nan)
    pairs: list[tuple[float, float, int]] = []
    learned = TimedRun(_learn(cell.method, hyper, cell.settings, tasks, cell.seed))
    for i, (row, divergences) in enumerate(learned):
        R[i, : i + 1] = row
        found = {f"task/{j}": value for j, value in enumerate(row)}
        for j, divergence in enumerate(divergences):
            found |= {f"divergence/{j}": divergence, f"drop/{j}": R[i - 1, j] - R[i, j]}
            pairs.append((divergence, R[i - 1, j] - R[i, j], i - j))
        yield i + 1, found
    ra, la = float(R[-1].mean()), float(np.diag(R).mean())
    last = {"ra": ra, "la": la, "bt": ra - la}
    last |= {f"chosen/{key}": float(hyper[key]) for key in ("lr", *VARIANTS[cell.method].tuned)}
    yield T, last | _correlations(pairs)
    return learned.step_times


def _mean_divergences(method: Any) -> list[float]:
    """Divergence of each earlier task from the present one, mean over modules of all layers."""
    import torch

    if not method.divergences:  # tasks of fewer samples than it takes to compute them
        return []
    D = torch.cat([layer.double() for layer in method.divergences], 1)
    return [float(value) for value in D.mean(1)]


def _correlations(pairs: list[tuple[float, float, int]]) -> dict[str, float]:
    """Spearman's correlation of divergence and drop: over all pairs, and next neighbors only."""
    from scipy.stats import spearmanr

    found = {}
    for name, chosen in (
        ("correlation", pairs),
        ("correlation/next", [pair for pair in pairs if pair[2] == 1]),
    ):
        D, drop = [pair[0] for pair in chosen], [pair[1] for pair in chosen]
        if len(set(D)) > 2 and len(set(drop)) > 2:
            found[name] = float(spearmanr(D, drop).statistic)
    return found


KIND = Kind(
    name="continual",
    summary="streams of tasks: retained and learning accuracy, backward transfer",
    version=1,
    metric="ra",
    settings={
        "n_tasks": Option(10, low=1),
        "n_train": Option(1000, low=2),
        "n_test": Option(10_000, low=2),
        "batch_size": Option(1, low=1),
        "epochs": Option(1, low=1),
        "memory": Option(10, low=0),
        "fisher_samples": Option(10, low=0),
        "hidden": Option([100, 100], low=1),
        "max_angle": Option(90.0, low=1, high=360),
        "size": Option(28, low=16, high=105),
        "channels": Option(64, low=1),
        "lr": Option(0.0, low=0),  # 0: the method's own
        "strength": Option(0.0, low=0),
        "held_out": Option(False),  # test rows are of the training part; other alphabets
        **SETTINGS,
    },
    methods=options(),
    targets=lambda data, settings: [data],
    fingerprint=lambda data, settings: _files(data),
    run=_run,
    canonical=_canonical,
    tables=tables,
    figures=figures,
    first=first,
    higher_is_better=True,
)
