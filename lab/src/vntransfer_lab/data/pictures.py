"""Decode and encode pictures (the only place that needs Pillow) and change their size."""

from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import ArgumentError, DataError


def decode(content: bytes, where: str, *, mode: str) -> NDArray[np.uint8]:
    """Pixels of one encoded picture: (height, width) in mode "L", (height, width, 3) in "RGB".

    Examples
    --------
    >>> from PIL import Image
    >>> box = BytesIO()
    >>> Image.new("L", (3, 2), 7).save(box, "png")
    >>> decode(box.getvalue(), "a picture", mode="L").shape
    (2, 3)
    """
    image = _pillow(where)
    try:
        with image.open(BytesIO(content)) as picture:
            return np.asarray(picture.convert(mode), dtype=np.uint8)
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"{where}: not a readable picture ({error})") from error


def encode(pixels: NDArray[np.uint8]) -> bytes:
    """PNG of gray pixels (height, width)."""
    box = BytesIO()
    _pillow("picture").fromarray(pixels).save(box, "png", optimize=True)
    return box.getvalue()


def area_resize(pixels: NDArray[Any], height: int, width: int) -> NDArray[np.float32]:
    """Pictures (..., height, width) of another size: every new pixel averages what it covers.

    Examples
    --------
    >>> area_resize(np.array([[0, 0, 3, 9, 9, 9]]), 1, 2)
    array([[1., 9.]], dtype=float32)
    """
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


def _pillow(where: str) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise DataError(
            f"{where}: decoding pictures needs Pillow; install it with pip install ./lab"
        ) from error
    return Image
