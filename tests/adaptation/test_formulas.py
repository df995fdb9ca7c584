"""Each method against a straight transcription of its formula: value and gradient of one step."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from samples import normal
from vntransfer.adaptation import METHODS
from vntransfer.adaptation._objective import Batch, Objective, Setup, Step
from vntransfer.divergences import DIVERGENCES
from vntransfer.linalg import sym_logm
from vntransfer.networks import Linear, Net, mlp

K, B, P, D = 3, 20, 4, 5


class Case:
    """A network, a method's objective with unequal weights, and a batch, all in float64."""

    def __init__(self, method: str, **options: Any) -> None:
        g = torch.Generator().manual_seed(0)
        self.net = Net(mlp(P, (6,), D, dropout=0.0, generator=g), Linear(D, 1, g)).double()
        self.objective: Objective = METHODS[method].make(**options)._objective(Setup(K, D, 1, g))
        self.objective.double().weights = torch.tensor([[0.5, 0.2, 0.3]], dtype=torch.float64)
        shift = torch.arange(K + 1, dtype=torch.float64)[:, None, None]
        x = normal(K + 1, B, P, seed=1) * (1 + 0.3 * shift) + shift
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


def joint(z: Tensor, a: Tensor, ridge: float) -> Tensor:
    """Covariance of [z, a] with a ridge relative to that of z."""
    level = ridge * torch.cov(z.mT).trace().detach() / z.shape[1]
    eye = torch.eye(z.shape[1] + 1, dtype=z.dtype)
    return torch.cov(torch.cat((z, a[:, None]), 1).mT) + level * eye


def root_j(z: Tensor, a: Tensor, b: Tensor, ridge: float = 1e-3) -> Tensor:
    """√J by its definition, with logarithms of the full matrices."""
    X, Y = joint(z, a, ridge), joint(z, b, ridge)
    return (0.5 * ((X - Y) @ (sym_logm(X) - sym_logm(Y))).trace()).sqrt()


def test_source_only() -> None:
    case = Case("source_only", loss="mse")
    loss = sum(case.mse(i) for i in range(K)) / K
    ((names, value),) = source_steps(case)
    torch.testing.assert_close(value[0], loss)
    case.check((names, value), extractor=loss, head=loss)


def source_steps(case: Case) -> list[Step]:
    return list(case.objective(case.net, Batch(case.batch.x[:K], case.batch.y)))


@pytest.mark.parametrize("loss", ["mixed", "rmse", "huber", "jeffreys"])
def test_source_only_with_other_losses(loss: str) -> None:
    case = Case("source_only", loss=loss)
    total = torch.zeros((), dtype=torch.float64)
    for i in range(K):
        if loss == "jeffreys":
            total = total + root_j(case.batch.x[i], case.h(case.z(i)), case.y(i)) / K
        else:
            gap = (case.h(case.z(i)) - case.y(i)).abs()
            huber = torch.where(gap < 0.1, 5 * gap**2, gap - 0.05).mean()
            rmse = case.mse(i).sqrt()
            total = total + {"mixed": (huber + rmse) / 2, "rmse": rmse, "huber": huber}[loss] / K
    (step,) = source_steps(case)
    torch.testing.assert_close(step[1][0], total)
    case.check(step, extractor=total, head=total)


