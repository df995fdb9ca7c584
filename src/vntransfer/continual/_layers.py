"""Dense and convolutional layers of a network: found by name, each as one matrix.

A layer is treated as one matrix: its weight as (outputs, p), with the bias as a last column, which
meets rows a (n, p) of inputs with a one appended. The rows of a convolution are its patches. If d
(n, outputs) are the slopes of the loss at the layer's output, the gradient is d'a.
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.hooks import RemovableHandle

from vntransfer.continual._base import gradients
from vntransfer.continual.networks import MultiHead
from vntransfer.errors import ArgumentError

KINDS = (nn.Linear, nn.Conv2d)


class Layer:
    """A dense or convolutional layer as one matrix with the bias in its last column.

    Examples
    --------
    >>> layer = Layer("conv", nn.Conv2d(2, 5, 3))
    >>> layer.units, layer.width, layer.rows(torch.zeros(4, 2, 6, 6)).shape
    (5, 19, torch.Size([64, 19]))
    """

    def __init__(self, name: str, module: nn.Linear | nn.Conv2d) -> None:
        self.name = name
        self.module = module
        self.weight: Tensor = module.weight
        bias = module.bias
        self.bias: Tensor | None = bias if bias is not None and bias.requires_grad else None
        self.has_bias = self.bias is not None
        self.units = len(self.weight)
        self.inputs = self.weight[0].numel()
        self.width = self.inputs + self.has_bias

    def patches(self, x: Tensor) -> Tensor:
        """Give inputs (n, p), without the one, of a batch: patches of a convolution."""
        if isinstance(self.module, nn.Linear):
            return x.reshape(-1, self.inputs)
        conv = self.module
        if conv.padding_mode != "zeros" or isinstance(conv.padding, str):
            x = functional.pad(x, conv._reversed_padding_repeated_twice, _pad_mode(conv))
            padding: tuple[int, ...] = (0, 0)
        else:
            padding = conv.padding
        columns = functional.unfold(x, conv.kernel_size, conv.dilation, padding, conv.stride)
        return columns.mT.reshape(-1, self.inputs)

    def rows(self, x: Tensor) -> Tensor:
        """Give inputs (n, p) of a batch, with the one of the bias."""
        patches = self.patches(x)
        return functional.pad(patches, (0, 1), value=1.0) if self.has_bias else patches

    def slopes(self, d: Tensor) -> Tensor:
        """Slopes (n, outputs) of a batch of slopes at the output."""
        if isinstance(self.module, nn.Linear):
            return d.reshape(-1, self.units)
        return d.flatten(2).mT.reshape(-1, self.units)

    @property
    def trained(self) -> bool:
        """Whether weight and bias are trained, neither having been frozen."""
        return all(p.requires_grad for p in self.parameters())

    @property
    def has_gradient(self) -> bool:
        """Whether a backward pass left a gradient."""
        return any(p.grad is not None for p in self.parameters())

    def parameters(self) -> list[Tensor]:
        """Give weight and, if there is one, bias."""
        return [self.weight] if self.bias is None else [self.weight, self.bias]

    def join(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Put tensors of the shapes of weight and bias into one matrix (outputs, p)."""
        flat = weight.flatten(1)
        return flat if bias is None else torch.cat((flat, bias.unsqueeze(1)), 1)

    def split(self, matrix: Tensor) -> list[Tensor]:
        """Give a matrix (outputs, p) in the shapes of `parameters`."""
        weight = matrix[:, : self.inputs].reshape(self.weight.shape)
        return [weight] if self.bias is None else [weight, matrix[:, -1]]

    def matrix(self) -> Tensor:
        """Copy weight and bias into one matrix (outputs, p)."""
        bias = None if self.bias is None else self.bias.detach()
        return self.join(self.weight.detach().clone(), bias)

    @torch.no_grad()
    def set_matrix(self, value: Tensor) -> None:
        """Write weight and bias from a matrix (outputs, p), those that are trained."""
        for p, part in zip(self.parameters(), self.split(value), strict=True):
            if p.requires_grad:
                p.copy_(part)

    def gradient(self) -> Tensor:
        """Give the gradients of weight and bias as one matrix (outputs, p)."""
        weight, *bias = gradients(self.parameters())
        return self.join(weight, bias[0] if bias else None)

    def add_gradient(self, d: Tensor | None, a: Tensor) -> None:
        """Add d'a (outputs, p), or a itself if d is None, to the gradients of weight and bias."""
        weight, *biases = gradients(self.parameters())
        flat = weight if weight.ndim == 2 else weight.view(self.units, self.inputs)
        inputs = a[:, : self.inputs] if biases else a
        if d is None:
            flat += inputs
        else:
            columns = d.mT
            flat.addmm_(columns, inputs)
        for bias in biases:
            if d is None:
                bias += a[:, -1]
            else:
                bias.addmv_(columns, a[:, -1])

    def __repr__(self) -> str:
        return f"<Layer {self.name}: {self.inputs} -> {self.units}>"


