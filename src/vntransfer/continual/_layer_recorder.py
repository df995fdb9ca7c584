"""What layers meet while a network runs: inputs, slopes, squared gradients."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from vntransfer.continual._layers import Layer
from vntransfer.errors import ArgumentError


class Tape:
    """Inputs and output slopes of layers, recorded while a training step's backward pass runs.

    Records only between `start` and `take`, and only passes that are differentiated: evaluation
    and the gradients that other methods take by themselves leave no trace.

    Examples
    --------
    >>> from vntransfer.continual._layers import find_layers
    >>> net = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> tape = Tape(find_layers(net))
    >>> tape.start()
    >>> net(torch.ones(5, 3)).sum().backward()
    >>> [(x.shape, d.shape) for x, d in tape.take()[1]]
    [(torch.Size([5, 2]), torch.Size([5, 1]))]
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.active = False
        self._dtypes = [layer.weight.dtype for layer in layers]
        self._plain = True  # whether all passes were in the precision of the weights
        # inputs of every pass, and the slopes that its backward pass brings
        self._seen: list[list[tuple[Tensor, list[Tensor]]]] = [[] for _ in layers]
        self.handles = [
            layer.module.register_forward_hook(partial(self._forward, k))
            for k, layer in enumerate(layers)
        ]

    def _forward(self, k: int, module: nn.Module, inputs: tuple[Tensor, ...], out: Tensor) -> None:
        if self.active and out.requires_grad:
            slopes: list[Tensor] = []
            if out.dtype is not self._dtypes[k]:  # mixed precision
                self._plain = False
            self._seen[k].append((inputs[0].detach(), slopes))
            out.register_hook(slopes.append)  # itself, for its speed: it returns None as it must

    def close(self) -> None:
        """Take the hooks off the network."""
        for handle in self.handles:
            handle.remove()

    @property
    def recorded(self) -> bool:
        """Whether passes wait to be taken."""
        return any(self._seen)

    def start(self) -> None:
        """Record the coming pass."""
        self.active = True

    def take(self) -> list[list[tuple[Tensor, Tensor]]]:
        """Stop, and give for each layer the (inputs, slopes) of every pass since `start`.

        In the precision of its weight, whatever that of the pass was.
        """
        self.active = False
        seen, self._seen = self._seen, [[] for _ in self._seen]
        if self._plain:
            return [[(x, d) for x, slopes in passes for d in slopes] for passes in seen]
        return [
            [(x.to(dtype), d.to(dtype)) for x, slopes in passes for d in slopes]
            for passes, dtype in zip(seen, self._dtypes, strict=True)
        ]


@torch.no_grad()
def layer_inputs(model: nn.Module, layers: Sequence[Layer], x: Tensor) -> list[Tensor]:
    """Give the inputs of each layer when the network sees x."""
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
    refuse_silent([layer.name for k, layer in enumerate(layers) if not seen[k]])
    return [torch.cat(inputs) for inputs in seen.values()]


def refuse_silent(names: Sequence[str]) -> None:
    """Raise an error for layers that took no part in a forward pass, if there are any."""
    if names:
        raise ArgumentError(
            f"layers: {', '.join(names)} took no part in the forward pass; leave them out"
        )


def sample_slopes(
    model: nn.Module,
    layers: Sequence[Layer],
    x: Tensor,
    y: Tensor,
    criterion: Callable[[Tensor, Tensor], Tensor],
    *,
    chunk: int = 128,
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Give (place of the layer, its inputs, slopes of every sample's own loss), chunk by chunk.

    The criterion is a mean over a batch's samples.
    """
    weights = [layer.weight for layer in layers if layer.weight.requires_grad]
    if not weights:
        return
    tape = Tape(layers)
    try:
        for first in range(0, len(x), chunk):
            part, labels = x[first : first + chunk], y[first : first + chunk]
            tape.start()
            with torch.enable_grad():
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
    criterion: Callable[[Tensor, Tensor], Tensor],
    *,
    chunk: int = 128,
) -> list[Tensor]:
    """Mean over samples of the squared gradients (outputs, p) of layers: no copy per sample.

    Examples
    --------
    >>> from vntransfer.continual._layers import find_layers
    >>> net = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.zeros_(net.weight)
    >>> half_square = lambda output, y: (output - y).square().mean() / 2
    >>> x = torch.tensor([[1.0], [3.0]])
    >>> layer_fisher(net, find_layers(net), x, net(x).detach() + 1, half_square)   # mean of x²
    [tensor([[5.]])]
    """
    total = [layer.weight.detach().new_zeros(layer.units, layer.width) for layer in layers]
    for k, inputs, d in sample_slopes(model, layers, x, y, criterion, chunk=chunk):
        layer, n = layers[k], len(inputs)
        a, slopes = layer.rows(inputs), layer.slopes(d)
        if len(a) == n:  # one row per sample: the square of d a' is d² a²'
            total[k] += slopes.square().mT @ a.square()
        else:
            each = slopes.reshape(n, -1, layer.units).mT @ a.reshape(n, -1, layer.width)
            total[k] += each.square().sum(0)
    return [F / len(x) for F in total]
