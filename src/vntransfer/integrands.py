"""The integrand of J in `vntransfer.bordered`, with its derivatives: one response, or several."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from vntransfer.single_precision import VALUE, TooFewDigitsError


class Slopes(NamedTuple):
    """Derivatives with respect to κ, (B, m, m, T), and to Φ of [δ, a, b], (B, 3m, 3m, T)."""

    kappa: Tensor
    phi: Tensor


def scalar_integrand(terms: Tensor, tau: Tensor) -> tuple[Tensor, Slopes]:
    """`matrix_integrand` for m = 1, where it is ½κ(P_a + P_b)/τ + 2T² P_a P_b.

    The same numbers with a third of the operations, which is what small problems pay for.
    """
    kappa, T = terms[:, 0], terms[:, 1]
    P = 1 / (terms[:, 2:] + 1)
    Pa, Pb = P.unbind(1)
    twice, both, product = 2 * tau, Pa + Pb, Pa * Pb
    half, quarter = kappa / twice, T * product
    square = 2 * T * T
    value = torch.addcmul(half * both, square, product)
    own = torch.addcmul(half.unsqueeze(1), square.unsqueeze(1), P.flip(1)) * (-P * P)
    on_aa, on_bb = own.unbind(1)
    zero = torch.zeros_like(T)
    rows = (zero, quarter, quarter, quarter, on_aa, zero, quarter, zero, on_bb)
    phi = torch.stack(rows, 1).view(len(T), 3, 3, -1)
    return value, Slopes((both / twice)[:, None, None], phi)


def matrix_integrand(terms: Tensor, tau: Tensor) -> tuple[Tensor, Slopes]:
    """½ tr[(κ/τ)(P_a + P_b)] + 2 tr[T P_a T P_b] at all nodes, (B, T), with its derivatives.

    ``terms`` (B, 4 m m, T) holds κ, Φ_δμ, Φ_aa and Φ_bb at the nodes ``tau``.

    P is used through its eigenvectors: Φ can have a huge spread (rank-deficient responses, such as
    one-hot labels, under a small ridge), and an explicit inverse would lose the small eigenvalues
    of P that the gradient consists of.
    """
    m = math.isqrt(terms.shape[1] // 4)
    kappa, T, aa, bb = terms.mT.reshape(len(terms), -1, 4, m, m).unbind(2)
    T = (T + T.mT) / 2
    half = kappa / (2 * tau[:, None, None])
    (va, Va), (vb, Vb) = (torch.linalg.eigh(phi) for phi in (aa, bb))
    pa, pb = (1 / (1 + values.clamp_min(0)).unsqueeze(-1) for values in (va, vb))
    Pa, Pb = (V @ (p * V.mT) for V, p in ((Va, pa), (Vb, pb)))
    mixed = pa * (Va.mT @ T @ Vb) * pb.mT  # P_a T P_b between the two eigenbases
    own = [(V.mT @ half @ V).diagonal(dim1=-2, dim2=-1).unsqueeze(-1) for V in (Va, Vb)]
    value = (pa * own[0] + pb * own[1]).sum((-1, -2))
    value = value + 2 * (mixed.square() / (pa * pb.mT)).sum((-1, -2))
    _check_digits(value * tau, tau, (va, vb), own, Va.mT @ T @ Vb)

    def on(V: Tensor, p: Tensor, W: Tensor, q: Tensor) -> Tensor:
        """-P (½κ/τ + 2 T Q T) P with P = V p V', Q = W q W'."""
        root = V.mT @ T @ W * q.sqrt().mT
        inner = V.mT @ half @ V + 2 * root @ root.mT
        return -V @ (p * inner * p.mT) @ V.mT

    cross = Va @ mixed @ Vb.mT
    quarter, zero = (cross + cross.mT) / 2, torch.zeros_like(cross)
    rows = (
        torch.cat((zero, quarter, quarter), -1),
        torch.cat((quarter, on(Va, pa, Vb, pb), zero), -1),
        torch.cat((quarter, zero, on(Vb, pb, Va, pa)), -1),
    )
    slopes = (Pa + Pb) / (2 * tau[:, None, None]), torch.cat(rows, -2)
    return value, Slopes(*(slope.permute(0, 2, 3, 1) for slope in slopes))


def _check_digits(
    total: Tensor,
    tau: Tensor,
    spectra: tuple[Tensor, Tensor],
    own: list[Tensor],
    turned: Tensor,
) -> None:
    """Refuse if rounded eigenvalues of Φ_aa and Φ_bb leave J uncertain.

    An eigenvalue v of Φ is known to eps v₁, v₁ the largest. Where that exceeds 1, as for responses
    that depend on each other under a ridge of 1e-16 of their variance, P = 1/(1 + v) is anything
    between two bounds, and so is J, which is linear in each of the two P.
    """
    errors = [torch.finfo(v.dtype).eps * v.shape[-1] * v[..., -1:] for v in spectra]
    if max(float(error.max()) for error in errors) < VALUE:
        return
    change = torch.zeros_like(total)
    p = [(1 / (1 + v.clamp_min(0))).unsqueeze(-1) for v in spectra]
    for k, (v, error) in enumerate(zip(spectra, errors, strict=True)):
        gap = 1 / (1 + (v - error).clamp_min(0)) - 1 / (1 + v.clamp_min(0) + error)
        square = turned.square() if k == 0 else turned.mT.square()
        slope = own[k].abs() + 2 * square @ p[1 - k]
        change += (gap.unsqueeze(-1) * slope).sum((-1, -2))
    if bool(((change * tau).amax(-1) > VALUE * total.amax(-1)).any()):
        raise TooFewDigitsError
