"""AdamW on torch's fused kernel, without the machinery of ``torch.optim``."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

EPSILON = 1e-8


class AdamW(nn.Module):
    """Equivalent to ``torch.optim.AdamW(parameters, ..., fused=True)``, bit for bit.

    With gradient g and t steps so far::

        m = β₁ m + (1 - β₁) g        v = β₂ v + (1 - β₂) g²
        θ = (1 - ηλ) θ - η (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)

    A step of ``torch.optim`` takes longer for small networks, and its first use imports torch's
    compiler, which takes about a second. The state is that of a module, so a checkpoint treats it
    like the others.
    """

    def __init__(
        self, parameters: Sequence[Tensor], *, betas: tuple[float, float], weight_decay: float
    ) -> None:
        super().__init__()
        self.parameters_, self.betas, self.weight_decay = list(parameters), betas, weight_decay
        for i, p in enumerate(self.parameters_):
            self.register_buffer(f"mean{i}", torch.zeros_like(p))
            self.register_buffer(f"square{i}", torch.zeros_like(p))
            self.register_buffer(f"steps{i}", torch.zeros((), device=p.device))

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor | None], lr: float) -> None:
        """Move the parameters that have a gradient."""
        given = {i: gradient for i, gradient in enumerate(gradients) if gradient is not None}
        if not given:
            return
        means, squares, steps = (
            [getattr(self, f"{name}{i}") for i in given] for name in ("mean", "square", "steps")
        )
        torch._foreach_add_(steps, 1)
        torch._fused_adamw_(
            [self.parameters_[i] for i in given],
            list(given.values()),
            means,
            squares,
            [],
            steps,
            lr=lr,
            beta1=self.betas[0],
            beta2=self.betas[1],
            weight_decay=self.weight_decay,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )
