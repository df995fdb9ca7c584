"""Omniglot: alphabets as tasks, 20 drawings of every character split 15 to 5."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import whole
from vntransfer.errors import DataError
from vntransfer_lab.data.archives import arrays, read_members
from vntransfer_lab.data.base import Provenance, StreamTask, TaskStream
from vntransfer_lab.data.pictures import area_resize, decode

SIDE = 105


class Drawings:
    """Drawings of one part of Omniglot, sorted by alphabet, character and drawer.

    ``packed`` holds one bit per pixel, True is ink: rows of ``numpy.packbits`` over 105 x 105
    booleans. ``names`` are those of the alphabets, sorted.
    """

    def __init__(
        self,
        packed: NDArray[np.uint8],
        alphabet: NDArray[Any],
        character: NDArray[Any],
        drawer: NDArray[Any],
        *,
        names: tuple[str, ...],
    ) -> None:
        order = np.lexsort((drawer, character, alphabet))
        self.packed, self.alphabet = packed[order], alphabet[order]
        self.character, self.names = character[order], names

    def pictures(self, rows: NDArray[np.intp], size: int) -> NDArray[np.float32]:
        """Share of ink in each pixel, in steps of 1/255, of pictures (n, size, size)."""
        bits = np.unpackbits(self.packed[rows], axis=1, count=SIDE * SIDE)
        shares = area_resize(bits.reshape(-1, SIDE, SIDE), size, size)
        steps = np.rint(255 * shares)  # the same on every machine
        return steps.astype(np.float32) / np.float32(255)


def read_npz(path: Path) -> Drawings:
    """Drawings from the compact npz."""
    with arrays(path) as box:
        if tuple(box["shape"]) != (SIDE, SIDE):
            raise DataError(f"{path}: drawings of {tuple(box['shape'])} pixels; expected 105 x 105")
        fields = [box[key] for key in ("packed", "alphabet", "character", "drawer")]
        return Drawings(*fields, names=tuple(map(str, box["alphabet_names"])))


def read_pngs(path: Path) -> Drawings:
    """Drawings from ``.../Alphabet/character07/0715_03.png``, in the archive or a folder."""
    packed, where = [], []
    for name, content in read_members(path, lambda name: name.endswith(".png")):
        parts = name.split("/")
        try:
            alphabet, character = parts[-3], int(parts[-2].removeprefix("character"))
            drawer = int(parts[-1].removesuffix(".png").split("_")[1])
        except (IndexError, ValueError) as error:
            raise DataError(
                f"{path}: unexpected file {name}; expected Alphabet/character01/0001_01.png"
            ) from error
        pixels = decode(content, f"{path}: {name}", mode="L")
        if pixels.shape != (SIDE, SIDE):
            raise DataError(f"{path}: {name} has {pixels.shape} pixels; expected 105 x 105")
        packed.append(np.packbits(pixels < 128))  # ink is black
        where.append((alphabet, character, drawer))
    if not packed:
        raise DataError(f"{path}: holds no png files; fetch images_background.zip again")
    names = tuple(sorted({alphabet for alphabet, _, _ in where}))
    numbers = np.array([(names.index(a), c, d) for a, c, d in where])
    return Drawings(np.stack(packed), *numbers.T, names=names)


def load_omniglot(
    files: Mapping[str, Path],
    *,
    n_tasks: int = 10,
    n_train: int = 15,
    size: int = 28,
    held_out: bool = False,
    seed: int = 0,
) -> TaskStream:
    """Load the first alphabets, in the order of their names, as tasks with separate heads.

    Parameters
    ----------
    files
        Found files.
    n_tasks
        Number of alphabets (30 in the background part).
    n_train
        Training drawings per character; the rest of the 20 are test.
    size
        Side of the images in pixels; 105 is the original, smaller ones are averages.
    held_out
        The last alphabets instead, at most half of all: other tasks, to choose hyper-parameters on.
    seed
        Seed of the *stream*: which drawings of a character are for training, and their order.

    Returns
    -------
    TaskStream
        Pictures (n, 1, size, size), float32 from 0 (paper) to 1 (ink); labels 0 to head - 1.
    """
    path = files["images_background.zip"]
    drawings = read_npz(path) if path.suffix == ".npz" else read_pngs(path)
    total = len(drawings.names)
    most = total // 2 if held_out else total
    whole("n_tasks", n_tasks, minimum=1, maximum=most)
    alphabets = range(total - n_tasks, total) if held_out else range(n_tasks)
    counts = [
        np.unique(drawings.character[drawings.alphabet == a], return_counts=True)[1]
        for a in alphabets
    ]
    least = int(min(count.min() for count in counts))
    whole("n_train", n_train, minimum=1, maximum=least - 1)

    def make(t: int) -> StreamTask:
        rng = np.random.default_rng((seed, alphabets[t]))
        rows = np.flatnonzero(drawings.alphabet == alphabets[t])
        _, label = np.unique(drawings.character[rows], return_inverse=True)
        mixed = rng.permutation(len(rows))
        mixed = mixed[np.argsort(label[mixed], kind="stable")]  # by character, drawings shuffled
        place = np.concatenate([np.arange(count) for count in counts[t]])
        train = rng.permutation(mixed[place < n_train])
        test = mixed[place >= n_train]
        x, x_test = (drawings.pictures(rows[part], size)[:, None] for part in (train, test))
        labels = label.astype(np.int64)
        return StreamTask(x, labels[train], x_test, labels[test], name=drawings.names[alphabets[t]])

    heads = tuple(len(count) for count in counts)
    built = (
        f"the {'last' if held_out else 'first'} {n_tasks} alphabets in the order of their names, "
        f"a head each, stream seed {seed}",
        f"{n_train} drawings of every character for training, the rest for test; "
        f"{size} x {size} pixels, share of ink",
    )
    return TaskStream(
        "omniglot",
        n_tasks,
        make,
        max(heads),
        head_sizes=heads,
        provenance=Provenance(built),
        extras={"alphabets": tuple(drawings.names[a] for a in alphabets)},
    )
