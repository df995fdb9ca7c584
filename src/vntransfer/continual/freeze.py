"""Freeze the upper layers after the first task: a simple control."""

from typing import Any, ClassVar

import torch
from torch import nn

from vntransfer.continual._base import ContinualMethod, Criterion
from vntransfer.continual.l2 import upper


class Freeze(ContinualMethod):
    """Train layers above the first layer only on the first task.

    A tensor that the first task did not change (the head of another task) stays free.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`.

    Examples
    --------
    >>> from vntransfer.continual import Freeze, Task
    >>> model = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> method, task = Freeze(model), Task(torch.ones(4, 1), torch.ones(4))
    >>> for _ in range(2):
    ...     before = model[2].bias.detach().clone()
    ...     method = method.learn(task)
    ...     print("changed" if model[2].bias != before else "held")
    changed
    held
    """

    id = "freeze"
    off: ClassVar[dict[str, Any]] = {}
    saved = ("start", "held")
    fixed = ("chosen",)

    def __init__(self, model: nn.Module, *, criterion: Criterion | None = None) -> None:
        super().__init__(model, criterion=criterion)
        self.chosen = upper(self)
        self.start: list[torch.Tensor] = []
        self.held: list[int] = []  # indices of parameters

    def before_task(self) -> None:
        """Remember where the first task begins."""
        super().before_task()
        if self.tasks_done == 0:
            self.start = [p.detach().clone() for p in self.parameters]

    def adjust_gradients(self) -> None:
        """Remove the gradients: no optimizer moves a parameter without one."""
        for i in self.held:
            self.parameters[i].grad = None

    def after_task(self) -> None:
        """Hold from the second task on."""
        super().after_task()
        if self.tasks_done == 1:
            self.held = [
                i
                for i, (p, start) in enumerate(zip(self.parameters, self.start, strict=True))
                if self.chosen[i] and not torch.equal(p, start)
            ]
            self.start = []
