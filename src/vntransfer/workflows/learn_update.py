"""Let a model of `learn_tasks` learn later rows and tasks."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from vntransfer.checks import instance
from vntransfer.continual import ClosedForm, Task, train
from vntransfer.continual.random_features import RandomFeatureNet
from vntransfer.display import counted, rounded
from vntransfer.errors import ArgumentError, DataError, DivergedError
from vntransfer.tables.columns import Frame
from vntransfer.tables.files import need
from vntransfer.tables.frame import read_frame
from vntransfer.tables.options import ReadOptions
from vntransfer.tables.problem import read_places
from vntransfer.workflows.continual_model import ContinualModel, scaled
from vntransfer.workflows.continual_networks import make_learner, make_network
from vntransfer.workflows.predictions import later_options
from vntransfer.workflows.task_network import KeptState, TaskNetwork
from vntransfer.workflows.task_responses import Kind, as_classes, labeled_rows, read_labels


def update_tasks(
    model: ContinualModel,
    data: Any,
    *,
    epochs: int = 1,
    lr: float = 0.01,
    batch_size: int = 4,
    read_options: ReadOptions | None = None,
) -> ContinualModel:
    """Learn later rows, of known or new tasks.

    All rows are learned; the notes report how well they were predicted before that. A
    ``closed_form`` model ends as if it had learned all rows at once, with the first encoding and
    scales, and accepts new classes. Other methods learn the rows as the next tasks, in the order
    of their appearance.

    Parameters
    ----------
    model
        Result of `learn_tasks` or `load`; it is not changed.
    data
        A file or a table with the same columns as the first one, task and response included.
    epochs, lr, batch_size
        Options of training, for methods that train.
    read_options
        Format of the file; None: that of the first table.

    Examples
    --------
    >>> from vntransfer import learn_tasks
    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> table = {"week": np.repeat([1, 2, 3], 100), "a": x[:, 0], "b": x[:, 1],
    ...          "y": x[:, 0] + x[:, 1]}
    >>> first, later = ({name: v[part] for name, v in table.items()}
    ...                 for part in (slice(200), slice(200, 300)))
    >>> model = learn_tasks(first, task="week", response="y", method="closed_form")
    >>> update_tasks(model, later).added
    ('3',)
    """
    instance("model", model, ContinualModel, "a result of learn_tasks or load")
    if model.method_state is None:
        raise ArgumentError(
            f"model: has no saved state of its method {model.method!r}; learn it again with this "
            f"version and a method other than 'rewc'"
        )
    frame, notes = _read(model, data, read_options)
    places = read_places(frame, model.task)
    y, classes = _responses(model, frame)
    cells = {name: frame.columns[name] for name in model.encoder.needed}
    X = scaled(model.encoder.encode(cells, frame.rows).X, model.center, model.scale)
    net = make_network_like(model, len(classes))
    learner = make_learner(model.method, net)
    model.method_state.restore(learner)
    if len(classes) > len(model.classes):
        _extend(learner, len(classes) - len(model.classes))
    dtype = next(net.parameters()).dtype
    inputs = torch.from_numpy(X).to(dtype)
    target = (
        torch.from_numpy(y) if classes else torch.from_numpy((y - model.unit[0]) / model.unit[1])
    )
    names = list(dict.fromkeys(places.tolist()))
    for name in names:
        own = torch.from_numpy(places == name)
        task = Task(inputs[own], target[own] if classes else target[own].to(dtype))
        rows = f"{counted(len(task), 'row')} of task {name!r}"
        error = _scored(model, inputs[own], y[own.numpy()], classes)
        notes.append(f"update: {rows}; {model.metric} before learning them: {rounded(error)}")
        _learn(learner, task, lr=lr, batch_size=batch_size, epochs=epochs)
    if new := classes[len(model.classes) :]:
        notes.append(f"update: new classes {', '.join(map(repr, new))}")
    known = {*model.names, *model.added}
    return replace(
        model,
        network=TaskNetwork.of(net.eval(), model.random_state),
        classes=tuple(classes),
        notes=(*model.notes, *notes),
        method_state=KeptState.of(learner),
        added=(*model.added, *(name for name in names if name not in known)),
    )


def _read(
    model: ContinualModel, data: Any, read_options: ReadOptions | None
) -> tuple[Frame, list[str]]:
    """Read the labeled rows of a later table, whose columns are compared with the first one's."""
    found: list[str] = []

    def needed(table: str, every: list[str]) -> list[str]:
        need(table, every, model.roles)
        found.extend(model.encoder.compare(every, model.roles))
        return [*model.encoder.needed, *model.roles]

    options = later_options(model.read_options, read_options)
    frame = read_frame(data, columns=needed, options=options)
    kind: Kind = "classification" if model.classes else "regression"
    labeled, notes = labeled_rows(frame, model.task, model.response, kind)
    return labeled, [*found, *notes]


def _responses(model: ContinualModel, frame: Frame) -> tuple[NDArray[Any], Sequence[str]]:
    """Responses of later rows, and all classes, new ones last."""
    if not model.classes:
        return read_labels(frame, model.response, "regression")
    texts = as_classes(frame.columns[model.response].texts(), model.classes)
    unseen = sorted({*texts.tolist()} - {*model.classes})
    if unseen and model.method != ClosedForm.id:
        shown = ", ".join(map(repr, unseen[:5]))
        raise DataError(
            f"{frame.name}: column {model.response!r} has classes that the model has never seen: "
            f"{shown}; the network has no output for them: learn all rows again, or use the method "
            f"'closed_form', which accepts new classes"
        )
    classes = [*model.classes, *unseen]
    place = {name: i for i, name in enumerate(classes)}
    return np.array([place[text] for text in texts]), classes


def make_network_like(model: ContinualModel, classes: int) -> nn.Module:
    """Copy the network of a model; for more classes, create one whose weights are set later."""
    net = model.net
    if not isinstance(net, RandomFeatureNet) or classes <= len(model.classes):
        return deepcopy(net).train()
    random = net.random
    return make_network(
        [random.width - random.features, classes], random.features, model.random_state
    )


def _extend(learner: Any, new: int) -> None:
    """Add responses to the moments of a closed form: indicators that were zero for all rows."""
    solver = learner.solver
    moments = solver.moments()
    solver.mean = nn.functional.pad(moments.mean, (0, new))
    solver.scatter = nn.functional.pad(moments.scatter, (0, new, 0, new))


def _scored(
    model: ContinualModel, x: torch.Tensor, y: NDArray[Any], classes: Sequence[str]
) -> float:
    """Accuracy, or root mean squared error, of a model on rows that it has not learned."""
    with torch.no_grad():
        output = model.net(x).double().numpy()
    if classes:
        return float((output.argmax(1) == y).mean())
    return float(np.sqrt(np.square(output[:, 0] * model.unit[1] + model.unit[0] - y).mean()))


def _learn(learner: Any, task: Task, *, lr: float, batch_size: int, epochs: int) -> None:
    """Learn one task."""
    if not learner.by_gradients:
        batch_size, epochs = len(task), 1
    learner.before_task()
    try:
        train(learner.model, task, learner, lr=lr, batch_size=batch_size, epochs=epochs)
        learner.after_task()
    except DivergedError as error:
        raise DataError(f"lr: training diverged at {lr:g}; use a smaller one") from error
