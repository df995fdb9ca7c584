"""Steps written out by hand are the optimizer's steps, and are taken for no other network."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn import functional

from helpers.tiny import classes, net
from vntransfer.continual import MER, Heads
from vntransfer.continual._base import default_loss
from vntransfer.continual._layers import Tape, find_layers
from vntransfer.continual.descent import DenseSteps, Descent, backward, fits


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("make", [Descent, torch.optim.SGD])
def test_steps_are_those_of_autograd(
    dtype: torch.dtype, bias: bool, make: type[torch.optim.Optimizer]
) -> None:
    torch.manual_seed(0)
    ours = nn.Sequential(
        nn.Linear(6, 12, bias=bias), nn.ReLU(), nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 3)
    ).to(dtype)
    plain = deepcopy(ours)
    task = classes(1, n=40, dtype=dtype)[0]
    steps = DenseSteps.of(ours, default_loss, make(ours.parameters(), lr=0.1))  # type: ignore[call-arg]
    assert steps is not None
    assert fits(steps.layers, task.x, task.y)
    first = steps.descend(task.x, task.y)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    losses = []
    for x, y in task.batches(1):
        loss = functional.cross_entropy(plain(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    tolerance = 1e-4 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(first, losses[0], atol=tolerance, rtol=tolerance)
    for p, q in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p, q, atol=tolerance, rtol=tolerance)


def test_the_task_is_untouched() -> None:
    task = classes(1)[0]
    before, model = task.x.clone(), net()
    steps = DenseSteps.of(model, default_loss, Descent(model.parameters(), lr=0.1))
    assert steps is not None
    steps.descend(task.x, task.y)
    assert torch.equal(task.x, before)


class Scaled(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


def _hooked() -> nn.Module:
    model = net()
    model[0].register_forward_hook(lambda module, args, output: output * 2)
    return model


def _tied() -> nn.Module:
    layer = nn.Linear(6, 6)
    return nn.Sequential(layer, nn.ReLU(), layer)


def _shared() -> nn.Module:
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6))
    model[2].weight = model[0].weight
    return model


def _frozen() -> nn.Module:
    model = net()
    model[0].weight.requires_grad_(False)
    return model


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3)),
        nn.Sequential(nn.Linear(6, 4), nn.ReLU()),
        nn.Sequential(Scaled(6, 3)),
        nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3).double()),
        nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(6, 3))),
        nn.Linear(6, 3),
        _hooked(),
        _frozen(),
        net().half(),
        _tied(),
        _shared(),
    ],
    ids=[
        "tanh",
        "relu last",
        "subclass",
        "mixed",
        "weight norm",
        "bare",
        "hook",
        "frozen",
        "half",
        "tied",
        "shared",
    ],
)
def test_other_networks_are_left_to_autograd(model: nn.Module) -> None:
    assert DenseSteps.of(model, default_loss, Descent(model.parameters(), lr=0.1)) is None


def test_other_losses_and_optimisers_are_left_to_autograd() -> None:
    model = net()
    held = list(model.parameters())
    plain = Descent(held, lr=0.1)
    assert DenseSteps.of(model, Heads([3]), plain) is None
    for other in (
        torch.optim.SGD(held, lr=0.1, momentum=0.9),
        torch.optim.SGD(held, lr=0.1, weight_decay=0.1),
        torch.optim.Adam(held, lr=0.1),
        torch.optim.SGD([{"params": held[:2]}, {"params": held[2:], "lr": 1.0}], lr=0.1),
        Descent(held[:2], lr=0.1),
    ):
        assert DenseSteps.of(model, default_loss, other) is None


def test_other_samples_do_not_fit() -> None:
    layers = [layer for layer in net() if isinstance(layer, nn.Linear)]
    x, y = torch.zeros(2, 6), torch.tensor([0, 2])
    assert fits(layers, x, y)
    assert not fits(layers, x, torch.tensor([0, 3]))  # torch's error is the better one
    assert not fits(layers, x, torch.tensor([0, -100]))
    assert not fits(layers, x, y.float())
    assert not fits(layers, x.double(), y)
    assert not fits(layers, x[:, :5], y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
def test_the_backward_pass_has_the_bits_of_autograd(dtype: torch.dtype, bias: bool) -> None:
    torch.manual_seed(0)
    ours = nn.Sequential(nn.Linear(6, 12, bias=bias), nn.ReLU(), nn.Linear(12, 3)).to(dtype)
    other = deepcopy(ours)
    tape, others = (Tape(find_layers(model)) for model in (ours, other))
    task = classes(1, dtype=dtype)[0]
    for x, y in task.batches(1):
        tape.start(), others.start()
        loss = functional.cross_entropy(other(x), y)
        loss.backward()
        assert backward(ours, x, y, default_loss, tape) == loss
        for p, q in zip(ours.parameters(), other.parameters(), strict=True):
            assert p.grad is not None
            assert torch.equal(p.grad, q.grad)
            p.grad = q.grad = None
        for one, two in zip(tape.take(), others.take(), strict=True):
            assert all(torch.equal(a, b) for a, b in zip(one[0], two[0], strict=True))


def test_the_backward_pass_by_hand_does_nothing_where_it_does_not_apply() -> None:
    task = classes(1)[0]
    x, y = task.x[:1], task.y[:1]
    hooked, layer = _hooked(), find_layers(net())[:1]
    held = net()
    held[0].weight.grad = torch.ones(12, 6)
    for model, tape in ((hooked, Tape(find_layers(hooked))), (net(), Tape(layer))):
        assert backward(model, x, y, default_loss, tape) is None
        assert all(p.grad is None for p in model.parameters())
    tape = Tape(find_layers(held))
    assert backward(held, x, y, default_loss, tape) is None
    model = net()
    tape = Tape(find_layers(model))
    assert backward(model, task.x, task.y, default_loss, tape) is None
    assert backward(model, x, y, Heads([3]), tape) is None
    with torch.autocast("cpu"):
        assert backward(model, x, y, default_loss, tape) is None


def test_mer_follows_the_learning_rate() -> None:
    task, model = classes(1)[0], net()
    optimizer = Descent(model.parameters(), lr=0.1)
    method = MER(model, beta=0.3, memory=5, replay=2)
    method.before_task()
    method.step(task.x[:1], task.y[:1], default_loss, optimizer)
    before = deepcopy(model.state_dict())
    optimizer.param_groups[0]["lr"] = 0.0
    method.step(task.x[1:2], task.y[1:2], default_loss, optimizer)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name])
