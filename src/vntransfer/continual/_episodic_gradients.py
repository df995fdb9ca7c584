"""Methods with a memory of every task; gradients on it beside a step's own, as flat vectors."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from vntransfer.checks import number
from vntransfer.continual._base import ContinualMethod, Criterion, gradients
from vntransfer.continual._memory import TaskMemory


class Episodic(ContinualMethod):
    """A method that keeps the last samples of every task, and compares gradients with theirs."""

    off: ClassVar[dict[str, Any]] = {"memory": 0}
    saved: ClassVar[tuple[str, ...]] = ("memory",)

    def __init__(
        self, model: nn.Module, *, margin: float, memory: int, criterion: Criterion | None = None
    ) -> None:
        super().__init__(model, criterion=criterion)
        self.margin = number("margin", margin)
        self.memory = TaskMemory(memory)

    @property
    def stored_samples(self) -> int:
        """Number of samples of finished tasks that are kept."""
        return len(self.memory)

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Remember the batch."""
        self.memory.add(x, y)
        return x, y

    def after_task(self) -> None:
        """Close the task's memory."""
        super().after_task()
        self.memory.end_task()


def loss_gradient(method: ContinualMethod, x: Tensor, y: Tensor) -> Tensor:
    """Gradient of the method's criterion on samples, flat (P,); ``.grad`` is not touched."""
    loss = method.criterion(method.model(x), y)
    trained = [p for p in method.parameters if p.requires_grad]
    parts = iter(torch.autograd.grad(loss, trained, allow_unused=True))
    found = [next(parts) if p.requires_grad else None for p in method.parameters]
    return torch.cat(
        [
            torch.zeros_like(p).flatten() if g is None else g.flatten()
            for p, g in zip(method.parameters, found, strict=True)
        ]
    )


def own_gradient(parameters: Sequence[Tensor]) -> Tensor:
    """Gradient that the backward pass left, flat (P,)."""
    return torch.cat([g.flatten() for g in gradients(parameters)])


def write_gradient(parameters: Sequence[Tensor], flat: Tensor) -> None:
    """Put a flat gradient in the place of the present one."""
    parts = flat.split([p.numel() for p in parameters])
    torch._foreach_copy_(
        gradients(parameters),
        [part.view_as(p) for part, p in zip(parts, parameters, strict=True)],
    )
