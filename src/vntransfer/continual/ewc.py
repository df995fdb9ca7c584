"""Elastic weight consolidation."""

import torch
from torch import Tensor, nn

from vntransfer.checks import one_of
from vntransfer.continual._base import Criterion, seeded
from vntransfer.continual._fisher import Fisher
from vntransfer.continual._memory import Pending
from vntransfer.continual._quadratic import Form, Penalized, Quadratic, Update


class EWC(Penalized):
    """Elastic weight consolidation (Kirkpatrick et al. 2017): a penalty per parameter.

    With F_A the diagonal Fisher information at the end of task A and θ_A the parameters then::

        λ Σ_A Σ_i F_A,i (θ_i - θ_A,i)²

    without the factor 1/2 of the original, as in the public code that the paper builds on.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`.
    strength
        λ.
    fisher
        "observed", "sampled" or "squared_mean" (that public code's): see `diagonal_fisher`.
    fisher_samples
        Number of samples, the first of a task, that are kept until it ends; None keeps all that
        are observed. With several passes over a task give its number of samples.
    form
        "separate": every task keeps its anchor (collapsed into one, at no cost). "online" (Schwarz
        et al. 2018): the sum of all F_A around the latest parameters.
    update
        "proximal" or "explicit" steps: see `vntransfer.continual.Quadratic`.
    random_state
        Seed of the labels for "sampled".

    Examples
    --------
    >>> import torch
    >>> from vntransfer.continual import EWC, Task
    >>> method = EWC(torch.nn.Linear(2, 2), strength=10.0)
    >>> method = method.learn(Task(torch.eye(2), torch.tensor([0, 1])))
    >>> [tuple(F.shape) for F in method.quadratic.precisions]
    [(2, 2), (2,)]
    """

    id = "ewc"
    saved = ("quadratic", "pending", "generator")

    def __init__(
        self,
        model: nn.Module,
        strength: float = 10.0,
        *,
        fisher: Fisher = "observed",
        fisher_samples: int | None = None,
        form: Form = "separate",
        update: Update = "proximal",
        random_state: int = 0,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, criterion=criterion)
        self.quadratic = Quadratic(self.parameters, strength, update)
        self.pending = Pending(fisher_samples)
        self.fisher: Fisher = one_of("fisher", fisher, Fisher)
        self.form: Form = one_of("form", form, Form)
        self.generator = seeded(random_state)

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Keep samples for the Fisher information."""
        self.pending.add(x, y)
        return x, y

    def after_task(self) -> None:
        """Estimate the Fisher information and drop the samples."""
        super().after_task()
        F = self.fisher_of(*self.pending.take(), self.fisher)
        if self.form == "separate":
            self.quadratic.add(F)
        else:
            self.quadratic.replace(torch._foreach_add(self.quadratic.precisions, F))
