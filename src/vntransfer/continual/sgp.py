"""Scaled gradient projection."""

from collections.abc import Sequence

from torch import Tensor, nn

from vntransfer.checks import number
from vntransfer.continual._base import Criterion
from vntransfer.continual.gpm import GPM


class ScaledGPM(GPM):
    """Scaled gradient projection (Saha and Roy 2023): shorter steps along earlier inputs.

    The directions M are those of `GPM`. With the inputs R of a finished task and σ_i = ‖Rm_i‖ (for
    a new direction, the singular value of the part of R outside M), ::

        λ_i ← min(1, λ_i + (α + 1) σ_i / (α σ_i + max σ))

    starting from zero, and a gradient G becomes G - GM diag(λ) M'. A large α is `GPM`.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`.
    threshold, samples, layers
        See `GPM`.
    scale
        α.

    Attributes
    ----------
    importance : list of Tensor
        λ of each layer, zero beyond the directions that are taken.

    Examples
    --------
    >>> import torch
    >>> from vntransfer.continual import ScaledGPM, Task
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> method = ScaledGPM(net, threshold=0.9).learn(Task(torch.eye(4), torch.arange(4) % 2))
    >>> [round(float(share), 2) for share in method.importance[0]]
    [1.0, 0.9, 0.9, 0.9, 0.0]
    """

    id = "sgp"
    saved = (*GPM.saved, "importance")

    def __init__(
        self,
        model: nn.Module,
        threshold: float = 0.95,
        *,
        scale: float = 10.0,
        samples: int | None = 300,
        layers: Sequence[str] | None = None,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, threshold, samples=samples, layers=layers, criterion=criterion)
        self.scale = number("scale", scale)
        self.importance = [basis.new_zeros(len(basis)) for basis in self.bases]

    def _weigh(self, k: int, rows: Tensor) -> None:
        """Add the importance of all directions for one more task."""
        norms = (rows @ self._basis(k).double()).norm(dim=0)
        if norms.any():
            own = (self.scale + 1) * norms / (self.scale * norms + norms.max())
            total = self._removed(k) + own.to(self.importance[k])
            self.importance[k][: self.used[k]] = total.clamp_max(1)

    def _removed(self, k: int) -> Tensor:
        return self.importance[k][: self.used[k]]
