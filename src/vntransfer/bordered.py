"""J between covariances that share their feature block, without a matrix logarithm.

Let Z (N, d) be centred features, a and b (N, m) two centred responses, n = N - 1, and
X = cov[Z, a] + εI, Y = cov[Z, b] + εI. With log X = ∫ (I/(1+t) - (X+tI)⁻¹) dt over t > 0 and the
resolvent of a bordered matrix in closed form, everything that is left of
J(X:Y) = ½ tr((X-Y)(log X - log Y)) can be collected into terms none of which is negative. With

    τ = ε + t,  K = ZZ'/n,  R = (K + τI)⁻¹,  δ = a - b,  μ = (a + b)/2,  Φ_xy = x'Ry/n,
    T = sym Φ_δμ,  Φ_aa = Φ_μμ + T + ¼Φ_δδ,  Φ_bb = Φ_μμ - T + ¼Φ_δδ,  P = (I + Φ)⁻¹,

    J = ∫ ½ tr[(κ/τ)(P_a + P_b)] + 2 tr[T P_a T P_b] dt,   κ = δ'KRδ/n.

One decomposition, of K or of A = Z'Z/n, whichever is smaller, serves all t; nothing cancels near
a = b, where plain formulas lose all digits, and J ≥ 0 term by term. With t = exp(u) the trapezoid
rule converges geometrically (the integrand is analytic for |Im u| < π); the two truncated tails
are geometric series that are added to the first and last weight. Gradients are those of the
quadrature, in closed form, with the same nodes and without derivatives of eigenvectors.

All quantities are computed in units of the ridge (ε = 1), so that no scale over- or underflows.
"""

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, bmm

from vntransfer.errors import NotPositiveDefiniteError, NumericalWarning
from vntransfer.linalg import once


class Rule(NamedTuple):
    """Accuracy of the quadrature: node spacing in u and e-folds beyond the spectrum."""

    spacing: float
    margin: float


RULES = {torch.float64: Rule(0.75, 12.0), torch.float32: Rule(1.4, 7.0)}
"""Relative errors of about 1e-11 and 1e-6: exp(-2π²/spacing) and exp(-2 margin)."""


AUTO_RIDGE = 1e-3
"""The automatic ridge, relative to the mean eigenvalue of the feature covariance."""

FLOAT32_LIMIT = 1e5
"""Largest λ_max/ε for which float32 keeps three digits; beyond it float64 is used inside."""


@dataclass
class _Nodes:
    """Quadrature ∫ f(ε + t) dt ≈ Σ weight f(tau) with T nodes, shared by the batch; all (T,)."""

    t: Tensor
    tau: Tensor
    weight: Tensor


def _nodes(low: float, high: Tensor, ridge: float) -> _Nodes:
    """Trapezoid nodes in u = log t for spectra within [low, max(high)]."""
    rule = RULES[high.dtype]
    start = math.log(low) - rule.margin
    stop = math.log(float(high.max())) + rule.margin
    count = math.ceil((stop - start) / rule.spacing) + 1
    step = (stop - start) / (count - 1)
    t = torch.linspace(start, stop, count, dtype=high.dtype, device=high.device).exp_()
    weight = t * step
    # f -> const for t -> 0 and f ~ 1/t² for t -> inf: both cut tails are geometric series.
    weight[:: count - 1] /= -math.expm1(-step)
    return _Nodes(t, t + ridge, weight)


