"""J between covariances that share their feature block, without a matrix logarithm.

Let Z (N, d) be centered features, a and b (N, m) two centered responses, n = N - 1, and
X = cov[Z, a] + εI, Y = cov[Z, b] + εI. With log X = ∫ (I/(1+t) - (X+tI)⁻¹) dt over t > 0 and the
resolvent of a bordered matrix in closed form, everything that is left of
J(X:Y) = ½ tr((X-Y)(log X - log Y)) can be collected into terms none of which is negative. With

    τ = ε + t,  K = ZZ'/n,  R = (K + τI)⁻¹,  δ = a - b,  μ = (a + b)/2,  Φ_xy = x'Ry/n,
    P_a = (I + Φ_aa)⁻¹,  P_b = (I + Φ_bb)⁻¹,  T = sym Φ_δμ = (Φ_aa - Φ_bb)/2,  κ = δ'KRδ/n,

    J = ∫ ½ tr[(κ/τ)(P_a + P_b)] + 2 tr[T P_a T P_b] dt.

One decomposition, of K or of A = Z'Z/n, whichever is smaller, serves all t; nothing cancels near
a = b, where plain formulas lose all digits, and J ≥ 0 term by term. With t = exp(u) the trapezoid
rule converges geometrically (the integrand is analytic for |Im u| < π); the two truncated tails
are geometric series that are added to the first and last weight. Gradients are those of the
quadrature, in closed form, with the same nodes and without derivatives of eigenvectors.

All quantities are computed in units of the ridge (ε = 1), so that no scale over- or underflows.
"""

from abc import ABC, abstractmethod
from typing import Any, Literal

import torch
from torch import Tensor, bmm

from vntransfer.centered_samples import CenteredSamples, centered
from vntransfer.errors import ArgumentError, NotPositiveDefiniteError
from vntransfer.integrands import matrix_integrand, scalar_integrand
from vntransfer.linalg import once
from vntransfer.quadrature import Nodes, nodes_for
from vntransfer.single_precision import (
    FITTED,
    Decomposition,
    TooFewDigitsError,
    check_cancellation,
    check_value,
    decompose,
)

AT_ONCE = 2**18
"""Entries of features that are worked on together: intermediate results take more memory."""


def _products(x: Tensor, y: Tensor) -> Tensor:
    """Outer products of rows, (B, n, m), (B, n, m) -> (B, n, m m)."""
    return x * y if x.shape[-1] == 1 else (x.unsqueeze(-1) * y.unsqueeze(-2)).flatten(-2)


def _blocks(x: Tensor, m: int) -> Tensor:
    """Products for T, Φ_aa and Φ_bb from columns x = [δ, a, b], (B, n, 3 m m)."""
    a, b = x[..., m : 2 * m], x[..., 2 * m :]
    right = torch.cat((torch.lerp(a, b, 0.5), x[..., m:]), -1)
    if m == 1:
        return x * right
    shape = (*x.shape[:2], 3, m)
    return (x.reshape(shape).unsqueeze(-1) * right.view(shape).unsqueeze(-2)).flatten(2)


def _ends(x: Tensor, m: int) -> Tensor:
    """Gradients with respect to a and b, (B, n, 2m), from those with respect to [δ, a, b]."""
    delta, a, b = x.split(m, -1)
    return torch.cat((a + delta, b - delta), -1)


def _turn(vectors: Tensor, matrices: Tensor) -> Tensor:
    """Vectors times the matrices of every node, (B, n, p), (B, p, q, T) -> (B, n, q, T)."""
    q, nodes = matrices.shape[2:]
    return bmm(vectors, matrices.flatten(2)).view(len(vectors), -1, q, nodes)


