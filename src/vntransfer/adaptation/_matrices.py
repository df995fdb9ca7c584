"""Matrices of a batch's features, for the training step: differentiable, and nothing is checked.

`vntransfer.covariance` is the careful one, in float64, for everything that is not in the hot path.
"""

from torch import Tensor, bmm
from torch.nn.functional import pad


def centre(z: Tensor) -> tuple[Tensor, Tensor]:
    """Means (..., 1, d) of rows (..., B, d), and the rows less them."""
    mean = z.mean(-2, keepdim=True)
    return mean, z - mean


def covariance(centred: Tensor) -> Tensor:
    """Unbiased covariance of centred rows: (..., B, d) -> (..., d, d).

    Examples
    --------
    >>> import torch
    >>> covariance(centre(torch.tensor([[[1.0], [3.0]]]))[1])
    tensor([[[2.]]])
    """
    rows = centred.flatten(0, -3)
    out = bmm(rows.mT, rows).unflatten(0, centred.shape[:-2])
    return out / (centred.shape[-2] - 1)


def gram(z: Tensor) -> Tensor:
    """Gram matrix of [z, 1], the sum over rows: (..., B, d) -> (..., d + 1, d + 1).

    Examples
    --------
    >>> import torch
    >>> gram(torch.tensor([[1.0], [3.0]]))
    tensor([[10.,  4.],
            [ 4.,  2.]])
    """
    phi = pad(z, (0, 1), value=1.0)
    return phi.mT @ phi
