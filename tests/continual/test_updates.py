"""Each update against an independent transcription, with numpy or one parameter vector."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from helpers.tiny import classes, flat, generator, learn, net, values
from vntransfer.continual import (
    AGEM,
    EWC,
    MER,
    RSP,
    SGD,
    SI,
    DarkReplay,
    Freeze,
    L2Anchor,
    Replay,
    diagonal_fisher,
)
from vntransfer.continual._fisher import Fisher
from vntransfer.continual._memory import SampleReservoir
from vntransfer.continual.descent import Descent

RATE = 0.05
F64 = torch.float64


def slope(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Gradient of the cross-entropy, as one vector."""
    loss = cross_entropy(model(x), y)
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


def move(model: nn.Module, to: Tensor) -> None:
    vector_to_parameters(to, model.parameters())


def theta(model: nn.Module) -> Tensor:
    return parameters_to_vector(model.parameters()).detach().clone()


@pytest.mark.parametrize("form", ["separate", "online"])
def test_ewc(form: str) -> None:
    tasks = classes(3, dtype=F64)
    ours, plain = net(dtype=F64), net(dtype=F64)
    learn(EWC(ours, strength=2.0, form=form), tasks, lr=RATE)  # type: ignore[arg-type]
    past: list[tuple[Tensor, Tensor]] = []
    for task in tasks:
        for x, y in task.batches(2):
            u = theta(plain) - RATE * slope(plain, x, y)
            # the minimizer of the sum of all penalties and the distance from u
            top = u + sum((2 * RATE * 2.0 * F * a for F, a in past), torch.zeros_like(u))
            move(plain, top / (1 + sum((2 * RATE * 2.0 * F for F, _ in past), torch.zeros(1))))
        F = torch.cat([f.flatten() for f in diagonal_fisher(plain, task.x, task.y)])
        if form == "online" and past:
            F = F + past[0][0]
        past = [*(past if form == "separate" else []), (F, theta(plain))]
    torch.testing.assert_close(theta(ours), theta(plain), atol=1e-12, rtol=1e-10)


def test_ewc_takes_the_first_samples_of_a_task() -> None:
    (task,) = classes(1)
    method = learn(EWC(net(), fisher_samples=5), [task])
    again = diagonal_fisher(method.model, task.x[:5], task.y[:5])
    for F, G in zip(method.quadratic.precisions, again, strict=True):
        assert torch.equal(F, G)


@pytest.mark.parametrize("kind", ["observed", "squared_mean"])
def test_ewc_uses_the_fisher_information_that_it_is_told(kind: Fisher) -> None:
    (task,) = classes(1)
    method = learn(EWC(net(), fisher=kind), [task])
    again = diagonal_fisher(method.model, task.x, task.y, kind=kind)
    for F, G in zip(method.quadratic.precisions, again, strict=True):
        torch.testing.assert_close(F, G)


def test_si() -> None:
    tasks = classes(3, dtype=F64)
    ours, plain = net(dtype=F64), net(dtype=F64)
    learn(SI(ours, strength=0.3), tasks, lr=RATE)
    omega, anchor = torch.zeros_like(theta(plain)), theta(plain)
    for task in tasks:
        path, begin = torch.zeros_like(omega), theta(plain)
        for x, y in task.batches(2):
            old, g = theta(plain), slope(plain, x, y)
            pull = 2 * RATE * 0.3 * omega
            move(plain, (old - RATE * g + pull * anchor) / (1 + pull))
            path -= g * (theta(plain) - old)
        anchor = theta(plain)
        omega = omega + path.clamp(min=0) / ((anchor - begin).square() + 0.1)
    torch.testing.assert_close(theta(ours), theta(plain), atol=1e-12, rtol=1e-10)


