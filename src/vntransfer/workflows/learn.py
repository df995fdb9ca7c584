"""Learn the tasks of a table one after another with one network."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from vntransfer.checks import Floats, fraction, instance, one_of, whole
from vntransfer.continual import METHODS, ContinualMethod, Task, accuracy_matrix
from vntransfer.continual.metrics import score
from vntransfer.display import rounded
from vntransfer.errors import ArgumentError, DataError, DivergedError, DomainError
from vntransfer.progress import Progress, reporter
from vntransfer.repeats import row_keys, split_rows
from vntransfer.tables.columns import MISSING
from vntransfer.tables.encoder import TableEncoder
from vntransfer.tables.options import ReadOptions
from vntransfer.tables.problem import TableColumns, read_places
from vntransfer.workflows.continual_model import ContinualModel, scaled
from vntransfer.workflows.task_network import (
    MethodState,
    TaskNetwork,
    arrays_of,
    make_learner,
    make_network,
    sizes_for,
)
from vntransfer.workflows.task_responses import Kind, kind_of, labeled_rows, natural, read_labels

Order = Literal["appearance", "sorted"]

LEAST = 8
"""Smallest number of rows of a task."""

CANDIDATES = ("closed_form", "covp")
"""Candidates of "auto"."""

ROWS = 1000
"""Rows per step of a method without training."""


def learn_tasks(
    data: Any,
    *,
    task: str,
    response: str,
    method: str = "auto",
    kind: Kind = "auto",
    order: Order = "appearance",
    epochs: int = 1,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    category: Sequence[str] = (),
    held_out: float = 0.25,
    hidden: Sequence[int] = (64, 64),
    lr: float = 0.01,
    batch_size: int = 4,
    random_state: int = 0,
    read_options: ReadOptions | None = None,
    progress: Progress | None = None,
) -> ContinualModel:
    """Learn the tasks of a table one after another, and score held-out rows of all after each.

    Encoding and scales of the columns come from the training rows of all tasks: the inputs of
    later tasks are used in advance, their responses are not.

    Parameters
    ----------
    data
        A file, or a table in memory; see `read_frame`.
    task, response
        Columns with the task of each row and with the response.
    method
        An id of ``vntransfer.continual.METHODS``; "auto": whichever of `CANDIDATES` scores better
        at the end on held-out training rows; a note reports the choice.
    kind
        "classification" or "regression"; "auto": classes if the response is text or boolean.
    order
        Order of the tasks: "appearance" in the table, or "sorted" by name (or number).
    epochs
        Passes over each task.
    features, drop, category
        See `TableColumns`.
    held_out
        Share of each task's rows that are held out and scored.
    hidden, lr, batch_size
        Hidden layers of the network, learning rate, rows per step.
    random_state
        Seed.
    read_options
        Format of the file; None: detected.
    progress
        Called with the method's name, the number of learned tasks, and the number of all.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 2))
    >>> table = {"week": np.repeat([1, 2, 3], 100), "a": x[:, 0], "b": x[:, 1],
    ...          "good": x[:, 0] > 0}
    >>> model = learn_tasks(table, task="week", response="good", epochs=5)
    >>> model.names, model.metric, bool(model.scores()["RA"] > 0.8)
    (('1', '2', '3'), 'accuracy', True)
    """
    check_options(method, kind, order, held_out)
    random_state, sizes = whole("random_state", random_state), _sizes(hidden)
    report = reporter(progress)
    instance("task", task, str, "the name of a column")
    asked = TableColumns(task, response, features, drop, category)
    frame, columns = asked.read(data, read_options)
    kind = kind_of(frame.columns[response], kind)
    frame, notes = labeled_rows(frame, task, response, kind)
    places = read_places(frame, task)
    names = tuple(dict.fromkeys(places.tolist()))
    names = names if order == "appearance" else tuple(sorted(names, key=natural))
    if len(names) < 2:
        raise DomainError(f"task: {frame.name} has one task, {names[0]!r}; at least two are needed")
    y, classes = read_labels(frame, response, kind)
    rng = np.random.default_rng(random_state)
    cells = {name: frame.columns[name] for name in columns}
    keys = row_keys(*(own.comparable() for own in cells.values()), y)
    parts = [_split(rng, name, np.flatnonzero(places == name), keys, held_out) for name in names]
    train = np.sort(np.concatenate([own for own, _ in parts]))
    numbers = np.asarray(frame.rows)
    encoder = TableEncoder.fit(
        {name: own.take(train) for name, own in cells.items()},
        numbers[train].tolist(),
        wanted=asked.features or (),
        category=asked.category,
        called="training rows",
    )
    X = encoder.encode(cells, frame.rows).X
    center, scale = X[train].mean(0), X[train].std(0)
    scale[scale == 0] = 1.0
    X = scaled(X, center, scale)
    unit = (0.0, 1.0) if classes else (float(y[train].mean()), float(y[train].std()))
    if unit[1] == 0:
        raise DataError(f"{frame.name}: column {response!r} is constant; nothing to learn")
    notes += tuple(
        f"{name!r} is treated as a class; only empty cells have no response"
        for name in classes
        if name in MISSING
    )
    inputs, target = as_tensors(X, y, classes, unit)
    tasks = [Task(inputs[a], target[a], inputs[b], target[b]) for a, b in parts]
    training = TaskTraining(sizes, max(1, len(classes)), lr, batch_size, epochs, random_state)
    if method == "auto":
        method, note = _choose(tasks, training, held_out, report)
        notes += (note,)
    done = _learned(method, tasks, training, report)
    return ContinualModel(
        encoder,
        center,
        scale,
        done.network,
        classes,
        task,
        response,
        unit,
        names,
        in_units(done.matrix, classes, unit),
        in_units(done.initial, classes, unit),
        method,
        notes,
        frame.options,
        done.method_state,
        random_state,
    )


class TaskTraining(NamedTuple):
    """How networks are made and trained."""

    hidden: list[int]
    outputs: int
    lr: float
    batch_size: int
    epochs: int
    random_state: int


class LearnedTasks(NamedTuple):
    """A network that has learned tasks, their scores after each, and before any."""

    network: TaskNetwork
    matrix: Floats
    initial: Floats
    # None: the method cannot continue from the saved network
    method_state: MethodState | None


def _learned(
    method: str, tasks: Sequence[Task], training: TaskTraining, report: Progress
) -> LearnedTasks:
    """Learn tasks by a method."""
    total, seed = len(tasks), training.random_state
    columns = tasks[0].x.shape[1]
    sizes, features = sizes_for(method, columns, training.hidden, training.outputs)
    net = make_network(sizes, features, seed)
    tasks = [in_precision(own, net) for own in tasks]
    initial = np.array([score(net, own) for own in tasks])
    learner = make_learner(method, net)
    steps = (training.batch_size, training.epochs) if learner.by_gradients else (ROWS, 1)
    matrix = learn_in_turn(
        learner,
        tasks,
        lr=training.lr,
        batch_size=steps[0],
        epochs=steps[1],
        random_state=seed,
        callback=lambda i, _: report(f"{method}: tasks", i + 1, total),
    )
    plain = type(learner).close is ContinualMethod.close
    method_state = MethodState.of(learner) if plain else None
    learner.close()  # the network is saved with plain parameters
    return LearnedTasks(
        TaskNetwork(sizes, features, seed, arrays_of(net)), matrix, initial, method_state
    )


def as_tensors(
    X: Floats, y: NDArray[Any], classes: Sequence[str], unit: tuple[float, float]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Make tensors of standardized rows and of their responses, in standard deviations."""
    target = torch.from_numpy(y).long() if classes else torch.from_numpy((y - unit[0]) / unit[1])
    return torch.from_numpy(X), target


