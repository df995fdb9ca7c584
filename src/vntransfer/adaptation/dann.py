"""Domain-adversarial training with merged sources."""

from dataclasses import dataclass

from torch import Tensor, nn

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._objective import EVERYTHING, Alignment, Auto, Setup, reverse
from vntransfer.networks import Linear


class DomainHeads(nn.Module):
    """Losses d_i = loss(source i → 1) + loss(target → 0) of K heads: (M, K + 1, B, d) -> (M, K).

    All heads start alike, so that the place of a source does not matter.
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


class DomainAdversarial(Alignment):
    """The steps of `DANNRegressor`."""

    blocks = EVERYTHING

    def __init__(self, setup: Setup, method: DomainRegressor) -> None:
        super().__init__(setup, method)
        self.heads = DomainHeads(setup)

    def term(self, z: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Give the mean loss of the heads on reversed features."""
        domain = self.heads(reverse(z)).mean(-1)
        return domain, {"domain": domain}


@dataclass(eq=False, repr=False, kw_only=True)
class DANNRegressor(DomainRegressor):
    """Domain-adversarial network (Ganin et al. 2016) for regression, all sources merged.

    A logistic head learns to distinguish source from target rows by their features. The extractor
    gets its reversed gradient and learns to make the features indistinguishable::

        error of the sources + μ (loss(source → 1) + loss(target → 0) of reversed features)

    The public regression code with which the paper compares creates the reversal but never applies
    it, and it uses raw scores instead of log-probabilities, so its losses are unbounded below.

    Parameters
    ----------
    trade_off
        μ; "auto": chosen without labels of the target, see `DomainRegressor`.

    All further options are those of `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> X, domain = np.random.default_rng(0).normal(size=(150, 2)), np.repeat([0, 1, -1], 50)
    >>> model = DANNRegressor(epochs=2, random_state=0).fit(X, X[:, 0], domain)
    >>> sorted(model.source_weights_), model.predict(X[domain < 0]).shape
    ([0, 1], (50,))
    """

    trade_off: float | Auto = 0.01

    _steps = DomainAdversarial
    _trade_offs = (0.001, 0.01, 0.1, 1.0)

    def _merges(self) -> bool:
        return True
