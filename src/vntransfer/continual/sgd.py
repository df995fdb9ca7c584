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
    >>> from vntransfer.continual import SGD, Task, train
    >>> model = torch.nn.Linear(2, 1)
    >>> method = SGD(model)
    >>> method.before_task()
    >>> _ = train(model, Task(torch.zeros(3, 2), torch.zeros(3)), method)
    >>> method.after_task()
    """

    id: ClassVar[str] = "sgd"
    off: ClassVar[dict[str, Any]] = {}
