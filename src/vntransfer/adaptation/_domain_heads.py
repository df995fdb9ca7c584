"""Domain classifiers: one logistic head per source that tells it from the target."""

import torch
from torch import Tensor, nn

from vntransfer.adaptation._objective import Setup
from vntransfer.networks import linear


class DomainHeads(nn.Module):
    """Losses d_i = loss(source i → 1) + loss(target → 0) of K heads: (K + 1, B, d) -> (K,).

    All heads start alike, so that the place of a source does not matter.

    Examples
    --------
    >>> heads = DomainHeads(Setup(3, 5, 1, torch.Generator().manual_seed(0)))
    >>> heads(torch.zeros(4, 10, 5)).shape
    torch.Size([3])
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        head = linear(setup.width, 1, setup.generator)
        self.weight = nn.Parameter(head.weight.detach().repeat(setup.n_sources, 1))
        self.bias = nn.Parameter(head.bias.detach().repeat(setup.n_sources))

    def forward(self, z: Tensor) -> Tensor:
        """Sum of both sides' mean losses, per source."""
        own = torch.einsum("kbd,kd->kb", z[:-1], self.weight) + self.bias[:, None]
        target = self.weight @ z[-1].mT + self.bias[:, None]
        softplus = nn.functional.softplus
        return softplus(-own).mean(1) + softplus(target).mean(1)
