"""Dense and convolutional layers of a network: found by name, their inputs and slopes recorded.

A layer is treated as one matrix: its weight as (outputs, p), with the bias as a last column, which
meets rows a (n, p) of inputs with a one appended. The rows of a convolution are its patches. If d
(n, outputs) are the slopes of the loss at the layer's output, the gradient is d'a.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from vntransfer.continual._base import gradients
from vntransfer.continual.networks import MultiHead
from vntransfer.errors import ArgumentError

KINDS = (nn.Linear, nn.Conv2d)


class Layer:
    """A dense or convolutional layer as one matrix with the bias in its last column.

    Parameters
    ----------
    name
        Its name in the network.
    module
        ``nn.Linear`` or ``nn.Conv2d``.

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
        """Write weight and bias from a matrix (outputs, p)."""
        for p, part in zip(self.parameters(), self.split(value), strict=True):
            p.copy_(part)

    def gradient(self) -> Tensor:
        """Give the gradients of weight and bias as one matrix (outputs, p)."""
        weight, *bias = gradients(self.parameters())
        return self.join(weight, bias[0] if bias else None)

    def add_gradient(self, d: Tensor | None, a: Tensor) -> None:
        """Add d'a (outputs, p), or a itself if d is None, to the gradients of weight and bias."""
        weight, *biases = gradients(self.parameters())
        flat = weight.view(self.units, self.inputs)
        if d is None:
            flat += a[:, : self.inputs]
        else:
            flat.addmm_(d.mT, a[:, : self.inputs])
        for bias in biases:
            if d is None:
                bias += a[:, -1]
            else:
                bias.addmv_(d.mT, a[:, -1])

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
    return [Layer(name, modules[name]) for name in chosen]


def _reason(module: nn.Module) -> str | None:
    """Why a layer cannot be used, or None."""
    if not isinstance(module, KINDS):
        return f"is a {type(module).__name__}, neither nn.Linear nor nn.Conv2d"
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


class Tape:
    """Inputs and output slopes of layers, recorded while a training step's backward pass runs.

    Records only between `start` and `take`, and only passes that are differentiated: evaluation
    and the gradients that other methods take by themselves leave no trace.

    Parameters
    ----------
    layers
        Whose inputs and slopes.

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> tape = Tape(find_layers(net))
    >>> tape.start()
    >>> net(torch.ones(5, 3)).sum().backward()
    >>> [(x.shape, d.shape) for x, d in tape.take()[1]]
    [(torch.Size([5, 2]), torch.Size([5, 1]))]
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.active = False
        self._seen: list[list[tuple[Tensor, Tensor]]] = [[] for _ in layers]
        self.handles = [
            layer.module.register_forward_hook(partial(self._forward, k))
            for k, layer in enumerate(layers)
        ]

    def _forward(self, k: int, module: nn.Module, inputs: tuple[Tensor, ...], out: Tensor) -> None:
        if self.active and out.requires_grad:
            out.register_hook(partial(self._backward, k, inputs[0].detach()))

    def _backward(self, k: int, x: Tensor, d: Tensor) -> None:
        if self.active:
            self._seen[k].append((x, d))

    def close(self) -> None:
        """Take the hooks off the network."""
        for handle in self.handles:
            handle.remove()

    def start(self) -> None:
        """Record the coming pass."""
        self.active = True

    def take(self) -> list[list[tuple[Tensor, Tensor]]]:
        """Stop, and give for each layer the (inputs, slopes) of every pass since `start`."""
        self.active = False
        seen, self._seen = self._seen, [[] for _ in self._seen]
        return seen


@torch.no_grad()
def layer_inputs(model: nn.Module, layers: Sequence[Layer], x: Tensor) -> list[Tensor]:
    """Give the inputs of each layer when the network sees x.

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1, bias=False))
    >>> [a.shape for a in layer_inputs(net, find_layers(net), torch.ones(5, 3))]
    [torch.Size([5, 3]), torch.Size([5, 2])]
    """
    seen: dict[int, list[Tensor]] = {k: [] for k in range(len(layers))}

    def record(k: int, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        seen[k].append(inputs[0])

    handles = [
        layer.module.register_forward_pre_hook(partial(record, k)) for k, layer in enumerate(layers)
    ]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    if silent := [layer.name for k, layer in enumerate(layers) if not seen[k]]:
        raise ArgumentError(
            f"layers: {', '.join(silent)} took no part in the forward pass; leave them out"
        )
    return [torch.cat(inputs) for inputs in seen.values()]


class Junction:
    """The units between two layers that follow each other: outputs or channels of the first.

    Unit k of a dense layer meets one column of the next layer; a channel meets one slice of a
    convolution's kernel or, flattened, one column per position of a dense layer.

    Parameters
    ----------
    before, after
        The layers.

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


def junctions(layers: Sequence[Layer]) -> list[Junction]:
    """Junctions of a chain of layers.

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> [j.units for j in junctions(find_layers(net))]
    [3]
    """
    return [Junction(before, after) for before, after in pairwise(layers)]


def squared_gradients(layer: Layer, x: Tensor, d: Tensor) -> Tensor:
    """Sum over samples of the squared gradients (outputs, p) of a layer.

    Parameters
    ----------
    layer
        The layer.
    x, d
        A batch of its inputs, and the slopes of every sample's own loss at its outputs.

    Examples
    --------
    >>> layer = Layer("a", nn.Linear(1, 1))
    >>> squared_gradients(layer, torch.tensor([[2.0], [3.0]]), torch.tensor([[1.0], [2.0]]))
    tensor([[40.,  5.]])
    """
    a, slopes = layer.rows(x), layer.slopes(d)
    if len(a) == len(x):  # one row per sample: the square of d a' is d² a²'
        return slopes.square().mT @ a.square()
    n = len(x)
    gradients = slopes.reshape(n, -1, layer.units).mT @ a.reshape(n, -1, layer.width)
    return gradients.square().sum(0)


def layer_fisher(
    model: nn.Module,
    layers: Sequence[Layer],
    x: Tensor,
    y: Tensor,
    criterion: Callable[[Tensor, Tensor], Tensor],
    *,
    chunk: int = 128,
) -> list[Tensor]:
    """Mean over samples of the squared gradients (outputs, p) of layers: no copy per sample.

    Parameters
    ----------
    model, layers
        Network, and those of its layers that are asked for.
    x, y
        Samples.
    criterion
        Mean loss over a batch's samples.
    chunk
        Samples at a time.

    Examples
    --------
    >>> net = nn.Linear(1, 1, bias=False)
    >>> half_square = lambda output, y: (output - y).square().mean() / 2
    >>> x = torch.tensor([[1.0], [3.0]])
    >>> F, = layer_fisher(net, find_layers(net), x, net(x).detach() + 1, half_square)
    >>> F      # mean of x²
    tensor([[5.]])
    """
    total = [layer.weight.detach().new_zeros(layer.units, layer.width) for layer in layers]
    tape = Tape(layers)
    try:
        for first in range(0, len(x), chunk):
            part, labels = x[first : first + chunk], y[first : first + chunk]
            tape.start()
            with torch.enable_grad():
                loss = len(part) * criterion(model(part), labels)
                weights = [layer.weight for layer in layers]
                torch.autograd.grad(loss, weights, allow_unused=True)
            for F, layer, passes in zip(total, layers, tape.take(), strict=True):
                for inputs, d in passes:
                    F += squared_gradients(layer, inputs, d)
    finally:
        tape.close()
    return [F / len(x) for F in total]
