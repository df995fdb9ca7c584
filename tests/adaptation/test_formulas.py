"""Each method against a straight transcription of its formula: value and gradient of one step."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from helpers.adaptation_cases import B, Case, D, K, moved, root_j
from vntransfer.adaptation._objective import Batch, Step


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


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("update", ["simplex", "clamp", "l1"])
def test_ahd(update: Any, turned: bool) -> None:
    options = {"weight_rate": 20.0, "weight_penalty": 0.2, "weight_update": update}
    case = Case("ahd_msda", turned, loss="mse", trade_off=0.25, **options)
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
    torch.testing.assert_close(case.objective.weights[0], moved(update, case.w, slope, 20.0))


@pytest.mark.parametrize("turned", [False, True])
def test_darn(turned: bool) -> None:
    case = Case("darn", turned, loss="mse", trade_off=0.0625, sharpness=0.5)
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
