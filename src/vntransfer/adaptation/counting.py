"""Counting by density maps: the hourglass trained by any method of the registry.

A method works on features of rows and their responses. Here the rows are the cells of the
encoder's grid, of all pictures of a domain in the batch: a batch of 2 pictures of 512 x 640 pixels
has 160 of them, where the pictures as samples would leave a covariance of rank 1. The response of
a cell is the number of vehicles under it, the sum of its patch of the density inside the mask; the
errors of the sources are those of the density's pixels. An adversary is a second decoder.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vntransfer.adaptation._base import DomainRegressor, checkpoint_files
from vntransfer.adaptation._objective import Batch, Objective, Setup, SourceLoss
from vntransfer.adaptation._training_loop import EpochCounter, Record, train
from vntransfer.adaptation.hourglass import decoder, grid_of, hourglass, to_maps, to_patches
from vntransfer.checks import number, whole
from vntransfer.domains import TARGET, Rows, balanced
from vntransfer.errors import ArgumentError, DomainError
from vntransfer.networks import Net
from vntransfer.progress import Progress
from vntransfer.step_times import StepTimes

CHUNK = 8
"""Pictures that are predicted at once."""


@dataclass(frozen=True)
class Pictures:
    """Pictures of one domain: arrays, or anything that gives their rows on access.

    Parameters
    ----------
    photographs
        (n, H, W, 3), from 0 to 255.
    mask
        Pixels (n, H, W) that count, such as those of the road.
    density
        Vehicles per pixel (n, H, W); None for a target.
    """

    photographs: Any
    mask: Any
    density: Any = None

    def __len__(self) -> int:
        return len(self.photographs)

    def take(self, rows: Rows) -> "Pictures":
        """Give some of the pictures, as arrays.

        Examples
        --------
        >>> zeros = np.zeros((3, 8, 8), dtype=bool)
        >>> len(Pictures(np.zeros((3, 8, 8, 3)), zeros).take(np.array([0, 2])))
        2
        """
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
    """Pictures of several domains in a row, from which batches are drawn."""

    parts: Sequence[Pictures]
    blocks: int
    scale: float
    device: str = "cpu"

    def rows(self) -> list[Rows]:
        """Places of each domain's pictures in the row."""
        ends = np.cumsum([len(part) for part in self.parts])
        return [np.arange(end - len(part), end) for end, part in zip(ends, self.parts, strict=True)]

    def batches(
        self,
        domains: Sequence[Rows],
        n_sources: int,
        *,
        size: int,
        random_state: int,
        skip: int = 0,
    ) -> Iterator[Batch]:
        """Endless batches of pictures, see `Data.batches`; densities are read of sources alone."""
        for chosen in islice(balanced(domains, size, random_state=random_state), skip, None):
            x = inputs(self._take("photographs", chosen), self.device)
            mask = self._patches("mask", chosen)
            y = self.scale * self._patches("density", chosen[:n_sources]) * mask[:n_sources]
            yield Batch(x, y, mask=mask, scale=self.scale)

    def _take(self, what: str, chosen: Rows) -> NDArray[Any]:
        """Arrays (D, B, ...) of the pictures at some places (D, B)."""
        starts = np.array([own[0] for own in self.rows()])
        part = np.searchsorted(starts, chosen.ravel(), side="right") - 1
        places = zip(part.tolist(), (chosen.ravel() - starts[part]).tolist(), strict=True)
        found = np.stack([getattr(self.parts[i], what)[j] for i, j in places])
        return found.reshape(*chosen.shape, *found.shape[1:])

    def _patches(self, what: str, chosen: Rows) -> Tensor:
        maps = torch.from_numpy(self._take(what, chosen).astype(np.float32)).to(self.device)
        return to_patches(maps, 2**self.blocks).flatten(1, 2)


@dataclass(frozen=True)
class DensityCounter:
    """A trained hourglass.

    Parameters
    ----------
    net
        The network.
    scale
        What its densities are multiplied by.
    source_weights
        Weights of the sources by name.
    history
        Per epoch.
    size
        Height and width of the pictures that it was trained on, and of all that it counts.
    device
        Where the network lives.
    step_times
        Number and processor time of the training steps.
    """

    net: Net
    scale: float
    source_weights: dict[str, float]
    history: list[Record]
    size: tuple[int, int]
    device: str = "cpu"
    step_times: StepTimes = field(default_factory=StepTimes)

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.size))
        return f"<DensityCounter for pictures of {size}, {len(self.source_weights)} sources>"

    @torch.no_grad()
    def density(self, pictures: Pictures) -> NDArray[np.float32]:
        """Predict densities inside the mask, (n, H, W)."""
        for what, own in (("photographs", pictures.photographs), ("mask", pictures.mask)):
            if tuple(own.shape[1:3]) != self.size:
                raise ArgumentError(
                    f"{what}: expected the height and width of the training, {self.size}, got "
                    f"shape {tuple(own.shape)}; resize or cut the pictures"
                )
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

    def count(self, pictures: Pictures) -> NDArray[np.float64]:
        """Predict numbers of vehicles (n,): what the density inside the mask adds up to."""
        return self.density(pictures).sum((1, 2), dtype=np.float64)


