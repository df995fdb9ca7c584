"""An equal pull on all parameters of the upper layers: the control for RSP and EWC."""

import torch
from torch import nn

from vntransfer.continual._base import ContinualMethod, Criterion
from vntransfer.continual._layers import watch_order
from vntransfer.continual._quadratic import Penalized, Quadratic


def upper(method: ContinualMethod) -> list[bool]:
    """Mark the parameters of a method that are above the first layer.

    The first layer is the first module with a weight of two or more dimensions; a network whose
    forward pass calls another one first is refused.
    """
    owners = [name.rpartition(".")[0] for name in method.names]
    big = (o for o, p in zip(owners, method.parameters, strict=True) if p.ndim > 1)
    first = next(big, owners[0])
    others = (o for o in owners if o and not f"{first}.".startswith(f"{o}."))
    modules = {o: method.model.get_submodule(o) for o in (*others, first)}
    method.keep_hooks(watch_order([(o, m, o != first) for o, m in modules.items()]))
    return [owner != first for owner in owners]


class L2Anchor(Penalized):
    """Pull all parameters above the first layer equally to their values after earlier tasks.

    The penalty λ Σ_i (θ_i - a_i)², a the mean of the parameters after each task: RSP with a
    constant in place of the divergence. It uses no information about the tasks, so the gain of a
    method with Fisher information or divergences over it is the value of that information. A tensor
    that a task did not change (the head of another task) is not anchored by it.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`.
    strength
        λ.

    Examples
    --------
    >>> from vntransfer.continual import L2Anchor
    >>> model = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> method = L2Anchor(model, strength=1.0)
    >>> method.chosen
    [False, False, True, True]
    """

    id = "l2"
    saved = ("quadratic", "start", "counts")
    fixed = ("chosen",)

    def __init__(
        self,
        model: nn.Module,
        strength: float = 1.0,
        *,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, criterion=criterion)
        self.chosen = upper(self)
        self.own = [p for p, mine in zip(self.parameters, self.chosen, strict=True) if mine]
        self.quadratic = Quadratic(self.own, strength)
        self.start: list[torch.Tensor] = []
        self.counts = [0] * len(self.own)

    def before_task(self) -> None:
        """Remember where the task begins."""
        super().before_task()
        self.start = [p.detach().clone() for p in self.own]

    @torch.no_grad()
    def after_task(self) -> None:
        """Use the current parameters as an anchor."""
        super().after_task()
        q = self.quadratic
        for i, (p, start) in enumerate(zip(self.own, self.start, strict=True)):
            if torch.equal(p, start):
                continue
            self.counts[i] += 1
            q.anchors[i].lerp_(p, 1.0 / self.counts[i])
            q.precisions[i].fill_(1.0)
        self.start = []
        q.changed()
