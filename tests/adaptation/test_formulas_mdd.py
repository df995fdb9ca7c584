"""MDD, in the paper's form and ours, against straight transcriptions of the formulas."""

from typing import Any

import pytest
import torch
from torch import Tensor

from helpers.adaptation_cases import B, Case, D, K, joint, moved, root_j, variance
from helpers.samples import normal
from vntransfer.adaptation._objective import Batch
from vntransfer.adaptation.alignment import jeffreys_slopes
from vntransfer.divergences import DIVERGENCES
from vntransfer.linalg import sym_logm
from vntransfer.theory import discrepancy


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("sees", [False, True])
@pytest.mark.parametrize("first", ["rmse", "jeffreys"])
@pytest.mark.parametrize("anchor", [0.0, 0.7])
@pytest.mark.parametrize("ridge_per", ["all", "domain"])
def test_mdd(sees: bool, first: str, anchor: float, turned: bool, ridge_per: str) -> None:
    case = Case(
        "mdd_paper",
        turned,
        trade_off=0.5,
        first_term=first,
        predictor_sees_discrepancy=sees,
        anchor=anchor,
        weight_rate=0.02,
        warm_up=0,
        ridge_per=ridge_per,
    )
    (step,) = case.steps()
    unit = common_unit(case) if ridge_per == "all" else None
    errors, roots = [], []
    for i in range(K + 1):
        z = case.z(i)
        roots.append(root_j(z, case.h(z), case.adversary(z), unit=unit))
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
    want = case.w - 0.02 * slope  # small steps stay within the simplex
    torch.testing.assert_close(case.objective.weights[0], want - (want.sum() - 1) / K)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("update", ["simplex", "clamp", "l1"])
@pytest.mark.parametrize("divergence", ["von_neumann", "log_euclidean"])
def test_mdd_with_other_divergences_and_updates(divergence: str, update: Any, turned: bool) -> None:
    case = Case(
        "mdd_paper",
        turned,
        trade_off=0.5,
        weight_rate=20.0,
        weight_update=update,
        first_term="rmse",
        divergence=divergence,
        anchor=0.5,
        warm_up=4,
        ridge=0.01,
    )
    case.objective.done += 1  # so that the trade-off has half of its strength
    unit = common_unit(case)

    def distance(z: Tensor) -> Tensor:
        a, b = case.h(z), case.adversary(z)
        if divergence == "von_neumann":
            return root_j(z, a, b, 0.01, unit)
        X, Y = joint(z, a, 0.01, unit), joint(z, b, 0.01, unit)
        return (sym_logm(X) - sym_logm(Y)).square().sum().sqrt()

    def gap(w: Tensor = case.w) -> Tensor:
        roots = [distance(case.z(i)) for i in range(K + 1)]
        return (roots[K] - sum(w[i] * roots[i] for i in range(K))).abs()

    (step,) = case.steps()
    fitted = sum(
        case.w[i] * ((case.adversary(case.z(i)) - case.y(i)) ** 2).mean().sqrt() for i in range(K)
    )
    ls = sum(case.w[i] * case.mse(i).sqrt() for i in range(K))
    case.check(step, extractor=ls + 0.25 * gap(), head=ls, adversary=0.5 * fitted - 0.25 * gap())
    w = case.w.clone().requires_grad_()
    (slope,) = torch.autograd.grad(gap(w), w)
    case.objective.after_step()
    torch.testing.assert_close(case.objective.weights[0], moved(update, case.w, slope, 20.0))


def common_unit(case: Case) -> Tensor:
    """Mean feature variance of all domains."""
    return torch.stack([variance(case.z(i)) for i in range(K + 1)]).mean()


def test_with_adam_weights_move_as_torchs_then_are_divided_by_their_norm() -> None:
    case = Case("mdd_paper", weight_update="adam", weight_rate=0.05, warm_up=0, anchor=0.0)
    w = case.w.clone().requires_grad_()
    optimizer = torch.optim.Adam([w], lr=0.05)
    for _ in range(3):
        list(case.steps())
        w.grad = case.objective.slope[0].clone()  # type: ignore[union-attr,index]
        case.objective.after_step()
        optimizer.step()
        w.data /= w.detach().abs().sum()
        torch.testing.assert_close(case.objective.weights[0], w.detach())


def test_the_gap_is_the_discrepancy_of_the_theory() -> None:
    """One source: both have one ridge for source and target."""
    case = Case("mdd_paper", trade_off=1.0, warm_up=0)
    case.objective.weights[:] = torch.tensor([0.0, 1.0, 0.0])
    x, z = case.batch.x, [case.z(i).detach() for i in range(K + 1)]
    roots = case.objective.roots(  # type: ignore[operator]
        type(case.batch)(x, case.batch.y),
        *(
            torch.stack(own)[None, :, :, None] if own[0].ndim == 1 else torch.stack(own)[None]
            for own in (z, [case.h(q) for q in z], [case.adversary(q) for q in z])
        ),
    )
    ridge = 1e-3 * float(common_unit(case))
    found = discrepancy(z[1], z[K], case.h, case.adversary, ridge=ridge)
    gap = (roots[0, 1] - roots[0, K]).abs().detach()
    assert float(gap) == pytest.approx(float(found.detach()), rel=1e-9)


