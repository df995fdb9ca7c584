"""Alignment of inverse Gram matrices."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._objective import Alignment, Auto
from vntransfer.adaptation.darn import gram

TINY = 1e-6
"""Eigenvalues, and gaps between them, below this share of the largest are taken as none."""


class _LeadingInverse(torch.autograd.Function):
    """Inverse on the k (..., 1) leading eigenvectors of matrices (..., n, n), zero on the others.

    The gradient is that of a spectral function, by divided differences. `torch.linalg.pinv` with a
    cut-off takes what was cut for exactly zero in its gradient, which is then wrong.
    """

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, k: Tensor) -> Tensor:
        s, V = torch.linalg.eigh(matrix)
        n = s.shape[-1]
        kept = (torch.arange(n, device=s.device) >= n - k) & (s > TINY * s[..., -1:])
        f = torch.where(kept, 1 / s, 0)
        ctx.save_for_backward(s, V, f, kept)
        return (V * f.unsqueeze(-2)) @ V.mT

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        s, V, f, kept = ctx.saved_tensors
        gap = s.unsqueeze(-1) - s.unsqueeze(-2)
        gap = torch.where(gap < 0, -1, 1) * gap.abs().clamp_min(TINY * s[..., -1:, None])
        mixed = kept.unsqueeze(-1) ^ kept.unsqueeze(-2)
        slope = torch.where(
            mixed, (f.unsqueeze(-1) - f.unsqueeze(-2)) / gap, -f.unsqueeze(-1) * f.unsqueeze(-2)
        )
        inner = V.mT @ ((upstream[0] + upstream[0].mT) / 2) @ V
        return V @ (slope * inner) @ V.mT, None


def inverse_gram_gaps(z: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Angle and scale between each source and the target, (..., K), of z (..., K + 1, B, d)."""
    G = gram(z)
    spectrum = torch.linalg.eigvalsh(G).flip(-1)
    with torch.no_grad():
        held = spectrum.cumsum(-1) / spectrum.sum(-1, keepdim=True)
        last = (held <= held[..., 1:2].clamp_min(share)).sum(-1, keepdim=True) - 1
        k = torch.maximum(last[..., :-1, :], last[..., -1:, :])  # of both the larger, at least 1
    sources, target = G[..., :-1, :, :], G[..., -1:, :, :]
    own, aim = (_LeadingInverse.apply(m, k) for m in (sources, target.expand_as(sources)))
    cosine = nn.functional.cosine_similarity(own, aim, dim=-2, eps=1e-6)
    leading = torch.arange(spectrum.shape[-1], device=z.device) < k
    gap = spectrum[..., :-1, :] - spectrum[..., -1:, :]
    distance = torch.linalg.vector_norm(gap * leading, dim=-1)
    return (1 - cosine).abs().mean(-1), distance / k.squeeze(-1)


class InverseGramAlignment(Alignment):
    """The steps of `DAREGRAMRegressor`."""

    def term(self, z: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Give the weighted sum of the mean differences in angle and scale."""
        angle, scale = (gap.mean(-1) for gap in inverse_gram_gaps(z, self.method.share))
        aligned = self.method.angle * angle + self.method.scale * scale
        return aligned, {"angle": angle, "scale": scale}


@dataclass(eq=False, repr=False, kw_only=True)
class DAREGRAMRegressor(DomainRegressor):
    """DARE-GRAM (Nejjar et al. 2023): alignment of inverse Gram matrices, over all sources.

    Least squares uses features through (Φ'Φ)⁻¹, Φ = [1, z], so this matrix is aligned. For each
    pair of a source and the target, with pseudo-inverses over the k leading eigenvalues, which
    cover a share of the spectrum::

        mean error of the sources + μ (α mean |1 - cos of corresponding columns|
                                + β ‖leading eigenvalues_i - those of the target‖₂ / k)

    Parameters
    ----------
    trade_off
        μ; "auto": chosen without labels of the target, see `DomainRegressor`.
    angle, scale
        α and β.
    share
        Share of the spectrum that is kept.

    All further options are those of `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> X, domain = np.random.default_rng(0).normal(size=(150, 2)), np.repeat([0, 1, -1], 50)
    >>> model = DAREGRAMRegressor(epochs=2, random_state=0).fit(X, X[:, 0], domain)
    >>> sorted(model.source_weights_), model.predict(X[domain < 0]).shape
    ([0, 1], (50,))
    """

    trade_off: float | Auto = 1.0
    angle: float = 0.05
    scale: float = 0.001
    share: float = 0.9

    _steps = InverseGramAlignment
    _trade_offs = (0.1, 1.0, 10.0, 100.0)
