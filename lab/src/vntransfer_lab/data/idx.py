"""Reader of the idx files of MNIST and its likes, plain or gzipped."""

import gzip
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import DataError

UNSIGNED_BYTE = 0x08
GZIP_MAGIC = b"\x1f\x8b"


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Array of unsigned bytes of one idx file: two zeros, type 8, rank, sizes, data.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels"
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> read_idx(path)
    array([7, 2, 1], dtype=uint8)
    """
    raw = path.read_bytes()
    if raw.startswith(GZIP_MAGIC):
        try:
            raw = gzip.decompress(raw)
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"{path}: damaged gzip file ({error}); fetch it again") from error
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


def read_images(images: Path, labels: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Pictures (n, height, width) and their labels (n,), checked to belong together."""
    pictures, classes = read_idx(images), read_idx(labels)
    if pictures.ndim != 3 or classes.shape != pictures.shape[:1]:
        raise DataError(
            f"{images} has shape {pictures.shape} and {labels} {classes.shape}; expected "
            "(n, height, width) and (n,): fetch both again"
        )
    return pictures, classes