def _scalar_integrand(phi: Tensor, kappa: Tensor, tau: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`_matrix_integrand` for m = 1, where it is (κE/τ + 2T²)/(E² - T²) with E = 1 + Φ_μμ + ¼Φ_δδ.

    The same numbers with a third of the operations, which is what small problems pay for.
    """
    dd, T, mm = phi[..., 0, 0], phi[..., 0, 1], phi[..., 1, 1]
    scaled = kappa[..., 0, 0] / tau
    E = torch.add(mm, dd, alpha=0.25) + 1
    D = (E - T) * (E + T)
    value = (scaled * E + 2 * T * T) / D
    on_E = (scaled - 2 * E * value) / D
    odd = T * (value + 2) / D
    on_phi = torch.stack((on_E / 4, odd, odd, on_E), -1).unflatten(-1, (2, 2))
    return value, on_phi, (E / (tau * D))[..., None, None]


def _matrix_integrand(phi: Tensor, kappa: Tensor, tau: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Evaluate the formula above at all nodes, with its derivatives with respect to Φ and κ.

    ``phi`` (B, T, 2m, 2m) belongs to [δ, μ], ``kappa`` (B, T, m, m) to δ; the value is (B, T).
    """
    m = kappa.shape[-1]
    tau = tau[:, None, None]
    dd, dm, mm = phi[..., :m, :m], phi[..., :m, m:], phi[..., m:, m:]
    T = (dm + dm.mT) / 2
    E = mm + dd / 4 + torch.eye(m).to(mm)
    Pa, Pb = torch.linalg.inv(E + T), torch.linalg.inv(E - T)
    TPa, TPb = T @ Pa, T @ Pb
    P, half = (Pa + Pb) / 2, kappa / (2 * tau)
    value = 2 * (half * P + TPa * TPb.mT).sum((-1, -2))
    Ga = -Pa @ (half + 2 * TPb @ T) @ Pa
    Gb = -Pb @ (half + 2 * TPa @ T) @ Pb
    cross = Pa @ TPb
    total, odd = Ga + Gb, cross + cross.mT + (Ga - Gb) / 2
    on_phi = torch.cat((torch.cat((total / 4, odd), -1), torch.cat((odd, total), -1)), -2)
    return value, on_phi, P / tau


def _products(x: Tensor, y: Tensor) -> Tensor:
    """Outer products of rows, (B, n, p), (B, n, q) -> (B, n, p q)."""
    return (x.unsqueeze(-1) * y.unsqueeze(-2)).flatten(-2)


def _at_nodes(flat: Tensor, size: int) -> Tensor:
    """(B, p p, T) -> (B, T, p, p)."""
    return flat.mT.view(len(flat), -1, size, size)


def _turn(vectors: Tensor, matrices: Tensor) -> Tensor:
    """Vectors times the matrices of every node, (B, n, p), (B, T, p, q) -> (B, n, T, q)."""
    nodes, p, q = matrices.shape[1:]
    flat = matrices.transpose(1, 2).reshape(-1, p, nodes * q)
    return bmm(vectors, flat).view(len(vectors), -1, nodes, q)


class _Side(ABC):
    """What both sides share. ``x`` (B, N, 2m) holds [δ, μ], centred like ``z`` (B, N, d)."""

    values: Tensor
    """Eigenvalues (B, k) of K or of A, ascending."""

    def __init__(self, z: Tensor, x: Tensor, ridge: float) -> None:
        self.z, self.x, self.ridge = z, x, ridge
        self.dof = z.shape[-2] - 1
        self.m = x.shape[-1] // 2

    def integrate(self, derivatives: bool) -> tuple[Tensor, Tensor, Tensor]:
        """J (B,) and, if wanted, its gradients with respect to z and x."""
        # twice the variance of [δ, μ] bounds that of a and of b
        high = self.values[..., -1] + self.x.square().sum((-1, -2)) * (2 / self.dof) + self.ridge
        nodes = _nodes(self.ridge or self.smallest(high), high, self.ridge)
        inverse = 1 / (self.values.unsqueeze(-1) + nodes.tau)
        integrand = _scalar_integrand if self.m == 1 else _matrix_integrand
        f, on_phi, on_kappa = integrand(*self.moments(inverse, nodes), nodes.tau)
        value = torch.mv(f, nodes.weight)
        if not derivatives:
            return value, value, value
        weight = nodes.weight[:, None, None]
        on_z, on_x = self.gradients(
            inverse.unsqueeze(-1), nodes, on_phi * weight, on_kappa * weight
        )
        return value, on_z, on_x

    def smallest(self, high: Tensor) -> float:
        """Return a lower bound of the spectra of X and Y where there is no ridge."""
        raise NotPositiveDefiniteError(
            f"ridge: 0 with {self.z.shape[-2]} samples of {self.z.shape[-1]} features and "
            f"{self.m} responses gives a singular covariance; use ridge='auto' or a positive number"
        )

    @abstractmethod
    def moments(self, inverse: Tensor, nodes: _Nodes) -> tuple[Tensor, Tensor]:
        """Φ of [δ, μ] and κ at all nodes, given 1/(λ + τ), (B, k, T)."""

    @abstractmethod
    def gradients(
        self, inverse: Tensor, nodes: _Nodes, on_phi: Tensor, on_kappa: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Chain the gradients with respect to Φ and κ to z and x.

        dJ/dK = -R x Γ x'R/n with Γ = dJ/dΦ, less τ dJ/dκ in its first block, because
        dΦ = -x'R dK R x/n and dκ = τ δ'R dK R δ/n; dJ/dx = 2 (R x dJ/dΦ + [K R δ dJ/dκ, 0])/n.
        """


class _GramSide(_Side):
    """For N ≤ d: decompose K (N, N); the null space of Z drops out exactly."""

    def __init__(self, z: Tensor, x: Tensor, ridge: float) -> None:
        super().__init__(z, x, ridge)
        values, self.vectors = torch.linalg.eigh(bmm(z, z.mT) / self.dof)
        self.values = values.clamp_min(0)
        self.c = bmm(self.vectors.mT, x) / self.dof**0.5

    def moments(self, inverse: Tensor, nodes: _Nodes) -> tuple[Tensor, Tensor]:
        square = _products(self.c, self.c)
        delta = self.c[..., : self.m]
        kappa = _products(delta * self.values.unsqueeze(-1), delta)
        sums = bmm(torch.cat((square, kappa), -1).mT, inverse)
        k = square.shape[-1]
        return _at_nodes(sums[:, :k], 2 * self.m), _at_nodes(sums[:, k:], self.m)

    def gradients(
        self, inverse: Tensor, nodes: _Nodes, on_phi: Tensor, on_kappa: Tensor
    ) -> tuple[Tensor, Tensor]:
        m, tau = self.m, nodes.tau.unsqueeze(-1)
        by_phi = _turn(self.c, on_phi) * inverse
        by_kappa = _turn(self.c[..., :m], on_kappa) * inverse
        on_x = by_phi.sum(-2)
        on_x[..., :m] += by_kappa.sum(-2) * self.values.unsqueeze(-1)
        by_phi[..., :m] -= tau * by_kappa
        Rx = (self.c.unsqueeze(-2) * inverse).flatten(-2)
        left, right = (bmm(self.vectors, part) for part in (Rx, by_phi.flatten(-2)))
        on_z = bmm(bmm(left, right.mT), self.z)
        return on_z * (-2 / self.dof), bmm(self.vectors, on_x) * (2 / self.dof**0.5)


class _FeatureSide(_Side):
    """For N > d: decompose A (d, d).

    x is split into its ridge regression on Z, coefficients p = β/(λ + ε) in the eigenbasis of A,
    and the residual e. Then τ Φ_xy = e_x'e_y/n + Σ p_x p_y (τλ + 2τε - ε²)/(λ + τ) and
    τ R x = e + ZV(p t/(λ + τ)), again without cancellation.
    """

    def __init__(self, z: Tensor, x: Tensor, ridge: float) -> None:
        super().__init__(z, x, ridge)
        values, self.vectors = torch.linalg.eigh(bmm(z.mT, z) / self.dof)
        self.values = values.clamp_min(0)
        self.beta = bmm(self.vectors.mT, bmm(z.mT, x)) / self.dof
        # Without a ridge a singular A is an error (`smallest`), never a division by zero.
        self.shrunk = (self.values + (ridge or torch.finfo(z.dtype).tiny)).unsqueeze(-1)
        self.p = self.beta / self.shrunk
        self.e = x - bmm(z, bmm(self.vectors, self.p))

    def smallest(self, high: Tensor) -> float:
        """1/tr X⁻¹ for the worse of X and Y."""
        m = self.m
        floor = high * (torch.finfo(high.dtype).eps * (self.values.shape[-1] + m))
        if self.dof < self.z.shape[-1] + m or bool((self.values[..., 0] <= floor).any()):
            return super().smallest(high)
        bounds = []
        for sign in (0.5, -0.5):
            e, p = (sign * v[..., :m] + v[..., m:] for v in (self.e, self.p))
            schur = e.mT @ e / self.dof
            if bool((torch.linalg.eigvalsh(schur)[..., 0] <= floor).any()):
                return super().smallest(high)
            border = torch.linalg.solve(schur, torch.eye(m).to(schur) + p.mT @ p)
            trace = (1 / self.values).sum(-1) + border.diagonal(dim1=-2, dim2=-1).sum(-1)
            bounds.append(float((1 / trace).min()))
        return min(bounds)

    def moments(self, inverse: Tensor, nodes: _Nodes) -> tuple[Tensor, Tensor]:
        m = self.m
        square = _products(self.p, self.p)
        lifted = square * (self.values + 2 * self.ridge).unsqueeze(-1)
        kappa = _products(self.beta[..., :m], self.beta[..., :m])
        sums = bmm(torch.cat((lifted, square, kappa), -1).mT, inverse)
        k = square.shape[-1]
        rest = bmm(self.e.mT, self.e).flatten(1).unsqueeze(-1) / self.dof
        phi = sums[:, :k] + (rest - self.ridge**2 * sums[:, k : 2 * k]) / nodes.tau
        return _at_nodes(phi, 2 * m), _at_nodes(sums[:, 2 * k :], m)

    def gradients(
        self, inverse: Tensor, nodes: _Nodes, on_phi: Tensor, on_kappa: Tensor
    ) -> tuple[Tensor, Tensor]:
        m, tau = self.m, nodes.tau.unsqueeze(-1)
        share = nodes.t.unsqueeze(-1) / tau
        by_phi = _turn(self.beta, on_phi) * inverse
        by_kappa = _turn(self.beta[..., :m], on_kappa) * inverse
        on_x = (by_phi * share).sum(-2) / self.shrunk
        on_x[..., :m] += by_kappa.sum(-2)
        by_phi[..., :m] -= tau * by_kappa
        fit = (self.p.unsqueeze(-2) * (inverse * share)).flatten(-2)
        V = self.vectors
        inner = bmm(bmm(fit, by_phi.flatten(-2).mT), V.mT)
        outer = bmm(V, (by_phi / tau).sum(-2))
        # [dJ/dz, dJ/dx] = [Z, e] times one small matrix, but for the factors -2/n and 2/n.
        inside = bmm(V, torch.cat((-inner, on_x), -1))
        below = torch.cat((-outer.mT, (on_phi / tau.unsqueeze(-1)).sum(1)), -1)
        both = torch.baddbmm(bmm(self.z, inside), self.e, below) * (2 / self.dof)
        return both[..., : self.z.shape[-1]], both[..., self.z.shape[-1] :]


class _BorderedJeffreys(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        a: Tensor,
        b: Tensor,
        ridge: float | None,
        side: type[_Side],
    ) -> Tensor:
        z = features - features.mean(-2, keepdim=True)
        x = torch.cat((a - b, torch.lerp(a, b, 0.5)), -1)
        x = x - x.mean(-2, keepdim=True)
        unit = auto_ridge(z, x) if ridge is None else _fixed_unit(ridge, z)
        scale = unit.sqrt()[:, None, None]
        z, x = z / scale, x / scale
        epsilon = 0.0 if ridge == 0 else 1.0
        core = side(z, x, epsilon)
        if z.dtype == torch.float32 and not core.values[..., -1].max() <= FLOAT32_LIMIT:
            core = side(z.double(), x.double(), epsilon)
        wanted = any(ctx.needs_input_grad[:3])
        value, on_z, on_x = core.integrate(wanted)
        if wanted:
            ctx.save_for_backward(on_z.to(z.dtype), on_x.to(z.dtype), scale)
        return value.to(z.dtype) * unit

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        on_z, on_x, scale = ctx.saved_tensors
        factor = upstream[0].detach()[:, None, None] * scale
        on_delta, on_middle = (factor * on_x).chunk(2, -1)
        wanted = ctx.needs_input_grad
        return (
            once(factor * on_z) if wanted[0] else None,
            once(on_delta + on_middle / 2) if wanted[1] else None,
            once(on_middle / 2 - on_delta) if wanted[2] else None,
            None,
            None,
        )


def auto_ridge(z: Tensor, x: Tensor) -> Tensor:
    """1e-3 times the mean variance of centred features z (B, N, d), with a floor.

    Where features do not vary at all, a rounding error of the responses' variance (of their
    centred columns x) or, for constant responses, one takes its place, with a warning.
    """
    count, d = z.shape[-2] - 1, z.shape[-1]
    ridge = z.square().sum((-1, -2)) * (AUTO_RIDGE / (count * d))
    finfo = torch.finfo(z.dtype)
    least = finfo.tiny / finfo.eps
    if ridge.min() > least:
        return ridge
    floor = x.square().sum((-1, -2)) * (finfo.eps / count)
    floor = torch.where(floor > least, floor, 1.0)
    dead = ridge <= least
    warnings.warn(
        f"features: constant in {int(dead.sum())} of {dead.numel()} sample sets, so that 'auto' "
        f"would give no ridge; {float(floor[dead].max()):.2g} is used there",
        NumericalWarning,
        stacklevel=2,
    )
    return torch.where(dead, floor, ridge)


def _fixed_unit(ridge: float, z: Tensor) -> Tensor:
    """Give the ridge itself or, without one, the features' mean variance, as a unit (B,)."""
    if ridge:
        return z.new_full(z.shape[:1], ridge)
    variance = z.square().mean((-1, -2))
    return torch.where(variance > 0, variance, 1.0)


_SIDES: dict[str, type[_Side]] = {"gram": _GramSide, "features": _FeatureSide}


def bordered_jeffreys(
    features: Tensor,
    a: Tensor,
    b: Tensor,
    *,
    ridge: float | None,
    side: Literal["gram", "features"],
) -> Tensor:
    """J (B,) between cov[features, a] and cov[features, b], differentiable in all three.

    Parameters
    ----------
    features
        (B, N, d), N at least 2.
    a, b
        Responses (B, N, m).
    ridge
        Added to both diagonals; None for `auto_ridge`.
    side
        Decompose N x N ("gram") or d x d ("features").
    """
    return _BorderedJeffreys.apply(features, a, b, ridge, _SIDES[side])
