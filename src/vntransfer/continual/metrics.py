"""Accuracy matrix of a stream of tasks, and the measures of learning and forgetting.

R[i, j] is the accuracy (or error) on task j after learning task i. With T tasks::

    LA = mean_j R[j, j]         learning accuracy
    RA = mean_j R[T-1, j]       retained accuracy
    BT = RA - LA                backward transfer: negative means forgetting (the paper's sign)
    FT = mean_{j>0} R[j-1, j] - R0[j]      forward transfer, R0 before any training

For errors the signs of BT and FT are reversed: a positive BT means forgetting.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from vntransfer.continual._base import ContinualMethod, predictions
from vntransfer.continual._fisher import evaluation
from vntransfer.continual.training import Task, train
from vntransfer.errors import ArgumentError, DataError

Matrix = NDArray[np.float64]

CHUNK = 5000
"""Test rows predicted at once."""


@torch.no_grad()
def score(model: nn.Module, task: Task) -> float:
    """Accuracy on a task's test samples or, for real-valued responses, mean squared error.

    If the task has its own head, only the outputs of that head compete.

    Examples
    --------
    >>> x = torch.eye(2)
    >>> score(nn.Identity(), Task(x, torch.tensor([0, 1]), x, torch.tensor([0, 0])))
    0.5
    """
    if task.x_test is None or len(task.x_test) == 0:
        raise DataError("x_test: no test samples; give Task(x, y, x_test, y_test)")
    like = next(iter(model.parameters()), task.x_test)
    total = 0.0
    with evaluation(model):
        for x, y in zip(task.x_test.split(CHUNK), task.y_test.split(CHUNK), strict=True):
            output, y = model(x.to(like)), y.to(like.device)
            if y.is_floating_point():
                gaps = predictions(output, y).double() - y.double()
                total += float(
                    gaps.square().flatten(1).mean(1).sum() if y.ndim > 1 else gaps @ gaps
                )
                continue
            if output.dim() < 2 or output[:, 0].shape != y.shape:
                raise ArgumentError(
                    f"y_test: classes of shape {tuple(y.shape)} do not fit outputs of shape "
                    f"{tuple(output.shape)}; give classes (N,) and outputs (N, classes)"
                )
            columns = task.columns or slice(0, None)
            best = output[:, columns].argmax(1) + columns.start
            total += float((best == y).sum()) / max(1, y[0].numel())
    return total / len(task.x_test)


def accuracy_matrix(
    model: nn.Module,
    stream: Sequence[Task],
    method: ContinualMethod,
    *,
    callback: Callable[[int, NDArray[np.float64]], object] | None = None,
    **options: Any,
) -> Matrix:
    """Learn a stream of tasks and score the network on all of them after each.

    Parameters
    ----------
    model, stream, method
        Network, tasks, and a method made for the network.
    callback
        Called after each task with its index and its row of scores.
    options
        Options of `train`: ``lr``, ``batch_size``, ``epochs``, ``optimizer``, ``random_state``.

    Returns
    -------
    array
        (T, T): row i has the scores on all tasks after learning task i.

    Examples
    --------
    >>> from vntransfer.continual import SGD
    >>> model = nn.Linear(2, 2)
    >>> x, y = torch.eye(2), torch.tensor([0, 1])
    >>> accuracy_matrix(model, [Task(x, y, x, y)] * 3, SGD(model)).shape
    (3, 3)
    """
    R = np.full((len(stream), len(stream)), np.nan)
    for i, task in enumerate(stream):
        method.before_task()
        train(model, task, method, **options)
        method.after_task()
        for j, other in enumerate(stream):
            R[i, j] = score(model, other)
        if callback is not None:
            callback(i, R[i])
    return R


def _square(R: ArrayLike) -> Matrix:
    matrix = np.asarray(R, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise ArgumentError(f"R: expected a square accuracy matrix, got shape {matrix.shape}")
    return matrix


def forgetting_curve(R: ArrayLike) -> Matrix:
    """Mean accuracy on a task 0, 1, 2, ... tasks after it was learned, (T,).

    Examples
    --------
    >>> forgetting_curve([[0.75, 0.25], [0.5, 0.25]])
    array([0.5, 0.5])
    """
    matrix = _square(R)
    return np.array([np.diag(matrix, -lag).mean() for lag in range(len(matrix))])


def summary(R: ArrayLike, initial: ArrayLike | None = None) -> dict[str, float]:
    """RA, LA, BT and, if the scores before training are given, FT.

    Parameters
    ----------
    R
        Accuracy matrix (T, T).
    initial
        Scores (T,) before any training; FT also needs the upper half of R.

    Examples
    --------
    >>> summary([[0.75, 0.25], [0.5, 0.25]], initial=[0.1, 0.125])
    {'RA': 0.375, 'LA': 0.5, 'BT': -0.125, 'FT': 0.125}
    """
    matrix = _square(R)
    retained, learned = float(matrix[-1].mean()), float(np.diag(matrix).mean())
    found = {"RA": retained, "LA": learned, "BT": retained - learned}
    if initial is None:
        return found
    start = np.asarray(initial, dtype=float)
    if len(matrix) < 2 or start.shape != (len(matrix),):
        raise ArgumentError(
            f"initial: expected the scores of at least two tasks, ({len(matrix)},), got "
            f"{start.shape}"
        )
    return {**found, "FT": float((np.diag(matrix, 1) - start[1:]).mean())}
