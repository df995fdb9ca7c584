"""Closed form on random features and the hidden layer of a network that covp trains."""

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from vntransfer.continual._base import Criterion
from vntransfer.continual._last_layer import CHUNK, RIDGE, LastLayer, Precision
from vntransfer.continual.covp import CovarianceProjection


class ClosedFormProjection(CovarianceProjection):
    """Train by `CovarianceProjection`, and solve the last layer as `ClosedForm` does.

    Within a task the network learns by covariance projection. At the end of the task, the moments
    of [h, z] and the responses are added to those of earlier tasks, with h the current inputs of
    the network's last layer and z the random features of a `JoinedNet`. The outputs become the
    ridge regression on [h, z]. The trained weights are kept as well, and the next task starts from
    them. Moments of earlier tasks contain the h of that time, which covariance projection changes
    little. So the order of the tasks matters, unlike for `ClosedForm`. Prefer this method for long
    streams of dissimilar tasks, where random features alone do not suffice; it needs the memory and
    time of both. Do not use it where classes arrive over time and share a head: h changes too much.

    Parameters
    ----------
    model
        A `JoinedNet`; any other network is used without random features.
    strength
        γ of `CovarianceProjection`.
    ridge, precision
        See `ClosedForm`.
    random_state, criterion
        See `CovarianceProjection`.

    Examples
    --------
    >>> from vntransfer.continual import JoinedNet, Task, dense
    >>> g = torch.Generator().manual_seed(0)
    >>> net = JoinedNet(dense([4, 8, 2], generator=g), features=20)
    >>> method = ClosedFormProjection(net)
    >>> for shift in (0.0, 1.0):
    ...     method = method.learn(Task(torch.randn(16, 4) + shift, torch.arange(16) % 2))
    >>> method.solver.heads[0].in_features, len(method.solver.mean)  # h; h, z and two classes
    (8, 30)
    """

    id = "closed_form_covp"
    off: ClassVar[dict[str, Any]] = {}
    saved = (*CovarianceProjection.saved, "solver", "trained_heads", "waiting_rows")

    def __init__(
        self,
        model: nn.Module,
        strength: float | None = None,
        *,
        ridge: float | Literal["auto"] = RIDGE,
        precision: Precision = "double",
        random_state: int = 0,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, strength, random_state=random_state, criterion=criterion)
        self.solver = LastLayer(model, ridge, precision)
        self.trained_heads: list[Tensor] = []  # weights of the next start, between tasks
        self.waiting_rows: list[list[Tensor]] = []  # of the present task

    def _head_parameters(self) -> list[Tensor]:
        return [p for head in self.solver.heads for p in head.parameters()]

    @torch.no_grad()
    def before_task(self) -> None:
        """Begin a task: training resumes from the trained weights."""
        if self.trained_heads and not self.in_task:
            self._check_precision()
            for p, trained in zip(self._head_parameters(), self.trained_heads, strict=True):
                p.copy_(trained)
            self.trained_heads = []
            if self.solver.joined is not None:
                self.solver.joined.joined.fill_(False)
        super().before_task()

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """See a batch, and keep it until the end of the task."""
        self.solver.check(y)
        found = super().observe(x, y)
        self.waiting_rows.append([x.detach().to(self.parameters[0], copy=True), y.detach().clone()])
        return found

    @torch.no_grad()
    def after_task(self) -> None:
        """End the task of the covariance projection, then solve for the last layer."""
        super().after_task()
        waiting, self.waiting_rows = self.waiting_rows, []
        x_and_y = (torch.cat(parts).split(CHUNK) for parts in zip(*waiting, strict=True))
        for x, y in zip(*x_and_y, strict=True):  # many rows at once: single ones would be slow
            self.solver.add(x, y)
        self.trained_heads = [p.detach().clone() for p in self._head_parameters()]
        self.solver.solve()
        self.solver.pack()
