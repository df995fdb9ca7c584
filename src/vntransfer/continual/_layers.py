"""Dense and convolutional layers of a network: found by name, each as one matrix, and recorded.

A layer is treated as one matrix: its weight as (outputs, p), with the bias as a last column, which
meets rows a (n, p) of inputs with a one appended. The rows of a convolution are its patches. If d
(n, outputs) are the slopes of the loss at the layer's output, the gradient is d'a.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.hooks import RemovableHandle

from vntransfer.continual._base import Criterion, gradients
from vntransfer.continual._fisher import evaluation
from vntransfer.continual.networks import MultiHead
from vntransfer.errors import ArgumentError

KINDS = (nn.Linear, nn.Conv2d)
LayerFisher = Literal["observed", "squared_mean"]

CHUNK = 128
"""Samples whose inputs and slopes are held at once."""


class Layer:
    """A dense or convolutional layer as one matrix with the bias in its last column."""

    def __init__(self, name: str, module: nn.Linear | nn.Conv2d) -> None:
        self.name = name
        self.module = module
        self.weight: Tensor = module.weight
        bias = module.bias
        self.bias: Tensor | None = bias if bias is not None and bias.requires_grad else None
        self.units = len(self.weight)
        self.inputs = self.weight[0].numel()
        self.width = self.inputs + (self.bias is not None)

    def patches(self, x: Tensor) -> Tensor:
        """Return the inputs (n, p) of a batch, without the one; patches of a convolution."""
        if isinstance(self.module, nn.Linear):
            return x.reshape(-1, self.inputs)
        conv = self.module
        if conv.padding_mode != "zeros" or isinstance(conv.padding, str):
            mode = "constant" if conv.padding_mode == "zeros" else conv.padding_mode
            x = functional.pad(x, conv._reversed_padding_repeated_twice, mode)
            padding: tuple[int, ...] = (0, 0)
        else:
            padding = conv.padding
        columns = functional.unfold(x, conv.kernel_size, conv.dilation, padding, conv.stride)
        return columns.mT.reshape(-1, self.inputs)

    def rows(self, x: Tensor) -> Tensor:
        """Return the inputs (n, p) of a batch, with the one of the bias."""
        patches = self.patches(x)
        return patches if self.bias is None else functional.pad(patches, (0, 1), value=1.0)

    def slopes(self, d: Tensor) -> Tensor:
        """Slopes at the output of a batch as rows (n, outputs)."""
        if isinstance(self.module, nn.Linear):
            return d.reshape(-1, self.units)
        return d.flatten(2).mT.reshape(-1, self.units)

    @property
    def trained(self) -> bool:
        """Whether weight and bias are trained, neither being frozen."""
        return all(p.requires_grad for p in self.module.parameters(recurse=False))

    @property
    def has_gradient(self) -> bool:
        """Whether a backward pass left a gradient."""
        return any(p.grad is not None for p in self.parameters())

    def zeros(self, n: int) -> Tensor:
        """Make a matrix (n, n) of zeros, of the type of the weight."""
        return self.weight.detach().new_zeros(n, n)

    def parameters(self) -> list[Tensor]:
        """Return weight and bias, if there is one."""
        return [self.weight] if self.bias is None else [self.weight, self.bias]

    def split(self, matrix: Tensor) -> list[Tensor]:
        """Return a matrix (outputs, p) in the shapes of `parameters`."""
        weight = matrix[:, : self.inputs].reshape(self.weight.shape)
        return [weight] if self.bias is None else [weight, matrix[:, -1]]

    def matrix(self) -> Tensor:
        """Copy weight and bias into one matrix (outputs, p)."""
        return _one_matrix([p.detach() for p in self.parameters()])

    @torch.no_grad()
    def set_matrix(self, value: Tensor) -> None:
        """Write weight and bias from a matrix (outputs, p), those that are trained."""
        for p, part in zip(self.parameters(), self.split(value), strict=True):
            if p.requires_grad:
                p.copy_(part)

    def gradient(self) -> Tensor:
        """Copy the gradients of weight and bias into one matrix (outputs, p)."""
        return _one_matrix(gradients(self.parameters()))

    def add_gradient(self, d: Tensor | None, a: Tensor) -> None:
        """Add d'a (outputs, p), or a itself if d is None, to the gradients of weight and bias."""
        weight, *biases = own = gradients(self.parameters())
        if d is None:
            torch._foreach_add_(own, self.split(a))
            return
        weight.view(self.units, self.inputs).addmm_(d.mT, a[:, : self.inputs])
        for bias in biases:
            bias.addmv_(d.mT, a[:, -1])


def _one_matrix(parts: list[Tensor]) -> Tensor:
    """Copy a weight (outputs, ...) and a bias, if there is one, side by side."""
    weight, *bias = parts
    return torch.cat([weight.flatten(1), *(b.unsqueeze(1) for b in bias)], 1)


