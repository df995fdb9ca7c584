"""Streams of pictures, permuted or rotated or split by class: mnistP, mnistR, mnistS and others.

Permutations and rotations by nearest pixels have the same form: a map from every pixel of the new
picture to an old one (or none). A task is the map, and which pictures it
draws, of all classes or of its own; its arrays are made on access.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import one_of, whole
from vntransfer.errors import ArgumentError
from vntransfer_lab.data.base import Provenance, StreamTask, TaskStream
from vntransfer_lab.data.picture_sets import PictureSplit, read_pictures

MAPS, ROWS, TEST_ROWS, CLASSES = 0, 1, 2, 3  # what a random stream is for
OUTSIDE = -1


def permutation_map(task: int, side: int, *, seed: int) -> NDArray[np.intp]:
    """Random permutation of the side² pixels of one task; the first task is permuted too."""
    return np.random.default_rng((seed, task, MAPS)).permutation(side * side)


def rotation_map(angle: float, side: int) -> NDArray[np.intp]:
    """For every pixel of the rotated picture the nearest old one, -1 outside.

    Counter-clockwise about the center of the picture.
    """
    cosine, sine = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    center = (side - 1) / 2
    down, right = np.divmod(np.arange(side * side), side) - np.full((2, 1), center)
    old_right = np.rint(cosine * right - sine * down + center).astype(np.intp)
    old_down = np.rint(sine * right + cosine * down + center).astype(np.intp)
    inside = (np.minimum(old_right, old_down) >= 0) & (np.maximum(old_right, old_down) < side)
    return np.where(inside, old_down * side + old_right, OUTSIDE)


def apply_map(pictures: NDArray[np.uint8], pixels: NDArray[np.intp]) -> NDArray[np.float32]:
    """Pictures (n, ...) through a pixel map, as rows of numbers from 0 to 1."""
    flat = pictures.reshape(len(pictures), -1)
    moved = np.take(flat, pixels, axis=1)  # -1 takes the last pixel, zeroed in the next line
    moved[:, pixels == OUTSIDE] = 0
    return moved.astype(np.float32) / np.float32(255)


class _Tasks(NamedTuple):
    """What distinguishes the tasks of a stream: the pixel map, classes and name of each."""

    maps: list[NDArray[np.intp]]
    classes: NDArray[np.intp]
    names: list[str]
    how: str
    extras: dict[str, Any]


def load_stream(
    files: Mapping[str, Path],
    *,
    transform: Literal["permute", "rotate", "split"],
    n_tasks: int | None = None,
    n_train: int = 1000,
    n_test: int | None = None,
    seed: int = 0,
    max_angle: float = 90.0,
    held_out: bool = False,
) -> TaskStream:
    """Stream of tasks that show the same pictures through different pixel maps, or different ones.

    Parameters
    ----------
    files
        Found files: of MNIST or its likes, or of notMNIST; none: scikit-learn's digits.
    transform
        What changes from task to task; fixed by the registry.
    n_tasks
        Number of tasks; None: 10, or 5 among which the classes are dealt (1, 2 or 5).
    n_train
        Training rows per task, drawn without repetition.
    n_test
        Test rows per task; None: up to 10000, as many as the smallest task has.
    seed
        Seed of the stream (maps or order of classes, and rows); the seed of training is
        separate.
    max_angle
        Rotations cover 0 to this many degrees.
    held_out
        Take test rows from the last sixth of the training part, and training rows from the rest,
        to choose hyper-parameters without test images.

    Returns
    -------
    TaskStream
        Rows of numbers from 0 to 1 (float32), labels 0 to 9, or from 0 on within the head of a
        split task; ``extras`` holds ``maps`` (and ``angles``, ``classes``), so that a map can be
        applied to other pictures.
    """
    pictures = read_pictures(files)
    if held_out:
        pictures = pictures.held_out()
    side = pictures.x.shape[1]
    if transform == "split":
        tasks = _split(5 if n_tasks is None else n_tasks, side, seed)
    else:
        n_tasks = whole("n_tasks", 10 if n_tasks is None else n_tasks, minimum=1)
        rotate = transform == "rotate"
        tasks = _rotate(n_tasks, side, max_angle, seed) if rotate else _permute(n_tasks, side, seed)
    n_test = _check_rows(pictures, tasks.classes, n_train, n_test)

    def make(t: int) -> StreamTask:
        own, pixels = tasks.classes[t], tasks.maps[t]
        rows = np.random.default_rng((seed, t, ROWS)).permutation(len(pictures.x))
        test = np.random.default_rng((seed, TEST_ROWS)).permutation(len(pictures.x_test))
        rows = rows[np.isin(pictures.y[rows], own)][:n_train]
        test = np.sort(test[np.isin(pictures.y_test[test], own)][:n_test])
        label = np.argmax(own[:, None] == np.arange(10), axis=0)  # place of a class in the task
        return StreamTask(
            apply_map(pictures.x[rows], pixels),
            label[pictures.y[rows]].astype(np.int64),
            apply_map(pictures.x_test[test], pixels),
            label[pictures.y_test[test]].astype(np.int64),
            name=tasks.names[t],
        )

    count, part = len(tasks.maps), "last sixth of the training part" if held_out else "test part"
    built = (
        f"{count} tasks, stream seed {seed}: {tasks.how}",
        f"{n_train} training rows per task drawn without repetition from {len(pictures.x)}, "
        f"{n_test} test rows from the {part}; pixels divided by 255",
    )
    return TaskStream(
        transform,
        count,
        make,
        10,
        head_sizes=(tasks.classes.shape[1],) * count if transform == "split" else None,
        provenance=Provenance(built),
        extras={"maps": tasks.maps, **tasks.extras},
    )


def _permute(n_tasks: int, side: int, seed: int) -> _Tasks:
    return _Tasks(
        [permutation_map(t, side, seed=seed) for t in range(n_tasks)],
        np.tile(np.arange(10), (n_tasks, 1)),
        [f"permutation {t}" for t in range(n_tasks)],
        "one random permutation of the pixels per task, the first included",
        {},
    )


def _rotate(n_tasks: int, side: int, max_angle: float, seed: int) -> _Tasks:
    if not 0 < max_angle <= 360:
        raise ArgumentError(f"max_angle: expected more than 0, at most 360, got {max_angle}")
    # each uniform in its own n-th part
    shares = [t + float(np.random.default_rng((seed, t, MAPS)).random()) for t in range(n_tasks)]
    angles = [max_angle / n_tasks * share for share in shares]
    return _Tasks(
        [rotation_map(angle, side) for angle in angles],
        np.tile(np.arange(10), (n_tasks, 1)),
        [f"{angle:.1f} degrees" for angle in angles],
        f"rotations over 0 to {max_angle:g} degrees, nearest pixel, zero outside",
        {"angles": angles},
    )


def _split(n_tasks: int, side: int, seed: int) -> _Tasks:
    one_of("n_tasks", n_tasks, (1, 2, 5))
    classes = np.random.default_rng((seed, CLASSES)).permutation(10).reshape(n_tasks, -1)
    return _Tasks(
        [np.arange(side * side)] * n_tasks,
        classes,
        [f"classes {', '.join(map(str, own))}" for own in classes],
        f"{classes.shape[1]} classes each, in random order, with separate heads",
        {"classes": classes.tolist()},
    )


def _check_rows(
    pictures: PictureSplit, parts: NDArray[np.intp], n_train: int, n_test: int | None
) -> int:
    """Check that every task has the requested rows; return the number of test rows."""
    train, test = (
        min(int(np.isin(y, part).sum()) for part in parts) for y in (pictures.y, pictures.y_test)
    )
    whole("n_train", n_train, minimum=2, maximum=train)
    return whole("n_test", min(10_000, test) if n_test is None else n_test, minimum=2, maximum=test)
