"""Streams of permuted or rotated pictures: mnistP, mnistR, fashionP, notmnistP, digitsP.

A permutation and a rotation by nearest pixels are the same thing: a map that says for every pixel
of the new picture which old one it shows (or none). A task is the map, and which pictures it
draws; its arrays are made when it is asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vntransfer.data.base import LazyTasks, Provenance, Task, TaskStream
from vntransfer.data.idx import read_images
from vntransfer.data.notmnist import read_notmnist
from vntransfer.errors import ArgumentError, DataError

MAPS, ROWS, TEST_ROWS = 0, 1, 2  # what a random stream is for
OUTSIDE = -1
HELD_OUT_SHARE = 6  # one sixth of the training part is held out: 10000 of 60000
DIGITS_TEST = 500  # of 1797


@dataclass(frozen=True)
class Pictures:
    """Training and test pictures (n, side, side) and labels of one collection."""

    x: NDArray[np.uint8]
    y: NDArray[np.uint8]
    x_test: NDArray[np.uint8]
    y_test: NDArray[np.uint8]

    def held_out(self) -> "Pictures":
        """Only the training part: its last sixth serves as test pictures."""
        cut = len(self.x) - len(self.x) // HELD_OUT_SHARE
        return Pictures(self.x[:cut], self.y[:cut], self.x[cut:], self.y[cut:])


def permutation_map(task: int, side: int, *, seed: int) -> NDArray[np.intp]:
    """Random permutation of the side² pixels of one task; the first task is permuted too.

    Examples
    --------
    >>> permutation_map(0, 2, seed=0)
    array([2, 0, 1, 3])
    """
    return np.random.default_rng((seed, task, MAPS)).permutation(side * side)


def rotation_angle(task: int, n_tasks: int, *, max_angle: float, seed: int) -> float:
    """Angle of one task in degrees: uniform in its own n-th part of 0 to ``max_angle``.

    Examples
    --------
    >>> [round(rotation_angle(t, 3, max_angle=90, seed=0)) for t in range(3)]
    [19, 57, 62]
    """
    part = max_angle / n_tasks
    return part * (task + float(np.random.default_rng((seed, task, MAPS)).random()))


def rotation_map(angle: float, side: int) -> NDArray[np.intp]:
    """For every pixel of the rotated picture the nearest old one, -1 outside.

    Counter-clockwise about the centre of the picture.

    Examples
    --------
    >>> rotation_map(90, 2)
    array([1, 3, 0, 2])
    """
    cosine, sine = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    centre = (side - 1) / 2
    down, right = np.divmod(np.arange(side * side), side) - np.full((2, 1), centre)
    old_right = np.rint(cosine * right - sine * down + centre).astype(np.intp)
    old_down = np.rint(sine * right + cosine * down + centre).astype(np.intp)
    inside = (np.minimum(old_right, old_down) >= 0) & (np.maximum(old_right, old_down) < side)
    return np.where(inside, old_down * side + old_right, OUTSIDE)


def apply_map(pictures: NDArray[np.uint8], pixels: NDArray[np.intp]) -> NDArray[np.float32]:
    """Pictures (n, ...) through a pixel map, as rows of numbers from 0 to 1.

    Examples
    --------
    >>> apply_map(np.array([[[0, 255], [51, 102]]], dtype=np.uint8), np.array([1, 0, -1, 2]))
    array([[1. , 0. , 0. , 0.2]], dtype=float32)
    """
    flat = pictures.reshape(len(pictures), -1)
    moved = np.take(flat, pixels, axis=1)  # -1 takes the last pixel, zeroed in the next line
    moved[:, pixels == OUTSIDE] = 0
    return moved.astype(np.float32) / np.float32(255)


def load_stream(
    files: Mapping[str, Path],
    *,
    name: str,
    collection: Literal["idx", "notmnist", "digits"],
    transform: Literal["permute", "rotate"],
    n_tasks: int = 10,
    n_train: int = 1000,
    n_test: int | None = None,
    seed: int = 0,
    max_angle: float = 90.0,
    held_out: bool = False,
) -> TaskStream:
    """Stream of tasks that show the same pictures through different pixel maps.

    Parameters
    ----------
    files
        Found files.
    name, collection, transform
        Which stream; fixed by the registry.
    n_tasks, n_train, n_test
        Number of tasks, training and test rows of each. ``n_test`` None means up to 10000.
    seed
        Seed of the *stream*: maps and which pictures each task draws. The seed of training is the
        learner's own; hyper-parameters can be chosen on streams with other seeds.
    max_angle
        Rotations cover 0 to this many degrees.
    held_out
        Take the test rows from the last sixth of the training part instead of the test part, and
        the training rows from the rest: for choosing hyper-parameters without test pictures.

    Returns
    -------
    TaskStream
        Rows of numbers from 0 to 1 (float32), labels 0 to 9; ``extras`` holds ``maps`` (and
        ``angles``), so that a map can be applied to other pictures.
    """
    if not 0 < max_angle <= 360:
        raise ArgumentError(f"max_angle: expected more than 0, at most 360, got {max_angle}")
    pictures = _read(files, collection)
    if held_out:
        pictures = pictures.held_out()
    side = pictures.x.shape[1]
    n_test = min(10_000, len(pictures.x_test)) if n_test is None else n_test
    for argument, asked, there in (
        ("n_train", n_train, len(pictures.x)),
        ("n_test", n_test, len(pictures.x_test)),
    ):
        if not 2 <= asked <= there:
            raise ArgumentError(f"{argument}: expected 2 to {there} for {name}, got {asked}")
    angles: list[float] = []
    if transform == "rotate":
        angles = [
            rotation_angle(t, n_tasks, max_angle=max_angle, seed=seed) for t in range(n_tasks)
        ]
        maps = [rotation_map(angle, side) for angle in angles]
        what = f"rotations over 0 to {max_angle:g} degrees, nearest pixel, zero outside"
    else:
        maps = [permutation_map(t, side, seed=seed) for t in range(n_tasks)]
        what = "one random permutation of the pixels per task, the first included"

    def make(t: int) -> Task:
        rows = np.random.default_rng((seed, t, ROWS)).permutation(len(pictures.x))[:n_train]
        test = np.sort(
            np.random.default_rng((seed, TEST_ROWS)).permutation(len(pictures.x_test))[:n_test]
        )
        return Task(
            apply_map(pictures.x[rows], maps[t]),
            pictures.y[rows].astype(np.int64),
            apply_map(pictures.x_test[test], maps[t]),
            pictures.y_test[test].astype(np.int64),
            name=f"{angles[t]:.1f} degrees" if angles else f"permutation {t}",
        )

    part = "last sixth of the training part" if held_out else "test part"
    built = (
        f"{n_tasks} tasks, stream seed {seed}: {what}",
        f"{n_train} training rows per task drawn without repetition from {len(pictures.x)}, "
        f"{n_test} test rows from the {part}; pixels divided by 255",
    )
    extras = {"maps": maps} | ({"angles": angles} if angles else {})
    return TaskStream(
        name, LazyTasks(n_tasks, make), 10, provenance=Provenance(built), extras=extras
    )


def _read(files: Mapping[str, Path], collection: str) -> Pictures:
    if collection == "notmnist":
        return Pictures(*read_notmnist(files["notMNIST_small.tar.gz"]))
    if collection == "digits":
        return _digits()
    parts = [
        read_images(files[f"{part}-images-idx3-ubyte.gz"], files[f"{part}-labels-idx1-ubyte.gz"])
        for part in ("train", "t10k")
    ]
    if parts[0][0].shape[1:] != parts[1][0].shape[1:] or len({*parts[0][0].shape[1:]}) != 1:
        raise DataError(
            f"{files['train-images-idx3-ubyte.gz']}: pictures of {parts[0][0].shape[1:]} and "
            f"{parts[1][0].shape[1:]} pixels; expected squares of equal size"
        )
    return Pictures(*parts[0], *parts[1])


def _digits() -> Pictures:
    """Pictures of 8 x 8 pixels that come with scikit-learn; writers are mixed by a fixed seed."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    x = np.rint(x[order] * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8)
    y = y[order].astype(np.uint8)
    return Pictures(x[DIGITS_TEST:], y[DIGITS_TEST:], x[:DIGITS_TEST], y[:DIGITS_TEST])
