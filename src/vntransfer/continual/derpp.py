"""Dark experience replay."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from vntransfer.checks import number, whole
from vntransfer.continual._base import Criterion
from vntransfer.continual._memory import Replaying


class DarkReplay(Replaying):
    """Dark experience replay, DER++ (Buzzega et al. 2020): replay of outputs and of labels.

    To the loss of the batch it adds, on two independent draws from the memory::

        α mean ‖h(x') - z'‖²  +  β loss(h(x''), y'')

    where z' is the output of the network h when x' was seen; the square is a mean over outputs.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`. With a head per task (`Heads`) only the outputs of the sample's head
        count.
    alpha, beta
        Weights of outputs and labels; β = 0 is DER.
    memory
        Samples kept, for all tasks together.
    replay
        Remembered samples per batch and draw.
    random_state
        Seed of the memory.

    Examples
    --------
    >>> from vntransfer.continual import DarkReplay, Task
    >>> method = DarkReplay(nn.Linear(2, 2), memory=5)
    >>> method = method.learn(Task(torch.randn(8, 2), torch.arange(8) % 2))
    >>> [tuple(field.shape) for field in method.memory.fields]
    [(5, 2), (5,), (5, 2)]
    """

    id = "derpp"
    off: ClassVar[dict[str, Any]] = {"alpha": 0.0, "beta": 0.0}

    def __init__(
        self,
        model: nn.Module,
        *,
        alpha: float = 0.5,
        beta: float = 0.5,
        memory: int = 100,
        replay: int = 10,
        random_state: int = 0,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(
            model, memory=memory, replay=replay, random_state=random_state, criterion=criterion
        )
        self.alpha, self.beta = number("alpha", alpha), number("beta", beta)
        whole("replay", replay, minimum=1)
        self._batches: list[tuple[Tensor, Tensor]] = []

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Hold the batch until the backward pass."""
        self._batches.append((x, y))
        return x, y

    def adjust_gradients(self) -> None:
        """Add the gradient of the memory's loss; then remember the batch with its outputs."""
        if len(self.memory) and (self.alpha or self.beta):
            x, y, z = self.memory.draw(2 * self.replay)
            k, output = self.replay, self.model(x)
            loss = self.beta * self.criterion(output[k:], y[k:])
            loss = loss + self.alpha * self._distance(output[:k], y[:k], z[:k])
            loss.backward()
        if self.memory.size and (self.alpha or self.beta):
            for x, y in self._batches:
                slots = self.memory.places(len(x))
                if max(slots) >= 0:
                    with torch.no_grad():
                        self.memory.put(slots, x, y, self.model(x))
        self._batches = []

    def _distance(self, output: Tensor, y: Tensor, z: Tensor) -> Tensor:
        squares = (output - z).square()
        if not hasattr(self.criterion, "restrict"):
            return squares.mean()
        own = self.criterion.restrict(output.detach(), y).isfinite()
        return (squares * own).sum() / own.sum()