def in_units(scores: Floats, classes: Sequence[str], unit: tuple[float, float]) -> Floats:
    """Turn mean squared errors into root mean squared ones in the user's units."""
    return scores if classes else np.sqrt(scores) * unit[1]


def in_precision(task: Task, net: nn.Module) -> Task:
    """Give the task in the precision of a network."""
    dtype = next(net.parameters()).dtype
    y, y_test = (own.to(dtype) if own.is_floating_point() else own for own in (task.y, task.y_test))
    return Task(task.x.to(dtype), y, task.x_test.to(dtype), y_test)


def learn_in_turn(
    learner: ContinualMethod, tasks: Sequence[Task], *, lr: float, **options: Any
) -> Floats:
    """Give the accuracy matrix of tasks that a method learns; divergence is an error."""
    net = learner.model
    with suppress(DivergedError):
        matrix = accuracy_matrix(net, tasks, learner, lr=lr, **options)
        with torch.no_grad():  # argmax of NaN would be a class
            outputs = [net(own.x_test) for own in tasks]
        if all(bool(value.isfinite().all()) for value in (*net.parameters(), *outputs)):
            return matrix
    raise DataError(f"lr: training with {learner.id} diverged at {lr:g}; use a smaller one")


def _choose(
    tasks: Sequence[Task], training: TaskTraining, held_out: float, report: Progress
) -> tuple[str, str]:
    """Choose the method whose final scores are best on rows held out of the training rows.

    The rows of the reported scores are not used.
    """
    inner = []
    for own in tasks:
        n = min(max(1, round(held_out * len(own))), len(own) - 1)
        inner.append(Task(own.x[n:], own.y[n:], own.x[:n], own.y[:n]))
    found: dict[str, float] = {}
    classes = not tasks[0].y.is_floating_point()
    for method in CANDIDATES:
        with suppress(DataError):  # it diverged
            last = _learned(method, inner, training, report).matrix[-1]
            found[method] = float(last.mean() if classes else -np.sqrt(last).mean())
    if not found:
        raise DataError(f"lr: training diverged at {training.lr:g}; use a smaller one")
    best = max(found, key=lambda method: found[method])
    shown = ", ".join(
        f"{method} {rounded(value if classes else -value)}" for method, value in found.items()
    )
    unit = "accuracy" if classes else "error in standard deviations of the response"
    return best, f"method {best!r}: chosen on rows held out of the training rows ({unit}: {shown})"


def check_options(method: str, kind: str, order: str, held_out: float) -> None:
    """Raise unless a method can be run with these options."""
    one_of("method", method, ("auto", *METHODS))
    one_of("kind", kind, Kind)
    one_of("order", order, Order)
    if fraction("held_out", held_out) in (0, 1):
        raise ArgumentError(f"held_out: expected a share between 0 and 1, got {held_out!r}")


def _sizes(hidden: Any) -> list[int]:
    """Check the sizes of the hidden layers."""
    if not isinstance(hidden, Sequence | np.ndarray) or isinstance(hidden, str):
        raise ArgumentError(f"hidden: expected sizes of layers, such as (64, 64), got {hidden!r}")
    return [whole("hidden", size, minimum=1) for size in hidden]


def _split(
    rng: np.random.Generator,
    name: str,
    rows: NDArray[np.intp],
    keys: NDArray[np.uint64],
    held_out: float,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of a task to learn and to score; equal rows stay together."""
    if len(rows) < LEAST:
        raise DataError(
            f"task {name!r}: {len(rows)} rows, at least {LEAST} are needed; merge it with another"
        )
    mixed = rng.permutation(rows)
    n = min(max(1, round(held_out * len(rows))), len(rows) - 1)
    scored, learned = split_rows(mixed, keys[mixed], n)
    return learned, scored
