"""RSP against Eqs. 10 and 11 written out, and its options one by one."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from helpers.tiny import classes, cnn, generator, learn, net, pictures, responses
from vntransfer.continual import RSP, Heads, Task, train
from vntransfer.continual._layers import LayerFisher, find_layers
from vntransfer.continual._relatedness import RIDGE, GroupBlocks, RunningMoments
from vntransfer.continual._unit_groups import Owned
from vntransfer.continual.rsp import relatedness
from vntransfer.divergences import conditional_von_neumann
from vntransfer.errors import ArgumentError, DivergedError


def random_covariance(seed: int, n: int) -> Tensor:
    x = torch.randn(3 * n, n, generator=generator(seed), dtype=torch.float64)
    return torch.cov((x * torch.linspace(0.5, 2, n)).mT)


def test_divergences_of_all_groups_are_those_of_each() -> None:
    labels = torch.tensor([0, 1, 1, 2, 0, 1, 1, 1, 3, 1])
    now, *then = (random_covariance(seed, 13) for seed in range(4))
    blocks = GroupBlocks(labels, 3)
    D = blocks.divergence(blocks.take(now), blocks.stack([blocks.take(s) for s in then]))
    assert D.shape == (3, 4)
    for (t, sigma), k in product(enumerate(then), range(4)):
        index = torch.cat(((labels == k).nonzero().flatten(), torch.arange(10, 13)))
        eye = RIDGE * torch.eye(len(index)).double()
        a, b = (s[index][:, index] + eye for s in (now, sigma))
        assert float(D[t, k]) == pytest.approx(float(conditional_von_neumann(a, b, 3)), rel=1e-8)


def test_equal_tasks_have_no_divergence() -> None:
    sigma = random_covariance(0, 8)
    blocks = GroupBlocks(torch.tensor([0, 0, 1, 1, 2]), 3)
    part = blocks.take(sigma)
    assert float(blocks.divergence(part, blocks.stack([part])).max()) < 1e-9


def test_relatedness_by_every_rule() -> None:
    D = torch.rand(3, 4, generator=generator()).double()
    e = (-D).exp()
    torch.testing.assert_close(relatedness(D, "similar", "tasks"), e / e.sum(0))
    torch.testing.assert_close(relatedness(D, "similar", "groups"), e / e.sum(1, keepdim=True))
    torch.testing.assert_close(relatedness(D, "reversed", "tasks"), 1 / e / (1 / e).sum(0))
    assert bool((relatedness(D, "constant", "tasks") == 1 / 3).all())
    for kind in ("similar", "reversed"):  # no overflow, no 0/0, for divergences of any size
        assert bool(relatedness(1e6 * D, kind, "tasks").isfinite().all())


def test_groups_own_the_weights_that_go_out_from_them() -> None:
    """Σ_A r_A (θ - θ_A)² by loops over the parameters of a CNN."""
    model = nn.Sequential(
        nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4), nn.ReLU(), nn.Linear(4, 2)
    ).double()
    owned = Owned(find_layers(model))
    owned.labels = [torch.tensor([0, 1, 0]), torch.tensor([0, 1, 2, 1])]
    g = generator()
    r = [torch.rand(2, n, generator=g).double() for n in (2, 3)]
    for _ in range(2):
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.randn(p.shape, generator=g))
        owned.keep()
    found = list(owned.collapse(r))
    assert len(found) == 2 * len(owned.layers)
    for i, layer in enumerate(owned.layers):
        for which, (p, R, anchor) in enumerate(found[2 * i :][:2]):
            assert p is layer.parameters()[which]
            for index in product(*map(range, p.shape)):
                c = [_weight(owned, r, i, index, t, bias=which == 1) for t in range(2)]
                values = [float(owned.values[2 * i + which][t][index]) for t in range(2)]
                assert float(R[index]) == pytest.approx(sum(c))
                mean = (c[0] * values[0] + c[1] * values[1]) / sum(c)
                assert float(anchor[index]) == pytest.approx(mean)


def _weight(
    owned: Owned, r: list[Tensor], i: int, index: tuple[int, ...], t: int, *, bias: bool
) -> float:
    """r of one parameter: of the unit that it leaves; of a bias the mean."""
    if bias:
        return float(r[i][t].mean())
    spread = owned.layers[i].weight.shape[1] // len(owned.labels[i])
    return float(r[i][t, owned.labels[i][index[1] // spread]])


@pytest.mark.parametrize("fisher", ["observed", "squared_mean"])
def test_a_step_is_the_gradient_of_equation_10(fisher: LayerFisher) -> None:
    """The third task's steps, by automatic differentiation of the loss as it is printed."""
    tasks = classes(3, dtype=torch.float64)
    model = net(dtype=torch.float64)
    strength = 0.3
    method = RSP(model, strength, groups=3, every=5, fisher=fisher, update="explicit")
    anchors, activations, fishers = [], [], []
    for task in tasks[:2]:
        seen: list[Tensor] = []
        method.before_task()
        for x, y in task.batches(1):
            seen.append(_hidden(model, x))
            train(model, Task(x, y), method, lr=0.05)
        anchors.append([p.detach().clone() for p in model.parameters()])
        activations.append(torch.cat((torch.cat(seen), functional.one_hot(task.y, 3)), 1))
        fishers.append(_fisher(model, task, fisher))
        method.after_task()
    labels = method.labels
    ours = net(dtype=torch.float64)
    ours.load_state_dict(model.state_dict())
    theta = list(ours.parameters())
    r: list[Tensor] = [torch.full((2, len(k.unique())), 0.5).double() for k in labels]
    method.before_task()
    seen = []
    for step, (x, y) in enumerate(tasks[2].batches(1), 1):
        seen.append(torch.cat((_hidden(ours, x), functional.one_hot(y, 3)), 1))
        if step % 5 == 0:
            r = _equation_11(torch.cat(seen), activations, labels)
        loss = functional.cross_entropy(ours(x), y)
        for t in range(2):
            for F, p, a in zip(fishers[t], theta[:2], anchors[t][:2], strict=True):
                loss = loss + strength * (F * (p - a).square()).sum()
            for k in range(2):  # hidden layers; columns of the weights that leave them
                weight, bias = theta[2 * k + 2], theta[2 * k + 3]
                columns = (weight - anchors[t][2 * k + 2]).square().sum(0)
                loss = loss + strength * (r[k][t, labels[k]] * columns).sum()
                gap = (bias - anchors[t][2 * k + 3]).square().sum()
                loss = loss + strength * r[k][t].mean() * gap
        gradients = torch.autograd.grad(loss, theta)
        with torch.no_grad():
            for p, gradient in zip(theta, gradients, strict=True):
                p -= 0.05 * gradient
        train(model, Task(x, y), method, lr=0.05)
        for p, q in zip(theta, model.parameters(), strict=True):
            torch.testing.assert_close(p, q)


