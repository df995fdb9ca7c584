"""Networks: shapes, own random state, dropout that is alike in all domains."""

import copy

import pytest
import torch
from torch import nn

from vntransfer.errors import ArgumentError
from vntransfer.networks import (
    ACTIVATIONS,
    SCALE_RATE,
    Dropout,
    Linear,
    Net,
    Stacked,
    join_members,
    mlp,
)


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
    ours, theirs = (m.weight.detach() for m in (Linear(400, 300, seeded()), nn.Linear(400, 300)))
    assert abs(float(ours.std() / theirs.std()) - 1) < 0.02
    assert float(ours.abs().max()) <= 400**-0.5


def test_dropout_keeps_the_mean_and_is_off_in_evaluation() -> None:
    drop = Dropout(0.3, seeded())
    x = torch.ones(1, 500, 400)
    assert abs(float(drop(x).mean()) - 1) < 0.01
    assert torch.equal(drop.eval()(x), x)


def test_network_without_hidden_layer_is_one_layer() -> None:
    assert [type(m).__name__ for m in mlp(3, (), 4, generator=seeded())] == ["Linear", "LeakyReLU"]


def test_members_are_as_if_alone() -> None:
    net = mlp(3, (5,), 4, members=3, generator=seeded()).eval()
    x = torch.randn(2, 6, 3, generator=seeded())
    for m in range(3):
        first, second = net[0], net[3]
        hidden = nn.functional.leaky_relu(x @ first.weight[m] + first.bias[m], 0.1)
        alone = nn.functional.leaky_relu(hidden @ second.weight[m] + second.bias[m], 0.1)
        torch.testing.assert_close(net(x)[m], alone)


def test_scales_of_inputs_start_at_one_and_multiply_the_inputs() -> None:
    plain, scaled = (
        mlp(3, (5,), 4, members=2, input_scales=own, generator=seeded()).eval()
        for own in (False, True)
    )
    x = torch.randn(2, 6, 3, generator=seeded())
    torch.testing.assert_close(scaled(x), plain(x))
    scales = torch.tensor([0.5, 2.0, 0.0])
    with torch.no_grad():
        scaled[0].theta.copy_(((scales - 1) / SCALE_RATE)[None, :, None].expand(2, 3, 1))
    torch.testing.assert_close(scaled(x), plain(x * scales))
    torch.testing.assert_close(scaled(x.expand(2, 2, 6, 3), own=True), scaled(x))


def test_useless_inputs_are_turned_down() -> None:
    generator = seeded()
    x = torch.randn(1, 400, 6, generator=generator)
    net = mlp(6, (16,), 1, input_scales=True, dropout=0.0, generator=generator)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2, weight_decay=0.3)
    for _ in range(300):
        optimizer.zero_grad()
        (net(x)[0] - x[..., :1].sin()).square().mean().backward()
        optimizer.step()
    scales = 1 + SCALE_RATE * net[0].theta.detach()[0, :, 0]
    assert float(scales[0].abs()) > 2 * float(scales[1:].abs().max())


def test_members_lose_different_units() -> None:
    one, two = Dropout(0.5, seeded())(torch.ones(2, 1, 20, 30))
    assert not torch.equal(one, two)


@pytest.mark.parametrize("members", [1, 3])
def test_stacked_modules_are_as_if_alone(members: int) -> None:
    modules = [nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh()) for _ in range(members)]
    x = torch.randn(2, 6, 3, generator=seeded())
    stacked = Stacked(modules, shared=True)
    for mode in (True, False):
        stacked.train(mode)
        out = stacked(x)
        for m, module in enumerate(modules):
            alone = module.train(mode)(x.reshape(12, 3)).reshape(2, 6, 4)
            torch.testing.assert_close(out[m], alone)


def test_stacked_modules_without_parameters() -> None:
    stacked = Stacked([nn.Identity(), nn.Identity()], shared=True)
    assert stacked(torch.ones(2, 6, 3)).shape == (2, 2, 6, 3)


@pytest.mark.parametrize("own", [False, True])
def test_joined_members_stay_themselves(own: bool) -> None:
    def net(members: int) -> Net:
        if own:
            pairs = [(nn.Linear(3, 4), nn.Linear(4, 1)) for _ in range(members)]
            extractors, heads = zip(*pairs, strict=True)
            return Net(Stacked(extractors, shared=True), Stacked(heads)).eval()
        g = seeded(members)
        return Net(mlp(3, members=members, generator=g), Linear(24, 1, g, members=members)).eval()

    x = torch.ones(1, 2, 3)
    one, two = net(1), net(2)
    joined = join_members([one, two])
    torch.testing.assert_close(joined(x), torch.cat((one(x), two(x))))
    torch.testing.assert_close(copy.deepcopy(joined)(x), joined(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation": "sine"}, "^activation: .*leaky_relu"),
        ({"hidden": (0,)}, "hidden, width"),
        ({"width": 2.5}, "hidden, width"),
        ({"dropout": 1.0}, "rate: expected a share below 1"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        mlp(3, generator=seeded(), **options)
