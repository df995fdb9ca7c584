"""The counting hourglass: shapes, initial parameters, cells and patches in their places."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from vntransfer_lab.errors import PresetError
from vntransfer_lab.experiments.hourglass import (
    Decoder,
    Encoder,
    decoder,
    grid_of,
    hourglass,
    to_maps,
    to_patches,
)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from([1, 2, 4]))
def test_patches_are_the_pixels_under_a_cell(height: int, width: int, side: int) -> None:
    maps = torch.randn(3, 2, height * side, width * side, generator=seeded())
    rows = to_patches(maps, side)
    assert rows.shape == (3, 2, height * width, side * side)
    for i in range(height):
        for j in range(width):
            block = maps[..., i * side : (i + 1) * side, j * side : (j + 1) * side]
            assert torch.equal(rows[..., i * width + j, :], block.flatten(-2))
    assert torch.equal(to_maps(rows, (height, width)), maps)


def test_the_paper_s_network_has_six_blocks_of_32_channels_on_both_sides() -> None:
    net = hourglass(grid_of(64, 128, 6), 6, 32, seeded())
    net.train()
    assert net(torch.zeros(1, 2, 3, 64, 128)).shape == (1, 1, 4, 64 * 64)
    assert net.extractor(torch.zeros(1, 2, 3, 64, 128)).shape == (1, 1, 4, 32)
    encoder, head = Encoder(6, 32, seeded()), Decoder((1, 2), 6, 32, seeded())
    kinds = [type(layer).__name__ for layer in (*encoder.layers, *head.layers)]
    assert kinds == [
        *["Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d"] * 6,
        *["ConvTranspose2d", "BatchNorm2d", "ReLU"] * 6,
        "Conv2d",
    ]
    convolutions = [own for own in encoder.layers if isinstance(own, nn.Conv2d)]
    assert [own.weight.shape for own in convolutions] == [(32, 3, 3, 3)] + [(32, 32, 3, 3)] * 5
    ups = [own for own in head.layers if isinstance(own, nn.ConvTranspose2d)]
    assert [own.weight.shape for own in ups] == [(32, 32, 4, 4)] * 6
    # members lead every parameter: the loop clips and keeps them one by one
    assert {len(p) for p in net.parameters()} == {1}


def test_features_and_patches_stay_with_their_picture_and_cell() -> None:
    net = hourglass((2, 3), 2, 4, seeded())
    net.eval()
    x = torch.randn(2, 3, 3, 8, 12, generator=seeded(1))
    with torch.no_grad():
        z, out = net.extractor(x), net(x)
        one = net(x[1:, 2:])
        changed = x.clone()
        changed[1, 2] += 1
        moved = net.extractor(changed) != z
    torch.testing.assert_close(out[:, 1:, 12:], one)
    rows = moved.any(-1)[0]
    assert not rows[0].any()
    assert not rows[1, :12].any()
    assert rows[1, 12:].any()


def test_initial_parameters_are_torch_s_and_come_from_the_generator_alone() -> None:
    before = torch.get_rng_state()
    one, same, other = (hourglass((1, 1), 3, 32, seeded(seed)).state_dict() for seed in (0, 0, 1))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["head.layers/0/weight"], other["head.layers/0/weight"])
    for name, layer in (
        ("extractor.encoder.layers/4/weight", nn.Conv2d(32, 32, 3)),
        ("head.layers/0/weight", nn.ConvTranspose2d(32, 32, 4)),
    ):
        ours, theirs = one[name], layer.weight.detach()
        assert ours.shape[1:] == theirs.shape
        assert float(ours.abs().max()) == pytest.approx(float(theirs.abs().max()), rel=0.01)
        assert float(ours.std()) == pytest.approx(float(theirs.std()), rel=0.05)


def test_two_decoders_of_one_generator_differ() -> None:
    generator = seeded()
    first, second = (decoder((1, 1), 2, 32, generator) for _ in range(2))
    z = torch.randn(1, 1, 3, 32, generator=seeded(1))
    assert not torch.allclose(first(z), second(z))


@pytest.mark.parametrize("size", [(480, 640), (64, 100), (0, 64)])
def test_sizes_that_do_not_fit_are_named(size: tuple[int, int]) -> None:
    with pytest.raises(PresetError, match=f"multiples of 64, got {size[0]} x {size[1]}"):
        grid_of(*size, 6)
