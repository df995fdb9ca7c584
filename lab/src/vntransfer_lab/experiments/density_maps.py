"""Counting by density maps: the hourglass trained by any method that trains networks.

A method works on features of rows and their responses. Here the rows are the cells of the encoder's
grid, of all pictures of a domain in the batch: a batch of 2 pictures of 512 x 640 pixels has 160 of
them, where pictures as samples would leave a covariance of rank 1. The response of a cell is the
number of vehicles under it, the sum of its patch of the density inside the mask; the errors of the
sources are those of the density's pixels. An adversary is a second decoder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vntransfer.adaptation import Batch, DomainRegressor, OwnNetwork, TrainedNetwork, train_network
from vntransfer.domains import Rows
from vntransfer.networks import Net
from vntransfer_lab.experiments.hourglass import decoder, grid_of, hourglass, to_maps, to_patches

CHUNK = 8
"""Pictures that are predicted at once."""


@dataclass(frozen=True)
class Pictures:
    """Photographs (n, H, W, 3) of one domain from 0 to 255, and maps (n, H, W)."""

    photographs: Any
    mask: Any  # pixels that count, such as those of the road
    density: Any = None  # vehicles per pixel; None for a target

    def __len__(self) -> int:
        return len(self.photographs)

    def take(self, rows: Rows) -> "Pictures":
        """Give some of the pictures, as arrays."""
        density = None if self.density is None else self.density[rows]
        return Pictures(self.photographs[rows], self.mask[rows], density)

    def masked_density(self) -> NDArray[np.float32]:
        """Density inside the mask, (n, H, W)."""
        inside = np.asarray(self.density) * np.asarray(self.mask)
        return np.asarray(inside, dtype=np.float32)


def inputs(photographs: Any, device: str = "cpu") -> Tensor:
    """Scale pixels from 0..255 to -2..2: (n, H, W, 3) -> (n, 3, H, W)."""
    pixels = torch.from_numpy(np.asarray(photographs, dtype=np.float32)).to(device)
    return (pixels / 63.75 - 2).movedim(-1, -3).contiguous()


@dataclass(frozen=True)
class Album:
    """Pictures of several domains in a row, from which batches are read."""

    parts: Sequence[Pictures]
    blocks: int
    scale: float
    device: str = "cpu"

    def rows(self) -> list[Rows]:
        """Places of each domain's pictures in the row."""
        ends = np.cumsum([len(part) for part in self.parts])
        return [np.arange(end - len(part), end) for end, part in zip(ends, self.parts, strict=True)]

    def read(self, chosen: Sequence[Rows], n_sources: int) -> Batch:
        """Read the pictures at some places of each domain; densities of sources alone."""
        x = inputs(self._take("photographs", chosen), self.device)
        mask = self._patches("mask", chosen)
        y = self.scale * self._patches("density", chosen[:n_sources]) * mask[:n_sources]
        return Batch(x, y, mask=mask, scale=self.scale)

    def _take(self, what: str, chosen: Sequence[Rows]) -> NDArray[Any]:
        """Arrays (D, B, ...) of the pictures at some places."""
        starts = np.array([own[0] for own in self.rows()])
        places = np.stack(chosen)
        part = np.searchsorted(starts, places.ravel(), side="right") - 1
        pairs = zip(part.tolist(), (places.ravel() - starts[part]).tolist(), strict=True)
        found = np.stack([getattr(self.parts[i], what)[j] for i, j in pairs])
        return found.reshape(*places.shape, *found.shape[1:])

    def _patches(self, what: str, chosen: Sequence[Rows]) -> Tensor:
        maps = torch.from_numpy(self._take(what, chosen).astype(np.float32)).to(self.device)
        return to_patches(maps, 2**self.blocks).flatten(1, 2)


@dataclass(frozen=True)
class DensityCounter:
    """A trained hourglass."""

    net: Net
    scale: float  # what its densities are multiplied by
    trained: TrainedNetwork
    device: str = "cpu"

    @torch.no_grad()
    def density(self, pictures: Pictures) -> NDArray[np.float32]:
        """Predict densities inside the mask, (n, H, W)."""
        self.net.eval()
        pieces = []
        for start in range(0, len(pictures), CHUNK):
            few = slice(start, start + CHUNK)
            x, mask = inputs(pictures.photographs[few], self.device), np.asarray(pictures.mask[few])
            patches = self.net(x[None])[0, 0].unflatten(0, (len(x), -1))
            side = round(patches.shape[-1] ** 0.5)
            grid = mask.shape[1] // side, mask.shape[2] // side
            pieces.append(to_maps(patches, grid).cpu().numpy() * mask / self.scale)
        return np.concatenate(pieces).astype(np.float32)


def train_counter(
    method: DomainRegressor,
    sources: Mapping[str, Pictures],
    target: Pictures | None = None,
    *,
    blocks: int = 6,
    channels: int = 32,
    scale: float = 100.0,
    random_state: int = 0,
) -> DensityCounter:
    """Train an hourglass on labeled sources and an unlabeled target by a method's objective.

    The target's density is never read; without a target only the sources are used. The sides of
    the pictures must be multiples of 2^blocks; the network predicts densities times ``scale``.
    """
    parts = [*sources.values()]
    if target is not None:
        parts.append(Pictures(target.photographs, target.mask))
    album = Album(parts, blocks, scale, method.device)
    generator = torch.Generator().manual_seed(random_state)
    _, height, width = parts[0].mask.shape
    shape = grid_of(height, width, blocks), blocks, channels, generator
    net = hourglass(*shape).to(method.device)
    own = OwnNetwork(net, channels, 4**blocks, lambda: decoder(*shape), generator)
    rows = album.rows()
    arrays = [a for p in parts for a in (p.photographs, p.mask, p.density) if a is not None]
    trained = train_network(
        method,
        own,
        album.read,
        dict(zip(sources, rows, strict=False)),
        None if target is None else rows[-1],
        random_state=random_state,
        key=(blocks, channels, scale, *arrays),
    )
    return DensityCounter(net, scale, trained, method.device)
