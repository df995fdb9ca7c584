"""Density maps of dotted pictures: one Gaussian per dot, so that the map adds up to the count."""

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import number
from vntransfer.errors import DataError


def _gaussians(
    centers: NDArray[np.floating], n_pixels: int, n_full: int, sigma: float
) -> NDArray[np.float64]:
    """One-dimensional Gaussians sampled at pixel centers, shape (dots, n_pixels).

    What a Gaussian loses beyond the border is given back to its part inside, so that every dot
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
    number("sigma", sigma, exclusive=True)
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
    full: tuple[int, int],
    sigma: float = 10.0,
) -> NDArray[np.float32]:
    """Sum of Gaussians centered at the dots, D(q) = Σ N(q; p, σ), one matrix product.

    Parameters
    ----------
    dots
        Positions x, y at full size counted from 0, shape (n, 2).
    shape, full
        (height, width) of the map and of the full picture.
    sigma
        Standard deviation in pixels of the full picture.

    Examples
    --------
    >>> dots = np.array([[0.0, 0.0], [20.0, 30.0]])  # the first in the corner
    >>> full = density_map(dots, (48, 64), full=(48, 64), sigma=2)
    >>> half = density_map(dots, (24, 32), full=(48, 64), sigma=2)
    >>> round(float(full.sum()), 4), round(float(half.sum()), 4)
    (2.0, 2.0)
    """
    down, right = _axes(dots, shape, full, sigma)
    return np.asarray(down.T @ right, dtype=np.float32)


def masked_count(
    dots: NDArray[np.floating],
    mask: NDArray[np.bool_],
    *,
    full: tuple[int, int],
    sigma: float = 10.0,
) -> float:
    """Sum of the density inside a mask (height, width), without making the map.

    Examples
    --------
    >>> right_half = np.arange(64) >= 32
    >>> mask = np.broadcast_to(right_half, (48, 64))
    >>> round(masked_count(np.array([[10.0, 20], [50, 20]]), mask, full=(48, 64), sigma=2), 3)
    1.0
    """
    down, right = _axes(dots, mask.shape, full, sigma)
    return float(np.sum((down @ mask) * right))
