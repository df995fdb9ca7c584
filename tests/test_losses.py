"""The losses train what they promise, and no more."""

import pytest
import torch
from torch import Tensor, nn

from helpers.samples import normal
from vntransfer import (
    ArgumentError,
    JeffreysLoss,
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
    for ridge in (-1.0, "x"):
        with pytest.raises(ArgumentError, match=r"^ridge: expected"):
            JeffreysLoss(ridge=ridge)(x, y, -y)  # type: ignore[arg-type]


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
        assert value.dtype == dtype
