"""``continual``: streams of tasks, learned one after another by each method.

A cell learns one stream with one seed (of the stream and of the network) and reports, in percent,
the accuracy on every task seen so far after each task (``task/j``), and at the end RA, LA and BT,
beside the bytes that the network and the method keep (``kept``).

Hyper-parameters that a preset gives as lists are chosen by RA on another stream: other seed, hence
other permutations or angles and other rows, with test pictures held out of the training part (of
Omniglot: other alphabets). The rule "short_stream" uses the paper's 5 tasks of 300 samples,
"full_stream" the table's own length; "fixed" accepts one value each. A candidate that diverges
(`DivergedError`) has an RA of 0; a cell of a table that diverges records that alone. The choice is
the same for all seeds of a method, and the cells that it is made from are computed once (see
`vntransfer_lab.experiments.continual_methods`).
"""

import json
from collections.abc import Generator
from dataclasses import replace
from functools import lru_cache
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import Field

from vntransfer.checks import one_of
from vntransfer.errors import DivergedError
from vntransfer.step_times import StepTimes
from vntransfer.storage.files import fingerprint
from vntransfer.storage.pacing import Paced
from vntransfer_lab.data.registry import DATASETS
from vntransfer_lab.errors import PresetError
from vntransfer_lab.experiments.continual_methods import (
    VARIANTS,
    SearchSettings,
    candidates,
    choose,
    first,
    options,
)
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import CellSteps, Kind, TimedRun
from vntransfer_lab.runner.schema import Natural, Positive, Settings

if TYPE_CHECKING:
    from torch import Tensor

    from vntransfer.continual import Task

ONE_HEAD = {"mnistC": "mnistS", "fashionC": "fashionS"}
"""Streams split by class whose tasks share one head: the task of a test picture is not known."""
STREAMS = (*(name for name, entry in DATASETS.items() if entry.kind == "stream"), *ONE_HEAD)
CHUNK = 5000
"""Test rows whose fixed features are held at once."""
WATCHING = "rsp_watching"


def _unused(data: str) -> tuple[str, ...]:
    """Name the settings that a stream does not have."""
    known = {"mnistR": ("size", "channels"), "omniglot": ("n_test", "max_angle")}
    return known.get(data, ("size", "channels", "max_angle"))


def _canonical(data: str, settings: Settings) -> Settings:
    """Set what a stream does not have to one value."""
    fields = StreamSettings.model_fields
    return {**settings, **{name: fields[name].default for name in _unused(data)}}


@lru_cache(maxsize=8)
def _files(data: str) -> str:
    """Hashes of the files that a stream is made of; how it is made is the version's matter."""
    from vntransfer_lab.data import TaskStream, load

    one_of("data", data, STREAMS, error=PresetError)
    few: dict[str, Any] = {} if data == "omniglot" else {"n_train": 2, "n_test": 2}
    loaded = load(ONE_HEAD.get(data, data), n_tasks=1, **few)
    found = loaded.provenance.sha256
    if not found and isinstance(loaded, TaskStream):  # embedded
        return fingerprint(loaded[0].x, loaded[0].x_test)
    return " ".join(f"{name}:{value}" for name, value in sorted(found.items()))


@lru_cache(maxsize=2)  # for the next cell
def _stream(data: str, chosen: str) -> "list[Task]":
    from vntransfer.continual import as_tasks
    from vntransfer_lab.data import load

    tasks = as_tasks(load(ONE_HEAD.get(data, data), **json.loads(chosen)))
    return [replace(own, columns=None) for own in tasks] if data in ONE_HEAD else tasks


def _tasks(data: str, settings: Settings, seed: int) -> "list[Task]":
    names = {"n_tasks", "n_train", "held_out", "n_test", "size", "max_angle"} - {*_unused(data)}
    chosen: dict[str, Any] = {name: settings[name] for name in names} | {"seed": seed}
    return _stream(data, json.dumps(chosen, sort_keys=True))


