"""The training loop, and streams of tasks as tensors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from vntransfer.arrays import from_numpy
from vntransfer.checks import number, whole
from vntransfer.continual._base import ContinualMethod
from vntransfer.continual.descent import Descent
from vntransfer.errors import ArgumentError, DataError
from vntransfer.step_times import StepTimes


@dataclass(frozen=True, eq=False)
class Task:
    """Samples of one task, as tensors.

    Parameters
    ----------
    x, y
        Inputs (n, ...) and class indices (whole numbers) or responses; tensors or numpy arrays.
    x_test, y_test
        Held-out samples for the accuracy matrix.
    columns
        Outputs of the network that belong to this task, if it has its own head; classes in y then
        start at ``columns.start`` (see `Heads`).

    Examples
    --------
    >>> task = Task(np.zeros((4, 3)), np.array([0, 1, 0, 1], dtype=np.uint8))
    >>> len(task), task.y.dtype
    (4, torch.int64)
    """

    x: Any
    y: Any
    x_test: Any = None
    y_test: Any = None
    columns: slice | None = None

    def __post_init__(self) -> None:
        for suffix in ("", "_test"):
            x, y = (self._tensor(letter + suffix) for letter in "xy")
            if (x is None) != (y is None):
                raise DataError(f"x{suffix}, y{suffix}: give both or none")
            if x is not None and y is not None and len(x) != len(y):
                raise DataError(
                    f"y{suffix}: {len(y)} labels for the {len(x)} rows of x{suffix}; "
                    f"give one per row"
                )
        if self.x is None or len(self.x) == 0:
            raise DataError("x: no samples; a task needs at least one")

    def _tensor(self, name: str) -> Tensor | None:
        value = getattr(self, name)
        if value is None:
            return None
        if not isinstance(value, Tensor | np.ndarray):
            raise DataError(
                f"{name}: expected a torch tensor or a numpy array, got {type(value).__name__}"
            )
        try:
            tensor = value if isinstance(value, Tensor) else from_numpy(value)
        except TypeError as error:
            raise DataError(f"{name}: expected numbers, got {value.dtype} ({error})") from None
        if tensor.dim() == 0:
            raise DataError(f"{name}: expected rows, got a single number")
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise DataError(f"{name}: contains NaN or infinite values; fill or drop them")
        if not tensor.is_floating_point():
            tensor = tensor.long() if name.startswith("y") else tensor.float()
        object.__setattr__(self, name, tensor)
        return tensor

    def __len__(self) -> int:
        return len(self.x)

    def batches(
        self, batch_size: int, *, random_state: int | None = None, epoch: int = 0, start: int = 0
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches of one pass: in the given order, or shuffled by (random_state, epoch).

        Parameters
        ----------
        batch_size
            Rows per batch; the last one may be smaller.
        random_state, epoch
            Seed of the order; None keeps the order of the rows.
        start
            Number of batches to skip at the beginning.

        Examples
        --------
        >>> task = Task(torch.arange(5.0), torch.arange(5.0))
        >>> [x.tolist() for x, _ in task.batches(2, start=1)]
        [[2.0, 3.0], [4.0]]
        """
        x, y = self.x, self.y
        if random_state is not None:
            order = torch.from_numpy(
                np.random.default_rng((random_state, epoch)).permutation(len(x))
            )
            x, y = x[order], y[order]
        for i in range(start * batch_size, len(x), batch_size):
            yield x[i : i + batch_size], y[i : i + batch_size]


class Heads:
    """Criterion of a network whose outputs are those of several heads, side by side.

    A sample's label determines its head, so batches may mix tasks (replay), and only the outputs of
    that head count.

    Parameters
    ----------
    sizes
        Number of classes of each head.

    Examples
    --------
    >>> heads = Heads([2, 3])
    >>> heads.columns(1)
    slice(2, 5, None)
    >>> round(float(heads(torch.zeros(1, 5), torch.tensor([4]))), 4)   # log 3
    1.0986
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = [whole("sizes", size, minimum=1) for size in sizes]
        if not self.sizes:
            raise ArgumentError("sizes: empty; give the number of classes of each head")
        self._head = torch.repeat_interleave(torch.tensor(self.sizes))

    def columns(self, task: int) -> slice:
        """Return the outputs of a task's head."""
        start = sum(self.sizes[:task])
        return slice(start, start + self.sizes[task])

    def restrict(self, output: Tensor, y: Tensor) -> Tensor:
        """Set the outputs (N, all classes) of other heads than that of y (N,) to minus infinity."""
        head = self._head.to(output.device)
        return output.masked_fill(head != head[y].unsqueeze(-1), -torch.inf)

    def __call__(self, output: Tensor, y: Tensor) -> Tensor:
        """Mean cross-entropy within the heads."""
        try:
            return functional.cross_entropy(self.restrict(output, y), y)
        except (IndexError, RuntimeError, ValueError) as error:
            raise ArgumentError(
                f"y: classes from {int(y.min())} to {int(y.max())} do not fit outputs of shape "
                f"{tuple(output.shape)} and heads of {self.sizes} classes; classes are counted "
                f"through all heads, 0 to {len(self._head) - 1}, with an output for each ({error})"
            ) from error


