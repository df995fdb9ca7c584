"""Gradients on remembered samples, as flat vectors, and a step's own gradient beside them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from vntransfer.continual._base import Method, gradients


def loss_gradient(method: Method, x: Tensor, y: Tensor) -> Tensor:
    """Gradient of the method's criterion on samples, flat (P,); ``.grad`` is not touched."""
    loss = method.criterion(method.model(x), y)
    parts = torch.autograd.grad(loss, method.parameters, allow_unused=True)
    return torch.cat(
        [
            torch.zeros_like(p).flatten() if g is None else g.flatten()
            for p, g in zip(method.parameters, parts, strict=True)
        ]
    )


def own_gradient(parameters: Sequence[Tensor]) -> Tensor:
    """Gradient that the backward pass left, flat (P,)."""
    return torch.cat([g.flatten() for g in gradients(parameters)])


def write_gradient(parameters: Sequence[Tensor], flat: Tensor) -> None:
    """Put a flat gradient in the place of the present one."""
    parts = flat.split([p.numel() for p in parameters])
    torch._foreach_copy_(
        gradients(parameters),
        [part.view_as(p) for part, p in zip(parts, parameters, strict=True)],
    )
