"""A step of a method, as a straight transcription of its formula can be compared with it."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, get_args

import torch
from torch import Tensor

from helpers.samples import normal
from vntransfer.adaptation import METHODS
from vntransfer.adaptation._objective import Batch, Objective, Setup, Step
from vntransfer.adaptation._weights import UPDATES, Update
from vntransfer.linalg import sym_logm
from vntransfer.networks import Linear, Net, mlp

K, B, P, D = 3, 20, 4, 5


class Case:
    """A network, a method's objective with unequal weights, and a batch, all in float64.

    The target is the widest domain, or, turned, the narrowest: differences have the other sign.
    """

    def __init__(self, method: str, turned: bool = False, **options: Any) -> None:
        g = torch.Generator().manual_seed(0)
        self.net = Net(mlp(P, (6,), D, dropout=0.0, generator=g), Linear(D, 1, g)).double()
        self.prior = torch.tensor([0.6, 0.1, 0.3], dtype=torch.float64)
        setup = Setup(K, D, 1, g, prior=self.prior[None])
        self.objective: Objective = METHODS[method].make(**options)._objective(setup)
        self.objective.double().weights = torch.tensor([[0.5, 0.2, 0.3]], dtype=torch.float64)
        shift = torch.arange(K + 1, dtype=torch.float64)[:, None, None]
        x = normal(K + 1, B, P, seed=1) * (1 + 0.3 * shift) + shift
        x = x.flip(0) if turned else x
        self.batch = Batch(x, normal(K, B, 1, seed=2))
        self.w = self.objective.weights[0].clone()
        self.own = dict(self.objective.named_parameters())

    def steps(self) -> Iterator[Step]:
        return self.objective(self.net, self.batch)

    def block(self, name: str) -> list[Tensor]:
        modules = {"extractor": self.net.extractor, "head": self.net.head}
        return list(modules.get(name, self.objective).parameters())

    def z(self, i: int) -> Tensor:
        return self.net.extractor(self.batch.x[i])[0]

    def h(self, z: Tensor) -> Tensor:
        return self.net.head(z[None])[0, :, 0]

    def adversary(self, z: Tensor) -> Tensor:
        return z @ self.own["adversary.weight"][0, :, 0] + self.own["adversary.bias"][0, 0]

    def y(self, i: int) -> Tensor:
        return self.batch.y[i, :, 0]

    def mse(self, i: int) -> Tensor:
        return ((self.h(self.z(i)) - self.y(i)) ** 2).sum() / B

    def logistic(self, i: int) -> Tensor:
        """Binary cross-entropy of head i, source 1, target 0, with probabilities."""
        w, b = self.own["heads.weight"][0, i], self.own["heads.bias"][0, i]
        chance = [torch.sigmoid(self.z(domain) @ w + b) for domain in (i, K)]
        return -(chance[0].log().mean() + (1 - chance[1]).log().mean())

    def check(self, step: Step, **expected: Tensor) -> None:
        """Gradients of a step in its blocks are those of the expected losses."""
        names, loss = step
        loss = loss.sum()
        assert set(names) == set(expected)
        for name, own in expected.items():
            block = self.block(name)
            seen = torch.autograd.grad(loss, block, retain_graph=True)
            want = torch.autograd.grad(own, block, retain_graph=True)
            assert max(float(gradient.abs().max()) for gradient in want) > 1e-6
            for a, b in zip(seen, want, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-10)


def variance(z: Tensor) -> Tensor:
    """Mean variance of features."""
    return torch.cov(z.mT).trace().detach() / z.shape[1]


def joint(z: Tensor, a: Tensor, ridge: float, unit: Tensor | None = None) -> Tensor:
    """Covariance of [z, a] with a ridge relative to a unit, by default the variance of z."""
    level = ridge * (variance(z) if unit is None else unit)
    eye = torch.eye(z.shape[1] + 1, dtype=z.dtype)
    return torch.cov(torch.cat((z, a[:, None]), 1).mT) + level * eye


def root_j(
    z: Tensor, a: Tensor, b: Tensor, ridge: float = 1e-3, unit: Tensor | None = None
) -> Tensor:
    """√J by its definition, with logarithms of the full matrices."""
    X, Y = joint(z, a, ridge, unit), joint(z, b, ridge, unit)
    return (0.5 * ((X - Y) @ (sym_logm(X) - sym_logm(Y))).trace()).sqrt()


def moved(update: Any, w: Tensor, slope: Tensor, rate: float) -> Tensor:
    """Weights after a step that is so large that the three ways back differ."""
    ways = [UPDATES[name](w - rate * slope) for name in get_args(Update)]
    assert all(float((a - b).abs().max()) > 1e-3 for a, b in combinations(ways, 2))
    return UPDATES[update](w - rate * slope)
