"""notMNIST_small: letters A to J, from the official archive of png files or the compact npz."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import DataError
from vntransfer_lab.data.archives import read_members
from vntransfer_lab.data.pictures import decode

CLASSES = "ABCDEFGHIJ"
SIDE = 28
DAMAGED = 2
TEST_SHARE = 10_000 / 18_000  # of the distinct pictures: 10000 test, 8232 training
SPLIT_SEED = 20_110_908

Split = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]


def read_notmnist(path: Path) -> Split:
    """Training pictures and labels, test pictures and labels, without repeats, shuffled.

    The file is sorted by class and holds 492 exact repeats of pictures: they are removed before
    splitting, or training pictures would be tested on. The split is the same for every stream
    seed: 10000 test pictures (as many in proportion where there are fewer), the rest training.
    """
    images, labels = _read_npz(path) if path.suffix == ".npz" else _read_pngs(path)
    images, labels = drop_repeats(images, labels)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(images))
    n_test = min(10_000, int(len(images) * TEST_SHARE))
    test, train = order[:n_test], order[n_test:]
    return images[train], labels[train], images[test], labels[test]


def drop_repeats(
    images: NDArray[np.uint8], labels: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Keep the first of equal pictures, in the order of content (so file order does not matter).

    Examples
    --------
    >>> pictures = np.array([[[9]], [[4]], [[9]]], dtype=np.uint8)
    >>> [a.ravel().tolist() for a in drop_repeats(pictures, np.array([1, 2, 1], dtype=np.uint8))]
    [[4, 9], [2, 1]]
    """
    order = np.argsort(labels, kind="stable")
    flat = images.reshape(len(images), -1)[order]
    _, first = np.unique(flat, axis=0, return_index=True)
    return images[order][first], labels[order][first]


def _read_npz(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    with np.load(path, allow_pickle=False) as box:
        return box["images"], box["labels"]


def _read_pngs(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Two of the official png files cannot be decoded: so many are left out, not more."""
    images, labels, damaged = [], [], []
    for name, content in read_members(path, lambda name: name.endswith(".png")):
        letter = name.split("/")[-2] if "/" in name else ""
        if len(letter) != 1 or letter not in CLASSES:
            continue
        try:
            images.append(decode(content, f"{path}: {name}", mode="L"))
            labels.append(CLASSES.index(letter))
        except DataError:
            damaged.append(name)
    if len(damaged) > DAMAGED or not images or {i.shape for i in images} != {(SIDE, SIDE)}:
        raise DataError(
            f"{path}: expected folders A to J with {SIDE} x {SIDE} png files, found {len(images)} "
            f"readable and {len(damaged)} damaged ones {damaged[:3]}; fetch it again"
        )
    return np.stack(images), np.array(labels, dtype=np.uint8)
