"""Quadratic penalties of all earlier tasks as one precision and one anchor per parameter.

For r_A, θ_A of the tasks A (elementwise)::

    Σ_A r_A (θ - θ_A)² = R (θ - a)² + const,   R = Σ_A r_A,   a = Σ_A r_A θ_A / R

so that neither memory nor the cost of a step grows with the number of tasks.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from vntransfer.checks import number, one_of
from vntransfer.continual._base import ContinualMethod, gradients
from vntransfer.continual._fisher import Fisher, diagonal_fisher
from vntransfer.continual.method_state import Stateful
from vntransfer.errors import ArgumentError

Update = Literal["proximal", "explicit"]
Form = Literal["separate", "online"]


class Quadratic(Stateful):
    """Penalty λ Σ_i R_i (θ_i - a_i)² and its two ways into a training step.

    "explicit" adds 2 λ R (θ - a) to the gradient; plain descent at rate η then diverges as soon as
    η λ R > 1. "proximal" (implicit) pulls after the optimizer's step, θ being its result::

        argmin_u  λ R (u - a)² + (u - θ)² / 2η  =  (θ + 2 η λ R a) / (1 + 2 η λ R)

    which never overshoots. With an optimizer other than plain descent the pull is decoupled from
    its scaling, as weight decay is in AdamW.

    Parameters
    ----------
    parameters
        Parameters under the penalty; changed in place.
    strength
        λ.
    update
        "proximal" or "explicit".

    Examples
    --------
    >>> theta = torch.zeros(1)
    >>> penalty = Quadratic([theta], strength=1.0)
    >>> penalty.add([torch.tensor([1.0])], [torch.tensor([2.0])])
    >>> penalty.add([torch.tensor([3.0])], [torch.tensor([4.0])])
    >>> penalty.anchors, float(penalty.value())        # 1 (0 - 2)² + 3 (0 - 4)²
    ([tensor([3.5000])], 52.0)
    >>> penalty.pull(rate=0.125); theta
    tensor([1.7500])
    """

    saved = ("precisions", "anchors", "constant")
    fixed = ("strength", "update")

    def __init__(
        self, parameters: Sequence[Tensor], strength: float, update: Update = "proximal"
    ) -> None:
        self.parameters = list(parameters)
        self.strength = number("strength", strength)
        self.update: Update = one_of("update", update, Update)
        self.precisions = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]
        self.anchors = [p.detach().clone() for p in self.parameters]
        self.constant = 0.0
        self.changed()

    def changed(self) -> None:
        """Reset caches; call this after changing the precisions from outside."""
        self._factors: tuple[list[float], list[Tensor]] | None = None
        self.active = self.strength > 0 and any(bool(r.any()) for r in self.precisions)

    @torch.no_grad()
    def add(self, precisions: Sequence[Tensor], anchors: Sequence[Tensor] | None = None) -> None:
        """Add a task's penalty Σ r (θ - θ_A)²; anchors default to the current parameters."""
        own = self.parameters if anchors is None else anchors
        for R, a, r, theta in zip(self.precisions, self.anchors, precisions, own, strict=True):
            total = R + r
            share = torch.where(total > 0, r / total, 0.0)
            gap = theta - a
            self.constant += float((R * share * gap.square()).sum(dtype=torch.float64))
            a.add_(share * gap)
            R.copy_(total)
        self.changed()

    @torch.no_grad()
    def replace(self, precisions: Sequence[Tensor]) -> None:
        """Replace all anchors by the current parameters, and set the precisions."""
        for R, a, r, theta in zip(
            self.precisions, self.anchors, precisions, self.parameters, strict=True
        ):
            R.copy_(r)
            a.copy_(theta)
        self.constant = 0.0
        self.changed()

    @torch.no_grad()
    def value(self) -> Tensor:
        """Return the penalty λ Σ_A Σ_i r_A,i (θ_i - θ_A,i)², in float64."""
        terms = [
            (R.double() * (p.double() - a.double()).square()).sum()
            for R, a, p in zip(self.precisions, self.anchors, self.parameters, strict=True)
        ]
        return self.strength * (torch.stack(terms).sum() + self.constant)

    @torch.no_grad()
    def adjust_gradients(self) -> None:
        """Add the gradient 2 λ R (θ - a), if the update is explicit."""
        if self.active and self.update == "explicit":
            gaps = torch._foreach_sub(self.parameters, self.anchors)
            torch._foreach_addcmul_(
                gradients(self.parameters), self.precisions, gaps, 2 * self.strength
            )

    @torch.no_grad()
    def pull(self, rate: float | list[float]) -> None:
        """Make the proximal step; factors are cached until a rate or R changes."""
        rates = rate if isinstance(rate, list) else [rate] * len(self.precisions)
        if self._factors is None or self._factors[0] != rates:
            pulls = torch._foreach_mul(self.precisions, [2 * self.strength * r for r in rates])
            torch._foreach_div_(pulls, torch._foreach_add(pulls, 1.0))
            self._factors = (rates, list(pulls))
        torch._foreach_lerp_(self.parameters, self.anchors, self._factors[1])

    def restored(self) -> None:
        """Check whether there is anything to hold."""
        self.changed()


class Penalized(ContinualMethod):
    """A method that protects earlier tasks by a `Quadratic`, its attribute ``quadratic``."""

    quadratic: Quadratic
    generator: torch.Generator  # of drawn labels

    def fisher_of(self, x: Tensor, y: Tensor, kind: Fisher) -> list[Tensor]:
        """Diagonal Fisher information of all parameters from samples, see `diagonal_fisher`."""
        return diagonal_fisher(
            self.model,
            x,
            y,
            kind=kind,
            criterion=self.criterion,
            generator=self.generator,
            names=self.names,
        )

    def before_task(self) -> None:
        """Begin a task; raise if the network has parameters that the penalty does not know."""
        known = self.places()
        for name, p in self.model.named_parameters():
            if p.requires_grad and id(p) not in known:
                raise ArgumentError(
                    f"model: {name!r} was added or unfrozen after the method was created; create "
                    f"all parts of the network first (also heads of later tasks: MultiHead) and "
                    f"freeze layers later"
                )
        super().before_task()

    def adjust_gradients(self) -> None:
        """Add the penalty's gradient, if the update is explicit."""
        self.quadratic.adjust_gradients()

    def after_step(self) -> None:
        """Pull, if the update is proximal."""
        if self.quadratic.active and self.quadratic.update == "proximal":
            self.quadratic.pull(self.rates(self.quadratic.parameters))
