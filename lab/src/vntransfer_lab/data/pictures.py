"""Decode pictures, change their size, and rows of pictures made on access."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vntransfer.errors import ArgumentError, damage_named


def decode(content: bytes, where: str, *, mode: str) -> NDArray[np.uint8]:
    """Pixels of one encoded picture: (height, width) in mode "L", (height, width, 3) in "RGB"."""
    from PIL import Image

    with damage_named(where, "picture"), Image.open(BytesIO(content)) as picture:
        return np.asarray(picture.convert(mode), dtype=np.uint8)


def area_resize(pixels: NDArray[Any], height: int, width: int) -> NDArray[np.float32]:
    """Pictures (..., height, width) of another size: every new pixel averages what it covers."""
    if min(height, width) < 1:
        raise ArgumentError(f"size: expected at least 1 x 1 pixels, got {height} x {width}")
    pixels = np.asarray(pixels, dtype=np.float32)
    rows = _area_weights(pixels.shape[-2], height)
    return np.asarray(rows @ pixels @ _area_weights(pixels.shape[-1], width).T)


@lru_cache(maxsize=16)
def _area_weights(old: int, new: int) -> NDArray[np.float32]:
    """Share of each old pixel in each new one, shape (new, old); rows add up to 1."""
    edges = np.arange(new + 1) * old / new
    begin, end = np.arange(old), np.arange(old) + 1
    low, high = np.maximum(edges[:-1, None], begin), np.minimum(edges[1:, None], end)
    return np.asarray(np.clip(high - low, 0, None) * new / old, dtype=np.float32)


class LazyRows:
    """Read-only array (n, ...) whose rows are computed on access.

    Has ``shape``, ``dtype``, ``ndim``, ``len``; indexing with a number, a slice, a list of numbers
    or a mask gives a plain array, and so does ``numpy.asarray`` (all rows at once).
    Row i is ``make(keys[i])``, of the given shape and dtype.
    """

    def __init__(
        self,
        keys: Sequence[int] | NDArray[np.integer],
        shape: tuple[int, ...],
        dtype: Any,
        make: Callable[[int], NDArray[Any]],
    ) -> None:
        self._keys = np.asarray(keys, dtype=np.intp)
        self._make = make
        self.shape = (len(self._keys), *shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: int | slice | ArrayLike) -> NDArray[Any]:
        keys = self._keys[index if isinstance(index, int | slice) else np.asarray(index)]
        if keys.ndim == 0:
            return self._make(int(keys))
        rows = np.empty((len(keys), *self.shape[1:]), dtype=self.dtype)
        for i, key in enumerate(keys):
            rows[i] = self._make(int(key))
        return rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("copy: rows are made on access, a copy is needed")
        return self[:] if dtype is None else self[:].astype(dtype)

    def __repr__(self) -> str:
        return f"<LazyRows {' x '.join(map(str, self.shape))} {self.dtype}>"