@pytest.mark.parametrize("sees", [False, True])
@pytest.mark.parametrize("first", ["rmse", "jeffreys"])
@pytest.mark.parametrize("anchor", [0.0, 0.7])
def test_mdd(sees: bool, first: str, anchor: float) -> None:
    case = Case(
        "mdd_paper",
        trade_off=0.5,
        first_term=first,
        predictor_sees_discrepancy=sees,
        anchor=anchor,
        weight_rate=0.02,
        warm_up=0,
    )
    (step,) = case.steps()
    errors, roots = [], []
    for i in range(K + 1):
        z = case.z(i)
        roots.append(root_j(z, case.h(z), case.adversary(z)))
        if i < K and first == "rmse":
            errors.append(case.mse(i).sqrt())
        elif i < K:
            errors.append(root_j(case.batch.x[i], case.h(z), case.y(i)))
    ls = sum(case.w[i] * errors[i] for i in range(K))
    gap = roots[K] - sum(case.w[i] * roots[i] for i in range(K))
    fitted = sum(
        case.w[i] * ((case.adversary(case.z(i)) - case.y(i)) ** 2).mean().sqrt() for i in range(K)
    )
    d = gap.abs()
    case.check(
        step,
        extractor=ls + 0.5 * d,
        head=ls + 0.5 * d if sees else ls,
        adversary=-0.5 * d + anchor * fitted,
    )
    torch.testing.assert_close(case.objective.seen["discrepancy"][0], d.detach())
    w = case.w.clone().requires_grad_()
    value = (roots[K].detach() - sum(w[i] * roots[i].detach() for i in range(K))).abs()
    (slope,) = torch.autograd.grad(value, w)
    case.objective.after_step()
    moved = case.w - 0.02 * slope
    want = moved - (moved.sum() - 1) / K  # small steps stay within the simplex
    torch.testing.assert_close(case.objective.weights[0], want)


@pytest.mark.parametrize("absolute", ["aggregated", "per_source"])
@pytest.mark.parametrize("divergence", ["von_neumann", "log_euclidean"])
def test_mdd_alternating(absolute: str, divergence: str) -> None:
    case = Case(
        "mdd_paper",
        trade_off=0.5,
        first_term="rmse",
        absolute=absolute,
        divergence=divergence,
        adversary_steps="alternating",
        anchor=0.5,
        warm_up=4,
        ridge=0.01,
    )
    case.objective.done += 1  # so that the trade-off has half of its strength

    def distance(z: Tensor) -> Tensor:
        a, b = case.h(z), case.adversary(z)
        if divergence == "von_neumann":
            return root_j(z, a, b, 0.01)
        X, Y = joint(z, a, 0.01), joint(z, b, 0.01)
        return (sym_logm(X) - sym_logm(Y)).square().sum().sqrt()

    def gap() -> Tensor:
        roots = [distance(case.z(i)) for i in range(K + 1)]
        if absolute == "per_source":
            return sum(case.w[i] * (roots[K] - roots[i]).abs() for i in range(K))
        return (roots[K] - sum(case.w[i] * roots[i] for i in range(K))).abs()

    steps = case.steps()
    fitted = sum(
        case.w[i] * ((case.adversary(case.z(i)) - case.y(i)) ** 2).mean().sqrt() for i in range(K)
    )
    case.check(next(steps), adversary=0.5 * fitted - 0.25 * gap())
    ls = sum(case.w[i] * case.mse(i).sqrt() for i in range(K))
    case.check(next(steps), extractor=ls + 0.25 * gap(), head=ls)
    assert next(steps, None) is None


@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("divergence", ["von_neumann", "bures_wasserstein"])
def test_mdd_without_adversary(standardise: bool, divergence: str) -> None:
    case = Case(
        "mdd",
        trade_off=2.0,
        first_term="rmse",
        standardise=standardise,
        divergence=divergence,
        warm_up=10,
        weight_rate=0.1,
        weight_pull=3.0,
    )
    q = [torch.cat((case.z(i), case.h(case.z(i))[:, None]), 1) for i in range(K + 1)]
    every = torch.cat(q).detach()
    scale = every.std(0, unbiased=False)

    # the weights move first
    v = [torch.cat(((p - every.mean(0)) / scale, torch.ones(B, 1).double()), 1) for p in q]
    moments = [(p.mT @ p / B).detach() for p in v]
    w = case.w.clone().requires_grad_()
    (g,) = torch.autograd.grad(ridged_j(sum(w[i] * moments[i] for i in range(K)), moments[K]), w)
    log_w = case.w.log() - 0.1 * (g - g.mean() + 3 * (case.w.log() - np.log(1 / K)))
    want = log_w.exp() / log_w.exp().sum()

    (step,) = case.steps()
    torch.testing.assert_close(case.objective.weights[0], want)
    if standardise:
        q = [p / scale for p in q]
    head = [p.detach().clone() for p in case.net.head.parameters()]
    q = [
        torch.cat((p[:, :-1], stopped(case, i, head, scale, standardise)), 1)
        for i, p in enumerate(q)
    ]
    C = [torch.cov(p.mT) for p in q]
    mixed = sum(want[i] * C[i] for i in range(K))
    J = ridged_j(mixed, C[K], divergence)
    ls = sum(want[i] * case.mse(i).sqrt() for i in range(K))
    case.check(step, extractor=ls + 0.1 * 2 * J / (D + 1), head=ls)