def find_layers(model: nn.Module, names: Sequence[str] | None = None) -> list[Layer]:
    """Dense and convolutional layers of a network, in the order in which they were added to it.

    Names are those of ``model.named_modules()``. None takes all, and refuses a network with
    trainable parameters in layers of other kinds. The heads of a `MultiHead` are left out, also
    where it is a part of the network: later tasks do not train them.
    """
    modules = dict(model.named_modules())
    if names is None:
        heads = [head for m in modules.values() if isinstance(m, MultiHead) for head in m.heads]
        chosen = [
            name
            for name, module in modules.items()
            if _reason(module) is None and not any(module is head for head in heads)
        ]
        _check_complete(model, [*heads, *(modules[name] for name in chosen)])
    else:
        if isinstance(names, str):
            raise ArgumentError(f"layers: expected a list of names, got the text {names!r}")
        chosen = list(names)
        for name in chosen:
            if name not in modules:
                raise ArgumentError(
                    f"layers: the network has no layer {name!r}; it has "
                    f"{', '.join(filter(None, modules))}"
                )
            if reason := _reason(modules[name]):
                raise ArgumentError(f"layers: {name!r} {reason}; omit it")
        if len(set(chosen)) < len(chosen):
            raise ArgumentError(f"layers: a name occurs twice in {chosen}")
    if not chosen:
        raise ArgumentError(
            "layers: the network has no trainable nn.Linear or nn.Conv2d; this method needs one"
        )
    for name in chosen:
        weight = modules[name].weight
        users = [n for n, m in modules.items() if any(p is weight for p in m._parameters.values())]
        if len(users) > 1:
            raise ArgumentError(
                f"layers: {' and '.join(map(repr, users))} share one weight, which is then not one "
                f"matrix between inputs and outputs; leave them out (layers=[...])"
            )
    return [Layer(name, modules[name]) for name in chosen]


def _reason(module: nn.Module) -> str | None:
    """Why a layer cannot be used, or None."""
    if not isinstance(module, KINDS):
        return f"is a {type(module).__name__}, neither nn.Linear nor nn.Conv2d"
    if isinstance(module, nn.modules.linear.NonDynamicallyQuantizableLinear):
        return "is a part of nn.MultiheadAttention, which uses its weight without calling it"
    if "weight" not in module._parameters:
        return "computes its weight (weight_norm, spectral_norm), which is no parameter"
    if isinstance(module, nn.Conv2d) and module.groups > 1:
        return f"is a convolution in {module.groups} groups, which is not one matrix"
    if not module.weight.requires_grad:
        return "has a frozen weight"
    return None


def _check_complete(model: nn.Module, modules: list[nn.Module]) -> None:
    known = {id(p) for module in modules for p in module.parameters(recurse=False)}
    others = [
        name for name, p in model.named_parameters() if p.requires_grad and id(p) not in known
    ]
    if others:
        shown = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
        raise ArgumentError(
            f"layers: {shown} are parameters of layers that are neither dense nor plain "
            f"convolutions, or whose weight is frozen; give the names of the layers to protect "
            f"(layers=[...]), the rest is then trained freely"
        )


