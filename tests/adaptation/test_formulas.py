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
from vntransfer.linalg import sym_logm
from vntransfer.networks import Net, linear, mlp

K, B, P, D = 3, 20, 4, 5


class Case:
    """A network, a method's objective with unequal weights, and a batch, all in float64."""

    def __init__(self, method: str, **options: Any) -> None:
        g = torch.Generator().manual_seed(0)
        self.net = Net(mlp(P, (6,), D, dropout=0.0, generator=g), linear(D, 1, g)).double()
        self.objective: Objective = METHODS[method].make(**options)._objective(Setup(K, D, 1, g))
        self.objective.double().weights = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
        shift = torch.arange(K + 1, dtype=torch.float64)[:, None, None]
        x = normal(K + 1, B, P, seed=1) * (1 + 0.3 * shift) + shift
        self.batch = Batch(x, normal(K, B, 1, seed=2))
        self.w = self.objective.weights.clone()
        self.own = dict(self.objective.named_parameters())

    def steps(self) -> Iterator[Step]:
        return self.objective(self.net, self.batch)

    def block(self, name: str) -> list[Tensor]:
        modules = {"extractor": self.net.extractor, "head": self.net.head}
        return list(modules.get(name, self.objective).parameters())

    def z(self, i: int) -> Tensor:
        return self.net.extractor(self.batch.x[i])

    def h(self, z: Tensor) -> Tensor:
        return self.net.head(z)[:, 0]

    def adversary(self, z: Tensor) -> Tensor:
        return z @ self.own["adversary.weight"][0] + self.own["adversary.bias"]

    def y(self, i: int) -> Tensor:
        return self.batch.y[i, :, 0]

    def mse(self, i: int) -> Tensor:
        return ((self.h(self.z(i)) - self.y(i)) ** 2).sum() / B

    def logistic(self, i: int) -> Tensor:
        """Binary cross-entropy of head i, source 1, target 0, with probabilities."""
        w, b = self.own["heads.weight"][i], self.own["heads.bias"][i]
        chance = [torch.sigmoid(self.z(domain) @ w + b) for domain in (i, K)]
        return -(chance[0].log().mean() + (1 - chance[1]).log().mean())

    def check(self, step: Step, **expected: Tensor) -> None:
        """Gradients of a step in its blocks are those of the expected losses."""
        names, loss = step
        assert set(names) == set(expected)
        for name, own in expected.items():
            block = self.block(name)
            seen = torch.autograd.grad(loss, block, retain_graph=True)
            want = torch.autograd.grad(own, block, retain_graph=True)
            assert max(float(gradient.abs().max()) for gradient in want) > 1e-6
            for a, b in zip(seen, want, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-10)


