"""Pictures of MNIST and similar sets (idx files), of notMNIST and of scikit-learn's digits."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import DataError, damage_named
from vntransfer_lab.data.archives import arrays, read_members
from vntransfer_lab.data.pictures import decode

UNSIGNED_BYTE = 0x08
GZIP_MAGIC = b"\x1f\x8b"
LETTERS = "ABCDEFGHIJ"
DAMAGED = 2  # of the official png files of notMNIST cannot be decoded
TEST_SHARE = 10_000 / 18_000  # of the distinct pictures: 10000 test, 8232 training
SPLIT_SEED = 20_110_908
HELD_OUT_SHARE = 6  # one sixth of the training part is held out: 10000 of 60000
DIGITS_TEST = 500  # of 1797

_Bytes = NDArray[np.uint8]


class PictureSplit(NamedTuple):
    """Training and test pictures (n, side, side) and labels of one collection."""

    x: _Bytes
    y: _Bytes
    x_test: _Bytes
    y_test: _Bytes

    def held_out(self) -> "PictureSplit":
        """Only the training part: its last sixth serves as test pictures."""
        cut = len(self.x) - len(self.x) // HELD_OUT_SHARE
        return PictureSplit(self.x[:cut], self.y[:cut], self.x[cut:], self.y[cut:])


def read_pictures(files: Mapping[str, Path]) -> PictureSplit:
    """Pictures of the found files, of scikit-learn's digits where there are none."""
    if not files:
        return _digits()
    if "notMNIST_small.tar.gz" in files:
        return read_notmnist(files["notMNIST_small.tar.gz"])
    parts = [
        read_images(files[f"{part}-images-idx3-ubyte.gz"], files[f"{part}-labels-idx1-ubyte.gz"])
        for part in ("train", "t10k")
    ]
    if parts[0][0].shape[1:] != parts[1][0].shape[1:] or len({*parts[0][0].shape[1:]}) != 1:
        raise DataError(
            f"{files['train-images-idx3-ubyte.gz']}: pictures of {parts[0][0].shape[1:]} and "
            f"{parts[1][0].shape[1:]} pixels; expected squares of equal size"
        )
    return PictureSplit(*parts[0], *parts[1])


def read_idx(path: Path) -> _Bytes:
    """Array of unsigned bytes of one idx file: two zeros, type 8, rank, sizes, data."""
    raw = path.read_bytes()
    if raw.startswith(GZIP_MAGIC):
        with damage_named(path):
            raw = gzip.decompress(raw)
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] != UNSIGNED_BYTE or not raw[3]:
        raise DataError(
            f"{path}: not an idx file of unsigned bytes (starts with {raw[:4]!r}); fetch it again"
        )
    start = 4 + 4 * raw[3]
    shape = tuple(int(n) for n in np.frombuffer(raw[4:start], dtype=">u4"))
    expected = int(np.prod(shape, dtype=object))
    if len(raw) - start != expected:
        raise DataError(
            f"{path}: header says shape {shape}, that is {expected} bytes, but "
            f"{max(len(raw) - start, 0)} follow; fetch it again"
        )
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape)


def read_images(images: Path, labels: Path) -> tuple[_Bytes, _Bytes]:
    """Pictures (n, height, width) and their labels (n,), checked to belong together."""
    pictures, classes = read_idx(images), read_idx(labels)
    if pictures.ndim != 3 or classes.shape != pictures.shape[:1]:
        raise DataError(
            f"{images} has shape {pictures.shape} and {labels} {classes.shape}; expected "
            "(n, height, width) and (n,): fetch both again"
        )
    return pictures, classes


def read_notmnist(path: Path) -> PictureSplit:
    """Letters of notMNIST_small, without duplicates, shuffled.

    The file is sorted by class and has 492 exact duplicates, which are removed before
    splitting, so that no training picture is tested. The split is the same for every stream
    seed: 10000 test pictures (as many in proportion where there are fewer), the rest training.
    """
    images, labels = _read_letters(path)
    images, labels = drop_repeats(images, labels)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(images))
    n_test = min(10_000, int(len(images) * TEST_SHARE))
    test, train = order[:n_test], order[n_test:]
    return PictureSplit(images[train], labels[train], images[test], labels[test])


def drop_repeats(images: _Bytes, labels: _Bytes) -> tuple[_Bytes, _Bytes]:
    """Keep the first of equal pictures, in the order of content (so file order does not matter)."""
    order = np.argsort(labels, kind="stable")
    flat = images.reshape(len(images), -1)[order]
    _, first = np.unique(flat, axis=0, return_index=True)
    return images[order][first], labels[order][first]


def _read_letters(path: Path) -> tuple[_Bytes, _Bytes]:
    """Pictures and labels of the compact npz, or of the png files in the archive or a folder."""
    if path.suffix == ".npz":
        with arrays(path) as box:
            return box["images"], box["labels"]
    images, labels, damaged = [], [], []
    for name, content in read_members(path, lambda name: name.endswith(".png")):
        letter = name.split("/")[-2] if "/" in name else ""
        if len(letter) != 1 or letter not in LETTERS:
            continue
        try:
            images.append(decode(content, f"{path}: {name}", mode="L"))
            labels.append(LETTERS.index(letter))
        except DataError:
            damaged.append(name)
    if len(damaged) > DAMAGED or not images or {i.shape for i in images} != {(28, 28)}:
        raise DataError(
            f"{path}: expected folders A to J with 28 x 28 png files, found {len(images)} "
            f"readable and {len(damaged)} damaged ones {damaged[:3]}; fetch it again"
        )
    return np.stack(images), np.array(labels, dtype=np.uint8)


def _digits() -> PictureSplit:
    """Pictures of 8 x 8 pixels that come with scikit-learn; writers are mixed by a fixed seed."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    x = np.rint(x[order] * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8)
    y = y[order].astype(np.uint8)
    return PictureSplit(x[DIGITS_TEST:], y[DIGITS_TEST:], x[:DIGITS_TEST], y[:DIGITS_TEST])
