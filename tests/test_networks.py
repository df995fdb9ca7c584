"""Networks: shapes, own random state, dropout that is alike in all domains."""

import pickle

import pytest
import torch
from torch import nn

from vntransfer.errors import ArgumentError
from vntransfer.networks import ACTIVATIONS, Dropout, Net, linear, mlp


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_same_seed_same_network_and_global_state_untouched(activation: str) -> None:
    before = torch.get_rng_state()
    x = torch.ones(2, 6, 3)
    one, two = (mlp(3, (5,), 4, activation=activation, generator=seeded())(x) for _ in range(2))
    assert torch.equal(one, two)
    assert torch.equal(torch.get_rng_state(), before)


def test_initial_parameters_are_those_of_torch_in_law() -> None:
    ours, theirs = (m.weight.detach() for m in (linear(400, 300, seeded()), nn.Linear(400, 300)))
    assert abs(float(ours.std() / theirs.std()) - 1) < 0.02
    assert float(ours.abs().max()) <= 400**-0.5


def test_dropout_keeps_the_mean_and_is_off_in_evaluation() -> None:
    drop = Dropout(0.3, seeded())
    x = torch.ones(1, 500, 400)
    assert abs(float(drop(x).mean()) - 1) < 0.01
    assert torch.equal(drop.eval()(x), x)


def test_network_without_hidden_layer_is_one_layer() -> None:
    assert [type(m).__name__ for m in mlp(3, (), 4, generator=seeded())] == ["Linear", "LeakyReLU"]


def test_pickles() -> None:
    net = Net(mlp(3, generator=seeded()), linear(24, 1, seeded())).eval()
    x = torch.ones(2, 3)
    assert torch.equal(pickle.loads(pickle.dumps(net))(x), net(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation": "sine"}, "activation: expected one of leaky_relu"),
        ({"hidden": (0,)}, "hidden, width"),
        ({"width": 2.5}, "hidden, width"),
        ({"dropout": 1.0}, "rate: expected a share below 1"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        mlp(3, generator=seeded(), **options)