def train_counter(
    method: DomainRegressor,
    sources: Mapping[str, Pictures],
    target: Pictures | None = None,
    *,
    blocks: int = 6,
    channels: int = 32,
    scale: float = 100.0,
    random_state: int = 0,
    progress: Progress | None = None,
) -> DensityCounter:
    """Train an hourglass on labeled sources and an unlabeled target by a method's objective.

    Parameters
    ----------
    method
        A method of `vntransfer.adaptation.METHODS` that trains networks: its objective, error,
        ``epochs``, ``steps``, ``batch_size`` (pictures per domain), ``lr``, ``weight_decay``,
        ``clip``, ``device`` and ``checkpoint`` are used. Parameters are not averaged: the
        statistics of batch normalization would not fit their mean.
    sources
        Name -> pictures with their densities.
    target
        Pictures of the target, whose density is never read; None: train on the sources alone.
    blocks, channels
        Of the hourglass; 2^blocks must divide the sides of the pictures.
    scale
        What densities are multiplied by for the network.
    random_state
        Of initial parameters and batches.
    progress
        Called with a description, the number of epochs done and the total.

    Examples
    --------
    >>> from vntransfer import DARNRegressor
    >>> rng = np.random.default_rng(0)
    >>> def draw(n):
    ...     photographs = rng.integers(0, 256, (n, 16, 24, 3))
    ...     return Pictures(photographs, np.ones((n, 16, 24)), photographs[..., 0] / 1e5)
    >>> method = DARNRegressor(epochs=1, steps=3, batch_size=2, lr=1e-3)
    >>> counter = train_counter(method, {"a": draw(4), "b": draw(5)}, draw(6), blocks=3)
    >>> counter.count(draw(3)).shape, sorted(counter.source_weights)
    ((3,), ['a', 'b'])
    """
    height, width = _check(method, sources, target)
    blocks = whole("blocks", blocks, minimum=1)
    channels = whole("channels", channels, minimum=1)
    grid = grid_of(height, width, blocks)
    if target is not None:
        target = Pictures(target.photographs, target.mask)
    adapts = target is not None and method._needs_target
    scale = number("scale", scale, exclusive=True)
    device = method.device
    parts = [*sources.values(), *([target] if target is not None and adapts else [])]
    album = Album(parts, blocks, scale, device)
    domains, size = album.rows(), method.batch_size
    if method._merges():
        # as many pictures as the other methods see of all sources
        domains = [np.concatenate(domains[: len(sources)]), *domains[len(sources) :]]
        size *= len(sources)
    k = len(domains) - adapts
    lengths = torch.tensor([[float(len(rows)) for rows in domains[:k]]], device=device)
    generator = torch.Generator().manual_seed(random_state)
    net = hourglass(grid, blocks, channels, generator).to(device)
    setup = Setup(
        k,
        channels,
        4**blocks,
        generator,
        prior=lengths / lengths.sum(),
        device=device,
        make_head=lambda: decoder(grid, blocks, channels, generator),
    )
    objective: Objective
    objective = method._objective(setup) if adapts else SourceLoss(setup, method)
    objective.to(device)
    make = None
    if method.checkpoint is not None:
        given = (list(sources), blocks, channels, scale, random_state)
        make = checkpoint_files(method, *given, *_arrays(parts))
    history, times = train(
        net,
        objective,
        lambda skip: album.batches(domains, k, size=size, random_state=random_state, skip=skip),
        method._training(max(map(len, domains[:k])), size, 1.0)._replace(average=0.0),
        shares=torch.ones(1),
        after_epoch=EpochCounter(progress, method.epochs),
        checkpoint=None if make is None else make("counting", net, {"own": generator}),
    )
    w = objective.weights[0].tolist()
    if method._merges():
        total = sum(map(len, sources.values()))
        w = [len(own) / total for own in sources.values()]
    weights = dict(zip(sources, w, strict=True))
    return DensityCounter(net, scale, weights, history, (height, width), device, times)


def _check(
    method: DomainRegressor,
    sources: Mapping[str, Pictures],
    target: Pictures | None,
) -> tuple[int, int]:
    """Check what is given and return height and width of the pictures."""
    if not isinstance(method, DomainRegressor):
        raise ArgumentError(
            f"method: expected one of vntransfer.adaptation.METHODS that trains networks, got "
            f"{type(method).__name__}"
        )
    method._check_options(rows=1)  # of one picture there are many cells
    if not sources:
        raise DomainError("sources: empty; give at least one source {name: Pictures(...)}")
    if TARGET in sources:
        raise DomainError(f"sources: the name {TARGET!r} is the target's; rename this source")
    if method._error() == "jeffreys":
        raise ArgumentError(
            "loss, first_term: 'jeffreys' compares a response with input columns, and pictures "
            "have none; use 'mse', 'rmse', 'huber' or 'mixed'"
        )
    if method.patience is not None:
        raise ArgumentError("patience: no pictures are held out here; set patience=None")
    every = {**sources, **({TARGET: target} if target is not None else {})}
    if empty := [name for name, own in every.items() if not len(own)]:
        raise DomainError(f"pictures: there are none of {empty}; give some or leave them out")
    sizes = {name: tuple(own.photographs.shape[1:]) for name, own in every.items()}
    first = next(iter(sizes.values()))
    if set(sizes.values()) != {first} or len(first) != 3 or first[-1] != 3:
        raise DomainError(f"pictures: expected one size (height, width, 3), got {sizes}")
    for name, own in every.items():
        parts = {"mask": own.mask} | ({"density": own.density} if name in sources else {})
        for what, values in parts.items():
            if values is None or tuple(values.shape) != (len(own), *first[:2]):
                seen = None if values is None else tuple(values.shape)
                raise DomainError(
                    f"{what} of {name!r}: expected shape {(len(own), *first[:2])}, got {seen}"
                )
    return first[0], first[1]


def _arrays(parts: Sequence[Pictures]) -> list[NDArray[Any]]:
    """Give all arrays of pictures."""
    every = [a for own in parts for a in (own.photographs, own.mask, own.density) if a is not None]
    return [np.asarray(values[:]) for values in every]
