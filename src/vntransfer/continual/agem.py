"""Averaged gradient episodic memory."""

from typing import ClassVar

from torch import nn

from vntransfer.continual._base import Criterion
from vntransfer.continual._episodic_gradients import (
    Episodic,
    loss_gradient,
    own_gradient,
    write_gradient,
)


class AGEM(Episodic):
    """Averaged gradient episodic memory (Chaudhry et al. 2019): one constraint on the gradient.

    With g the gradient of the batch and r that of the loss on the memory of all earlier tasks::

        if <g, r> < 0:   g += max(margin, -<g, r> / <r, r>) r

    Without margin the result is orthogonal to r. The margin is what "memory strength" means for the
    paper's A-GEM, which it runs as GEM with a single constraint.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`; the criterion is that of the memory.
    margin
        0 is A-GEM as published.
    memory
        Samples kept per task, its last.

    Examples
    --------
    >>> from vntransfer.continual import AGEM
    >>> AGEM(nn.Linear(2, 2), memory=10).stored_samples
    0
    """

    id: ClassVar[str] = "agem"

    def __init__(
        self,
        model: nn.Module,
        *,
        margin: float = 0.0,
        memory: int = 10,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, margin=margin, memory=memory, criterion=criterion)

    def adjust_gradients(self) -> None:
        """Turn the gradient away from forgetting."""
        if not len(self.memory):
            return
        r, g = loss_gradient(self, *self.memory.union()), own_gradient(self.parameters)
        product = g @ r
        if product < 0:
            v = (-product / (r @ r)).clamp(min=self.margin)
            write_gradient(self.parameters, g + v * r)