class _Side(ABC):
    """Base class of both sides. ``x`` (B, N, 3m) holds [δ, a, b], centered like ``z`` (B, N, d)."""

    spectrum: Decomposition  # of K or of A

    def __init__(self, z: Tensor, x: Tensor, ridge: float) -> None:
        self.z, self.ridge = z, ridge
        self.dof = z.shape[-2] - 1
        self.m = x.shape[-1] // 3

    @property
    def values(self) -> Tensor:
        """Eigenvalues (B, k), ascending."""
        return self.spectrum.values

    @property
    def size(self) -> Tensor:
        """Norms of z, (B, 1, 1)."""
        return self.values[:, -1:, None].sqrt()

    def integrate(self, nodes: Nodes, derivatives: bool) -> tuple[Tensor, ...]:
        """J (B,) and, if wanted, its gradients with respect to z and x."""
        inverse = 1 / (self.values.unsqueeze(-1) + nodes.tau)
        integrand = scalar_integrand if self.m == 1 else matrix_integrand
        f, slopes = integrand(self.moments(inverse, nodes), nodes.tau)
        value = torch.mv(f, nodes.weight)
        phi, kappa = slopes.phi * nodes.weight, slopes.kappa * nodes.weight
        if value.dtype == torch.float32:
            check_value(value, self.uncertainty(inverse, nodes, phi, kappa))
        if not derivatives:
            return (value,)
        return value, *self.gradients(inverse.unsqueeze(-2), nodes, phi, kappa)

    def smallest(self, high: Tensor) -> float:
        """Return a lower bound of the spectra of X and Y where there is no ridge."""
        raise NotPositiveDefiniteError(
            f"ridge: 0 with {self.z.shape[-2]} samples of {self.z.shape[-1]} features and {self.m} "
            f"responses leaves a singular covariance; use ridge='auto' or a positive number"
        )

    @abstractmethod
    def moments(self, inverse: Tensor, nodes: Nodes) -> Tensor:
        """κ, Φ_δμ, Φ_aa and Φ_bb, (B, 4 m m, T), given 1/(λ + τ), (B, k, T)."""

    @abstractmethod
    def uncertainty(self, inverse: Tensor, nodes: Nodes, phi: Tensor, kappa: Tensor) -> Tensor:
        """Bound what rounded eigenvalues change in J (B,), given its slopes (B, ., ., T)."""

    @abstractmethod
    def gradients(
        self, inverse: Tensor, nodes: Nodes, on_phi: Tensor, on_kappa: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Chain the gradients with respect to Φ of x = [δ, a, b] and κ to z and x; half of each.

        dJ/dK = -R x Γ x'R/n with Γ = dJ/dΦ, less τ dJ/dκ in its first block, because
        dΦ = -x'R dK R x/n and dκ = τ δ'R dK R δ/n; dJ/dx = 2 (R x dJ/dΦ + [K R δ dJ/dκ, 0, 0])/n.
        """


class _GramSide(_Side):
    """For N ≤ d: decompose K (N, N); the null space of Z drops out exactly."""

    def __init__(self, z: Tensor, x: Tensor, ridge: float) -> None:
        super().__init__(z, x, ridge)
        self.spectrum = decompose(z, ridge, zeros=1)
        self.vectors = self.spectrum.vectors
        self.c = bmm(self.vectors.mT, x)

    def smallest(self, high: Tensor) -> float:
        if self.dof >= self.z.shape[-1] + self.m:
            raise ArgumentError("method: 'gram' needs a ridge; with ridge=0 use 'features'")
        return super().smallest(high)

    def moments(self, inverse: Tensor, nodes: Nodes) -> Tensor:
        delta = self.c[..., : self.m]
        kappa = _products(delta * self.values.unsqueeze(-1), delta)
        return bmm(torch.cat((kappa, _blocks(self.c, self.m)), -1).mT, inverse)

    def uncertainty(self, inverse: Tensor, nodes: Nodes, phi: Tensor, kappa: Tensor) -> Tensor:
        """Bound by dΦ = -x'R dK R x/n and dκ = τ δ'R dK R δ/n."""
        weighted = self.c.square() * self.spectrum.noise.unsqueeze(-1)
        root = bmm(weighted.mT, inverse.square()).sqrt()
        slopes = phi.abs()
        slopes[:, : self.m, : self.m] += nodes.tau * kappa.abs()
        return ((slopes * root.unsqueeze(1)).sum(2) * root).sum((1, 2))

    def gradients(
        self, inverse: Tensor, nodes: Nodes, on_phi: Tensor, on_kappa: Tensor
    ) -> tuple[Tensor, Tensor]:
        m = self.m
        by_phi = _turn(self.c, on_phi) * inverse
        by_kappa = _turn(self.c[..., :m], on_kappa) * inverse
        on_x = by_phi.sum(-1)
        on_x[..., :m] += by_kappa.sum(-1) * self.values.unsqueeze(-1)
        by_phi[:, :, :m].addcmul_(nodes.tau, by_kappa, value=-1)
        Rx = self.c.unsqueeze(-1) * inverse
        left, right = (bmm(self.vectors, part.flatten(2)) for part in (Rx, by_phi))
        on_gram = bmm(left, right.mT)
        both = bmm(on_gram, self.z).neg_(), bmm(self.vectors, on_x)
        if self.spectrum.scores is not None:
            check_cancellation(on_gram * self.size, both[0])
            # c is rounded where the smallest eigenvalues magnify it most
            size, worst = torch.linalg.vector_norm(self.c, dim=-2), inverse[:, 1:2]
            change = (by_phi * worst).sum(-1) * self.values.sqrt().unsqueeze(-1)
            check_cancellation(change * size.unsqueeze(-2), both[0])
            change = (on_phi * worst).sum(-1) * size.unsqueeze(-1)
            check_cancellation(_ends(change, m), _ends(on_x, m), columns=True)
        # J does not depend on means: K has a zero eigenvalue there, where 1/τ magnifies rounding
        on_z, on_x = (gradient - gradient.mean(-2, keepdim=True) for gradient in both)
        return on_z, on_x


class _FeatureSide(_Side):
    """For N > d: decompose A (d, d).

    x is split into its ridge regression on Z, coefficients p = β/(λ + ε) in the eigenbasis of A,
    and the residual e. Then τ Φ_xy = e_x'e_y/n + Σ p_x p_y (τλ + 2τε - ε²)/(λ + τ) and
    τ R x = e + ZV(p t/(λ + τ)), again without cancellation.
    """

    def __init__(self, z: Tensor, x: Tensor, ridge: float) -> None:
        super().__init__(z, x, ridge)
        self.spectrum = decompose(z.mT, ridge, zeros=0, most=FITTED)
        self.vectors = self.spectrum.vectors
        self.beta = bmm(self.vectors.mT, bmm(z.mT, x))
        if (scores := self.spectrum.scores) is not None:
            self.beta[:, : scores.shape[1]] = bmm(scores, x)
        # Without a ridge a singular A is an error (`smallest`), never a division by zero.
        self.shrunk = (self.values + (ridge or torch.finfo(z.dtype).tiny)).unsqueeze(-1)
        self.p = self.beta / self.shrunk
        self.e = torch.baddbmm(x, z, bmm(self.vectors, self.p), alpha=-1)
        self.e -= self.e.mean(-2, keepdim=True)  # which counts where residuals are nearly zero

    def smallest(self, high: Tensor) -> float:
        """1/tr X⁻¹ for the worse of X and Y."""
        m = self.m
        floor = high * (torch.finfo(high.dtype).eps * (self.values.shape[-1] + m))
        if self.dof < self.z.shape[-1] + m or bool((self.values[..., 0] <= floor).any()):
            return super().smallest(high)
        bounds = []
        for which in (1, 2):
            e, p = (v[..., which * m : (which + 1) * m] for v in (self.e, self.p))
            schur = e.mT @ e
            if bool((torch.linalg.eigvalsh(schur)[..., 0] <= floor).any()):
                return super().smallest(high)
            border = torch.linalg.solve(schur, torch.eye(m).to(schur) + p.mT @ p)
            trace = (1 / self.values).sum(-1) + border.diagonal(dim1=-2, dim2=-1).sum(-1)
            bounds.append(float((1 / trace).min()))
        return min(bounds)

    def moments(self, inverse: Tensor, nodes: Nodes) -> Tensor:
        m = self.m
        square, rest = _blocks(torch.cat((self.p, self.e), -2), m).tensor_split(
            (self.p.shape[-2],), -2
        )
        lifted = square * (self.values + 2 * self.ridge).unsqueeze(-1)
        kappa = _products(self.beta[..., :m], self.beta[..., :m])
        sums = bmm(torch.cat((kappa, lifted, square), -1).mT, inverse)
        k = square.shape[-1]
        terms = sums[:, :-k]
        terms[:, m * m :] += (rest.sum(-2).unsqueeze(-1) - self.ridge**2 * sums[:, -k:]) / nodes.tau
        return terms

    def uncertainty(self, inverse: Tensor, nodes: Nodes, phi: Tensor, kappa: Tensor) -> Tensor:
        """Bound by dp = -p dλ/(λ + ε): e and p change τΦ by up to 2 p² dλ; κ changes by less."""
        root = (self.p.square() * self.spectrum.noise.unsqueeze(-1)).sum(-2, keepdim=True).sqrt()
        slopes = (phi / nodes.tau).sum(-1).abs_()
        return 2 * (slopes * root * root.mT).sum((1, 2))

    def gradients(
        self, inverse: Tensor, nodes: Nodes, on_phi: Tensor, on_kappa: Tensor
    ) -> tuple[Tensor, Tensor]:
        m, V, share = self.m, self.vectors, nodes.share
        by_phi = _turn(self.beta, on_phi) * inverse
        by_kappa = _turn(self.beta[..., :m], on_kappa) * inverse
        on_x = (by_phi * share).sum(-1) / self.shrunk
        on_x[..., :m] += by_kappa.sum(-1)
        by_phi[:, :, :m].addcmul_(nodes.tau, by_kappa, value=-1)
        fit = self.p.unsqueeze(-1) * (inverse * share)
        inner = bmm(bmm(fit.flatten(2), by_phi.flatten(2).mT), V.mT)
        outer = bmm(V, (by_phi / nodes.tau).sum(-1))
        # [dJ/dz, dJ/dx] = [Z, e] times one small matrix
        inside = bmm(V, torch.cat((-inner, on_x), -1))
        below = torch.cat((-outer.mT, (on_phi / nodes.tau).sum(-1)), -1)
        both = torch.baddbmm(bmm(self.z, inside), self.e, below)
        (on_z, on_x), factors = (t.tensor_split((self.z.shape[-1],), -1) for t in (both, inside))
        if self.spectrum.scores is not None:
            check_cancellation(factors[0] * self.size, on_z)
            check_cancellation(factors[1] * self.size, on_x)
        return on_z, on_x


class _BorderedJeffreys(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        a: Tensor,
        b: Tensor,
        ridge: float | Tensor | None,
        side: type[_Side],
    ) -> Tensor:
        sets, wanted = centered(features, a, b, ridge), any(ctx.needs_input_grad[:3])
        epsilon = 0.0 if isinstance(ridge, float) and ridge == 0 else 1.0
        try:
            if sets.z.dtype == torch.float32:
                sets.check()
            results = _integrals(side, sets, epsilon, wanted)
        except TooFewDigitsError:
            if sets.z.dtype == torch.float64:
                raise
            sets = centered(features.double(), a.double(), b.double(), ridge)
            results = _integrals(side, sets, epsilon, wanted)
        value, *slopes = results
        if wanted:
            rate = 2 * sets.unit / sets.scale[:, 0, 0]
            kept = (part.to(features.dtype) for part in (*slopes, rate))
            ctx.save_for_backward(features, a, b, *kept)
        return (value * sets.unit).to(features.dtype)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        *inputs, on_z, on_x, rate = ctx.saved_tensors
        factor = (upstream[0].detach() * rate).view(-1, 1, 1)
        on_delta, on_a, on_b = torch.chunk(factor * on_x, 3, -1)
        wanted = ctx.needs_input_grad
        return (
            once(factor * on_z, *inputs) if wanted[0] else None,
            once(on_a + on_delta, *inputs) if wanted[1] else None,
            once(on_b - on_delta, *inputs) if wanted[2] else None,
            None,
            None,
        )


def _integrals(
    side: type[_Side], sets: CenteredSamples, ridge: float, wanted: bool
) -> tuple[Tensor, ...]:
    """J, and its gradients with respect to z and x if wanted, of all sets with the same nodes.

    Some sets at a time are decomposed and integrated.
    """
    size = max(1, AT_ONCE // sets.z[0].numel())
    parts = zip(sets.z.split(size), sets.x.split(size), strict=True)
    cores = [side(z, x, ridge) for z, x in parts]
    sizes = [core.values.shape[0] for core in cores]
    high = torch.cat([core.values[..., -1] for core in cores]) + sets.response + ridge
    bounds = zip(cores, high.split(sizes), strict=True)
    low = ridge or min(core.smallest(own) for core, own in bounds)
    found = nodes_for(low, float(high.max()), ridge, str(high.dtype).removeprefix("torch."))
    nodes = Nodes(*torch.tensor(found, dtype=high.dtype, device=high.device))
    if len(cores) == 1:
        return cores[0].integrate(nodes, wanted)
    like = (sets.response, sets.z, sets.x)[: 3 if wanted else 1]
    results = tuple(torch.empty_like(t, memory_format=torch.contiguous_format) for t in like)
    for core, *places in zip(cores, *(t.split(sizes) for t in results), strict=True):
        for place, own in zip(places, core.integrate(nodes, wanted), strict=True):
            place.copy_(own)
    return results


_SIDES: dict[str, type[_Side]] = {"gram": _GramSide, "features": _FeatureSide}


def bordered_jeffreys(
    features: Tensor,
    a: Tensor,
    b: Tensor,
    *,
    ridge: float | Tensor | None,
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
        Added to both diagonals, of all sets or of each (B,); None for `auto_ridge`.
    side
        Decompose N x N ("gram") or d x d ("features").
    """
    return _BorderedJeffreys.apply(features, a, b, ridge, _SIDES[side])
