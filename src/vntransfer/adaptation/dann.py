"""Domain-adversarial training with merged sources."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._domain_heads import DomainHeads
from vntransfer.adaptation._objective import (
    EVERYTHING,
    Auto,
    Batch,
    Objective,
    Setup,
    Step,
    reverse,
    source_errors,
)
from vntransfer.networks import Net


class DomainAdversarial(Objective):
    """The steps of `DANNRegressor`."""

    def __init__(self, setup: Setup, method: "DANNRegressor") -> None:
        super().__init__(setup)
        self.heads = DomainHeads(setup)
        self.trade_off = setup.option(method, "trade_off")
        self.error = method.loss

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch."""
        z = batch.features(net)
        error = source_errors(self.error, batch, net.head(z[:, :-1])).mean(-1)
        domain = self.heads(reverse(z)).mean(-1)
        self.note(loss=error, domain=domain)
        yield EVERYTHING, error + self.trade_off * domain


@dataclass(eq=False, repr=False, kw_only=True)
class DANNRegressor(DomainRegressor):
    """Domain-adversarial network (Ganin et al. 2016) for regression, all sources merged.

    A logistic head learns to tell source from target rows by their features; its gradient is
    reversed into the extractor, which learns to make them alike::

        error of the sources + μ (loss(source → 1) + loss(target → 0) of reversed features)

    The public regression code compared with by the paper creates the reversal and never applies it,
    and puts raw scores where log-probabilities belong, so that losses fall without limit.

    Parameters
    ----------
    trade_off
        μ; "auto": chosen without labels of the target, see `DomainRegressor`.

    All further options are those of `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from vntransfer import DANNRegressor, stack
    >>> rng = np.random.default_rng(0)
    >>> a, b, new = (rng.normal(m, 1, size=(50, 2)) for m in (0, 1, 2))
    >>> X, y, domain = stack({"a": (a, a[:, 0]), "b": (b, b[:, 0])}, target=new)
    >>> DANNRegressor(epochs=2, random_state=0).fit(X, y, domain).predict(new).shape
    (50,)
    """

    trade_off: float | Auto = 0.01

    _trade_offs: ClassVar[tuple[float, ...]] = (0.001, 0.01, 0.1, 1.0)

    def _objective(self, setup: Setup) -> Objective:
        return DomainAdversarial(setup, self)

    def _merges(self) -> bool:
        return True
