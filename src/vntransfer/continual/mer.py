"""Meta-experience replay."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from vntransfer.checks import number, whole
from vntransfer.continual._base import Criterion
from vntransfer.continual._memory import Replaying
from vntransfer.continual.descent import DenseSteps, fits
from vntransfer.errors import ArgumentError


class MER(Replaying):
    """Meta-experience replay (Riemer et al. 2019, Algorithm 1): Reptile over replayed samples.

    For every incoming sample::

        repeat `steps` times:
            θ_W = θ
            for the sample, then `replay` samples of the memory, one at a time: a step on θ
            θ = θ_W + β (θ - θ_W)
        show the sample to the memory (reservoir sampling)

    A larger batch is treated like one sample, and each of the ``replay`` steps then uses as many
    stored samples. MER replaces a whole step: in your own loop call `step`, not the hooks.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`.
    beta
        β; the algorithm's other rate, of an interpolation across batches, is one.
    memory
        Samples kept, for all tasks together.
    replay, steps
        k and the number of inner batches; the paper states neither.
    random_state
        Seed of the memory.

    Examples
    --------
    >>> from vntransfer.continual import MER, Task
    >>> method = MER(nn.Linear(2, 2), beta=0.03, memory=5)
    >>> method = method.learn(Task(torch.randn(8, 2), torch.arange(8) % 2), lr=0.1)
    >>> len(method.memory)
    5
    """

    id = "mer"
    off: ClassVar[dict[str, Any]] = {"beta": 1.0, "memory": 0, "steps": 1}
    whole_step = True

    def __init__(
        self,
        model: nn.Module,
        *,
        beta: float = 0.01,
        memory: int = 100,
        replay: int = 10,
        steps: int = 5,
        random_state: int = 0,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(
            model, memory=memory, replay=replay, random_state=random_state, criterion=criterion
        )
        self.beta = number("beta", beta)
        self.steps = whole("steps", steps, minimum=1)

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Raise an error: this method needs `step`."""
        raise ArgumentError(
            "observe: MER makes several steps per batch; in your own loop call "
            "method.step(x, y, criterion, optimizer) instead of the hooks"
        )

    def step(
        self, x: Tensor, y: Tensor, criterion: Criterion, optimizer: torch.optim.Optimizer
    ) -> Tensor:
        """Learn from one batch; return its loss before the first step."""
        self.check_batch(x, y)
        descend = self._descent(x, y, criterion, optimizer)
        losses = []
        for _ in range(self.steps):
            start = [] if self.beta == 1 else [p.detach().clone() for p in self.parameters]
            losses.append(descend(x, y))
            if len(self.memory) and self.replay:
                descend(*self.memory.draw(self.replay * len(x)))
            if start:
                with torch.no_grad():
                    torch._foreach_lerp_(self.parameters, start, 1 - self.beta)
        self.memory.add(x, y)
        return losses[0]

    def _descent(
        self, x: Tensor, y: Tensor, criterion: Criterion, optimizer: torch.optim.Optimizer
    ) -> Callable[[Tensor, Tensor], Tensor]:
        """Return what makes a step per ``len(x)`` samples; its result is the first step's loss.

        Fifty-five of them per sample are why single samples of a dense network take steps that
        are written out by hand.
        """
        if len(x) == 1 and self.memory.size:  # without a memory: plain training, bit for bit
            by_hand = DenseSteps.of(self.model, criterion, optimizer)
            if by_hand is not None and fits(by_hand.layers, x, y):
                return by_hand.descend

        def descend(inputs: Tensor, labels: Tensor) -> Tensor:
            losses = []
            for pair in zip(inputs.split(len(x)), labels.split(len(x)), strict=True):
                loss = criterion(self.model(pair[0]), pair[1])
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                losses.append(loss.detach())
            return losses[0]

        return descend
