"""Experience replay."""

from typing import Any, ClassVar

from torch import Tensor

from vntransfer.continual._memory import Replaying


class Replay(Replaying):
    """Experience replay: every batch is trained on together with remembered samples.

    `observe` returns the batch followed by ``replay`` samples, drawn with replacement from a
    uniform sample of the stream so far; all have equal weight in the loss.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`.
    memory
        Samples kept, for all tasks together.
    replay
        Remembered samples per batch.
    random_state
        Seed of the memory.

    Examples
    --------
    >>> import torch
    >>> from vntransfer.continual import Replay
    >>> method = Replay(torch.nn.Linear(2, 2), memory=5, replay=3)
    >>> x, y = torch.zeros(2, 2), torch.zeros(2).long()
    >>> [len(method.observe(x, y)[0]) for _ in range(2)]       # nothing to replay at first
    [2, 5]
    """

    id = "er"
    off: ClassVar[dict[str, Any]] = {"replay": 0}

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Append remembered samples, then remember the batch."""
        return self.memory.extend(x, y, self.replay)
