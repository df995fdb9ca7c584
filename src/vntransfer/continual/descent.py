"""Plain gradient descent without the bookkeeping of torch's optimizers."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


class Descent(torch.optim.Optimizer):
    """Plain gradient descent, θ ← θ - η g: the numbers of ``torch.optim.SGD``, bit for bit.

    With single samples and a small network more than a quarter of a step is that optimizer's own
    bookkeeping (profiling marks, hooks, one call per parameter), which is left out here.

    Parameters
    ----------
    parameters
        What is trained.
    lr
        η.

    Examples
    --------
    >>> theta = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = Descent([theta], lr=0.5)
    >>> (theta**2).sum().backward()
    >>> optimizer.step(); optimizer.zero_grad(); theta
    tensor([0.], requires_grad=True)
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Descend."""
        for group in self.param_groups:
            trained = [p for p in group["params"] if p.grad is not None]
            if trained:
                torch._foreach_add_(trained, [p.grad for p in trained], alpha=-group["lr"])

    # torch puts its profiling around steps without this mark
    step.hooked = True  # type: ignore[attr-defined]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients."""
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None