def _hidden(model: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        one = model[1](model[0](x))  # type: ignore[index]
        return torch.cat((one, model[3](model[2](one))), 1)  # type: ignore[index]


def _fisher(model: nn.Module, task: Task, kind: LayerFisher) -> list[Tensor]:
    first = [*model.parameters()][:2]
    each = [
        torch.autograd.grad(functional.cross_entropy(model(x), y), first)
        for x, y in task.batches(1)
    ]
    of_parameters = [torch.stack(own) for own in zip(*each, strict=True)]
    if kind == "squared_mean":
        return [own.mean(0).square() for own in of_parameters]
    return [own.square().mean(0) for own in of_parameters]


def _equation_11(now: Tensor, then: list[Tensor], labels: list[Tensor]) -> list[Tensor]:
    out = []
    for k, offset in enumerate((0, 12)):
        groups = int(labels[k].max()) + 1
        D = torch.zeros(2, groups).double()
        for t, g in product(range(2), range(groups)):
            units = offset + (labels[k] == g).nonzero().flatten()
            index = torch.cat((units, torch.arange(21, 24)))
            eye = RIDGE * torch.eye(len(index)).double()
            a, b = (torch.cov(z[:, index].mT) + eye for z in (now, then[t]))
            D[t, g] = conditional_von_neumann(a, b, 3)
        out.append((-D).exp() / (-D).exp().sum(0))
    return out


def test_before_the_first_recomputation_all_tasks_count_alike() -> None:
    method = RSP(net(), 2.0, groups=3, normalize="tasks")
    learn(method, classes())
    method.before_task()
    method.quadratic.changed()
    R = method.quadratic.precisions[2]
    torch.testing.assert_close(R, torch.ones_like(R))  # 1/3 of each of three tasks


def test_running_moments_are_those_of_all_rows() -> None:
    x = torch.randn(30, 4, generator=generator()).double()
    running = RunningMoments(1)
    for rows in x.split([1, 9, 20]):
        running.add(0, rows)
        if running.count > 1:
            running.covariances()
    torch.testing.assert_close(running.covariances()[0], torch.cov(x.mT))
    assert running.count == 30


def test_first_layer_and_responses() -> None:
    tasks = classes()
    free = RSP(net(), groups=3, first_layer="none")
    learn(free, tasks)
    assert float(free.quadratic.precisions[0].abs().max()) == 0
    held = RSP(net(), groups=3)
    learn(held, tasks)
    assert float(held.quadratic.precisions[0].max()) > 0
    index = RSP(net(), groups=3, response="index")
    learn(index, tasks)
    assert (held.n_response, index.n_response) == (3, 1)
    assert index._columns(torch.tensor([2, 0])).tolist() == [[2.0], [0.0]]
    real = RSP(net(1), groups=3)
    learn(real, responses())
    assert real.n_response == 1


def test_classes_of_heads_are_counted_within_them() -> None:
    tasks, heads = pictures()
    method = RSP(cnn(), groups=2, criterion=heads)
    learn(method, tasks, epochs=3)
    assert method.n_response == 2
    assert method._columns(torch.tensor([0, 1, 4, 5])).tolist() == [[1, 0], [0, 1]] * 2
    uneven = RSP(cnn(), groups=2, criterion=Heads([2, 3, 1]))
    assert uneven._columns(torch.tensor([1, 4, 5])).tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("grouping", ["communities", "random"])
@pytest.mark.parametrize("normalize", ["tasks", "groups"])
def test_groupings_and_normalisations_run(grouping: Any, normalize: Any) -> None:
    model = net()
    options: dict[str, Any] = {"normalize": normalize, "every": 4}
    method = RSP(model, groups=3, grouping=grouping, relatedness="reversed", **options)
    learn(method, classes())
    assert all(p.isfinite().all() for p in model.parameters())
    (D, *_), (labels, *_) = method.divergences, method.labels
    r = relatedness(D, "reversed", normalize).sum(0)[labels]  # of the units, all tasks
    weights = method.quadratic.precisions[2]
    torch.testing.assert_close(weights, r.to(weights).expand_as(weights))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 0}, "^groups: "),
        ({"grouping": "some"}, "grouping: expected one of"),
        ({"normalize": "some"}, "normalize: expected one of"),
        ({"relatedness": "some"}, "relatedness: expected one of"),
        ({"response": "some"}, "response: expected one of"),
        ({"every": 1}, "every: expected a whole number from 2"),
        ({"threshold": -1}, "threshold: expected a finite number"),
        ({"layers": ["0"]}, "there is only '0'"),
        ({"layers": ["0", "4"]}, "do not follow each other"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        RSP(net(), **options)


def test_misuse_is_named() -> None:
    method = RSP(net(), groups=3)
    method.before_task()
    for label in (7, -1):
        with pytest.raises(ArgumentError, match=f"class {label} seen, but .*3 classes"):
            method.observe(torch.zeros(2, 6), torch.tensor([0, label]))
    with pytest.raises(ArgumentError, match="RSP needs two samples of a task, 0 seen"):
        method.after_task()
    other = RSP(net(), groups=3)
    other.before_task()
    other.observe(torch.zeros(2, 6), torch.tensor([0, 1]))
    other.model(torch.zeros(1, 6)).sum().backward()
    with pytest.raises(ArgumentError, match=r"2 samples.*layer '2'.* 1"):
        other.adjust_gradients()


def test_a_network_that_diverges_between_two_tasks_is_named() -> None:
    model = net()
    method = RSP(model)
    learn(method, classes(2, n=120))
    with pytest.raises(DivergedError, match="lower learning rate"):
        learn(method, classes(1, n=120), lr=3.0, batch_size=1)
