"""Networks whose members are trained side by side, each with its own random generator.

The members of an ensemble share only their inputs. Every parameter has a leading
dimension M, so that one matrix product per layer serves all members; an extractor maps rows that
all members see, (..., N, p), to features (M, ..., N, d), and a head maps those to (M, ..., N, m).
"""

import copy
from collections.abc import Callable, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from vntransfer.array_networks import LEAK
from vntransfer.array_networks import SCALE_RATE as SCALE_RATE
from vntransfer.checks import number, one_of
from vntransfer.errors import ArgumentError

Activation = Literal["leaky_relu", "relu", "elu", "tanh"]
ACTIVATIONS: dict[str, type[nn.Module]] = {
    "leaky_relu": nn.LeakyReLU,
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "tanh": nn.Tanh,
}


class Dropout(nn.Module):
    """Dropout from a generator: each member has a mask (N, d), the same one for all domains.

    All domains of a batch (M, K, N, d) drop the same units in their n-th rows, so the order of the
    domains does not matter.
    """

    def __init__(self, rate: float, generator: torch.Generator) -> None:
        super().__init__()
        self.rate = number("rate", rate)
        if self.rate >= 1:
            raise ArgumentError(f"rate: expected a share below 1, got {rate!r}")
        self.generator = generator

    def forward(self, x: Tensor) -> Tensor:
        """Drop units while training."""
        if not self.training or self.rate == 0:
            return x
        shape = (x.shape[0], *(1 for _ in x.shape[1:-2]), *x.shape[-2:])
        chance = torch.rand(shape, generator=self.generator, dtype=x.dtype)
        return x * ((chance >= self.rate) / (1 - self.rate)).to(x)