def _pad_mode(conv: nn.Conv2d) -> str:
    return "constant" if conv.padding_mode == "zeros" else conv.padding_mode


def find_layers(model: nn.Module, names: Sequence[str] | None = None) -> list[Layer]:
    """Dense and convolutional layers of a network, in the order in which they were added to it.

    Parameters
    ----------
    model
        The network.
    names
        Which layers, as ``model.named_modules()`` calls them. None takes all, and refuses a
        network with trainable parameters in layers of other kinds. The heads of a `MultiHead` are
        left out: later tasks do not train them.

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> find_layers(net)
    [<Layer 0: 4 -> 3>, <Layer 2: 3 -> 2>]
    >>> find_layers(net, ["2"])
    [<Layer 2: 3 -> 2>]
    """
    modules = dict(model.named_modules())
    if names is None:
        heads = list(model.heads) if isinstance(model, MultiHead) else []
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
                raise ArgumentError(f"layers: {name!r} {reason}; leave it out")
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
        return "has a weight that is not trained"
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
            f"convolutions; give the names of the layers to protect (layers=[...]), the rest is "
            f"then trained freely"
        )


class Junction:
    """The units between two layers that follow each other: outputs or channels of the first.

    Unit k of a dense layer meets one column of the next layer; a channel meets one slice of a
    convolution's kernel or, flattened, one column per position of a dense layer.

    Examples
    --------
    >>> hidden = Junction(Layer("a", nn.Conv2d(1, 4, 3)), Layer("b", nn.Linear(36, 10)))
    >>> hidden.units, hidden.spread
    (4, 9)
    """

    def __init__(self, before: Layer, after: Layer) -> None:
        self.before, self.after = before, after
        self.units = before.units
        self.spread, rest = divmod(after.inputs, self.units)
        after_channels = after.weight.shape[1]
        fits = after_channels == self.units or isinstance(after.module, nn.Linear)
        if rest or not fits:
            raise ArgumentError(
                f"layers: the {self.units} units of {before.name!r} do not fit the "
                f"{after_channels} inputs of {after.name!r}: these layers do not follow each "
                f"other; name those that do, in order (layers=[...])"
            )

    def activations(self, x: Tensor) -> Tensor:
        """Activation (n, units) of every unit, from inputs of the second layer.

        A channel's activation is its mean over the positions.
        """
        n = len(x) if isinstance(self.after.module, nn.Conv2d) else x.numel() // self.after.inputs
        shaped = x.reshape(n, self.units, -1)
        return shaped.squeeze(-1) if shaped.shape[-1] == 1 else shaped.mean(-1)

    def incoming(self) -> Tensor:
        """Strongest |weight| (units, units before or inputs) from each input to each unit."""
        weight = self.before.weight.detach().abs()
        return weight.flatten(2).amax(-1) if weight.ndim > 2 else weight

    def outgoing(self) -> Tensor:
        """Strongest |weight| (units, outputs) from each unit to each output."""
        weight = self.after.weight.detach().abs()
        return weight.reshape(len(weight), self.units, -1).amax(-1).mT


def watch_order(modules: Sequence[tuple[str, nn.Module, int]]) -> list[RemovableHandle]:
    """Refuse a network whose first forward pass does not follow the order of its layers.

    Layers are found in the order in which they were added to the network, and only a forward pass
    shows whether they are called in the same. The hooks take themselves off once nothing is left to
    see.

    Parameters
    ----------
    modules
        Names and modules with a rank each: all those of a lower rank must be called before.

    Examples
    --------
    >>> a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    >>> handles = watch_order([("a", a, 0), ("b", b, 1)])
    >>> b(a(torch.ones(1, 2))).shape, len(a._forward_pre_hooks)
    (torch.Size([1, 2]), 0)
    """
    waiting = {k: (name, rank) for k, (name, _, rank) in enumerate(modules)}

    def called(k: int, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        name, rank = waiting.get(k, ("", 0))
        for earlier, lower in waiting.values():
            if lower < rank:
                raise ArgumentError(
                    f"layers: {earlier!r} is not called before {name!r} in the forward pass, "
                    f"though it comes first in the network or in the names given; name those that "
                    f"take part, in the order in which they are called (layers=[...])"
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
