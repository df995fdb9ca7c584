"""Plain training without protection."""

from typing import Any, ClassVar

from vntransfer.continual._base import ContinualMethod


class SGD(ContinualMethod):
    """Plain training: the baseline that every table needs.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`.

    Examples
    --------
    >>> import torch
    >>> from vntransfer.continual import SGD, Task
    >>> method = SGD(torch.nn.Linear(2, 1))
    >>> method.learn(Task(torch.zeros(3, 2), torch.zeros(3)), lr=0.1).tasks_done
    1
    """

    id = "sgd"
    off: ClassVar[dict[str, Any]] = {}
