"""Let a model of `learn_tasks` learn later rows and tasks."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from vntransfer.checks import instance
from vntransfer.continual import ClosedForm, Task, score
from vntransfer.display import counted, rounded
from vntransfer.errors import ArgumentError, DataError
from vntransfer.tables.columns import Frame
from vntransfer.tables.files import need
from vntransfer.tables.frame import read_frame
from vntransfer.tables.options import ReadOptions
from vntransfer.tables.problem import read_places
from vntransfer.workflows.continual_model import ContinualModel, scaled
from vntransfer.workflows.learn import as_tensors, in_precision, in_units, learn_in_turn
from vntransfer.workflows.predictions import later_options
from vntransfer.workflows.task_network import (
    MethodState,
    TaskNetwork,
    arrays_of,
    make_learner,
    make_network,
)
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
    own, new = model.network, classes[len(model.classes) :]
    sizes = (*own.sizes[:-1], max(1, len(classes)))
    net = make_network(sizes, own.features, own.random_state) if new else own.module().train()
    learner = make_learner(model.method, net)
    model.method_state.restore(learner)
    if new:
        _extend(learner, len(new))
    inputs, target = as_tensors(X, y, classes, model.unit)
    names = list(dict.fromkeys(places.tolist()))
    for name in names:
        rows = torch.from_numpy(places == name)
        task = in_precision(Task(*(inputs[rows], target[rows]) * 2), net)
        error = in_units(np.array(score(model.net, task)), classes, model.unit)
        notes.append(
            f"update: {counted(len(task), 'row')} of task {name!r}; {model.metric} before learning "
            f"them: {rounded(float(error))}"
        )
        steps = (batch_size, epochs) if learner.by_gradients else (len(task), 1)
        learn_in_turn(learner, [task], lr=lr, batch_size=steps[0], epochs=steps[1])
    if new:
        notes.append(f"update: new classes {', '.join(map(repr, new))}")
    known = {*model.names, *model.added}
    return replace(
        model,
        network=TaskNetwork(sizes, own.features, own.random_state, arrays_of(net.eval())),
        classes=tuple(classes),
        notes=(*model.notes, *notes),
        method_state=MethodState.of(learner),
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


def _extend(learner: Any, new: int) -> None:
    """Add responses to the moments of a closed form: indicators that were zero for all rows."""
    solver = learner.solver
    moments = solver.moments()
    solver.mean = nn.functional.pad(moments.mean, (0, new))
    solver.scatter = nn.functional.pad(moments.scatter, (0, new, 0, new))
