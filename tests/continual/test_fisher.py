"""Fisher information against its definition, and the paper's note on why EWC uses it."""

from typing import get_args

import pytest
import torch
from torch import Tensor, nn

from helpers.tiny import classes, generator, net, responses
from vntransfer.continual import Heads, default_loss, diagonal_fisher
from vntransfer.continual._fisher import Fisher
from vntransfer.continual._memory import Pending
from vntransfer.errors import ArgumentError


def by_loop(model: nn.Module, x: Tensor, y: Tensor) -> list[Tensor]:
    """Squares of gradients, one sample at a time."""
    total = [torch.zeros_like(p) for p in model.parameters()]
    for one, label in zip(x.split(1), y.split(1), strict=True):
        model.zero_grad()
        default_loss(model(one), label).backward()
        for F, p in zip(total, model.parameters(), strict=True):
            assert p.grad is not None
            F += p.grad.square() / len(x)
    return total


@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_per_sample_gradients_are_those_of_a_loop(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vntransfer.continual._fisher.CHUNK", chunk)
    model, (task, *_) = net(dtype=torch.float64), classes(1, dtype=torch.float64)
    for fast, slow in zip(
        diagonal_fisher(model, task.x, task.y), by_loop(model, task.x, task.y), strict=True
    ):
        torch.testing.assert_close(fast, slow)


def expected_fisher(model: nn.Module, x: Tensor) -> list[Tensor]:
    """Mean over samples of Σ_c p_c g_c², g_c the gradient of log p_c: all classes, by a loop."""
    total = [torch.zeros_like(p) for p in model.parameters()]
    for row in model(x).log_softmax(-1):
        for value in row:
            slopes = torch.autograd.grad(value, list(model.parameters()), retain_graph=True)
            for F, g in zip(total, slopes, strict=True):
                F += float(value.detach().exp()) * g.square() / len(x)
    return [F.detach() for F in total]


def test_squared_mean_is_the_square_of_the_mean_gradient() -> None:
    model, (task, *_) = net(), classes(1)
    model.zero_grad()
    default_loss(model(task.x), task.y).backward()
    found = diagonal_fisher(model, task.x, task.y, kind="squared_mean")
    for F, p in zip(found, model.parameters(), strict=True):
        assert p.grad is not None
        torch.testing.assert_close(F, p.grad.square())


def test_sampled_labels_average_to_the_expected_ones() -> None:
    model, (task, *_) = net(dtype=torch.float64), classes(1, dtype=torch.float64)
    expected = expected_fisher(model, task.x)
    many = task.x.repeat(400, 1), task.y.repeat(400)
    sampled = diagonal_fisher(model, *many, kind="sampled", generator=generator())
    for F, G in zip(sampled, expected, strict=True):
        assert float((F - G).norm() / G.norm()) < 0.05


def test_expected_fisher_is_half_the_curvature_of_the_divergence() -> None:
    """KL(p(θ) : p(θ + δ)) ~ ½ F δ² for a small step δ in one parameter: the paper's note on EWC."""
    model, (task, *_) = net(dtype=torch.float64), classes(1, dtype=torch.float64)
    F = expected_fisher(model, task.x)
    with torch.no_grad():
        log_p = model(task.x).log_softmax(-1)
        for p, own in zip(model.parameters(), F, strict=True):
            i = int(own.argmax())
            for step, tolerance in ((1e-3, 1e-2), (1e-4, 1e-3)):
                p.view(-1)[i] += step
                log_q = model(task.x).log_softmax(-1)
                p.view(-1)[i] -= step
                kl = float((log_p.exp() * (log_p - log_q)).sum(-1).mean())
                assert kl == pytest.approx(0.5 * float(own.view(-1)[i]) * step**2, rel=tolerance)


def test_whole_fisher_is_half_the_curvature_of_the_divergence_along_any_direction() -> None:
    """KL(p(θ) : p(θ + Δ)) ~ ½ Δ'FΔ with F = E[Σ_c p_c g_c g_c'], g_c the gradient of log p_c."""
    model, (task, *_) = net(dtype=torch.float64), classes(1, dtype=torch.float64)
    parameters, draw = list(model.parameters()), generator()
    log_p = model(task.x).log_softmax(-1)
    steps = [1e-4 * torch.randn(p.shape, generator=draw, dtype=p.dtype) for p in parameters]
    form = 0.0
    for row in log_p:
        for value in row:
            slopes = torch.autograd.grad(value, parameters, retain_graph=True)
            along = sum(float((g * d).sum()) for g, d in zip(slopes, steps, strict=True))
            form += float(value.detach().exp()) * along**2 / len(log_p)
    with torch.no_grad():
        for p, step in zip(parameters, steps, strict=True):
            p += step
        log_q = model(task.x).log_softmax(-1)
        kl = float((log_p.exp() * (log_p - log_q)).sum(-1).mean())
    assert kl == pytest.approx(form / 2, rel=1e-2)


@pytest.mark.parametrize("kind", ["observed", "sampled"])
def test_gaussian_responses(kind: str) -> None:
    model, (task, *_) = net(1), responses(1)
    found = diagonal_fisher(model, task.x, task.y, kind=kind, generator=generator())  # type: ignore[arg-type]
    assert all(F.isfinite().all() for F in found)


@pytest.mark.parametrize("kind", ["observed", "sampled", "squared_mean"])
def test_other_heads_carry_no_information(kind: str) -> None:
    model, heads = net(5), Heads([2, 3])
    x, y = torch.randn(9, 6, generator=generator()), torch.arange(9) % 3 + 2
    weight, bias = diagonal_fisher(
        model,
        x,
        y,
        kind=kind,  # type: ignore[arg-type]
        criterion=heads,
        generator=generator(),
    )[-2:]
    assert float(weight[:2].abs().max()) == float(bias[:2].abs().max()) == 0
    assert float(bias[2:].min()) > 0


def test_dropout_is_off_and_modes_come_back() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    model[1].eval()
    model[1].training = True
    task = classes(1)[0]
    one, two = (diagonal_fisher(model, task.x, task.y)[0] for _ in range(2))
    assert torch.equal(one, two)
    assert model.training
    assert model[1].training


def test_frozen_parameters_are_left_out() -> None:
    model = net()
    model[0].weight.requires_grad_(False)
    task = classes(1)[0]
    assert len(diagonal_fisher(model, task.x, task.y)) == 5


def test_no_samples_no_fisher() -> None:
    with pytest.raises(ArgumentError, match="no sample was observed"):
        Pending(None).take()
    for kind in get_args(Fisher):
        with pytest.raises(ArgumentError, match="x: no samples"):
            diagonal_fisher(net(), torch.zeros(0, 6), torch.zeros(0).long(), kind=kind)


def test_wrong_names_are_named() -> None:
    task = classes(1)[0]
    with pytest.raises(ArgumentError, match=r"names: no parameter 'x'; expected some of \['0.w"):
        diagonal_fisher(net(), task.x, task.y, names=["0.weight", "x"])
    assert diagonal_fisher(net(), task.x, task.y, names=[]) == []
