"""Matrices of a batch's features, for the training step: differentiable, and nothing is checked.

`vntransfer.covariance` is the careful one, in float64, for everything that is not in the hot path.
"""

from torch import Tensor
from torch.nn.functional import pad


def covariance(z: Tensor) -> Tensor:
    """Unbiased covariance of rows: (..., B, d) -> (..., d, d).

    Examples
    --------
    >>> import torch
    >>> covariance(torch.tensor([[1.0], [3.0]]))
    tensor([[2.]])
    """
    centered = z - z.mean(-2, keepdim=True)
    return centered.mT @ centered / (z.shape[-2] - 1)


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
