"""The collapsed penalty: its value, its two steps, and where the explicit one fails."""

import pytest
import torch
from torch import Tensor

from helpers.tiny import classes, flat, generator, learn, net
from vntransfer.continual import EWC, SI, L2Anchor, Quadratic, default_loss
from vntransfer.errors import ArgumentError, DivergedError


def penalty(n_tasks: int, strength: float = 0.7) -> tuple[Quadratic, list[tuple[Tensor, Tensor]]]:
    g = generator()
    theta = torch.randn(8, generator=g, dtype=torch.float64)
    quadratic, tasks = Quadratic([theta], strength), []
    for t in range(n_tasks):
        r = torch.rand(8, generator=g, dtype=torch.float64)
        r[t % 8] = 0  # a parameter that a task does not need
        r[7] = 0  # one that none needs
        anchor = torch.randn(8, generator=g, dtype=torch.float64)
        quadratic.add([r], [anchor])
        tasks.append((r, anchor))
    return quadratic, tasks


@pytest.mark.parametrize("n_tasks", [1, 2, 9])
def test_collapsed_penalty_is_the_sum_over_tasks(n_tasks: int) -> None:
    quadratic, tasks = penalty(n_tasks)
    (theta,) = quadratic.parameters
    theta.requires_grad_()
    total = sum((0.7 * (r * (theta - a).square()).sum() for r, a in tasks), torch.zeros(()))
    total.backward()
    assert float(quadratic.value() - total.detach()) == pytest.approx(0, abs=1e-10)
    expected, theta.grad = theta.grad, torch.zeros_like(theta)
    quadratic.update = "explicit"
    quadratic.adjust_gradients()
    torch.testing.assert_close(theta.grad, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("rate", [1e-3, 0.1, 10.0])
def test_proximal_step_is_the_minimiser_of_the_local_problem(rate: float) -> None:
    quadratic, tasks = penalty(4)
    (theta,) = quadratic.parameters
    start = theta.clone()
    quadratic.pull(rate)
    u = theta.clone().requires_grad_()
    problem = sum((0.7 * (r * (u - a).square()).sum() for r, a in tasks), torch.zeros(()))
    problem = problem + (u - start).square().sum() / (2 * rate)
    (slope,) = torch.autograd.grad(problem, u)
    torch.testing.assert_close(slope, torch.zeros_like(slope), atol=1e-10, rtol=0)
    assert float(theta[7]) == float(start[7])


def test_rates_of_several_groups_are_followed() -> None:
    model = net()
    method = EWC(model, strength=5.0)
    learn(method, classes(1))
    layers = list(model.parameters())
    optimizer = torch.optim.SGD([{"params": layers[:2], "lr": 0.0}, {"params": layers[2:]}], lr=0.1)
    method.use(optimizer)
    with torch.no_grad():
        for p in layers:
            p.add_(1.0)
    moved = [p.detach().clone() for p in layers]
    method.after_step()
    assert torch.equal(layers[0], moved[0])
    a, R = method.quadratic.anchors[2], method.quadratic.precisions[2]
    torch.testing.assert_close(layers[2], (moved[2] + 2 * 0.1 * 5 * R * a) / (1 + 2 * 0.1 * 5 * R))


def test_a_changed_rate_changes_the_pull() -> None:
    quadratic, _ = penalty(2)
    other, _ = penalty(2)
    quadratic.pull(0.1)
    quadratic.pull(0.3)
    other.pull(0.3)
    first = quadratic.parameters[0].clone()
    other, _ = penalty(2)
    other.pull(0.1)
    other._factors = None
    other.pull(0.3)
    assert torch.equal(first, other.parameters[0])


def test_explicit_steps_diverge_where_proximal_ones_do_not() -> None:
    """η λ R > 1: the explicit step overshoots further each time (docs/continual.md shows it)."""
    model = net()
    learn(EWC(model, strength=3000.0, update="proximal"), classes(4), batch_size=1)
    assert float(flat(model).abs().max()) < 10
    with pytest.raises(DivergedError, match="lower learning rate"):
        learn(EWC(net(), strength=3000.0, update="explicit"), classes(4), batch_size=1)


@pytest.mark.parametrize("kind", [EWC, SI, L2Anchor])
def test_explicit_and_proximal_agree_for_small_steps(kind: type) -> None:
    ends = []
    for update in ("proximal", "explicit"):
        model = net(dtype=torch.float64)
        method = kind(model, strength=0.5)
        method.quadratic.update = update
        learn(method, classes(3, dtype=torch.float64), lr=1e-4)
        ends.append(flat(model))
    start = flat(net(dtype=torch.float64))
    assert float((ends[0] - ends[1]).norm()) < 1e-3 * float((ends[0] - start).norm())
    assert not torch.equal(*ends)


def test_proximal_steps_need_a_rate() -> None:
    model = net()
    method = EWC(model)
    learn(method, classes(1))
    method.optimizer = None
    with pytest.raises(ArgumentError, match=r"call method\.use\(optimizer\)"):
        method.after_step()


def test_default_loss_names_a_mismatch() -> None:
    with pytest.raises(ArgumentError, match="3 responses"):
        default_loss(torch.zeros(3, 2), torch.zeros(3))