def test_si_does_not_depend_on_how_gradients_are_cleared() -> None:
    ends = []
    for to_none in (True, False):
        model = net()
        method = SI(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        method.use(optimizer)
        for task in classes(2):
            method.before_task()
            for x, y in task.batches(2):
                cross_entropy(model(x), y).backward()
                method.adjust_gradients()
                optimizer.step()
                optimizer.zero_grad(set_to_none=to_none)
                method.after_step()
            method.after_task()
        ends.append(flat(model))
    assert torch.equal(*ends)


def test_l2() -> None:
    tasks = classes(4, dtype=F64)
    ours, plain = net(dtype=F64), net(dtype=F64)
    learn(L2Anchor(ours, strength=0.4), tasks, lr=RATE)
    n_first = sum(p.numel() for p in plain[0].parameters())
    ends: list[Tensor] = []
    for task in tasks:
        for x, y in task.batches(2):
            u = theta(plain) - RATE * slope(plain, x, y)
            if ends:
                a = torch.stack(ends).mean(0)
                pull = 2 * RATE * 0.4
                u[n_first:] = ((u + pull * a) / (1 + pull))[n_first:]
            move(plain, u)
        ends.append(theta(plain))
    torch.testing.assert_close(theta(ours), theta(plain), atol=1e-12, rtol=1e-10)


def test_l2_is_rsp_with_a_constant_for_the_divergence() -> None:
    tasks = classes(4, dtype=F64)
    one, two = net(dtype=F64), net(dtype=F64)
    learn(L2Anchor(one, strength=0.7), tasks)
    options = {"relatedness": "constant", "first_layer": "none", "groups": 3}
    learn(RSP(two, strength=0.7, **options), tasks)  # type: ignore[arg-type]
    torch.testing.assert_close(flat(one), flat(two), atol=1e-8, rtol=1e-6)


def test_freeze_holds_the_upper_layers_and_nothing_else() -> None:
    model, plain = net(), net()
    tasks = classes(3)
    method = learn(Freeze(model), tasks[:1])
    learn(SGD(plain), tasks[:1])
    assert torch.equal(flat(model), flat(plain))
    upper, first = flat(model[1:]), flat(model[:1])
    learn(method, tasks[1:])
    assert torch.equal(flat(model[1:]), upper)
    assert not torch.equal(flat(model[:1]), first)


@pytest.mark.parametrize("margin", [0.0, 0.7])
def test_agem(margin: float) -> None:
    tasks = classes(3, dtype=F64)
    ours, plain = net(dtype=F64), net(dtype=F64)
    learn(AGEM(ours, margin=margin, memory=4), tasks, lr=RATE)
    kept_x, kept_y, turned = [], [], 0
    for task in tasks:
        for x, y in task.batches(2):
            g = slope(plain, x, y)
            if kept_x:
                r = slope(plain, torch.cat(kept_x), torch.cat(kept_y))
                if g @ r < 0:
                    v = max(margin, float(-(g @ r) / (r @ r)))
                    g = g + v * r
                    turned += 1
                    if margin == 0:  # orthogonal to what the memory wants
                        assert abs(float(g @ r)) < 1e-12 * float(r @ r)
            move(plain, theta(plain) - RATE * g)
        kept_x.append(task.x[-4:])
        kept_y.append(task.y[-4:])
    assert turned > 3
    torch.testing.assert_close(theta(ours), theta(plain), atol=1e-12, rtol=1e-10)


def test_mer() -> None:
    tasks = classes(2, n=10, dtype=F64)
    ours, plain = net(dtype=F64), net(dtype=F64)
    options = {"memory": 5, "replay": 3, "steps": 2, "random_state": 7}
    learn(MER(ours, beta=0.4, **options), tasks, lr=RATE, batch_size=1)  # type: ignore[arg-type]
    memory = SampleReservoir(5, generator(7))
    for task in tasks:
        for x, y in task.batches(1):
            for _ in range(2):
                within = theta(plain)
                batch = [(x, y)]
                if len(memory):
                    old, labels = memory.draw(3)
                    batch += [(old[j : j + 1], labels[j : j + 1]) for j in range(3)]
                for pair in batch:
                    move(plain, theta(plain) - RATE * slope(plain, *pair))
                move(plain, within + 0.4 * (theta(plain) - within))
            memory.add(x, y)
    torch.testing.assert_close(theta(ours), theta(plain), atol=1e-12, rtol=1e-10)


def test_replay() -> None:
    tasks = classes(2, dtype=F64)
    ours, plain = net(dtype=F64), net(dtype=F64)
    learn(Replay(ours, memory=5, replay=3, random_state=7), tasks, lr=RATE)
    memory = SampleReservoir(5, generator(7))
    for task in tasks:
        for x, y in task.batches(2):
            old = memory.draw(3) if len(memory) else (x[:0], y[:0])
            g = slope(plain, torch.cat((x, old[0])), torch.cat((y, old[1])))
            memory.add(x, y)
            move(plain, theta(plain) - RATE * g)
    torch.testing.assert_close(theta(ours), theta(plain), atol=1e-12, rtol=1e-10)


def test_dark_replay() -> None:
    tasks = classes(2, dtype=F64)
    ours, plain = net(dtype=F64), net(dtype=F64)
    learn(DarkReplay(ours, alpha=0.3, beta=0.6, memory=5, replay=3, random_state=7), tasks, lr=RATE)
    memory = SampleReservoir(5, generator(7))
    for task in tasks:
        for x, y in task.batches(2):
            loss = cross_entropy(plain(x), y)
            if len(memory):
                old, labels, answers = memory.draw(6)
                loss = loss + 0.3 * (plain(old[:3]) - answers[:3]).square().mean()
                loss = loss + 0.6 * cross_entropy(plain(old[3:]), labels[3:])
            memory.add(x, y, plain(x))
            parts = torch.autograd.grad(loss, list(plain.parameters()))
            move(plain, theta(plain) - RATE * torch.cat([g.flatten() for g in parts]))
    torch.testing.assert_close(theta(ours), theta(plain), atol=1e-12, rtol=1e-10)


def test_a_reservoir_is_a_uniform_sample() -> None:
    counts = np.zeros(40)
    for seed in range(400):
        memory = SampleReservoir(10, generator(seed))
        for i in range(0, 40, 2):
            memory.add(torch.arange(i, i + 2))
        assert len(set(memory.fields[0].tolist())) == 10
        counts[memory.fields[0].numpy()] += 1
    # binomial: 400 draws with chance 1/4 each; five standard deviations
    assert np.abs(counts - 100).max() < 5 * np.sqrt(400 * 0.25 * 0.75)


def test_descent_is_torchs_bit_for_bit() -> None:
    plain, light = net(), net()
    for model, kind in ((plain, torch.optim.SGD), (light, Descent)):
        method = EWC(model, 5.0)  # whose pull asks for the learning rate
        optimizer = kind(model.parameters(), lr=0.05)
        learn(method, classes(), optimizer=optimizer)
    assert values(plain) == values(light)
    Descent([torch.zeros(1, requires_grad=True)], lr=0.1).step()  # without a gradient
