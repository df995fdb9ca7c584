"""Averaged gradient episodic memory."""

from typing import ClassVar

import torch
from torch import nn

from vntransfer.checks import whole
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
        See `Method`; the criterion is that of the memory.
    margin
        0 is A-GEM as published.
    memory
        Samples kept per task, its last.
    sample
        How many remembered samples r is taken on, drawn anew each step; all if None.
    random_state
        Of these draws.

    Examples
    --------
    >>> from vntransfer.continual import AGEM
    >>> AGEM(nn.Linear(2, 2), memory=10).stored_samples
    0
    """

    id: ClassVar[str] = "agem"
    saved: ClassVar[tuple[str, ...]] = ("memory", "generator")

    def __init__(
        self,
        model: nn.Module,
        *,
        margin: float = 0.0,
        memory: int = 10,
        sample: int | None = None,
        random_state: int = 0,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, margin=margin, memory=memory, criterion=criterion)
        self.sample = None if sample is None else whole("sample", sample, minimum=1)
        self.generator = torch.Generator().manual_seed(whole("random_state", random_state))

    def adjust_gradients(self) -> None:
        """Turn the gradient away from forgetting."""
        if not len(self.memory):
            return
        x, y = self.memory.union()
        if self.sample is not None and self.sample < len(x):
            rows = torch.randperm(len(x), generator=self.generator)[: self.sample]
            x, y = x[rows], y[rows]
        r, g = loss_gradient(self, x, y), own_gradient(self.parameters)
        product = g @ r
        if product < 0:
            v = (-product / (r @ r)).clamp(min=self.margin)
            write_gradient(self.parameters, g + v * r)
