"""What every method does with a network that is frozen, converted, copied or not a plain chain."""

import copy
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from helpers.tiny import classes, flat, generator, learn, make, make_steps, net, values
from vntransfer.continual import METHODS, ContinualMethod, default_loss
from vntransfer.errors import ArgumentError

every_method = pytest.mark.parametrize("name", METHODS)
hooked = pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if not method.whole_step]
)
FROZEN: dict[str, Any] = {
    "layer": lambda model: [model[2].weight, model[2].bias],
    "weight": lambda model: [model[2].weight],
    "bias": lambda model: [model[0].bias, model[2].bias],
}


def freeze(parameters: list[Tensor]) -> list[Tensor]:
    """Freeze parameters, and give copies of them."""
    return [p.requires_grad_(False).clone() for p in parameters]


def made(name: str, model: nn.Module, refused: str) -> ContinualMethod | None:
    """Make a method, or check that it says why it cannot be."""
    try:
        return make(name, model)
    except ArgumentError as error:
        if not re.search(f"^layers: .*({refused})", str(error)):
            raise
    return None


@every_method
@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("part", FROZEN)
@pytest.mark.parametrize("when", ["before", "between", "within"])
def test_what_is_frozen_does_not_move(name: str, when: str, part: str, batch_size: int) -> None:
    model, tasks = net(), classes(4)
    for bias in (model[0].bias, model[2].bias):
        nn.init.constant_(bias, 0.1)
    chosen, options = FROZEN[part](model), {"batch_size": batch_size, "lr": 0.05}
    kept = freeze(chosen) if when == "before" else []
    method = made(name, model, "follow each other|weight is frozen" if when == "before" else "^$")
    if method is None:
        return
    learn(method, tasks[:2], **options)
    if when == "between":
        kept = freeze(chosen)
    method.before_task()
    make_steps(method, tasks[2], 0, 3, **options)
    if when == "within":
        kept = freeze(chosen)
    make_steps(method, tasks[2], 3, None, **options)
    method.after_task()
    start = flat(model)
    learn(method, tasks[3:], **options)
    torch.testing.assert_close(chosen, kept, rtol=0, atol=0)
    assert name == "freeze" or not torch.equal(flat(model), start)  # the rest is trained


@pytest.mark.parametrize("part", FROZEN)
def test_rewc_trains_a_layer_again_that_was_frozen_for_a_task(part: str) -> None:
    model, tasks, x = net(dtype=torch.float64), classes(4, dtype=torch.float64), torch.randn(5, 6)
    chosen = FROZEN[part](model)
    method = make("rewc", model)
    learn(method, tasks[:2])
    freeze(chosen)
    learn(method, tasks[2:3])
    kept = [p.requires_grad_().detach().clone() for p in chosen]
    learn(method, tasks[3:])
    assert not any(torch.equal(p, old) for p, old in zip(chosen, kept, strict=True))
    before = model(x.double())
    method.close()  # plain parameters, the same function
    torch.testing.assert_close(model(x.double()), before)


@every_method
@pytest.mark.parametrize("done", [0, 1])
def test_an_empty_batch_is_named(name: str, done: int) -> None:
    model = net()
    method = learn(make(name, model), classes(done))
    method.before_task()
    before, state = values(model), torch.get_rng_state()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.zeros(0, 6), torch.zeros(0, dtype=torch.int64)
    with pytest.raises(ArgumentError, match=r"x: the batch has no rows.*skip"):
        method.step(x, y, default_loss, optimizer)
    with pytest.raises(ArgumentError, match=r"y: 2 responses for 3 rows"):
        method.step(torch.zeros(3, 6), torch.zeros(2), default_loss, optimizer)
    assert values(model) == before
    assert torch.equal(torch.get_rng_state(), state)
    make_steps(method, classes(2)[1], 0, None, lr=0.05)  # training continues
    method.after_task()


@hooked
def test_an_empty_batch_is_named_in_a_loop_of_your_own(name: str) -> None:
    method = make(name, net())
    method.before_task()
    with pytest.raises(ArgumentError, match="x: the batch has no rows"):
        method.observe(torch.zeros(0, 6), torch.zeros(0, dtype=torch.int64))


@every_method
@pytest.mark.parametrize("within", [False, True])
def test_a_change_of_precision_is_refused(name: str, within: bool) -> None:
    model, tasks = net(), classes(2)
    method = learn(make(name, model), tasks[:1])
    if within:
        method.before_task()
        make_steps(method, tasks[1], 0, 2, lr=0.05, batch_size=4)
    model.double()
    message = r"model: '0.weight' is torch.float64 but was torch.float32"
    with pytest.raises(ArgumentError, match=message):
        learn(method, tasks[1:]) if not within else make_steps(method, tasks[1], 2, None, lr=0.05)
    if within:
        with pytest.raises(ArgumentError, match=message):
            method.after_task()
    model.float()
    if within:
        make_steps(method, tasks[1], 2, None, lr=0.05, batch_size=4)
        method.after_task()
    else:
        learn(method, tasks[1:])  # nothing is lost by the refusal


@every_method
def test_a_copy_of_method_and_network_goes_on_alike(name: str) -> None:
    model, tasks = net(), classes(4)
    method = learn(make(name, model), tasks[:2])
    method.before_task()
    make_steps(method, tasks[2], 0, 5, lr=0.05)
    twin, other = copy.deepcopy((model, method))
    start = values(model)
    found = []
    for net_, own in ((twin, other), (model, method)):
        assert own.model is net_
        make_steps(own, tasks[2], 5, None, lr=0.05)
        own.after_task()
        learn(own, tasks[3:])
        found.append(values(net_))
        if net_ is twin:
            assert values(model) == start
    assert found[0] == found[1]


@every_method
def test_mixed_precision(name: str) -> None:
    model = net()
    method = make(name, model)
    with torch.autocast("cpu", torch.bfloat16):
        learn(method, classes(3), batch_size=4)
    assert all(p.dtype == torch.float32 and p.isfinite().all() for p in model.parameters())


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.b.weight = self.a.weight
        with torch.no_grad():
            for p in self.parameters():
                p.copy_(0.4 * torch.randn(p.shape, generator=generator()))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.b(self.a(x).relu()).relu())  # type: ignore[no-any-return]


def normalized() -> nn.Sequential:
    model = net()
    model.insert(1, nn.BatchNorm1d(12))
    return model


@every_method
@pytest.mark.parametrize("build", [Tied, normalized])
def test_shared_weights_and_batch_normalization(name: str, build: Any) -> None:
    """They are learned, or refused when the method is made."""
    model = build()
    method = made(name, model, "share one weight|neither dense nor")
    if method is None:
        return
    before = flat(model)
    learn(method, classes(3), batch_size=8)
    assert not torch.equal(flat(model), before)
    assert all(value.isfinite().all() for value in model.state_dict().values())


@hooked
def test_gradients_of_several_passes(name: str) -> None:
    model = net()
    method = make(name, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    method.use(optimizer)
    for task in classes(3):
        gather(method, list(task.batches(4)), optimizer)
    assert bool(flat(model).isfinite().all())
    assert method.tasks_done == 3


def gather(method: ContinualMethod, batches: list[Any], optimizer: torch.optim.Optimizer) -> None:
    """Learn a task with a step after every second batch."""
    method.before_task()
    for k, (x, y) in enumerate(batches):
        a, b = method.observe(x, y)
        (default_loss(method.model(a), b) / 2).backward()
        if k % 2:
            method.adjust_gradients()
            optimizer.step()
            optimizer.zero_grad()
            method.after_step()
    method.after_task()
