"""TRANCOS: traffic pictures with dotted vehicles, in domains of cameras."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import whole
from vntransfer.errors import ArgumentError, DataError, damage_named
from vntransfer.progress import Progress
from vntransfer_lab.data.archives import arrays, read_members
from vntransfer_lab.data.base import Domains, Provenance
from vntransfer_lab.data.derived import remembered
from vntransfer_lab.data.pictures import LazyRows, area_resize, decode

N_DOMAINS = 5
FULL = (480, 640)
SIGMA = 10.0  # of a dot's Gaussian at full size, smaller in proportion at other sizes
THRESHOLD = 0.3  # pictures of a camera share the rest of the union of their masks
COARSE = (60, 80)  # masks are compared at this size
MEASURE_VERSION = 1  # of what is remembered: coarse masks and counts
SPLITS = ("training", "validation", "test")


@dataclass(frozen=True)
class Scenes:
    """All pictures of TRANCOS, still encoded.

    ``dots`` are x, y at full size counted from 0; ``mask(i)`` and ``jpeg(i)`` read on demand;
    ``camera`` is None if unknown.
    """

    names: tuple[str, ...]
    split: tuple[str, ...]
    dots: tuple[NDArray[np.float64], ...]
    mask: Callable[[int], NDArray[np.bool_]]
    jpeg: Callable[[int], bytes]
    shape: tuple[int, int]
    camera: NDArray[np.intp] | None

    def for_all(
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
    with arrays(path) as box:
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
        needed = (f"{stem}.txt", f"{stem}mask.mat", name)
        if lacking := [own for own in needed if own not in content and own not in where]:
            raise DataError(f"{path}: has no {lacking[0]} in images; unpack or fetch it again")
        with damage_named(f"{path}: {stem}.txt", "list of lines `x y`"):
            pairs = [row.split() for row in content[f"{stem}.txt"].decode("ascii").splitlines()]
            own = np.array([pair for pair in pairs if pair], dtype=np.float64).reshape(-1, 2)
        dots.append(own - 1)  # counted from 1 in the files

    def mask(i: int) -> NDArray[np.bool_]:
        name = f"{names[i].removesuffix('.jpg')}mask.mat"
        with damage_named(f"{path}: {name}", "mask `BW`"):
            return np.asarray(loadmat(io.BytesIO(content[name]))["BW"]).astype(np.bool_)

    return Scenes(
        names=tuple(names),
        split=tuple(split[name] for name in names),
        dots=tuple(dots),
        mask=mask,
        jpeg=lambda i: where[names[i]].read_bytes() if lazy else content[names[i]],
        shape=FULL,
        camera=None,
    )


def group_cameras(masks: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Group (0, 1, ...) of every picture by average linkage on the overlap of the masks.

    Groups are joined as long as their pictures share, on average over the pairs, at least
    1 - `THRESHOLD` of the union of their masks. A camera that is turned gives several groups.
    """
    import pandas as pd
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    if len(masks) < 2:
        return np.zeros(len(masks), dtype=np.intp)
    tree = linkage(pdist(masks.reshape(len(masks), -1), "jaccard"), "average")
    return pd.factorize(fcluster(tree, THRESHOLD, "distance"))[0]  # by their first pictures


@dataclass(frozen=True)
class Cameras:
    """Cameras, and the domains that they make."""

    names: tuple[str, ...]
    sizes: NDArray[np.intp]  # pictures of each camera
    distances: NDArray[np.float64]  # root mean square difference of the mean masks of two cameras
    domain: NDArray[np.intp]  # of each camera, 0 to k - 1, the one with most pictures first


