"""Tasks of a table, learned one after another by one network, and what is kept of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from vntransfer.checks import fraction, instance, one_of, whole
from vntransfer.continual import METHODS, Task, accuracy_matrix
from vntransfer.continual.metrics import score
from vntransfer.continual.networks import dense
from vntransfer.errors import ArgumentError, DataError, DivergedError, DomainError
from vntransfer.progress import Progress, reporter
from vntransfer.tables.columns import MISSING, Column, Frame
from vntransfer.tables.encoder import TableEncoder
from vntransfer.tables.options import ReadOptions
from vntransfer.tables.problem import TableColumns, read_places, refuse_huge
from vntransfer.tables.schema import almost_number, remedy
from vntransfer.workflows.continual_model import ContinualModel as ContinualModel
from vntransfer.workflows.continual_model import scaled as scaled

Kind = Literal["auto", "regression", "classification"]
Order = Literal["appearance", "sorted"]

LEAST = 8
"""Rows that a task needs."""


def learn_tasks(
    data: Any,
    *,
    task: str,
    response: str,
    method: str = "covp",
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

    The encoding and the scale of columns are learned from the training rows of all tasks: inputs of
    later tasks, never their responses, are seen before their time.

    Parameters
    ----------
    data
        A file, or a table in memory; see `read_frame`.
    task, response
        Columns that say which task a row is of, and what is to be learned.
    method
        An id of ``vntransfer.continual.METHODS``.
    kind
        "classification" or "regression"; "auto": classes if the response is text or yes and no.
    order
        Of the tasks: that of their "appearance" in the table, or "sorted" by name (or number).
    epochs
        Passes over each task.
    features, drop, category
        See `TableColumns`.
    held_out
        Share of each task's rows that are scored and not learned.
    hidden, lr, batch_size
        Of the network and its training.
    random_state
        Seed.
    read_options
        How the file is written; None: detected.
    progress
        Called with the method's name, how many tasks are learned, and how many there are.

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
    kind = _kind(frame.columns[response], kind)
    frame, notes = _labeled(frame, task, response, kind)
    places = read_places(frame, task)
    names = tuple(dict.fromkeys(places.tolist()))
    names = names if order == "appearance" else tuple(sorted(names, key=_natural))
    if len(names) < 2:
        raise DomainError(f"task: {frame.name} has one task, {names[0]!r}; at least two are needed")
    y, classes = _labels(frame, response, kind)
    rng = np.random.default_rng(random_state)
    parts = [_split(rng, name, np.flatnonzero(places == name), held_out) for name in names]
    train = np.sort(np.concatenate([own for own, _ in parts]))
    numbers = np.asarray(frame.rows)
    cells = {name: frame.columns[name] for name in columns}
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
        f"{name!r} is taken for a class of its own; only empty cells have no response"
        for name in classes
        if name in MISSING
    )
    target = torch.from_numpy(y).long() if classes else torch.from_numpy((y - unit[0]) / unit[1])
    inputs = torch.from_numpy(X).float()
    target = target if classes else target.float()
    tasks = [Task(inputs[a], target[a], inputs[b], target[b]) for a, b in parts]
    generator = torch.Generator().manual_seed(random_state)
    net = dense([X.shape[1], *sizes, max(1, len(classes))], generator=generator)
    initial = np.array([score(net, own) for own in tasks])
    total = len(tasks)
    learner = METHODS[method](net)
    try:
        matrix = accuracy_matrix(
            net,
            tasks,
            learner,
            lr=lr,
            batch_size=batch_size,
            epochs=epochs,
            random_state=random_state,
            callback=lambda i, _: report(f"{method}: tasks", i + 1, total),
        )
    except DivergedError:
        matrix = np.full((total, total), np.nan)
    learner.close()  # what is saved is the network alone, in plain coordinates
    if not (np.isfinite(matrix).all() and _finite(net, tasks)):
        raise DataError(f"lr: training with {method} diverged at {lr:g}; take a smaller one")
    if not classes:
        matrix, initial = np.sqrt(matrix) * unit[1], np.sqrt(initial) * unit[1]
    return ContinualModel(
        encoder,
        center,
        scale,
        net.eval(),
        classes,
        task,
        response,
        unit,
        names,
        matrix,
        initial,
        method,
        notes,
        frame.options,
    )


def check_options(method: str, kind: str, order: str, held_out: float) -> None:
    """Raise unless a method can be run with these options."""
    one_of("method", method, METHODS)
    one_of("kind", kind, Kind)
    one_of("order", order, Order)
    if fraction("held_out", held_out) in (0, 1):
        raise ArgumentError(f"held_out: expected a share between 0 and 1, got {held_out!r}")


def _sizes(hidden: Any) -> list[int]:
    """Check the sizes of the hidden layers."""
    if not isinstance(hidden, Sequence | np.ndarray) or isinstance(hidden, str):
        raise ArgumentError(f"hidden: expected sizes of layers, such as (64, 64), got {hidden!r}")
    return [whole("hidden", size, minimum=1) for size in hidden]


@torch.no_grad()
def _finite(net: nn.Module, tasks: Sequence[Task]) -> bool:
    """Whether a network and its outputs are finite: the best of NaN is a class, too."""
    outputs = (net(own.x_test) for own in tasks)
    return all(bool(value.isfinite().all()) for value in chain(net.parameters(), outputs))


def _natural(name: str) -> tuple[bool, float, str]:
    """Numbers by size, before texts."""
    try:
        return False, float(name), name
    except ValueError:
        return True, 0.0, name


def _split(
    rng: np.random.Generator, name: str, rows: NDArray[np.intp], held_out: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if len(rows) < LEAST:
        raise DataError(
            f"task {name!r}: {len(rows)} rows, at least {LEAST} are needed; merge it with another"
        )
    mixed = rng.permutation(rows)
    n = min(max(1, round(held_out * len(rows))), len(rows) - 1)
    return mixed[n:], mixed[:n]


def _kind(column: Column, kind: Kind) -> Kind:
    """Classes or numbers: one bad cell, or a decimal comma, does not make classes of numbers."""
    if kind != "auto":
        return kind
    if column.stored != "text":
        return "regression" if column.stored == "number" else "classification"
    marked = column.without_marks()
    full = ~marked.empty()
    texts, numbers = marked.texts()[full], marked.numbers()[full]
    meant = [bool(np.isfinite(x)) or almost_number(t) for x, t in zip(numbers, texts, strict=True)]
    return "regression" if 2 * sum(meant) >= len(meant) else "classification"


def _labeled(frame: Frame, task: str, response: str, kind: Kind) -> tuple[Frame, tuple[str, ...]]:
    """Keep the rows that have a response, and say which are left out; None may be a class."""
    column = frame.columns[response]
    gaps = (column.without_marks() if kind == "regression" else column).empty()
    if not gaps.any():
        return frame, frame.notes
    if gaps.all():
        raise DataError(f"{frame.name}: column {response!r} is empty in all rows; fill it")
    places, kept = read_places(frame, task), np.flatnonzero(~gaps)
    notes = tuple(
        f"{int(gaps[places == name].sum())} of {int((places == name).sum())} rows of task "
        f"{name!r} have no response: left out"
        for name in dict.fromkeys(places[gaps].tolist())
    )
    columns = {name: own.take(kept) for name, own in frame.columns.items()}
    rows = np.asarray(frame.rows)[kept].tolist()
    return replace(frame, columns=columns, rows=rows), (*frame.notes, *notes)


def _labels(frame: Frame, response: str, kind: Kind) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Responses, and names of classes if they are classes."""
    column = frame.columns[response]
    if kind == "regression":
        values = column.without_marks().numbers()
        bad = ~np.isfinite(values)
        if bad.any():
            i = int(bad.argmax())
            cell = column.take([i]).texts()[0]
            raise DataError(
                f"{frame.name}: row {frame.rows[i]}, column {response!r}: {cell[:40]!r} is not a "
                f"finite number; {remedy(cell, frame.options)}, or ask for classification"
            )
        refuse_huge(frame, response, values)
        return values, ()
    texts = column.texts()
    classes = tuple(sorted(set(texts.tolist()), key=_natural))
    if not 2 <= len(classes) <= 1000:
        raise DataError(
            f"{frame.name}: column {response!r} has {len(classes)} different "
            f"values; from 2 to 1000 classes can be learned"
        )
    place: Mapping[str, int] = {name: i for i, name in enumerate(classes)}
    return np.array([place[text] for text in texts]), classes