def as_tasks(stream: Any) -> list[Task]:
    """Tasks of a stream of arrays as tensors, in order.

    In a stream with one head per task, labels are numbered consecutively over all heads.

    Parameters
    ----------
    stream
        An iterable of tasks with arrays ``x``, ``y``, ``x_test`` and ``y_test``, such as the
        streams of the laboratory; its ``head_sizes`` are the classes of each head, or empty.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> class Stream(list):
    ...     head_sizes = (2, 2)
    >>> x, y = np.zeros((2, 3)), np.array([0, 1])
    >>> stream = Stream([SimpleNamespace(x=x, y=y, x_test=x, y_test=y)] * 2)
    >>> [task.y.tolist() for task in as_tasks(stream)]
    [[0, 1], [2, 3]]
    """
    heads = Heads(stream.head_sizes) if stream.head_sizes else None
    tasks = []
    for t, task in enumerate(stream):
        columns = heads.columns(t) if heads else None
        shift = columns.start if columns else 0
        y, y_test = (
            own + shift if own.dtype.kind == "f" else own.astype(np.int64) + shift
            for own in (task.y, task.y_test)
        )
        tasks.append(Task(task.x, y, task.x_test, y_test, columns))
    return tasks


class Step(NamedTuple):
    """A training step: number of steps made, the loss before it, times of all steps so far."""

    made: int
    loss: Tensor
    times: StepTimes


def steps(
    model: nn.Module,
    task: Task,
    method: ContinualMethod,
    *,
    optimizer: torch.optim.Optimizer,
    batch_size: int = 1,
    epochs: int = 1,
    random_state: int | None = None,
    start: int = 0,
) -> Iterator[Step]:
    """Train a network on one task step by step, so that the loop can stop or save checkpoints.

    Parameters
    ----------
    model, task, method, batch_size, epochs, random_state
        See `train`.
    optimizer
        Optimizer of the network's parameters.
    start
        Number of steps already made, to resume from a checkpoint.

    Examples
    --------
    >>> from vntransfer.continual import SGD
    >>> model = torch.nn.Linear(2, 2)
    >>> method, task = SGD(model), Task(torch.randn(8, 2), torch.arange(8) % 2)
    >>> method.before_task()
    >>> for step in steps(model, task, method, optimizer=torch.optim.SGD(model.parameters())):
    ...     if step.made == 5:
    ...         break
    >>> step.times.made
    5
    """
    if method.model is not model:
        raise ArgumentError("method: was created for another network; create one for model")
    if not method.in_task:
        raise ArgumentError("method: no task has begun; call method.before_task() first")
    batch_size = whole("batch_size", batch_size, minimum=1)
    epochs, start = whole("epochs", epochs, minimum=1), whole("start", start)
    like = method.parameters[0]
    y = task.y.to(like if task.y.is_floating_point() else like.device)
    data = Task(task.x.to(like), y, columns=task.columns)
    method.use(optimizer)
    per_epoch = -(-len(data) // batch_size)
    model.train()
    done, times = start, StepTimes()
    for epoch in range(start // per_epoch, epochs):
        rest = data.batches(
            batch_size, random_state=random_state, epoch=epoch, start=done - epoch * per_epoch
        )
        for x, y in rest:
            with times.step():
                loss = method.step(x, y, method.criterion, optimizer)
            done += 1
            yield Step(done, loss, times)


def train(
    model: nn.Module,
    task: Task,
    method: ContinualMethod,
    *,
    lr: float = 0.01,
    batch_size: int = 1,
    epochs: int = 1,
    optimizer: torch.optim.Optimizer | None = None,
    random_state: int | None = None,
) -> StepTimes:
    """Train a network on one task, between ``before_task`` and ``after_task``.

    Parameters
    ----------
    model, task, method
        Network, task, and a method created for the network; the loss is its criterion.
    lr
        Learning rate of plain gradient descent.
    batch_size, epochs
        Rows per step and passes over the task.
    optimizer
        Instead of plain gradient descent at ``lr``.
    random_state
        Shuffles each pass; None keeps the order of the rows.

    Returns
    -------
    StepTimes
        Processor time of the steps.

    Examples
    --------
    >>> from vntransfer.continual import EWC
    >>> model = torch.nn.Linear(2, 2)
    >>> method = EWC(model, strength=10.0)
    >>> for shift in (0.0, 1.0):
    ...     method.before_task()
    ...     times = train(model, Task(torch.randn(8, 2) + shift, torch.arange(8) % 2), method)
    ...     method.after_task()
    >>> method.tasks_done, times.made
    (2, 8)
    """
    if optimizer is None:
        optimizer = Descent(method.parameters, lr=number("lr", lr, exclusive=True))
    times = StepTimes()
    for step in steps(
        model,
        task,
        method,
        optimizer=optimizer,
        batch_size=batch_size,
        epochs=epochs,
        random_state=random_state,
    ):
        times = step.times
    return times