def _make(cell: Cell, hyper: Settings, tasks: "list[Task]") -> Any:
    """Network and method."""
    import torch

    from vntransfer import continual

    settings, variant = cell.settings, VARIANTS[cell.method]
    chosen = {**variant.options, **{key: hyper[key] for key in variant.tuned}}
    if variant.memory == "fisher":
        chosen["fisher_samples"] = settings["fisher_samples"] or None
    elif variant.memory:
        chosen["memory"] = settings["memory"] * (len(tasks) if variant.memory == "stream" else 1)
    if "replay" in chosen:
        chosen["replay"] = round(chosen["replay"])
    generator = torch.Generator().manual_seed(cell.seed)
    sizes = [tasks[0].x[0].numel(), *settings["hidden"]]
    criterion: continual.Heads | None = None
    model: torch.nn.Module
    if tasks[0].columns is not None:
        heads = [own.columns.stop - own.columns.start for own in tasks if own.columns]
        criterion = continual.Heads(heads)
    outputs = 10 if criterion is None else sum(criterion.sizes)
    random = {"features": variant.features, "random_state": cell.seed}
    if variant.id == "closed_form":
        model = continual.RandomFeatureNet(outputs, **random)
    elif criterion is None:
        model = continual.dense([*sizes, outputs], generator=generator)
    elif tasks[0].x.dim() == 2:
        body = continual.dense(sizes, generator=generator).append(torch.nn.ReLU())
        model = continual.MultiHead(body, sizes[-1], criterion.sizes, generator=generator)
    else:
        model = continual.character_cnn(
            criterion.sizes,
            size=settings["size"],
            channels=settings["channels"],
            hidden=sizes[-1],
            generator=generator,
        )
    if variant.id == "closed_form_covp":
        model = continual.JoinedNet(model, **random)
    return continual.METHODS[variant.id](model, criterion=criterion, **chosen)


class Learned(NamedTuple):
    """After a task: accuracies in percent on all tasks so far, divergences from it, bytes kept.

    Divergences are those of a method that watches them.
    """

    accuracies: list[float]
    divergences: list[float]
    kept: int = 0


def _learn(
    cell: Cell, hyper: Settings, file: Paced | None = None
) -> Generator[Learned, None, StepTimes]:
    """Learn the stream of a cell, task after task.

    An interrupted stream resumes where its last checkpoint was written to the file, in the middle
    of a task as well.
    """
    from vntransfer.continual import load_checkpoint, save_checkpoint, score, steps
    from vntransfer.continual.descent import Descent

    settings, tasks = cell.settings, _tasks(cell.data, cell.settings, cell.seed)
    method = _make(cell, hyper, tasks)
    optimizer = Descent(method.parameters, lr=hyper["lr"])
    epochs = hyper["epochs"] or settings["epochs"]
    learned: list[Learned] = []
    start, times = 0, StepTimes()
    variant = VARIANTS[cell.method]
    heads: list[list[Tensor]] = []  # of fixed features, whose scores are taken at the end
    if not variant.by_gradients:
        file = None  # seconds, without checkpoints
    if file is not None and file.path.exists():
        place = load_checkpoint(file.path, method.model, method)
        learned, start = [Learned(*own) for own in place["learned"]], place["step"]
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
            # a single pass keeps the order of the rows
            random_state=cell.seed if epochs > 1 else None,
            start=start,
        ):
            keep(step.made)
            spent = step.times
        end = process_time()
        method.after_task()
        spent.seconds += process_time() - end  # what a task costs is not its steps alone
        times += spent
        start = 0
        if not variant.by_gradients:
            heads.append([p.detach().clone() for p in method.model.head.parameters()])
        seen = [] if heads else tasks[: i + 1]
        accuracies = [100 * score(method.model, own) for own in seen]
        watched = cell.method == WATCHING and i > 0
        divergences = _mean_divergences(method) if watched else []
        learned.append(Learned(accuracies, divergences, method.bytes_kept))
        keep(0)
        if not heads:
            yield learned[-1]
    if heads:
        rows = _rows_of_fixed_features(method.model, heads, tasks)
        yield from (own._replace(accuracies=row) for own, row in zip(learned, rows, strict=True))
    method.close()
    return times


