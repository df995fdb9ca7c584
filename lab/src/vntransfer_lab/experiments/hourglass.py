"""The counting hourglass: photographs to a coarse grid of features, and back to a density map.

The cells of the grid are the rows that methods of adaptation work on. The encoder turns a picture
of H x W pixels into H/s x W/s cells of d features, s = 2^blocks; a decoder turns a cell into the s²
pixels under it, so a density map is a table too: one row per cell.
"""

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from vntransfer.networks import Net, Stacked
from vntransfer_lab.errors import PresetError

Grid = tuple[int, int]


def to_patches(maps: Tensor, side: int) -> Tensor:
    """Cut maps (..., H, W) into rows (..., cells, side²): the pixels under each cell."""
    *between, height, width = maps.shape
    tiles = maps.reshape(*between, height // side, side, width // side, side)
    return tiles.transpose(-3, -2).reshape(*between, -1, side * side)


def to_maps(rows: Tensor, grid: Grid) -> Tensor:
    """Join rows (..., cells, side²) to maps (..., H, W), the inverse of `to_patches`."""
    *between, _, pixels = rows.shape
    side = round(pixels**0.5)
    tiles = rows.reshape(*between, *grid, side, side).transpose(-3, -2)
    return tiles.reshape(*between, grid[0] * side, grid[1] * side)


def grid_of(height: int, width: int, blocks: int) -> Grid:
    """Cells of a picture after halving its sides ``blocks`` times."""
    side = 2**blocks
    if height % side or width % side or min(height, width) < side:
        raise PresetError(
            f"size: {blocks} blocks need multiples of {side}, got {height} x {width}; choose a "
            f"size that fits"
        )
    return height // side, width // side


def _conv(
    layer: type[nn.Module], *sizes: int, generator: torch.Generator, **options: int
) -> nn.Module:
    """Give a convolution with torch's default initialization, drawn from a generator."""
    made = skip_init(layer, *sizes, **options)
    weight, bias = made.weight, made.bias
    bound = weight[0].numel() ** -0.5
    for values in (weight, bias):
        nn.init.uniform_(values, -bound, bound, generator=generator)
    return made


class Encoder(nn.Module):
    """Blocks of convolution (3 x 3), batch normalization, ReLU and max-pooling."""

    def __init__(self, blocks: int, channels: int, generator: torch.Generator) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for n_in in (3, *[channels] * (blocks - 1)):
            conv = _conv(nn.Conv2d, n_in, channels, 3, padding=1, generator=generator)
            layers += [conv, nn.BatchNorm2d(channels), nn.ReLU(), nn.MaxPool2d(2)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """Give features (N, cells, channels) of pictures (N, 3, H, W)."""
        z: Tensor = self.layers(x)
        return z.flatten(2).mT


class Decoder(nn.Module):
    """Blocks of transposed convolution (4 x 4), batch normalization, ReLU; then 1 x 1 to a map.

    The output is linear: a rectified one can die, and then has no gradient.
    """

    def __init__(self, grid: Grid, blocks: int, channels: int, generator: torch.Generator) -> None:
        super().__init__()
        self.grid, self.side = grid, 2**blocks
        layers: list[nn.Module] = []
        for _ in range(blocks):
            up = {"stride": 2, "padding": 1}
            conv = _conv(nn.ConvTranspose2d, channels, channels, 4, generator=generator, **up)
            layers += [conv, nn.BatchNorm2d(channels), nn.ReLU()]
        self.layers = nn.Sequential(*layers, _conv(nn.Conv2d, channels, 1, 1, generator=generator))

    def forward(self, z: Tensor) -> Tensor:
        """Give patches (N cells, side²) from features (N cells, channels) of N pictures."""
        h, w = self.grid
        maps: Tensor = self.layers(z.reshape(-1, h * w, z.shape[-1]).mT.unflatten(2, (h, w)))
        return to_patches(maps[:, 0], self.side).flatten(0, 1)


class Cells(nn.Module):
    """Features of pictures (D, B, 3, H, W) as rows of their domains, (1, D, B cells, d)."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = Stacked([encoder], shared=True)

    def forward(self, x: Tensor) -> Tensor:
        """Encode."""
        z: Tensor = self.encoder(x)
        return z.flatten(2, 3)


def decoder(grid: Grid, blocks: int, channels: int, generator: torch.Generator) -> Stacked:
    """Head of the hourglass: rows (1, D, B cells, d) -> patches (1, D, B cells, side²)."""
    return Stacked([Decoder(grid, blocks, channels, generator)])


def hourglass(grid: Grid, blocks: int, channels: int, generator: torch.Generator) -> Net:
    """Join encoder and decoder, one member, for `vntransfer.adaptation.train_network`.

    The paper has 6 blocks and 32 channels. No global random state is used.
    """
    extractor = Cells(Encoder(blocks, channels, generator))
    return Net(extractor, decoder(grid, blocks, channels, generator))