def stopped(case: Case, i: int, head: list[Tensor], scale: Tensor, standardise: bool) -> Tensor:
    """Prediction whose head gets no gradient."""
    h = case.z(i) @ head[0][0] + head[1][0]
    return h / scale[-1] if standardise else h


def ridged_j(X: Tensor, Y: Tensor, divergence: str = "von_neumann") -> Tensor:
    ridge = 1e-3 * (X.trace() + Y.trace()).detach() / 2 / len(X)
    X, Y = (M + ridge * torch.eye(len(X), dtype=torch.float64) for M in (X, Y))
    if divergence != "von_neumann":
        return DIVERGENCES[divergence].function(X, Y)
    return 0.5 * ((X - Y) @ (sym_logm(X) - sym_logm(Y))).trace()


def test_dann() -> None:
    case = Case("dann", loss="mse", trade_off=0.25)
    (step,) = case.steps()
    error = sum(case.mse(i) for i in range(K)) / K
    domain = sum(case.logistic(i) for i in range(K)) / K
    torch.testing.assert_close(step[1][0], error + 0.25 * domain)
    case.check(step, extractor=error - 0.25 * domain, head=error, adversary=0.25 * domain)


def test_mdan_dynamic() -> None:
    case = Case("mdan_dyn", loss="mse", trade_off=0.25, sharpness=4.0)
    (step,) = case.steps()
    parts = [case.mse(i) + 0.25 * case.logistic(i) for i in range(K)]
    value = sum((4 * part).exp() for part in parts).log() / 4
    torch.testing.assert_close(step[1][0], value)
    shares = [float((4 * (part - value)).detach().exp()) for part in parts]
    np.testing.assert_allclose(case.objective.weights[0].numpy(), shares)
    error = sum(s * case.mse(i) for i, s in enumerate(shares))
    domain = sum(s * case.logistic(i) for i, s in enumerate(shares))
    case.check(step, extractor=error - 0.25 * domain, head=error, adversary=0.25 * domain)


@pytest.mark.parametrize("index", ["one", "two"])
def test_mdan_max(index: str) -> None:
    case = Case("mdan_max", loss="mse", trade_off=2.0, index=index)
    (step,) = case.steps()
    errors, domains = ([float(f(i).detach()) for i in range(K)] for f in (case.mse, case.logistic))
    first = int(np.argmax([e - 2 * d for e, d in zip(errors, domains, strict=True)]))
    second = first
    if index == "two":
        first, second = int(np.argmax(errors)), int(np.argmin(domains))
    error, domain = case.mse(first), case.logistic(second)
    case.check(step, extractor=error - 2 * domain, head=error, adversary=2 * domain)
    assert case.objective.weights[0].tolist() == [float(i == first) for i in range(K)]


def test_ahd() -> None:
    case = Case("ahd_msda", loss="mse", trade_off=0.25, weight_rate=0.01, weight_penalty=0.2)
    steps = case.steps()
    error = sum(case.w[i] * case.mse(i) for i in range(K))
    case.check(next(steps), extractor=error, head=error)
    fitted = sum(
        case.w[i] * ((case.adversary(case.z(i)) - case.y(i)) ** 2).mean() for i in range(K)
    )
    apart = []
    for i in range(K + 1):
        z = case.z(i)
        apart.append(((case.h(z) - case.adversary(z)) ** 2).mean())
    case.check(next(steps), adversary=fitted - apart[K])
    d = (apart[K] - sum(case.w[i] * apart[i] for i in range(K))).abs()
    case.check(next(steps), extractor=0.25 * d)
    assert next(steps, None) is None
    w = case.w.clone().requires_grad_()
    value = (apart[K].detach() - sum(w[i] * apart[i].detach() for i in range(K))).abs()
    (slope,) = torch.autograd.grad(value + 0.2 * w.square().sum().sqrt(), w)
    case.objective.after_step()
    moved = case.w - 0.01 * slope
    torch.testing.assert_close(case.objective.weights[0], moved - (moved.sum() - 1) / K)


