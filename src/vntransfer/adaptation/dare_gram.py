"""Alignment of inverse Gram matrices."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vntransfer._arrays import number
from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._objective import (
    NETWORK,
    Batch,
    Objective,
    Setup,
    Step,
    source_errors,
)
from vntransfer.errors import ArgumentError
from vntransfer.networks import Net


def inverse_gram_gaps(z: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Angle and scale between each source and the target, both (K,), of (K + 1, B, d) features.

    Examples
    --------
    >>> z = torch.randn(3, 20, 4, generator=torch.Generator().manual_seed(0))
    >>> angle, scale = inverse_gram_gaps(z[[0, 1, 0]], 0.9)
    >>> [round(float(v), 3) for v in (angle[0], scale[0])]  # the target is the first source
    [0.0, 0.0]
    """
    phi = nn.functional.pad(z, (1, 0), value=1.0)
    G = phi.mT @ phi
    spectrum = torch.linalg.eigvalsh(G).flip(-1)
    with torch.no_grad():
        held = spectrum.cumsum(-1) / spectrum.sum(-1, keepdim=True)
        last = (held <= held[:, 1:2].clamp_min(share)).sum(-1) - 1
        k = torch.maximum(last[:-1], last[-1])[:, None]  # (K, 1): of both the larger, at least 1
    own, target = spectrum[:-1], spectrum[-1].expand(len(k), -1)

    def inverse(matrix: Tensor, values: Tensor) -> Tensor:
        """Pseudo-inverse over the k leading eigenvalues."""
        cut = (values.gather(-1, k) / values[:, :1])[:, 0].detach().clamp_min(1e-6)
        return torch.linalg.pinv(matrix, rtol=cut, hermitian=True)

    pair = inverse(G[:-1], own), inverse(G[-1].expand_as(G[:-1]), target)
    cosine = nn.functional.cosine_similarity(*pair, dim=-2, eps=1e-6)
    leading = torch.arange(spectrum.shape[-1]) < k
    distance = torch.linalg.vector_norm((own - target) * leading, dim=-1)
    return (1 - cosine).abs().mean(-1), distance / k[:, 0]


class InverseGramAlignment(Objective):
    """The steps of `DAREGRAMRegressor`."""

    def __init__(self, setup: Setup, method: "DAREGRAMRegressor") -> None:
        super().__init__(setup)
        self.method = method

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch."""
        z = net.extractor(batch.x)
        error = source_errors("mse", batch, net.head(z[:-1])).mean()
        angle, scale = (gap.mean() for gap in inverse_gram_gaps(z, self.method.share))
        self.note(loss=error, angle=angle, scale=scale)
        aligned = self.method.angle * angle + self.method.scale * scale
        yield NETWORK, error + self.method.trade_off * aligned


@dataclass(eq=False, repr=False, kw_only=True)
class DAREGRAMRegressor(DomainRegressor):
    """DARE-GRAM (Nejjar et al. 2023): alignment of inverse Gram matrices, over all sources.

    Least squares uses features through (Φ'Φ)⁻¹, Φ = [1, z], so that is what is aligned. Of each
    pair of a source and the target, pseudo-inverses over the k leading eigenvalues, which hold a
    share of the spectrum::

        mean squared error + μ (α mean |1 - cos of corresponding columns|
                                + β ‖leading eigenvalues_i - those of the target‖₂ / k)

    Parameters
    ----------
    trade_off
        μ.
    angle, scale
        α and β.
    share
        Share of the spectrum that is kept.
    hidden, width, dropout, activation
        The network; see `vntransfer.networks.mlp`.
    epochs, batch_size, lr, weight_decay, clip, average
        The training loop, the same for all methods: see `DomainRegressor`.
    patience, validation_fraction, random_state, callback
        Early stopping, seed and progress: see `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from vntransfer import DAREGRAMRegressor, stack
    >>> rng = np.random.default_rng(0)
    >>> a, b, new = (rng.normal(m, 1, size=(50, 2)) for m in (0, 1, 2))
    >>> X, y, domain = stack({"a": (a, a[:, 0]), "b": (b, b[:, 0])}, target=new)
    >>> DAREGRAMRegressor(epochs=2, random_state=0).fit(X, y, domain).predict(new).shape
    (50,)
    """

    trade_off: float = 1.0
    angle: float = 0.05
    scale: float = 0.001
    share: float = 0.9

    def _objective(self, setup: Setup) -> Objective:
        for name in ("trade_off", "angle", "scale", "share"):
            number(name, getattr(self, name))
        if self.share >= 1:
            raise ArgumentError(f"share: expected a share below 1, got {self.share!r}")
        return InverseGramAlignment(setup, self)
