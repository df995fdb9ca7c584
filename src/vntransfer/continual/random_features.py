"""Networks with fixed random features, alone or joined to a trained network."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from vntransfer.checks import whole
from vntransfer.continual.networks import last_layers
from vntransfer.errors import ArgumentError
from vntransfer.random_features import normal_numbers

SPREAD = 0.3
"""Standard deviation of the biases b for rows of length one."""


class RandomMap(nn.Module):
    """z = relu(W x/|x| + b), or [x, relu(W x/√p + b)] for standardized columns; no parameters."""

    def __init__(self, features: int, columns: int | None, random_state: int) -> None:
        super().__init__()
        self.features = whole("features", features, minimum=1)
        self.columns = None if columns is None else whole("columns", columns, minimum=1)
        self.random_state = whole("random_state", random_state)
        self._drawn: Tensor | None = None  # kept as long as the precision stays

    @property
    def width(self) -> int:
        """Number of features z."""
        return self.features + (self.columns or 0)

    def _random(self, rows: Tensor) -> Tensor:
        """W' above b, for rows (N, p)."""
        p, old = rows.shape[1], self._drawn
        known = self.columns if old is None else len(old) - 1
        if known not in (None, p):
            raise ArgumentError(f"x: {p} numbers per row; expected {known} (columns, earlier rows)")
        if old is None or (old.dtype, old.device) != (rows.dtype, rows.device):
            drawn = normal_numbers(self.random_state, (p + 1) * self.features)
            made = torch.from_numpy(drawn.reshape(p + 1, self.features))
            if self.columns is None:
                made[-1] *= SPREAD
            else:
                made[:-1] /= p**0.5
            old = self._drawn = made.to(rows)
        return old

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_drawn": None}

    def forward(self, x: Tensor) -> Tensor:
        """Return the features (N, width)."""
        rows = x.flatten(1)
        drawn = self._random(rows)
        if self.columns is None:
            length = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
            rows = rows / length.clamp_min(torch.finfo(rows.dtype).tiny)
        z = torch.addmm(drawn[-1], rows, drawn[:-1]).relu_()
        return z if self.columns is None else torch.cat((rows, z), -1)


class RandomFeatureNet(nn.Module):
    """Outputs V z + c with z = relu(W x/|x| + b), W ~ N(0, 1), b ~ 0.3 N(0, 1) fixed by a seed.

    With ``columns`` given, x are that many standardized columns of a table, and
    z = [x, relu(W x/√p + b)] with b ~ N(0, 1): the features of `ClosedFormRegressor`. W and b are
    regenerated from the seed, the same on every machine; only V and c (``head``), which start at
    zero, are parameters and saved.

    Parameters
    ----------
    outputs
        Number of classes, or of responses.
    features
        Number of random features.
    columns
        p, for standardized columns; None for images and other data where only the direction of a
        row matters.
    random_state
        Seed of W and b.

    Examples
    --------
    >>> net = RandomFeatureNet(10, features=50)
    >>> net(torch.rand(3, 28, 28)).shape, sum(p.numel() for p in net.parameters())
    (torch.Size([3, 10]), 510)
    """

    def __init__(
        self,
        outputs: int,
        *,
        features: int = 2000,
        columns: int | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__()
        self.random = RandomMap(features, columns, random_state)
        size = whole("outputs", outputs, minimum=1)
        self.head = nn.utils.skip_init(nn.Linear, self.random.width, size)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (N, outputs)."""
        outputs: Tensor = self.head(self.random(x.to(self.head.weight)))
        return outputs


class JoinedNet(nn.Module):
    """A network and fixed random features side by side: outputs network(x) + U z.

    U is not used while the network is trained. `ClosedFormProjection` solves for U and the last
    layer of the network together, which is then linear in [h, z], h its inputs.

    Parameters
    ----------
    network
        Any network that ends with a linear layer, or a `MultiHead`.
    features, columns, random_state
        See `RandomFeatureNet`.

    Examples
    --------
    >>> from vntransfer.continual import dense
    >>> net = JoinedNet(dense([4, 8, 3], generator=torch.Generator().manual_seed(0)), features=50)
    >>> net(torch.rand(2, 4)).shape, net.extra.shape
    (torch.Size([2, 3]), torch.Size([3, 50]))
    """

    extra: Tensor
    joined: Tensor

    def __init__(
        self,
        network: nn.Module,
        *,
        features: int = 2000,
        columns: int | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__()
        self.network = network
        self.random = RandomMap(features, columns, random_state)
        heads = last_layers(network)
        outputs = sum(head.out_features for head in heads)
        self.register_buffer("extra", heads[0].weight.new_zeros(outputs, self.random.width))
        self.register_buffer("joined", torch.tensor(False))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (N, outputs)."""
        outputs: Tensor = self.network(x)
        if not self.joined:
            return outputs
        return outputs + functional.linear(self.random(x.to(self.extra)), self.extra)
