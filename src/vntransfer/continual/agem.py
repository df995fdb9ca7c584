"""Averaged gradient episodic memory."""

from typing import ClassVar

from torch.nn.utils import parameters_to_vector, vector_to_parameters

from vntransfer.continual._base import gradients
from vntransfer.continual._memory import Episodic, loss_gradient


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
    >>> from torch import nn
    >>> from vntransfer.continual import AGEM
    >>> AGEM(nn.Linear(2, 2), memory=10).stored_samples
    0
    """

    id: ClassVar[str] = "agem"

    def adjust_gradients(self) -> None:
        """Turn the gradient away from forgetting."""
        if not len(self.memory):
            return
        r = loss_gradient(self, *self.memory.union())
        g = parameters_to_vector(gradients(self.parameters))
        product = g @ r
        if product < 0:
            v = (-product / (r @ r)).clamp(min=self.margin)
            vector_to_parameters(g + v * r, gradients(self.parameters))