def test_darn() -> None:
    case = Case("darn", loss="mse", trade_off=0.0625, sharpness=0.5)
    (step,) = case.steps()
    grams = []
    for i in range(K + 1):
        phi = torch.cat((case.z(i), torch.ones(B, 1, dtype=torch.float64)), 1)
        grams.append(sum(torch.outer(row, row) for row in phi) / B)
    norms = [torch.linalg.matrix_norm(grams[K] - grams[i], 2) for i in range(K)]
    g = torch.stack([0.5 * (case.mse(i) + 0.0625 * norms[i]) for i in range(K)])
    # the minimum over the simplex by bisection on ν
    low, high = float(g.detach().min()), float(g.detach().max()) + 1
    for _ in range(200):
        nu = (low + high) / 2
        low, high = (nu, high) if float((nu - g.detach()).clamp_min(0).norm()) < 1 else (low, nu)
    a = (nu - g).clamp_min(0).detach()
    a = a / a.sum()
    loss = a @ g + a.norm()
    torch.testing.assert_close(case.objective.weights[0], a)
    torch.testing.assert_close(step[1][0], loss)
    case.check(step, extractor=loss, head=loss)


def test_coral() -> None:
    case = Case("coral", loss="mse", trade_off=5.0)
    (step,) = case.steps()
    covs = [torch.cov(case.z(i).mT) for i in range(K + 1)]
    gap = sum(((covs[i] - covs[K]) ** 2).sum() for i in range(K)) / K / (4 * D**2)
    loss = sum(case.mse(i) for i in range(K)) / K + 5 * gap
    torch.testing.assert_close(step[1][0], loss)
    case.check(step, extractor=loss, head=loss)


@pytest.mark.parametrize("share", [0.5, 0.999])
def test_dare_gram(share: float) -> None:
    """Gradient of the cut inverse: by autograd through eigenvectors, fine where they are apart."""
    case = Case("dare_gram", loss="mse", trade_off=2.0, angle=0.3, scale=0.01, share=share)

    def formula() -> Tensor:
        grams = []
        for i in range(K + 1):
            phi = torch.cat((torch.ones(B, 1, dtype=torch.float64), case.z(i)), 1)
            grams.append(phi.mT @ phi)
        total = sum(case.mse(i) for i in range(K)) / K
        for i in range(K):
            spectra = [torch.linalg.eigh(grams[j]) for j in (i, K)]
            counts = []
            for values in (values.detach() for values, _ in spectra):
                held = values.flip(0).cumsum(0) / values.sum()
                counts.append(int((held <= max(share, float(held[1].detach()))).nonzero().max()))
            k = max(counts)
            inverses = [(V[:, -k:] / s[-k:]) @ V[:, -k:].mT for s, V in spectra]
            cos = (inverses[0] * inverses[1]).sum(0)
            cos = cos / inverses[0].norm(dim=0) / inverses[1].norm(dim=0)
            distance = (spectra[0][0][-k:] - spectra[1][0][-k:]).norm() / k
            total = total + 2 / K * (0.3 * (1 - cos).abs().mean() + 0.01 * distance)
        return total

    (step,) = case.steps()
    torch.testing.assert_close(step[1][0], formula())
    case.check(step, head=sum(case.mse(i) for i in range(K)) / K, extractor=formula())


def test_mdan_does_not_overflow() -> None:
    case = Case("mdan_dyn", loss="mse", trade_off=0.25, sharpness=10.0)
    batch = case.batch._replace(y=1e4 * case.batch.y)
    ((_, loss),) = case.objective(case.net, batch)
    assert loss.isfinite().all()