class Linear(nn.Module):
    """Linear layers of M members, with torch's default initialization, drawn from a generator.

    With ``shared``, all members see the same rows, (..., N, n_in), unless the call passes ``own``;
    otherwise each has its own, (M, ..., N, n_in).

    With ``scales``, each input has a trained scale: x ↦ b + (x ⊙ s) W, s = 1 + 6 θ. Adam moves
    every entry by about the learning rate, so a scale moves six times as fast as a weight: the
    network can turn a useless input down or a useful one up in a few hundred steps. Weight decay
    pulls θ to 0, that is s to 1.
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        generator: torch.Generator,
        *,
        members: int = 1,
        shared: bool = False,
        scales: bool = False,
    ) -> None:
        super().__init__()
        self.shared = shared
        bound = n_in**-0.5
        self.weight = nn.Parameter(torch.empty(members, n_in, n_out))
        self.bias = nn.Parameter(torch.empty(members, 1, n_out))
        for values in (self.weight, self.bias):
            nn.init.uniform_(values, -bound, bound, generator=generator)
        self.theta = nn.Parameter(torch.zeros(members, n_in, 1)) if scales else None

    def forward(self, x: Tensor, *, own: bool = False) -> Tensor:
        """Multiply, all members at once."""
        members, n_in, n_out = self.weight.shape
        shared = self.shared and not own
        between = x.shape[:-1] if shared else x.shape[1:-1]
        rows = x.reshape(1 if shared else members, -1, n_in).expand(members, -1, -1)
        weight = self.weight if self.theta is None else self.weight * (1 + SCALE_RATE * self.theta)
        return torch.baddbmm(self.bias, rows, weight).reshape(members, *between, n_out)


def mlp(
    n_in: int,
    hidden: Sequence[int] = (64,),
    width: int = 24,
    *,
    members: int = 1,
    dropout: float = 0.1,
    activation: Activation = "leaky_relu",
    input_scales: bool = False,
    generator: torch.Generator,
) -> "Layers":
    """Feature extractors of M members: (..., N, n_in) -> (M, ..., N, width).

    Each hidden layer is followed by the activation ("leaky_relu" with slope .1, "relu", "elu" or
    "tanh") and dropout of a share of its units; what comes out has passed an activation. With
    ``input_scales`` the first layer trains a scale for each input (see `Linear`). The
    generator gives initial parameters and dropout; no global random state is used.
    """
    one_of("activation", activation, ACTIVATIONS)
    if isinstance(hidden, int | str):
        raise ArgumentError(
            f"hidden: expected sizes of hidden layers such as (64,), got {hidden!r}"
        )
    sizes = [n_in, *hidden, width]
    if bad := [size for size in sizes if not isinstance(size, int | Integral) or size < 1]:
        raise ArgumentError(f"hidden, width: expected whole numbers of at least 1, got {bad}")
    layers: list[nn.Module] = []
    kind = ACTIVATIONS[activation]
    for before, after in pairwise(sizes):
        first = not layers
        own = {"shared": first, "scales": first and input_scales}
        layers += [
            Linear(before, after, generator, members=members, **own),
            kind(LEAK) if kind is nn.LeakyReLU else kind(),
            Dropout(dropout, generator),
        ]
    return Layers(*layers[:-1])


class Layers(nn.Sequential):
    """Layers whose first layer accepts separate rows for every member."""

    def forward(self, x: Tensor, *, own: bool = False) -> Tensor:
        """Call the layers, one after the other."""
        first, *others = self
        x = first(x, own=own)
        for layer in others:
            x = layer(x)
        return x


class Stacked(nn.Module):
    """Any modules of one architecture, side by side: their parameters stacked (`torch.func`).

    One per member, each from rows (N, ...) to rows (N, d); ``shared`` as in `Linear`.
    """

    def __init__(self, modules: Sequence[nn.Module], *, shared: bool = False) -> None:
        super().__init__()
        self.members, self.shared = len(modules), shared  # members: also where nothing is stacked
        flags = {name: p.requires_grad for name, p in modules[0].named_parameters()}
        for module in modules:  # only what is stacked is trained
            module.requires_grad_()
        parameters, buffers = stack_module_state(list(modules))
        # not a submodule: only what is stacked counts as this module's parameters
        self._template = (copy.deepcopy(modules[0]),)
        self._names = {_flat(name): name for name in (*parameters, *buffers)}
        for name, value in parameters.items():
            own = nn.Parameter(value.detach().clone(), requires_grad=flags[name])
            self.register_parameter(_flat(name), own)
        for name, value in buffers.items():
            self.register_buffer(_flat(name), value.detach().clone())

    def extra_repr(self) -> str:
        """Show the members' architecture."""
        return repr(self._template[0])

    def train(self, mode: bool = True) -> "Stacked":
        """Set the mode of the members too."""
        self._template[0].train(mode)
        return super().train(mode)

    def forward(self, x: Tensor, *, own: bool = False) -> Tensor:
        """Call all members on rows of any leading shape."""
        shared = self.shared and not own
        between = x.shape[:2] if shared else x.shape[1:3]
        rows = x.flatten(0, 1) if shared else x.flatten(1, 2)
        state = {full: getattr(self, flat) for flat, full in self._names.items()}
        call: Callable[[Any, Tensor], Tensor]
        call = lambda values, z: functional_call(self._template[0], values, (z,))  # noqa: E731
        if not state:
            out = self._template[0](rows)
            out = out.expand(self.members, *out.shape) if shared else out
        elif self.members == 1:
            first = {name: value[0] for name, value in state.items()}
            out = call(first, rows if shared else rows[0]).unsqueeze(0)
        else:
            axes = (0, None if shared else 0)
            out = vmap(call, in_dims=axes, randomness="different")(state, rows)
        return out.unflatten(1, between)


def _flat(name: str) -> str:
    """Name of a stacked parameter: torch allows no dots."""
    return name.replace(".", "/")


class Net(nn.Module):
    """Extractor and head: features (M, ..., N, d) and predictions (M, ..., N, m)."""

    def __init__(self, extractor: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.extractor = extractor
        self.head = head

    def forward(self, x: Tensor) -> Tensor:
        """Predict."""
        return self.head(self.extractor(x))


def join_members(nets: Sequence[Net]) -> Net:
    """One network of the members of several."""
    joined = copy.deepcopy(nets[0])
    others = [dict(net.named_modules()) for net in nets]
    for place, module in joined.named_modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            own = torch.cat([getattr(other[place], name).detach() for other in others])
            setattr(module, name, nn.Parameter(own, requires_grad=parameter.requires_grad))
        for name, _ in list(module.named_buffers(recurse=False)):
            module.register_buffer(name, torch.cat([getattr(o[place], name) for o in others]))
        if isinstance(module, Stacked):
            module.members = sum(other[place].members for other in others)
    return joined
