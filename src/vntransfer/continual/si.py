"""Synaptic intelligence."""

import torch
from torch import nn

from vntransfer.continual._base import Criterion
from vntransfer.continual._quadratic import Penalized, Quadratic

DAMPING = 0.1
"""ξ."""


class SI(Penalized):
    """Synaptic intelligence (Zenke, Poole, Ganguli 2017): importance along the path of training.

    Over the steps of a task, with g the gradient of the task's own loss and Δ the change of the
    parameters in a step::

        ω_i = -Σ g_i Δ_i,   Ω_i += max(ω_i, 0) / ((θ_i - θ_i at the task's begin)² + ξ)

    with ξ = 0.1, and the penalty λ Σ_i Ω_i (θ_i - a_i)² around the latest parameters a.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`.
    strength
        λ.

    Examples
    --------
    >>> from vntransfer.continual import SI, Task
    >>> method = SI(nn.Linear(2, 2), strength=0.1)
    >>> method = method.learn(Task(torch.eye(2), torch.tensor([0, 1])))
    >>> bool((method.quadratic.precisions[0] >= 0).all())
    True
    """

    id = "si"
    saved = ("quadratic", "path", "start")

    def __init__(
        self,
        model: nn.Module,
        strength: float = 0.1,
        *,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, criterion=criterion)
        self.quadratic = Quadratic(self.parameters, strength)
        self.path = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]
        self.start: list[torch.Tensor] = []
        self._before = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]
        self._gradients = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]

    def before_task(self) -> None:
        """Remember where the task begins."""
        super().before_task()
        self.start = [p.detach().clone() for p in self.parameters]

    @torch.no_grad()
    def adjust_gradients(self) -> None:
        """Keep the gradient and the parameters before the step; add the penalty's gradient."""
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        torch._foreach_copy_(self._gradients, grads)
        torch._foreach_copy_(self._before, self.parameters)
        super().adjust_gradients()

    @torch.no_grad()
    def after_step(self) -> None:
        """Pull, if the update is proximal, and add to the path integral."""
        super().after_step()
        torch._foreach_sub_(self._before, self.parameters)
        torch._foreach_addcmul_(self.path, self._gradients, self._before)

    @torch.no_grad()
    def after_task(self) -> None:
        """Turn the path integral into importance."""
        super().after_task()
        importance = [
            R + w.clamp(min=0) / ((p - start).square() + DAMPING)
            for R, w, p, start in zip(
                self.quadratic.precisions, self.path, self.parameters, self.start, strict=True
            )
        ]
        self.quadratic.replace(importance)
        torch._foreach_zero_(self.path)
        self.start = []