def watch_order(modules: Sequence[tuple[str, nn.Module, int]]) -> list[RemovableHandle]:
    """Refuse a network whose first forward pass does not follow the order of its layers.

    Layers are found in the order in which they were added to the network; only a forward pass
    shows the order of the calls. Every module has a rank: those of lower ranks must be called
    before it. The hooks remove themselves once all is known.
    """
    waiting = {k: (name, rank) for k, (name, _, rank) in enumerate(modules)}

    def called(k: int, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        name, rank = waiting.get(k, ("", 0))
        for earlier, lower in waiting.values():
            if lower < rank:
                raise ArgumentError(
                    f"layers: {earlier!r} comes before {name!r} in the network or in the given "
                    f"names, but the forward pass does not call it first; name the layers in the "
                    f"order of the calls (layers=[...])"
                )
        waiting.pop(k, None)  # only now: the next pass is refused as well
        if len({rank for _, rank in waiting.values()}) < 2:
            for handle in handles:
                handle.remove()

    handles = [
        module.register_forward_pre_hook(partial(called, k))
        for k, (_, module, _) in enumerate(modules)
    ]
    return handles


class Tape:
    """Inputs and output slopes of layers, recorded while a training step's backward pass runs.

    Records only between `start` and `take`, and only passes that are differentiated: evaluation
    and the gradients that other methods compute leave no trace.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.active = False
        self.layers = list(layers)
        # inputs of every pass, and the slopes that its backward pass brings
        self._seen: list[list[tuple[Tensor, list[Tensor]]]] = [[] for _ in layers]
        self.handles = [
            layer.module.register_forward_hook(partial(self._forward, k))
            for k, layer in enumerate(layers)
        ]

    def _forward(self, k: int, module: nn.Module, inputs: tuple[Tensor, ...], out: Tensor) -> None:
        if self.active and out.requires_grad:
            slopes: list[Tensor] = []
            self._seen[k].append((inputs[0].detach(), slopes))
            out.register_hook(slopes.append)  # itself, for its speed: it returns None as it must

    def close(self) -> None:
        """Remove the hooks from the network."""
        for handle in self.handles:
            handle.remove()

    @property
    def recorded(self) -> bool:
        """Whether passes wait to be taken."""
        return any(self._seen)

    def start(self) -> None:
        """Record the coming pass."""
        self.active = True

    def add(self, k: int, x: Tensor, d: Tensor) -> None:
        """Record inputs and slopes of layer k, of a pass that did without the hooks."""
        if self.active:
            self._seen[k].append((x, [d]))

    def take(self) -> list[list[tuple[Tensor, Tensor]]]:
        """Stop, and return for each layer (inputs, slopes) of every pass since `start`.

        They have the precision of its weight, also where the passes had another (autocast).
        """
        self.active = False
        seen, self._seen = self._seen, [[] for _ in self._seen]
        return [
            [(x.to(k.weight.dtype), d.to(k.weight.dtype)) for x, slopes in passes for d in slopes]
            for k, passes in zip(self.layers, seen, strict=True)
        ]


@torch.no_grad()
def evaluated_inputs(
    model: nn.Module, modules: Sequence[nn.Module], x: Tensor
) -> tuple[list[list[Tensor]], Tensor]:
    """Evaluate a network; return the inputs of modules, one of each call, and the outputs."""
    seen: list[list[Tensor]] = [[] for _ in modules]

    def record(into: list[Tensor], module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        into.append(inputs[0])

    handles = [
        module.register_forward_pre_hook(partial(record, into))
        for module, into in zip(modules, seen, strict=True)
    ]
    try:
        with evaluation(model):
            return seen, model(x)
    finally:
        for handle in handles:
            handle.remove()


def layer_inputs(model: nn.Module, layers: Sequence[Layer], x: Tensor) -> list[Tensor]:
    """Return the inputs of each layer for inputs x of the network."""
    seen, _ = evaluated_inputs(model, [layer.module for layer in layers], x)
    refuse_silent([layer for layer, inputs in zip(layers, seen, strict=True) if not inputs])
    return [torch.cat(inputs) for inputs in seen]


def refuse_silent(layers: Sequence[Layer]) -> None:
    """Raise an error for layers that took no part in a forward pass, if there are any."""
    if layers:
        names = ", ".join(layer.name for layer in layers)
        raise ArgumentError(f"layers: {names} took no part in the forward pass; omit them")


def sample_slopes(
    model: nn.Module,
    layers: Sequence[Layer],
    x: Tensor,
    y: Tensor,
    criterion: Criterion,
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Evaluate; yield (index of a layer, its inputs, slopes of each sample's loss) by chunks."""
    weights = [layer.weight for layer in layers if layer.weight.requires_grad]
    if not weights:
        return
    tape = Tape(layers)
    try:
        for part, labels in zip(x.split(CHUNK), y.split(CHUNK), strict=True):
            tape.start()
            with torch.enable_grad(), evaluation(model):
                loss = len(part) * criterion(model(part), labels)
                torch.autograd.grad(loss, weights, allow_unused=True)
            for k, passes in enumerate(tape.take()):
                for inputs, slopes in passes:
                    yield k, inputs, slopes
    finally:
        tape.close()


def layer_fisher(
    model: nn.Module,
    layers: Sequence[Layer],
    x: Tensor,
    y: Tensor,
    criterion: Criterion,
    *,
    kind: LayerFisher = "observed",
) -> list[Tensor]:
    """Mean over samples of the squared gradients (outputs, p) of layers, without a copy per sample.

    For "squared_mean", the square of the mean gradient: see `diagonal_fisher`.
    """
    total = [layer.weight.detach().new_zeros(layer.units, layer.width) for layer in layers]
    for k, inputs, d in sample_slopes(model, layers, x, y, criterion):
        layer, n = layers[k], len(inputs)
        a, slopes = layer.rows(inputs), layer.slopes(d)
        if kind == "squared_mean":
            total[k] += slopes.mT @ a
        elif len(a) == n:  # one row per sample: the square of d a' is d² a²'
            total[k] += slopes.square().mT @ a.square()
        else:
            each = slopes.reshape(n, -1, layer.units).mT @ a.reshape(n, -1, layer.width)
            total[k] += each.square().sum(0)
    means = [F / len(x) for F in total]
    return [F.square() for F in means] if kind == "squared_mean" else means
