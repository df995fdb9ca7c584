"""Rotated EWC: the same function, a more diagonal Fisher information, the penalty written out."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from helpers.tiny import classes, cnn, flat, generator, learn, net, pictures
from vntransfer.continual import REWC, Task, train
from vntransfer.errors import ArgumentError


def correlated(seed: int = 0) -> Task:
    """Samples whose six inputs are far from independent."""
    g = generator(seed)
    x = torch.randn(300, 6, generator=g).double() @ torch.randn(6, 6, generator=g).double()
    y = (x[:, 0] > 0).long() + (x[:, 1] > 1).long()
    return Task(x / x.std(), y)


@pytest.mark.parametrize("rotation", ["corrected", "published"])
def test_the_function_stays_the_same(rotation: Any) -> None:
    task = classes(1)[0]
    model = net()
    objects = [id(p) for p in model.parameters()]
    method = REWC(model, rotation=rotation)
    method.before_task()
    train(model, task, method, lr=0.05)
    before, plain = model(task.x_test).detach(), flat(model)
    method.after_task()
    assert float((model(task.x_test).detach() - before).abs().max()) < 1e-6 * (
        1 + float(before.abs().max())
    )
    assert float((flat(model) - plain).abs().max()) > 0.1
    assert [id(p) for p in model.parameters()] == objects
    method.close()
    torch.testing.assert_close(flat(model), plain, atol=1e-5, rtol=0)
    assert float((model(task.x_test).detach() - before).abs().max()) < 1e-5


def test_the_function_of_a_cnn_stays_the_same() -> None:
    tasks, heads = pictures()
    model = cnn().double()
    method = REWC(model, criterion=heads)
    x = tasks[0].x.double()
    for task in tasks:
        method.before_task()
        train(model, task, method, lr=0.05)
        before = model(x)
        method.after_task()
        torch.testing.assert_close(model(x), before)
    assert [layer.name for layer in method.layers] == ["body.0", "body.4"]


def off_diagonal_share(model: nn.Module, x: Tensor, name: str = "0.weight") -> float:
    """Share of a weight's Fisher information, all classes weighted, off the diagonal."""
    parameters = {k: p.detach() for k, p in model.named_parameters()}

    def log_p(weight: Tensor, one: Tensor) -> Tensor:
        out = functional_call(model, {**parameters, name: weight}, (one[None],))
        return out.log_softmax(-1)[0]

    J = vmap(jacrev(log_p), in_dims=(None, 0))(parameters[name], x).flatten(2)
    p = model(x).softmax(-1).detach()
    F = torch.einsum("nc,ncp,ncq->pq", p, J, J)
    return float(1 - F.diag().square().sum() / F.square().sum())


def test_the_fisher_information_is_more_diagonal_with_the_right_rotation() -> None:
    task = correlated()
    share = {}
    for rotation in ("none", "published", "corrected"):
        model = net(dtype=torch.float64)
        method = REWC(model, rotation="corrected" if rotation == "none" else rotation)  # type: ignore[arg-type]
        learn(method, [task], lr=0.01)
        if rotation == "none":
            method.unrotate()
        share[rotation] = off_diagonal_share(model, task.x[:100])
    assert share["corrected"] < 0.5 * share["none"]
    assert share["corrected"] < 0.8 * share["published"]


def test_a_step_is_ewc_in_rotated_coordinates() -> None:
    tasks = classes(2, dtype=torch.float64)
    model = net(dtype=torch.float64)
    method = REWC(model, strength=0.5, update="explicit")
    learn(method, tasks[:1])
    U1, U2 = method.turns[0]
    F, anchor = method.quadratic.precisions, [p.detach().clone() for p in model.parameters()]
    plain = net(dtype=torch.float64)
    plain.load_state_dict(model.state_dict())
    for k in (0, 1):  # back to plain coordinates by hand
        V1, V2 = method.turns[k]
        with torch.no_grad():
            plain[2 * k].weight.copy_(V2 @ plain[2 * k].weight @ V1.mT)  # type: ignore[arg-type, operator]
            plain[2 * k].bias.copy_(V2 @ plain[2 * k].bias)  # type: ignore[arg-type, operator]
    x, y = tasks[1].x[:1], tasks[1].y[:1]
    theta = list(plain.parameters())
    for _ in range(3):
        loss = nn.functional.cross_entropy(plain(x), y)
        for k in range(2):
            V1, V2 = method.turns[k]
            W, b = V2.mT @ theta[2 * k] @ V1, V2.mT @ theta[2 * k + 1]
            loss = loss + 0.5 * (F[2 * k] * (W - anchor[2 * k]).square()).sum()
            loss = loss + 0.5 * (F[2 * k + 1] * (b - anchor[2 * k + 1]).square()).sum()
        for k in (4, 5):
            loss = loss + 0.5 * (F[k] * (theta[k] - anchor[k]).square()).sum()
        gradients = torch.autograd.grad(loss, theta)
        with torch.no_grad():
            for p, g in zip(theta, gradients, strict=True):
                p -= 0.05 * g
    method.before_task()
    train(model, Task(x.repeat(3, 1), y.repeat(3)), method, lr=0.05)
    torch.testing.assert_close(U2 @ model[0].weight @ U1.mT, theta[0])  # type: ignore[operator, arg-type]
    torch.testing.assert_close(model[4].weight, theta[4])


def test_carried_information_is_the_diagonal_of_the_rotated_matrix() -> None:
    g = generator()
    model = nn.Linear(3, 2).double()
    method = REWC(model, layers=[""])
    F = [torch.rand(p.shape, generator=g).double() for p in model.parameters()]
    turns = [
        [torch.linalg.qr(torch.randn(n, n, generator=g).double()).Q for n in (3, 2)]
        for _ in range(2)
    ]
    weight, bias = method._carry(F, [turns[0]], [turns[1]])
    R, S = (a.mT @ b for a, b in zip(*turns, strict=True))
    full = torch.kron(S, R).mT @ F[0].flatten().diag() @ torch.kron(S, R)
    torch.testing.assert_close(weight.flatten(), full.diag())
    torch.testing.assert_close(bias, (S.mT @ F[1].diag() @ S).diag())


def test_forms() -> None:
    tasks = classes(3)
    online, last = (REWC(net(), form=form) for form in ("online", "last"))  # type: ignore[arg-type]
    for method in (online, last):
        learn(method, tasks)
    total = [float(sum(F.sum() for F in m.quadratic.precisions)) for m in (online, last)]
    assert total[0] > 1.5 * total[1]


def test_wrong_options_are_named() -> None:
    for name in ("rotation", "form", "update"):
        with pytest.raises(ArgumentError, match=f"{name}: expected one of"):
            REWC(net(), **{name: "some"})
