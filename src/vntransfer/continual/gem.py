"""Gradient episodic memory."""

from typing import ClassVar

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from vntransfer.continual._base import Criterion, gradients
from vntransfer.continual._memory import Episodic, loss_gradient


def project(g: Tensor, G: Tensor, margin: float = 0.0) -> Tensor:
    """Nearest gradient to g (P,) that increases no loss with gradients G (T, P), to first order.

    min ‖z - g‖² with G z >= 0, by its dual: z = g + G'v where v >= margin minimizes
    ‖g + G'v‖² / 2. With v = margin + u and the spectral square root of GG' that is a non-negative
    least-squares problem of as many unknowns as there are rows; it needs no ridge when GG' is
    singular. A margin moves z inside the allowed cone.
    """
    rows, own = G.double(), g.double()
    Q = (rows @ rows.mT).numpy(force=True)
    c = (rows @ own).numpy(force=True) + margin * Q.sum(1)
    values, vectors = np.linalg.eigh(Q)
    kept = values > values[-1] * len(Q) * np.finfo(np.float64).eps
    if not kept.any():
        return g
    root = np.sqrt(values[kept])
    basis = vectors[:, kept]
    u, _ = nnls(root[:, None] * basis.T, -(basis.T @ c) / root)
    v = torch.from_numpy(u + margin).to(rows.device)
    return (own + v @ rows).to(g.dtype)


class GEM(Episodic):
    """Gradient episodic memory (Lopez-Paz, Ranzato 2017): one constraint per earlier task.

    If the gradient of a batch has a negative product with that of any earlier task's memory, it
    is replaced by the nearest one that has none: see `vntransfer.continual.gem.project`. A step
    costs one backward pass per earlier task.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`; the criterion is that of the memories.
    margin
        The original's memory strength: smallest multiplier of an earlier task's gradient.
    memory
        Samples kept per task, its last.

    Examples
    --------
    >>> from vntransfer.continual import GEM
    >>> GEM(nn.Linear(2, 2), margin=0.5).stored_samples
    0
    """

    id: ClassVar[str] = "gem"

    def __init__(
        self,
        model: nn.Module,
        *,
        margin: float = 0.5,
        memory: int = 10,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, margin=margin, memory=memory, criterion=criterion)

    def adjust_gradients(self) -> None:
        """Project the gradient."""
        if not self.memory.tasks:
            return
        G = torch.stack([loss_gradient(self, x, y) for x, y in self.memory.tasks])
        g = parameters_to_vector(gradients(self.parameters))
        if bool((G @ g < 0).any()):
            vector_to_parameters(project(g, G, self.margin), gradients(self.parameters))