def root_j(z: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """√J by its definition, with logarithms of the full matrices."""
    ridge = 1e-3 * torch.cov(z.mT).trace().detach() / z.shape[1]
    eye = torch.eye(z.shape[1] + 1, dtype=z.dtype)
    X, Y = (torch.cov(torch.cat((z, c[:, None]), 1).mT) + ridge * eye for c in (a, b))
    return (0.5 * ((X - Y) @ (sym_logm(X) - sym_logm(Y))).trace()).sqrt()


def test_source_only() -> None:
    case = Case("source_only")
    loss = sum(case.mse(i) for i in range(K)) / K
    ((names, value),) = source_steps(case)
    torch.testing.assert_close(value, loss)
    case.check((names, value), extractor=loss, head=loss)


def source_steps(case: Case) -> list[Step]:
    return list(case.objective(case.net, Batch(case.batch.x[:K], case.batch.y)))


@pytest.mark.parametrize("loss", ["huber", "jeffreys"])
def test_source_only_with_other_losses(loss: str) -> None:
    case = Case("source_only", loss=loss)
    total = torch.zeros((), dtype=torch.float64)
    for i in range(K):
        if loss == "jeffreys":
            total = total + root_j(case.batch.x[i], case.h(case.z(i)), case.y(i)) / K
        else:
            gap = (case.h(case.z(i)) - case.y(i)).abs()
            total = total + torch.where(gap < 0.1, 5 * gap**2, gap - 0.05).mean() / K
    (step,) = source_steps(case)
    torch.testing.assert_close(step[1], total)
    case.check(step, extractor=total, head=total)


@pytest.mark.parametrize("sees", [False, True])
@pytest.mark.parametrize("first", ["rmse", "jeffreys"])
@pytest.mark.parametrize("anchor", [0.0, 0.7])
def test_mdd(sees: bool, first: str, anchor: float) -> None:
    case = Case(
        "mdd_paper",
        trade_off=0.4,
        first_term=first,
        predictor_sees_discrepancy=sees,
        anchor=anchor,
        weight_rate=0.02,
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
        extractor=ls + 0.4 * d,
        head=ls + 0.4 * d if sees else ls,
        adversary=-0.4 * d + anchor * fitted,
    )
    torch.testing.assert_close(case.objective.seen["discrepancy"], d.detach())
    w = case.w.clone().requires_grad_()
    value = (roots[K].detach() - sum(w[i] * roots[i].detach() for i in range(K))).abs()
    (slope,) = torch.autograd.grad(value, w)
    case.objective.after_step()
    moved = case.w - 0.02 * slope
    want = moved - (moved.sum() - 1) / K  # small steps stay within the simplex
    torch.testing.assert_close(case.objective.weights, want)


def test_dann() -> None:
    case = Case("dann", trade_off=0.3)
    (step,) = case.steps()
    error = sum(case.mse(i) for i in range(K)) / K
    domain = sum(case.logistic(i) for i in range(K)) / K
    torch.testing.assert_close(step[1], error + 0.3 * domain)
    case.check(step, extractor=error - 0.3 * domain, head=error, adversary=0.3 * domain)


def test_mdan_dynamic() -> None:
    case = Case("mdan_dyn", trade_off=0.3, sharpness=4.0)
    (step,) = case.steps()
    parts = [case.mse(i) + 0.3 * case.logistic(i) for i in range(K)]
    value = sum((4 * part).exp() for part in parts).log() / 4
    torch.testing.assert_close(step[1], value)
    shares = [float((4 * (part - value)).detach().exp()) for part in parts]
    np.testing.assert_allclose(case.objective.weights.numpy(), shares)
    error = sum(s * case.mse(i) for i, s in enumerate(shares))
    domain = sum(s * case.logistic(i) for i, s in enumerate(shares))
    case.check(step, extractor=error - 0.3 * domain, head=error, adversary=0.3 * domain)


@pytest.mark.parametrize("index", ["one", "two"])
def test_mdan_max(index: str) -> None:
    case = Case("mdan_max", trade_off=2.0, index=index)
    (step,) = case.steps()
    errors, domains = ([float(f(i).detach()) for i in range(K)] for f in (case.mse, case.logistic))
    first = int(np.argmax([e - 2 * d for e, d in zip(errors, domains, strict=True)]))
    second = first
    if index == "two":
        first, second = int(np.argmax(errors)), int(np.argmin(domains))
    error, domain = case.mse(first), case.logistic(second)
    case.check(step, extractor=error - 2 * domain, head=error, adversary=2 * domain)
    assert case.objective.weights.tolist() == [float(i == first) for i in range(K)]


def test_ahd() -> None:
    case = Case("ahd_msda", trade_off=0.3, weight_rate=0.01, weight_penalty=0.2)
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
    case.check(next(steps), extractor=0.3 * d)
    assert next(steps, None) is None
    w = case.w.clone().requires_grad_()
    value = (apart[K].detach() - sum(w[i] * apart[i].detach() for i in range(K))).abs()
    (slope,) = torch.autograd.grad(value + 0.2 * w.square().sum().sqrt(), w)
    case.objective.after_step()
    moved = case.w - 0.01 * slope
    torch.testing.assert_close(case.objective.weights, moved - (moved.sum() - 1) / K)


def test_darn() -> None:
    case = Case("darn", trade_off=0.05, sharpness=0.5)
    (step,) = case.steps()
    grams = []
    for i in range(K + 1):
        phi = torch.cat((case.z(i), torch.ones(B, 1, dtype=torch.float64)), 1)
        grams.append(sum(torch.outer(row, row) for row in phi) / B)
    norms = [torch.linalg.matrix_norm(grams[K] - grams[i], 2) for i in range(K)]
    g = torch.stack([0.5 * (case.mse(i) + 0.05 * norms[i]) for i in range(K)])
    # the minimum over the simplex by bisection on ν
    low, high = float(g.detach().min()), float(g.detach().max()) + 1
    for _ in range(200):
        nu = (low + high) / 2
        low, high = (nu, high) if float((nu - g.detach()).clamp_min(0).norm()) < 1 else (low, nu)
    a = (nu - g).clamp_min(0).detach()
    a = a / a.sum()
    loss = a @ g + a.norm()
    torch.testing.assert_close(case.objective.weights, a)
    torch.testing.assert_close(step[1], loss)
    case.check(step, extractor=loss, head=loss)


def test_coral() -> None:
    case = Case("coral", trade_off=5.0)
    (step,) = case.steps()
    covs = [torch.cov(case.z(i).mT) for i in range(K + 1)]
    gap = sum(((covs[i] - covs[K]) ** 2).sum() for i in range(K)) / K / (4 * D**2)
    loss = sum(case.mse(i) for i in range(K)) / K + 5 * gap
    torch.testing.assert_close(step[1], loss)
    case.check(step, extractor=loss, head=loss)


@pytest.mark.parametrize("share", [0.5, 0.999])
def test_dare_gram(share: float) -> None:
    """Gradient of the cut inverse: by autograd through eigenvectors, fine where they are apart."""
    case = Case("dare_gram", trade_off=2.0, angle=0.3, scale=0.01, share=share)

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
    torch.testing.assert_close(step[1], formula())
    case.check(step, head=sum(case.mse(i) for i in range(K)) / K, extractor=formula())
