"""TRANCOS: traffic pictures with dotted vehicles; domains of cameras; nothing is redistributed."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import ArgumentError, DataError
from vntransfer.progress import Progress
from vntransfer_lab.data.archives import read_members
from vntransfer_lab.data.base import Domains, Provenance
from vntransfer_lab.data.cameras import THRESHOLD, camera_domains, group_cameras
from vntransfer_lab.data.density import density_map, masked_count
from vntransfer_lab.data.derived import remembered
from vntransfer_lab.data.lazy_rows import LazyRows
from vntransfer_lab.data.pictures import area_resize, decode

FULL = (480, 640)
COARSE = (60, 80)  # masks are compared at this size
MEASURE_VERSION = 1  # of what is remembered: coarse masks and counts
SPLITS = ("training", "validation", "test")


@dataclass(frozen=True)
class Scenes:
    """All pictures of TRANCOS, still encoded.

    ``dots`` are x, y at full size counted from 0; ``mask(i)`` and ``jpeg(i)`` read on demand;
    ``camera`` is None where it is not known.
    """

    names: tuple[str, ...]
    split: tuple[str, ...]
    dots: tuple[NDArray[np.float64], ...]
    mask: Callable[[int], NDArray[np.bool_]]
    jpeg: Callable[[int], bytes]
    shape: tuple[int, int]
    camera: NDArray[np.intp] | None

    def coarse_masks(self, progress: Progress | None) -> NDArray[np.bool_]:
        """Masks of all pictures, small enough to compare them, (n, height, width)."""
        return self._for_all("masks", progress, lambda i: _resize_mask(self.mask(i), COARSE))

    def counts(
        self, shape: tuple[int, int], sigma: float, progress: Progress | None
    ) -> NDArray[np.float64]:
        """Add up the density of every picture inside its mask, at a size."""

        def vehicles(i: int) -> float:
            mask = _resize_mask(self.mask(i), shape)
            return masked_count(self.dots[i], mask, full=FULL, sigma=sigma)

        return self._for_all("counts", progress, vehicles)

    def _for_all(
        self, what: str, progress: Progress | None, make: Callable[[int], Any]
    ) -> NDArray[Any]:
        """Stack what is made of every picture; on one thread, more only hinder small products."""
        from threadpoolctl import threadpool_limits

        made = []
        with threadpool_limits(1, "blas"):
            for i in range(len(self.names)):
                made.append(make(i))
                if progress is not None:
                    progress(f"trancos {what}", i + 1, len(self.names))
        return np.array(made)


def _resize_mask(mask: NDArray[np.bool_], shape: tuple[int, int]) -> NDArray[np.bool_]:
    return mask if mask.shape == shape else area_resize(mask, *shape) >= 0.5


def read_compact(path: Path) -> Scenes:
    """Scenes of the compact npz at half size, which knows the cameras."""
    with np.load(path, allow_pickle=False) as box:
        shape = (240, 320)
        packed, jpeg, offset = box["mask_packed_240x320"], box["jpeg"], box["jpeg_offset"]
        dots = box["dots_xy_640x480"].astype(np.float64) - 1  # counted from 1 in the files
        names, split = map(str, box["names"]), map(str, box["split"])
        return Scenes(
            names=tuple(names),
            split=tuple(split),
            dots=tuple(np.split(dots, box["dots_offset"][1:-1])),
            mask=lambda i: np.unpackbits(packed[i]).reshape(shape).astype(bool),
            jpeg=lambda i: jpeg[offset[i] : offset[i + 1]].tobytes(),
            shape=shape,
            camera=box["camera"].astype(np.intp),
        )


def read_official(path: Path) -> Scenes:
    """Scenes of the official layout (``images`` and ``image_sets``), which knows no cameras.

    From a folder the pictures are read one by one, from an archive they are kept encoded.
    """
    from scipy.io import loadmat

    lazy = path.is_dir()
    endings = (".txt", "mask.mat") if lazy else (".txt", "mask.mat", ".jpg")
    split: dict[str, str] = {}
    content: dict[str, bytes] = {}
    for member, data in read_members(path, lambda name: name.endswith(endings)):
        *_, place, name = "", *member.split("/")
        part = name.removesuffix(".txt")
        if place == "image_sets" and part in SPLITS:
            rows = (row.strip() for row in data.decode("ascii", "replace").splitlines())
            split |= {row: part for row in rows if row}
        elif place == "images":
            content[name] = data
    if not split:
        raise DataError(
            f"{path}: has no image_sets/training.txt, validation.txt or test.txt; give "
            "TRANCOS_v3.tar.gz or the folder it unpacks to"
        )
    where = {file.name: file for file in path.rglob("*.jpg")} if lazy else {}
    names = sorted(split)
    dots = []
    for name in names:
        stem = name.removesuffix(".jpg")
        lacking = [f for f in (f"{stem}.txt", f"{stem}mask.mat") if f not in content]
        if name not in content and name not in where:
            lacking.append(name)
        if lacking:
            raise DataError(f"{path}: has no {lacking[0]} in images; unpack or fetch it again")
        dots.append(_parse_dots(content[f"{stem}.txt"], f"{path}: {stem}.txt"))

    def mask(i: int) -> NDArray[np.bool_]:
        name = f"{names[i].removesuffix('.jpg')}mask.mat"
        try:
            return np.asarray(loadmat(io.BytesIO(content[name]))["BW"]).astype(np.bool_)
        except (KeyError, ValueError) as error:
            raise DataError(f"{path}: {name} has no mask `BW` ({error!r})") from error

    return Scenes(
        names=tuple(names),
        split=tuple(split[name] for name in names),
        dots=tuple(dots),
        mask=mask,
        jpeg=lambda i: where[names[i]].read_bytes() if lazy else content[names[i]],
        shape=FULL,
        camera=None,
    )


def _parse_dots(content: bytes, where: str) -> NDArray[np.float64]:
    try:
        pairs = [[float(v) for v in row.split()] for row in content.decode("ascii").splitlines()]
        dots = np.array([pair for pair in pairs if pair], dtype=np.float64).reshape(-1, 2)
    except ValueError as error:
        raise DataError(f"{where}: expected lines `x y` ({error}); fetch it again") from error
    return dots - 1  # counted from 1 in the files


def load_trancos(
    files: Mapping[str, Path],
    *,
    size: tuple[int, int] | None = None,
    n_domains: int = 5,
    sigma: float = 10.0,
    cameras: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Domains:
    """Pictures as X (decoded on access), numbers of vehicles as y, groups of cameras as domains.

    Parameters
    ----------
    files
        Found files.
    size
        (height, width) of pictures, masks and densities; None: that of the file.
    n_domains
        Number of domains.
    sigma
        Standard deviation of a dot's Gaussian at 480 x 640, smaller in proportion at other sizes.
    cameras
        Mapping picture -> camera, where you have one; None: the file's cameras, else groups of
        pictures by the overlap of their masks.
    progress
        Called with "trancos masks" or "trancos counts", pictures so far and in all.

    Returns
    -------
    Domains
        X are `LazyRows` (n, height, width, 3) of uint8, y the sum of the density inside the mask.
        ``extras``: ``density`` and ``mask`` (lazy, domain -> rows), ``split`` (training,
        validation or test), ``image`` (names), ``cameras`` (a `CameraTree`).
    """
    (path,) = files.values()
    scenes = read_compact(path) if path.suffix == ".npz" else read_official(path)
    shape = scenes.shape if size is None else _shape(size)
    coarse = remembered(
        "masks", path, [MEASURE_VERSION, *COARSE], lambda: scenes.coarse_masks(progress)
    )
    camera, how = _cameras(scenes, coarse, cameras)
    tree = camera_domains(coarse, camera, n_domains)
    owner = tree.domain[np.searchsorted(np.unique(camera), camera)]

    def photograph(i: int) -> NDArray[np.uint8]:
        pixels = decode(scenes.jpeg(i), scenes.names[i], mode="RGB")
        if pixels.shape[:2] == shape:
            return pixels
        resized = area_resize(pixels.transpose(2, 0, 1), *shape)
        return resized.round().astype(np.uint8).transpose(1, 2, 0)

    def mask(i: int) -> NDArray[np.bool_]:
        return _resize_mask(scenes.mask(i), shape)

    def density(i: int) -> NDArray[np.float32]:
        return density_map(scenes.dots[i], shape, full=FULL, sigma=sigma)

    options = [MEASURE_VERSION, *shape, float(sigma)]
    counts = remembered("counts", path, options, lambda: scenes.counts(shape, sigma, progress))
    if not (counts <= np.array([len(dots) for dots in scenes.dots]) + 1e-6).all():
        raise DataError(f"{path}: densities add up to more than their dots; fetch it again")
    y = np.array(counts)
    rows = {f"dom{d + 1}": np.flatnonzero(owner == d) for d in range(n_domains)}
    parts, images = np.array(scenes.split), np.array(scenes.names)
    built = (
        f"{how}; {n_domains} domains by Ward's clustering of the cameras' mean masks",
        f"{shape[0]} x {shape[1]} pixels; Gaussians of sigma {sigma:g} at {FULL[0]} x {FULL[1]}, "
        "at the border renormalized to 1",
        "y is the sum of the density inside the mask",
    )
    return Domains(
        "trancos",
        {d: (LazyRows(i, (*shape, 3), np.uint8, photograph), y[i]) for d, i in rows.items()},
        response_name="vehicles",
        provenance=Provenance(built),
        extras={
            "density": {d: LazyRows(i, shape, np.float32, density) for d, i in rows.items()},
            "mask": {d: LazyRows(i, shape, np.bool_, mask) for d, i in rows.items()},
            "split": {d: parts[i] for d, i in rows.items()},
            "image": {d: images[i] for d, i in rows.items()},
            "cameras": tree,
        },
    )


def _shape(size: tuple[int, int]) -> tuple[int, int]:
    sides = np.asarray(size)
    if sides.shape != (2,) or sides.dtype.kind not in "iu" or sides.min() < 1:
        raise ArgumentError(f"size: expected (height, width) in pixels, got {size!r}")
    return int(sides[0]), int(sides[1])


def _cameras(
    scenes: Scenes, masks: NDArray[np.bool_], given: Mapping[str, str] | None
) -> tuple[NDArray[np.generic], str]:
    """Camera of every picture, and in words where that comes from."""
    if given is not None:
        if lacking := [name for name in scenes.names if name not in given]:
            raise ArgumentError(f"cameras: has no camera for {len(lacking)} pictures: {lacking[0]}")
        return np.array([given[name] for name in scenes.names]), "cameras as given"
    if scenes.camera is not None:
        return scenes.camera, f"{len(np.unique(scenes.camera))} cameras as in the file"
    groups = group_cameras(masks)
    return groups, (
        f"no cameras in the file: {groups.max() + 1} groups of pictures by average linkage on the "
        f"overlap of masks, cut at {THRESHOLD:g}"
    )