def camera_domains(masks: NDArray[np.bool_], camera: NDArray[np.generic], k: int = 5) -> Cameras:
    """Domains of cameras: Ward's clustering of their mean masks, cut at k.

    Every picture counts with its camera's mean mask: a few odd pictures do not make a domain.
    ``masks`` (n, height, width) and ``camera``, a name or number, are those of all pictures.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist, squareform

    names, first, index, sizes = np.unique(
        camera, return_index=True, return_inverse=True, return_counts=True
    )
    whole("n_domains", k, minimum=2, maximum=len(names))
    means = np.stack([masks[index == c].mean(axis=0) for c in range(len(names))])
    distances = squareform(pdist(means.reshape(len(names), -1))) / np.sqrt(means[0].size)
    tree = linkage(squareform(distances[np.ix_(index, index)], checks=False), "ward")
    cut = fcluster(tree, k, "maxclust")[first] - 1
    pictures = np.bincount(cut, weights=sizes, minlength=k)
    rank = np.argsort(np.argsort(-pictures, kind="stable"))
    return Cameras(tuple(map(str, names)), sizes, distances, domain=rank[cut])


def _gaussians(
    centers: NDArray[np.floating], n_pixels: int, n_full: int, sigma: float
) -> NDArray[np.float64]:
    """One-dimensional Gaussians sampled at pixel centers, shape (dots, n_pixels).

    The part of a Gaussian beyond the border is added back to the part inside, so that every dot
    counts exactly 1. Pixel i of the full picture has its center at i; sigma shrinks with the map.
    """
    scale = n_pixels / n_full
    at = (np.asarray(centers, dtype=np.float64) + 0.5) * scale - 0.5
    exponents = 0.5 * ((np.arange(n_pixels) - at[:, None]) / (sigma * scale)) ** 2
    exponents -= exponents.min(axis=1, keepdims=True)  # a narrow one keeps its nearest pixel
    rows = np.exp(-exponents)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _axes(
    dots: NDArray[np.floating], shape: tuple[int, ...], full: tuple[int, int], sigma: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Vertical and horizontal Gaussians of all dots; dots outside the picture are an error."""
    outside = (dots < -0.5) | (dots > np.array(full[::-1]) - 0.5)
    if outside.any():
        first = dots[outside.any(axis=1)][0]
        raise DataError(
            f"dots: ({first[0]:g}, {first[1]:g}) lies outside the picture of {full[1]} x {full[0]} "
            "pixels; give x, y at full size, counted from 0"
        )
    down, right = (_gaussians(dots[:, 1 - i], shape[i], full[i], sigma) for i in range(2))
    return down, right


def density_map(
    dots: NDArray[np.floating],
    shape: tuple[int, int],
    *,
    full: tuple[int, int] = FULL,
    sigma: float = SIGMA,
) -> NDArray[np.float32]:
    """Sum of Gaussians centered at the dots, D(q) = Σ N(q; p, σ), one matrix product.

    The map adds up to the number of dots at every shape. ``dots`` (n, 2) are x, y counted from 0
    and ``sigma`` is in pixels, both at ``full`` size (height, width).
    """
    down, right = _axes(dots, shape, full, sigma)
    return np.asarray(down.T @ right, dtype=np.float32)


def masked_count(
    dots: NDArray[np.floating],
    mask: NDArray[np.bool_],
    *,
    full: tuple[int, int] = FULL,
    sigma: float = SIGMA,
) -> float:
    """Sum of the density inside a mask (height, width), without making the map."""
    down, right = _axes(dots, mask.shape, full, sigma)
    return float(np.sum((down @ mask) * right))


def load_trancos(
    files: Mapping[str, Path],
    *,
    size: tuple[int, int] | None = None,
    progress: Progress | None = None,
) -> Domains:
    """Pictures as X (decoded on access), numbers of vehicles as y, groups of cameras as domains.

    Parameters
    ----------
    files
        Found files.
    size
        (height, width) of images, masks and densities; None: that of the file.
    progress
        Called with "trancos masks" or "trancos counts", pictures done and total.

    Returns
    -------
    Domains
        X are `LazyRows` (n, height, width, 3) of uint8, y the sum of the density inside the mask.
        ``extras``: ``density`` and ``mask`` (lazy, domain -> rows), ``split`` (training,
        validation or test), ``image`` (names), ``cameras`` (`Cameras`).
    """
    (path,) = files.values()
    scenes = read_compact(path) if path.suffix == ".npz" else read_official(path)
    sides = np.asarray(scenes.shape if size is None else size)
    if sides.shape != (2,) or sides.dtype.kind not in "iu" or sides.min() < 1:
        raise ArgumentError(f"size: expected (height, width) in pixels, got {size!r}")
    shape = int(sides[0]), int(sides[1])
    coarse = remembered(
        "masks",
        path,
        [MEASURE_VERSION, *COARSE],
        lambda: scenes.for_all("masks", progress, lambda i: _resize_mask(scenes.mask(i), COARSE)),
    )
    if scenes.camera is not None:
        camera, how = scenes.camera, f"{len(np.unique(scenes.camera))} cameras as in the file"
    else:
        camera = group_cameras(coarse)
        how = (
            f"no cameras in the file: {camera.max() + 1} groups of pictures by average linkage on "
            f"the overlap of masks, cut at {THRESHOLD:g}"
        )
    tree = camera_domains(coarse, camera, N_DOMAINS)
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
        return density_map(scenes.dots[i], shape)

    options = [MEASURE_VERSION, *shape, SIGMA]
    vehicles = remembered(
        "counts",
        path,
        options,
        lambda: scenes.for_all("counts", progress, lambda i: masked_count(scenes.dots[i], mask(i))),
    )
    y = np.array(vehicles)
    rows = {f"dom{d + 1}": np.flatnonzero(owner == d) for d in range(N_DOMAINS)}
    parts, images = np.array(scenes.split), np.array(scenes.names)
    built = (
        f"{how}; {N_DOMAINS} domains by Ward's clustering of the cameras' mean masks",
        f"{shape[0]} x {shape[1]} pixels; Gaussians of sigma {SIGMA:g} at {FULL[0]} x {FULL[1]}, "
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
