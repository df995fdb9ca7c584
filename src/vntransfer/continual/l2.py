"""An equal pull on all parameters of the upper layers: the control for RSP and EWC."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from vntransfer.checks import one_of
from vntransfer.continual._base import ContinualMethod, Criterion
from vntransfer.continual._layers import watch_order
from vntransfer.continual._quadratic import Penalized, Quadratic, Update
from vntransfer.errors import ArgumentError

Anchoring = Literal["mean", "separate"]
Layers = Literal["upper"] | Sequence[str]


def chosen(method: ContinualMethod, layers: Layers) -> list[bool]:
    """Say for each of a method's parameters whether it is in these layers.

    "upper" are all but the first module with a weight of two or more dimensions; in the forward
    pass, a network that calls another one first is refused. Names are beginnings of parameters'
    names.
    """
    owners = [name.rpartition(".")[0] for name in method.names]
    if layers == "upper":
        big = (o for o, p in zip(owners, method.parameters, strict=True) if p.ndim > 1)
        first = next(big, owners[0])
        modules = {o: method.model.get_submodule(o) for o in owners if o and not _belongs(first, o)}
        modules[first] = method.model.get_submodule(first)
        method.keep_hooks(watch_order([(o, m, o != first) for o, m in modules.items()]))
        return [owner != first for owner in owners]
    if isinstance(layers, str):
        raise ArgumentError(f"layers: expected 'upper' or a list of names, got {layers!r}")
    for start in layers:
        if not any(_belongs(name, start) for name in method.names):
            raise ArgumentError(f"layers: no parameter of {start!r}; there are {method.names}")
    return [any(_belongs(name, start) for start in layers) for name in method.names]


def _belongs(name: str, start: str) -> bool:
    return name == start or name.startswith(f"{start}.")


class L2Anchor(Penalized):
    """Pull all parameters above the first layer equally to where earlier tasks left them.

    The penalty λ Σ_i (θ_i - a_i)². It knows nothing about the tasks: what a method with Fisher
    information or divergences reaches beyond it is what that knowledge is worth. A tensor that a
    task did not change (the head of another task) is not anchored by it.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`.
    strength
        λ.
    anchor
        "mean" of the parameters after each task: RSP with a constant in place of the divergence,
        normalized over tasks. "separate": a penalty of λ for every task, so that the pull grows.
    update
        "proximal" or "explicit" steps: see `vntransfer.continual.Quadratic`.

    Examples
    --------
    >>> from vntransfer.continual import L2Anchor
    >>> model = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> method = L2Anchor(model, strength=1.0)
    >>> method.chosen
    [False, False, True, True]
    """

    id: ClassVar[str] = "l2"
    saved: ClassVar[tuple[str, ...]] = ("quadratic", "start", "counts")

    def __init__(
        self,
        model: nn.Module,
        strength: float = 1.0,
        *,
        anchor: Anchoring = "mean",
        update: Update = "proximal",
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, criterion=criterion)
        self.chosen = chosen(self, "upper")
        self.own = [p for p, mine in zip(self.parameters, self.chosen, strict=True) if mine]
        self.anchor: Anchoring = one_of("anchor", anchor, Anchoring)
        self.quadratic = Quadratic(self.own, strength, update)
        self.start: list[torch.Tensor] = []
        self.counts = [0] * len(self.own)

    def before_task(self) -> None:
        """Remember where the task begins."""
        super().before_task()
        self.start = [p.detach().clone() for p in self.own]

    def options(self) -> dict[str, Any]:
        """Return the options that a checkpoint must agree with."""
        return super().options() | {"chosen": self.chosen}

    def rate(self) -> float | list[float]:
        """Learning rate of the parameters that are held."""
        rate = super().rate()
        if isinstance(rate, list):
            rate = [r for r, mine in zip(rate, self.chosen, strict=True) if mine]
        return rate

    @torch.no_grad()
    def after_task(self) -> None:
        """Take the parameters as an anchor."""
        super().after_task()
        q = self.quadratic
        for i, (p, start) in enumerate(zip(self.own, self.start, strict=True)):
            if torch.equal(p, start):
                continue
            self.counts[i] += 1
            q.anchors[i].lerp_(p, 1.0 / self.counts[i])
            q.precisions[i].fill_(self.counts[i] if self.anchor == "separate" else 1.0)
        self.start = []
        q.changed()
