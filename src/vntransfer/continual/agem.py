"""Averaged gradient episodic memory."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from vntransfer.checks import number, whole
from vntransfer.continual._base import ContinualMethod, Criterion, gradients


class AGEM(ContinualMethod):
    """Averaged gradient episodic memory (Chaudhry et al. 2019): one constraint on the gradient.

    With g the gradient of the batch and r that of the loss on the memory of all earlier tasks::

        if <g, r> < 0:   g += max(margin, -<g, r> / <r, r>) r

    Without a margin, the result is orthogonal to r. The paper runs A-GEM as GEM with a single
    constraint; the margin is its "memory strength".

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`; the criterion is that of the memory.
    margin
        0 is A-GEM as published.
    memory
        Samples kept per task: its last ones.

    Examples
    --------
    >>> from vntransfer.continual import AGEM
    >>> AGEM(nn.Linear(2, 2), memory=10).stored_samples
    0
    """

    id = "agem"
    off: ClassVar[dict[str, Any]] = {"memory": 0}
    saved = ("past", "current")

    def __init__(
        self,
        model: nn.Module,
        *,
        margin: float = 0.0,
        memory: int = 10,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, criterion=criterion)
        self.margin = number("margin", margin)
        self.memory = whole("memory", memory)
        self.past: list[Tensor] = []  # x and y of finished tasks
        self.current: list[Tensor] = []  # the last ones of this task

    @property
    def stored_samples(self) -> int:
        """Number of samples of finished tasks that are kept."""
        return len(self.past[0]) if self.past else 0

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Remember the last samples of the task."""
        if self.memory:
            self.current = [own[-self.memory :] for own in _joined(self.current, [x, y])]
        return x, y

    def adjust_gradients(self) -> None:
        """Project the gradient if it would increase the loss on the memory."""
        if not self.past:
            return
        r = self._memory_gradient()
        g = parameters_to_vector(gradients(self.parameters))
        product = g @ r
        if product < 0:
            v = (-product / (r @ r)).clamp(min=self.margin)
            vector_to_parameters(g + v * r, gradients(self.parameters))

    def _memory_gradient(self) -> Tensor:
        """Gradient of the loss on the memory, flat (P,); ``.grad`` is not touched."""
        x, y = self.past
        trained = [p for p in self.parameters if p.requires_grad]
        loss = self.criterion(self.model(x), y)
        found = iter(torch.autograd.grad(loss, trained, materialize_grads=True))
        parts = (next(found) if p.requires_grad else torch.zeros_like(p) for p in self.parameters)
        return torch.cat([part.flatten() for part in parts])

    def after_task(self) -> None:
        """Close the memory of the task."""
        super().after_task()
        if self.current:
            self.past, self.current = _joined(self.past, self.current), []


def _joined(old: list[Tensor], new: list[Tensor]) -> list[Tensor]:
    """Append copies of new rows of x and y to old ones."""
    both = zip(old, new, strict=True) if old else ((own,) for own in new)
    return [torch.cat([part.detach() for part in parts]) for parts in both]