def _rows_of_fixed_features(
    model: Any, heads: "list[list[Tensor]]", tasks: "list[Task]"
) -> list[list[float]]:
    """Accuracies after each task, from its head; features of test rows are computed once."""
    import torch

    rows: list[list[float]] = [[] for _ in heads]
    with torch.no_grad():
        for j, own in enumerate(tasks):
            columns = own.columns or slice(0, None)
            right = [0] * len(heads)
            for x, y in zip(own.x_test.split(CHUNK), own.y_test.split(CHUNK), strict=True):
                z = model.random(x)
                for i, (V, c) in enumerate(heads[j:], j):
                    best = torch.addmm(c, z, V.mT)[:, columns].argmax(1) + columns.start
                    right[i] += int((best == y).sum())
            for i in range(j, len(heads)):
                rows[i].append(100 * right[i] / len(own.y_test))
    return rows


def _final(trial: Cell, checkpoint: Paced | None = None) -> float:
    """RA of a cell of the search, for a cell that was not given it."""
    (hyper,) = candidates(trial.method, trial.hyper, trial.settings)
    file = None if checkpoint is None else checkpoint / f"search-{trial.key}.safetensors"
    try:
        *_, last = _learn(trial, hyper, file)
    except DivergedError:
        return 0.0
    return float(np.mean(last.accuracies))


def _run(cell: Cell, checkpoint: Paced | None) -> CellSteps:
    try:
        return (yield from _stream_of(cell, checkpoint))
    except DivergedError:
        if not cell.settings["held_out"]:
            raise
        yield cell.settings["n_tasks"], {"ra": 0.0, "la": 0.0, "bt": 0.0}
        return StepTimes()


def _stream_of(cell: Cell, checkpoint: Paced | None) -> CellSteps:
    """After each task: what was found on all tasks so far, and at the end what it comes to."""
    hyper = choose(cell, lambda trial: _final(trial, checkpoint))
    T = len(_tasks(cell.data, cell.settings, cell.seed))
    R = np.full((T, T), np.nan)
    pairs: list[tuple[float, float, int]] = []
    file = None if checkpoint is None else checkpoint / "stream.safetensors"
    learned = TimedRun(_learn(cell, hyper, file))
    kept = 0
    for i, (row, divergences, bytes_kept) in enumerate(learned):
        kept = bytes_kept
        R[i, : i + 1] = row
        found = {f"task/{j}": value for j, value in enumerate(row)}
        for j, divergence in enumerate(divergences):
            found |= {f"divergence/{j}": divergence, f"drop/{j}": R[i - 1, j] - R[i, j]}
            pairs.append((divergence, R[i - 1, j] - R[i, j], i - j))
        yield i + 1, found
    ra, la = float(R[-1].mean()), float(np.diag(R).mean())
    last = {"ra": ra, "la": la, "bt": ra - la, "kept": float(kept)}
    variant = VARIANTS[cell.method]
    names = ("lr", *variant.tuned) if variant.by_gradients else variant.tuned
    last |= {f"chosen/{key}": float(hyper[key]) for key in names}
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


class StreamSettings(SearchSettings):
    """Streams, training, and what a method may remember."""

    n_tasks: Positive = 10
    n_train: int = Field(1000, ge=2)
    n_test: int = Field(10_000, ge=2)
    batch_size: Positive = 1
    epochs: Positive = 1
    memory: Natural = 10
    fisher_samples: Natural = 10
    hidden: list[Positive] = Field([100, 100], min_length=1)
    max_angle: float = Field(90.0, ge=1, le=360)
    size: int = Field(28, ge=16, le=105)
    channels: Positive = 64
    lr: float = Field(0.0, ge=0)  # 0: the method's own
    strength: float = Field(0.0, ge=0)
    held_out: bool = False  # test rows are of the training part; other alphabets


KIND = Kind(
    name="continual",
    summary="streams of tasks: retained and learning accuracy, backward transfer",
    metric="ra",
    settings=StreamSettings,
    methods=options(),
    fingerprint=lambda data, settings: _files(data),
    run=_run,
    canonical=_canonical,
    tables="vntransfer_lab.experiments.continual_report:tables",
    figures="vntransfer_lab.experiments.continual_report:figures",
    first=first,
    higher_is_better=True,
)