@pytest.mark.parametrize("method", ["align", "mdd_paper"])
def test_the_trade_off_stops_rising_after_the_warm_up(method: str) -> None:
    slopes = []
    for warm_up, done in ((0, 0), (4, 48)):
        case = Case(method, trade_off=0.5, warm_up=warm_up, learn_weights=False)
        case.objective.done += done
        ((_, loss),) = case.steps()
        slopes.append(torch.autograd.grad(loss.sum(), case.block("extractor")))
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("divergence", ["von_neumann", "bures_wasserstein"])
def test_mdd_without_adversary(standardize: bool, divergence: str) -> None:
    case = Case(
        "align",
        trade_off=2.0,
        first_term="rmse",
        standardize=standardize,
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
    log_w = case.w.log() - 0.1 * (g - g.mean() + 3 * (case.w.log() - case.prior.log()))
    want = log_w.exp() / log_w.exp().sum()

    (step,) = case.steps()
    torch.testing.assert_close(case.objective.weights[0], want)
    if standardize:
        q = [p / scale for p in q]
    head = [p.detach().clone() for p in case.net.head.parameters()]
    q = [
        torch.cat((p[:, :-1], stopped(case, i, head, scale, standardize)), 1)
        for i, p in enumerate(q)
    ]
    C = [torch.cov(p.mT) for p in q]
    mixed = sum(want[i] * C[i] for i in range(K))
    J = ridged_j(mixed, C[K], divergence)
    ls = sum(want[i] * case.mse(i).sqrt() for i in range(K))
    case.check(step, extractor=ls + 0.1 * 2 * J / (D + 1), head=ls)


@pytest.mark.parametrize("turned", [False, True])
def test_alignment_in_float32_keeps_three_digits(turned: bool) -> None:
    found = []
    for dtype in (torch.float64, torch.float32):
        case = Case("align", turned, trade_off=10.0, warm_up=0)
        net, objective = case.net.to(dtype), case.objective.to(dtype)
        batch = Batch(case.batch.x.to(dtype), case.batch.y.to(dtype))
        ((_, loss),) = objective(net, batch)
        slopes = torch.autograd.grad(loss.sum(), case.block("extractor"))
        found.append((float(loss.detach()), torch.cat([own.double().flatten() for own in slopes])))
    (value, slope), (rounded, rounded_slope) = found
    assert rounded == pytest.approx(value, rel=1e-3)
    assert float((rounded_slope - slope).norm() / slope.norm()) < 1e-2


@pytest.mark.parametrize("kind", ["apart", "near", "equal eigenvalues"])
def test_slopes_of_jeffreys_are_those_of_its_definition(kind: str) -> None:
    root = normal(2, 6, 6, seed=0)
    pair = root @ root.mT + torch.eye(6, dtype=torch.float64)
    if kind == "near":
        pair[1] = pair[0] * (1 + 1e-5)
    elif kind == "equal eigenvalues":
        pair[0] = 2 * torch.eye(6, dtype=torch.float64)
    pair.requires_grad_()
    X, Y = pair
    J = 0.5 * ((X - Y) @ (sym_logm(X) - sym_logm(Y))).trace()
    (want,) = torch.autograd.grad(J, pair)
    value, slopes = jeffreys_slopes(pair.detach().numpy()[None].copy())
    assert float(value[0]) == pytest.approx(float(J.detach()), rel=1e-7)
    assert abs(slopes[0] - want.numpy()).max() < 1e-7 * float(want.abs().max())


def test_weights_of_mdd_move_every_fourth_step() -> None:
    case = Case("align", trade_off=1.0, weight_rate=0.1)
    seen = []
    for _ in range(6):
        before = case.objective.weights.clone()
        list(case.steps())
        case.objective.after_step()
        seen.append(not torch.equal(before, case.objective.weights))
    assert seen == [True, False, False, False, True, False]


def stopped(case: Case, i: int, head: list[Tensor], scale: Tensor, standardize: bool) -> Tensor:
    """Prediction whose head gets no gradient."""
    h = case.z(i) @ head[0][0] + head[1][0]
    return h / scale[-1] if standardize else h


def ridged_j(X: Tensor, Y: Tensor, divergence: str = "von_neumann") -> Tensor:
    ridge = 1e-3 * (X.trace() + Y.trace()).detach() / 2 / len(X)
    X, Y = (M + ridge * torch.eye(len(X), dtype=torch.float64) for M in (X, Y))
    if divergence != "von_neumann":
        return DIVERGENCES[divergence].function(X, Y)
    return 0.5 * ((X - Y) @ (sym_logm(X) - sym_logm(Y))).trace()
