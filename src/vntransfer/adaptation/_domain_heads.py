"""Domain classifiers: one logistic head per source that tells it from the target."""

from torch import Tensor, nn

from vntransfer.adaptation._objective import Setup
from vntransfer.networks import Linear


class DomainHeads(nn.Module):
    """Losses d_i = loss(source i → 1) + loss(target → 0) of K heads: (M, K + 1, B, d) -> (M, K).

    All heads start alike, so that the place of a source does not matter.

    Examples
    --------
    >>> import torch
    >>> heads = DomainHeads(Setup(3, 5, 1, torch.Generator().manual_seed(0)))
    >>> heads(torch.zeros(1, 4, 10, 5)).shape
    torch.Size([1, 3])
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        head = Linear(setup.width, 1, setup.generator, members=len(setup.members))
        weight, bias = head.weight.detach().mT, head.bias.detach()[:, 0]
        self.weight = nn.Parameter(weight.repeat(1, setup.n_sources, 1))  # (M, K, d)
        self.bias = nn.Parameter(bias.repeat(1, setup.n_sources))  # (M, K)

    def forward(self, z: Tensor) -> Tensor:
        """Sum of both sides' mean losses, per source."""
        own = (z[:, :-1] @ self.weight.unsqueeze(-1)).squeeze(-1) + self.bias[..., None]
        target = self.weight @ z[:, -1].mT + self.bias[..., None]
        softplus = nn.functional.softplus
        return softplus(-own).mean(-1) + softplus(target).mean(-1)
