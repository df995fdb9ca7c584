"""Closed form: the last layer is solved from moments of all tasks; nothing below it changes."""

from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from vntransfer.checks import whole
from vntransfer.continual._base import ContinualMethod, Criterion
from vntransfer.continual._fisher import evaluation
from vntransfer.continual._last_layer import CHUNK, RIDGE, LastLayer, Precision
from vntransfer.continual.random_features import RandomFeatureNet
from vntransfer.continual.training import Task
from vntransfer.errors import ArgumentError


class ClosedForm(ContinualMethod):
    """Solve the last layer by ridge regression on the moments of all rows so far.

    With z the inputs of the last layer and Y its responses (classes as indicators), a task adds its
    count, mean and scatter S of [z, Y] to those of earlier tasks, and its end sets ::

        V' = (S_zz + λ t I)⁻¹ S_zY,  c = μ_Y - V μ_z,  t = tr(S_zz)/q

    One pass, no stored samples, no learning rate. The layers below do not change, so the solution
    is that of all rows at once, in any order and split into tasks. Tasks still compete for the q
    features: use more of them for more tasks.

    Without ``model`` the features are random (`RandomFeatureNet`). Prefer this method where classes
    arrive over time and share one head, where q² / 2 numbers fit into memory and where training
    must be quick; with few features or very many dissimilar tasks `CovarianceProjection` retains
    more. OS-ELM, ACIL, GKEAL, DS-AL, RanPAC, F-OAL, AFL and RanDumb are related
    (docs/continual.md).

    Parameters
    ----------
    model
        A network whose last linear layer (or the heads of a `MultiHead`) is solved, in a
        `JoinedNet` with its random features, and whose other layers stay fixed; None creates a
        `RandomFeatureNet`.
    ridge
        λ, relative to the mean diagonal entry of S_zz; "auto" chooses it from the moments by
        generalized cross-validation after every task, which takes about 30 times as long.
    classes
        Without a model: number of classes (of all heads together), None for one real response.
    features, random_state
        Without a model: number and seed of the random features.
    precision
        Precision of the moments between tasks: "double", "single" or "half". Half precision needs
        a quarter of the memory and rounds correlations to three digits; for the same bytes use
        twice as many features. The order of the tasks then matters within this rounding.
    criterion
        Not used.

    Examples
    --------
    >>> g = torch.Generator().manual_seed(0)
    >>> x = torch.randn(300, 4, generator=g)
    >>> y = x.argmax(1)
    >>> method = ClosedForm(classes=4, features=200)
    >>> for c in (0, 2):  # classes 0 and 1, then 2 and 3
    ...     own = (y == c) | (y == c + 1)
    ...     _ = method.learn(Task(x[own], y[own]))
    >>> bool((method.predict(x) == y).float().mean() > 0.9)
    True
    """

    id = "closed_form"
    off: ClassVar[dict[str, Any]] = {}
    by_gradients = False
    saved = ("solver", "waiting")

    def __init__(
        self,
        model: nn.Module | None = None,
        ridge: float | Literal["auto"] = RIDGE,
        *,
        classes: int | None = None,
        features: int = 2000,
        precision: Precision = "double",
        random_state: int = 0,
        criterion: Criterion | None = None,
    ) -> None:
        self.random_state = whole("random_state", random_state)
        if model is None:
            outputs = 1 if classes is None else whole("classes", classes, minimum=2)
            model = RandomFeatureNet(outputs, features=features, random_state=random_state)
        super().__init__(model, criterion=criterion)
        self.solver = LastLayer(model, ridge, precision)
        self.waiting: list[list[Tensor]] = []

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Add the rows of a batch."""
        self.solver.check(y)  # names what does not fit now, not at the end of the task
        self.waiting.append([x.detach().to(self.parameters[0], copy=True), y.detach().clone()])
        if sum(len(own) for _, own in self.waiting) >= CHUNK:
            self._add()
        return x, y

    def _add(self) -> None:
        """Add the moments of the waiting rows."""
        if self.waiting:
            x, y = (torch.cat(parts) for parts in zip(*self.waiting, strict=True))
            self.waiting = []
            self.solver.add(x, y)

    def step(
        self, x: Tensor, y: Tensor, criterion: Criterion, optimizer: torch.optim.Optimizer
    ) -> Tensor:
        """Add the rows of a batch; no loss is computed, so the result is NaN."""
        self.observe(x, y)
        return x.new_full((), torch.nan, dtype=torch.float64)

    def adjust_gradients(self) -> None:
        """Drop the gradients: no parameter descends."""
        for p in self.parameters:
            p.grad = None

    def after_task(self) -> None:
        """Solve for the last layer."""
        super().after_task()
        self._add()
        self.solver.solve()
        self.solver.pack()

    def learn(self, task: Task, **options: Any) -> Self:
        """Learn a task in one call, by default in large batches; return the method."""
        return super().learn(task, **{"batch_size": CHUNK, **options})

    @torch.no_grad()
    def predict(self, x: Any, columns: slice | None = None) -> Any:
        """Classes, or numbers, of rows; numpy arrays for numpy arrays.

        Parameters
        ----------
        x
            Inputs (N, ...).
        columns
            Outputs that compete, if the task is known (`Heads.columns`); None: all.
        """
        if self.tasks_done == 0:
            raise ArgumentError("predict: nothing has been learned yet; call learn(task) first")
        inputs = Task(x, torch.zeros(len(x))).x.to(self.parameters[0])
        with evaluation(self.model):
            output = torch.cat([self.model(part) for part in inputs.split(CHUNK)])
        if self.solver.numbers:
            found = output[:, 0] if self.solver.outputs == 1 else output
        else:
            own = columns or slice(0, None)
            found = output[:, own].argmax(1) + (own.start or 0)
        return found.cpu().numpy() if isinstance(x, np.ndarray) else found
