"""Other measures of the difference of two samples, for comparison in the core benchmark."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import ot
import torch
from pyriemann.utils.distance import distance_logeuclid, distance_riemann, distance_wasserstein
from torch import Tensor


def coral(x: Tensor, y: Tensor) -> Tensor:
    """Squared distance of covariances (Deep CORAL)."""
    return (torch.cov(x.T) - torch.cov(y.T)).square().sum() / (4 * x.shape[1] ** 2)


def mmd(x: Tensor, y: Tensor) -> Tensor:
    """Maximum mean discrepancy with five Gaussian kernels."""
    joint = torch.cat((x, y))
    squares = torch.cdist(joint, joint).square()
    base = squares.detach().mean()
    parts = (torch.exp(-squares / (base * 2.0**k)) for k in range(-2, 3))
    kernel = sum(parts, start=torch.zeros_like(squares))
    n = len(x)
    return kernel[:n, :n].mean() + kernel[n:, n:].mean() - 2 * kernel[:n, n:].mean()


def sinkhorn(x: Tensor, y: Tensor) -> Tensor:
    """Entropic transport cost, regularized by a tenth of the mean cost, at most 100 iterations."""
    cost = ot.dist(x, y)
    uniform = torch.full((len(x),), 1 / len(x), dtype=x.dtype)
    scaled = cost / cost.detach().mean()
    return ot.sinkhorn2(uniform, uniform, scaled, 0.1, numItermax=100, warn=False)


def neighbors(x: Tensor, y: Tensor) -> Iterator[tuple[str, Callable[[], object]]]:
    """Named runs: torch ones forward + backward, pyRiemann's (no gradient) forward."""
    for name, function in (("CORAL", coral), ("MMD, 5 kernels", mmd), ("Sinkhorn (POT)", sinkhorn)):

        def run(function: Callable[..., Tensor] = function) -> None:
            left, right = x.detach().requires_grad_(), y.detach().requires_grad_()
            function(left, right).backward()

        yield name, run
    a, b = (np.cov(t.double().numpy().T) + 1e-3 * np.eye(t.shape[1]) for t in (x, y))
    for name, distance in (
        ("pyRiemann log-Euclidean (forward only)", distance_logeuclid),
        ("pyRiemann affine-invariant (forward only)", distance_riemann),
        ("pyRiemann Bures-Wasserstein (forward only)", distance_wasserstein),
    ):
        yield name, partial(distance, a, b)
