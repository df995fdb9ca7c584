"""The losses train what they promise, and no more."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from helpers.samples import normal
from vntransfer import (
    ArgumentError,
    ConditionalDivergenceLoss,
    JeffreysLoss,
    NumericalWarning,
    conditional_von_neumann,
    covariance,
    response_divergence,
)


def fit(loss: nn.Module, x: Tensor, y: Tensor, model: nn.Module, steps: int = 200) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(x, model(x), y).backward()
        optimizer.step()


@pytest.mark.parametrize("sqrt", [True, False])
def test_descent_fits_a_linear_response_up_to_its_mean_which_fit_bias_repairs(sqrt: bool) -> None:
    x = normal(200, 3, seed=0)
    y = x @ torch.tensor([1.0, -2.0, 0.5]).double() + 7
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0)).double()
    loss = JeffreysLoss(sqrt=sqrt)
    fit(loss, x, y, model)
    guess = model(x).detach()
    assert float(((guess - guess.mean()) - (y - y.mean())).abs().mean()) < 0.05
    assert float((guess - y).abs().mean()) > 3  # the mean is not seen
    bias = loss.fit_bias(guess, y)
    assert bias.shape == (1,)
    assert float(loss.bias) == pytest.approx(float((y - guess).mean()))
    assert float((loss.correct(guess) - y).abs().mean()) < 0.05


def test_several_responses_have_one_bias_each() -> None:
    x = normal(50, 3, seed=0)
    y = x @ normal(3, 2, seed=1)
    shift = torch.tensor([1.0, -2.0]).double()
    loss = JeffreysLoss()
    assert float(loss(x, y - shift, y)) < 1e-6
    assert torch.allclose(loss.fit_bias(y - shift, y), shift)
    assert torch.allclose(loss.correct(y - shift), y)


def test_several_biases_survive_a_state_dict() -> None:
    fitted, loaded = JeffreysLoss(), JeffreysLoss()
    fitted.fit_bias(torch.zeros(5, 3), torch.ones(5, 3))
    loaded.load_state_dict(fitted.state_dict())
    assert torch.equal(loaded.bias, fitted.bias)


def test_is_response_divergence() -> None:
    x, a, b = normal(2, 20, 3, seed=0), normal(2, 20, seed=1), normal(2, 20, seed=2)
    assert torch.allclose(JeffreysLoss()(x, a, b), response_divergence(x, a, b, sqrt=True).mean())
    loss = JeffreysLoss(sqrt=False, ridge=0.3)
    assert torch.allclose(loss(x, a, b), response_divergence(x, a, b, ridge=0.3).mean())
    assert JeffreysLoss()(x, a, b).shape == ()


def test_class_labels_become_one_hot_columns() -> None:
    x, labels = normal(60, 4, seed=0), torch.arange(60) % 3
    probabilities = torch.softmax(normal(60, 3, seed=1), -1).requires_grad_()
    one_hot = nn.functional.one_hot(labels, 3).double()
    loss = JeffreysLoss()
    value = loss(x, probabilities, labels)
    assert torch.allclose(value, loss(x, probabilities, one_hot))
    value.backward()
    assert probabilities.grad.isfinite().all()
    assert float(loss(x, one_hot, labels)) == 0
    assert loss.fit_bias(probabilities.detach(), labels).shape == (3,)


def test_class_labels_can_be_learned() -> None:
    torch.manual_seed(0)
    x = normal(150, 2, seed=0).float()
    labels = torch.arange(150) % 3
    x = x + 6 * torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[labels]
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 3), nn.Softmax(-1))
    loss = JeffreysLoss()
    fit(loss, x, labels, model, 200)
    loss.fit_bias(model(x), labels)
    right = (loss.correct(model(x)).argmax(-1) == labels).float().mean()
    assert float(right) > 0.9


@pytest.mark.parametrize(
    ("labels", "shape", "message"),
    [
        (torch.tensor([0, 1, 5]), (3, 3), "target: labels from 0 to 5"),
        (torch.tensor([0, -1, 1]), (3, 3), "target: labels from -1"),
        (torch.tensor([0, 1, 1]), (3,), "target: integer labels"),
    ],
)
def test_labels_that_do_not_fit_are_named(
    labels: Tensor, shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        JeffreysLoss()(normal(3, 2, seed=0), normal(*shape, seed=1), labels)


def test_bias_of_unlike_shapes_is_an_error() -> None:
    """(N,) less (N, 1) would broadcast to (N, N)."""
    with pytest.raises(ArgumentError, match="target: expected one shape"):
        JeffreysLoss().fit_bias(torch.zeros(4), torch.arange(4.0)[:, None])


def test_bad_arguments_are_named() -> None:
    x, y = normal(9, 2, seed=0), normal(9, seed=1)
    with pytest.raises(ArgumentError, match=r"^target: .*list"):
        JeffreysLoss()([1.0], [2.0], [3.0])
    cases: list[tuple[tuple[Any, ...], str]] = [
        (([1.0], [2.0], [3.0], [4.0]), "^x1: .*list"),
        ((x, y, x.float(), y.float()), "x2 is torch.float32"),
        ((x, y, normal(9, 3, seed=2), y), "^x2: expected 2 features"),
        ((x, y, x, normal(9, 2, seed=2)), "^y2: expected 1 response"),
    ]
    for arguments, message in cases:
        with pytest.raises(ArgumentError, match=message):
            ConditionalDivergenceLoss()(*arguments)
    for ridge in (-1.0, "x"):
        with pytest.raises(ArgumentError, match=r"^ridge: expected"):
            ConditionalDivergenceLoss(ridge=ridge)(x, y, x, -y)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sqrt", [True, False])
def test_gradients_are_finite_everywhere(sqrt: bool, dtype: torch.dtype) -> None:
    x, y = normal(30, 5, seed=0, dtype=dtype), normal(30, seed=1, dtype=dtype)
    x[:, 3] = 0  # a dead unit
    guesses = (y, y + 1, torch.zeros_like(y), -y, 1e-9 * y, 100 * y, x[:, 0])
    for guess in guesses:
        prediction, inputs = guess.clone().requires_grad_(), x.clone().requires_grad_()
        value = JeffreysLoss(sqrt=sqrt)(inputs, prediction, y)
        value.backward()
        assert value.isfinite()
        assert prediction.grad.isfinite().all()
        assert inputs.grad.isfinite().all()
        first, second = inputs.detach().requires_grad_(), x.flip(0).requires_grad_()
        value = ConditionalDivergenceLoss(sqrt=sqrt)(first, guess, second, y)
        value.backward()
        assert value.dtype == dtype
        assert value.isfinite()
        assert first.grad.isfinite().all()
        assert second.grad.isfinite().all()


@pytest.mark.parametrize("m", [None, 2])
def test_conditional_loss_is_the_conditional_divergence(m: int | None) -> None:
    shape = (40, m) if m else (40,)
    x1, x2 = normal(40, 3, seed=0), 2 * normal(40, 3, seed=1)
    y1, y2 = normal(*shape, seed=2), normal(*shape, seed=3)
    pair = covariance(x1, y1, ridge=0.1), covariance(x2, y2, ridge=0.1)
    want = conditional_von_neumann(*pair, n_response=m or 1)
    loss = ConditionalDivergenceLoss(ridge=0.1)
    assert torch.allclose(loss(x1, y1, x2, y2), want)
    root = ConditionalDivergenceLoss(ridge=0.1, sqrt=True)
    assert torch.allclose(root(x1, y1, x2, y2), want.sqrt())
    variances = torch.cat((covariance(x1).diagonal(), covariance(x2).diagonal()))
    auto = ConditionalDivergenceLoss(ridge=1e-3 * float(variances.mean()))
    assert torch.allclose(ConditionalDivergenceLoss()(x1, y1, x2, y2), auto(x1, y1, x2, y2))


def test_conditional_loss_is_symmetric_and_zero_at_equality() -> None:
    x1, x2, y1, y2 = (
        normal(30, 3, seed=0),
        normal(25, 3, seed=1),
        normal(30, seed=2),
        normal(25, seed=3),
    )
    loss = ConditionalDivergenceLoss()
    assert torch.allclose(loss(x1, y1, x2, y2), loss(x2, y2, x1, y1), rtol=1e-10)
    order = torch.arange(29, -1, -1)
    assert float(loss(x1, y1, x1[order], y1[order])) < 1e-12


def test_batched_conditional_loss_is_the_mean_of_looped() -> None:
    """Each pair of samples has its own automatic ridge, also beside one 100 times its size."""
    scale = torch.tensor([1.0, 100.0]).double()[:, None, None]
    x1, x2 = (scale * normal(2, 9, 2, seed=k) for k in (0, 1))
    y1, y2 = normal(2, 9, seed=2), normal(2, 9, seed=3)
    loss = ConditionalDivergenceLoss()
    each = torch.stack([loss(x1[k], y1[k], x2[k], y2[k]) for k in range(2)])
    assert torch.allclose(loss(x1, y1, x2, y2), each.mean())


def test_conditional_loss_of_dead_features_warns_and_stays_finite() -> None:
    x, y = torch.zeros(9, 2).double(), normal(9, seed=1)
    with pytest.warns(NumericalWarning, match="features"):
        assert ConditionalDivergenceLoss()(x, y, x, -y).isfinite()


def test_descent_on_the_conditional_loss_aligns_two_domains() -> None:
    x1, x2 = normal(100, 2, seed=0), normal(100, 2, seed=1)
    y1, y2 = x1[:, 0], -x2[:, 0]
    turn = torch.eye(2).double() + 0.1 * normal(2, 2, seed=2)
    turn.requires_grad_()
    loss = ConditionalDivergenceLoss()
    optimizer = torch.optim.Adam([turn], lr=0.05)
    before = float(loss(x1, y1, x2 @ turn.detach(), y2))
    for _ in range(150):
        optimizer.zero_grad()
        loss(x1, y1, x2 @ turn, y2).backward()
        optimizer.step()
    assert float(loss(x1, y1, x2 @ turn.detach(), y2)) < 0.1 * before
