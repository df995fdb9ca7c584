"""Plain gradient descent with little overhead: an optimizer, and steps written out by hand."""

from collections.abc import Callable, Container, Iterable
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg.blas import get_blas_funcs
from torch import Tensor, nn
from torch.nn import functional

from vntransfer.continual._base import Criterion, default_loss
from vntransfer.continual._layers import Tape

Array = NDArray[Any]


class Descent(torch.optim.Optimizer):
    """Plain gradient descent, θ ← θ - η g: the numbers of ``torch.optim.SGD``, bit for bit.

    With single samples and a small network more than a quarter of a step is that optimizer's own
    bookkeeping (profiling marks, hooks, one call per parameter), which is left out here.
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


class DenseSteps:
    """Plain gradient steps on a dense ReLU classifier, one sample at a time, without autograd.

    With single samples nearly all of a step's time is overhead of building a graph and walking it
    back. For this one kind of network the gradient of a layer is an outer product, δ hᵀ, and goes
    straight into the weights (one BLAS call per layer): the same step to rounding, about seven
    times as fast. The arrays are views of the network's own parameters. Between the layers are
    ReLUs, and the loss is the cross-entropy of the last one's outputs.
    """

    def __init__(self, layers: list[nn.Linear], lr: float) -> None:
        self.layers = layers
        self.weights: list[Array] = [layer.weight.detach().numpy() for layer in layers]
        self.biases: list[Array | None] = [
            None if layer.bias is None else layer.bias.detach().numpy() for layer in layers
        ]
        self.lr = lr
        (self._add_outer,) = get_blas_funcs(("ger",), dtype=self.weights[0].dtype)

    @classmethod
    def of(
        cls, model: nn.Module, criterion: Criterion, optimizer: torch.optim.Optimizer
    ) -> Self | None:
        """Return the steps of ``optimizer`` on ``model``; None if they are of another kind."""
        layers = _dense_layers(model)
        rate = _plain_rate(optimizer, model)
        if not layers or rate is None or criterion not in CROSS_ENTROPIES:
            return None
        return cls(layers, rate)

    def descend(self, x: Tensor, y: Tensor) -> Tensor:
        """Make one step per sample, in order; return the loss before the first one."""
        rows = zip(x.contiguous().numpy(), y.tolist(), strict=True)
        losses = [self._descend(h, label) for h, label in rows]
        return torch.tensor(losses[0], dtype=x.dtype)

    def _descend(self, h: Array, label: int) -> float:
        inputs: list[Array] = []
        for weight, bias in zip(self.weights, self.biases, strict=True):
            if inputs:
                np.maximum(h, 0, out=h)
            inputs.append(h)
            h = weight @ h
            if bias is not None:
                h += bias
        h -= h.max()
        chosen = float(h[label])
        np.exp(h, out=h)
        total = h.sum()
        loss = float(np.log(total)) - chosen
        delta = h
        delta /= total
        delta[label] -= 1
        for i in range(len(inputs) - 1, -1, -1):
            weight, bias, step = self.weights[i], self.biases[i], delta * -self.lr
            if i:
                delta = delta @ weight
                delta *= inputs[i] > 0
            # W += step inputᵀ in place: BLAS sees a row-major W as the transpose, by columns
            self._add_outer(1.0, inputs[i], step, a=weight.T, overwrite_a=True)
            if bias is not None:
                bias += step
        return loss


@torch.no_grad()
def backward(
    model: nn.Module, x: Tensor, y: Tensor, criterion: Criterion, tape: Tape
) -> Tensor | None:
    """Do ``criterion(model(x), y).backward()`` for one sample without a graph, bit for bit.

    Return the loss; inputs and slopes go to the tape directly, not by its hooks. None, with nothing
    done, if this is not one sample of a dense ReLU classifier with the layers of the tape.
    """
    if len(x) != 1 or criterion not in CROSS_ENTROPIES or torch.is_autocast_enabled("cpu"):
        return None
    layers = _dense_layers(model, {handle.id for handle in tape.handles})
    taped = {layer.module: k for k, layer in enumerate(tape.layers)}
    if not layers or not set(taped) <= set(layers) or not fits(layers, x, y):
        return None
    if any(p.grad is not None for layer in layers for p in layer.parameters()):
        return None
    inputs: list[Tensor] = []
    h = x
    for layer in layers:
        if inputs:
            h = h.relu_()
        inputs.append(h)
        h = functional.linear(h, layer.weight, layer.bias)
    outputs, slopes = h.log_softmax(1), torch.zeros_like(h)
    label = int(y)
    slopes[0, label] = -1
    d = torch._log_softmax_backward_data(slopes, outputs, 1, outputs.dtype)
    for layer, h in zip(reversed(layers), reversed(inputs), strict=True):
        if layer in taped:
            tape.add(taped[layer], h, d)
        layer.weight.grad = d.mT * h
        if layer.bias is not None:
            layer.bias.grad = d[0].clone()
        if h is not x:
            d = (d @ layer.weight).masked_fill_(h <= 0, 0)
    return -outputs[0, label]


DTYPES = (torch.float32, torch.float64)
CROSS_ENTROPIES = (default_loss, functional.cross_entropy)


def fits(layers: list[nn.Linear], x: Tensor, y: Tensor) -> bool:
    """Whether these are inputs (N, features) and classes (N,) of a network of these layers."""
    classes = layers[-1].out_features
    return (
        x.dim() == 2
        and x.shape[1] == layers[0].in_features
        and x.device.type == "cpu"
        and not x.requires_grad
        and x.dtype == layers[0].weight.dtype
        and y.dtype == torch.int64
        and y.shape == x.shape[:1]
        and all(0 <= c < classes for c in y.tolist())
    )


def _dense_layers(model: nn.Module, hooks: Container[int] = ()) -> list[nn.Linear]:
    """Return the layers of a plain ReLU network on the CPU; an empty list for other networks."""
    if type(model) is not nn.Sequential or len(model) % 2 == 0:
        return []
    modules = list(model)
    if any(type(m) is not (nn.ReLU if i % 2 else nn.Linear) for i, m in enumerate(modules)):
        return []
    for m in (model, *modules):
        if m._forward_pre_hooks or m._backward_hooks or m._backward_pre_hooks:
            return []
        if any(key not in hooks for key in m._forward_hooks):
            return []
    held = [p for m in modules for p in m._parameters.values() if p is not None]
    if len({id(p) for p in held}) < len(held):
        return []  # a layer, or its weights, occur twice
    dtype = held[0].dtype
    usable = dtype in DTYPES and all(
        p.requires_grad
        and p.dtype is dtype
        and p.is_cpu
        and p.is_contiguous()
        and not p._backward_hooks
        and not p._post_accumulate_grad_hooks
        for p in held
    )
    return [m for m in modules if isinstance(m, nn.Linear)] if usable else []


def _plain_rate(optimizer: torch.optim.Optimizer, model: nn.Module) -> float | None:
    """Learning rate of plain gradient descent on the whole network; None for other optimizers."""
    if type(optimizer) not in (Descent, torch.optim.SGD) or len(optimizer.param_groups) != 1:
        return None
    (group,) = optimizer.param_groups
    if any(group.get(name) for name in ("momentum", "weight_decay", "maximize")):
        return None
    if {id(p) for p in group["params"]} != {id(p) for p in model.parameters()}:
        return None
    return float(group["lr"])
