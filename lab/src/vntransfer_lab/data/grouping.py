"""Domains where nature gives none: k-means on features, or groups of subjects drawn at random."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vntransfer.checks import whole
from vntransfer.errors import ArgumentError
from vntransfer_lab.data.derived import remembered

FIT_ROWS = 50_000
CLUSTERING_VERSION = 1


def kmeans_domains(
    X: NDArray[np.floating],
    k: int = 5,
    columns: int | Sequence[int] | None = None,
    *,
    seed: int = 0,
    n_fit: int | None = None,
) -> NDArray[np.intp]:
    """Domain (0 to k - 1) of every row by k-means, as the paper makes the YearPredictionMSD ones.

    The columns are standardized first: unscaled, the few timbre covariances with the largest
    variance would decide alone. Domain 0 is the largest, so that numbers do not depend on the
    random start.

    Parameters
    ----------
    X
        Features, shape (n, p); a memory-mapped array is read in blocks.
    k
        Number of domains.
    columns
        Columns to cluster on: a number means that many first ones, None all.
    seed
        Seed of the sample and of k-means.
    n_fit
        The centers are found on the first so many rows (None: all), at most 50000 random ones of
        them; all rows are then assigned.

    Examples
    --------
    >>> X = np.array([[0.0, 5], [0.1, -5], [0.2, 5], [9.0, -5], [9.1, 5]])
    >>> kmeans_domains(X, 2, columns=1)
    array([0, 0, 0, 1, 1])
    """
    from sklearn.cluster import KMeans

    picked = _columns(columns, X.shape[1])
    whole("k", k, minimum=1, maximum=len(X))
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(X) if n_fit is None else n_fit)[:FIT_ROWS])
    sample = np.asarray(X[rows][:, picked], dtype=np.float64)
    mean, deviation = sample.mean(axis=0), sample.std(axis=0)
    deviation[deviation == 0] = 1
    model = KMeans(k, n_init=10, random_state=seed).fit((sample - mean) / deviation)
    blocks = [
        model.predict((np.asarray(X[i : i + FIT_ROWS][:, picked], np.float64) - mean) / deviation)
        for i in range(0, len(X), FIT_ROWS)
    ]
    labels = np.concatenate(blocks)
    by_size = np.argsort(-np.bincount(labels, minlength=k), kind="stable")
    rank = np.empty(k, dtype=np.intp)
    rank[by_size] = np.arange(k)
    return np.asarray(rank[labels], dtype=np.intp)


def file_domains(
    path: Path,
    X: NDArray[np.floating],
    k: int,
    columns: int | Sequence[int] | None,
    *,
    seed: int,
    n_fit: int | None = None,
) -> NDArray[np.intp]:
    """`kmeans_domains` of features read from a file; found once, then remembered.

    What is remembered belongs to this content of the file, these arguments, this version of the
    clustering and of scikit-learn.
    """
    picked = _columns(columns, X.shape[1]).tolist()
    options = [CLUSTERING_VERSION, version("scikit-learn"), X.shape[1], int(k), picked, int(seed)]
    if n_fit is not None:
        options.append(int(n_fit))
    return remembered(
        "clusters", path, options, lambda: kmeans_domains(X, k, columns, seed=seed, n_fit=n_fit)
    )


def kmeans_words(k: int, columns: int | Sequence[int] | None, seed: int) -> str:
    """Say how domains were made."""
    which = "all" if columns is None else f"{columns}"
    if isinstance(columns, int):
        which = f"the first {columns}"
    return (
        f"{k} domains by k-means on {which} columns, standardized, seed {seed}; dom1 is the largest"
    )


def _columns(columns: int | Sequence[int] | None, width: int) -> NDArray[np.intp]:
    if columns is None:
        return np.arange(width)
    picked = np.arange(columns) if isinstance(columns, int) else np.asarray(columns)
    if (
        picked.dtype.kind not in "iu"
        or picked.ndim != 1
        or not picked.size
        or not 0 <= picked.min() <= picked.max() < width
    ):
        raise ArgumentError(
            f"columns: expected column numbers 0 to {width - 1} (or how many first ones), "
            f"got {columns!r}"
        )
    return picked.astype(np.intp)


def random_groups(subjects: ArrayLike, k: int = 5, *, seed: int = 0) -> NDArray[np.intp]:
    """Group (0 to k - 1) of every row: whole subjects are dealt at random into k groups.

    The groups' numbers of subjects differ by one at most.

    Examples
    --------
    >>> random_groups(["ann", "bob", "ann", "cy", "di"], 2, seed=0)
    array([0, 0, 0, 1, 1])
    """
    names, subject = np.unique(np.asarray(subjects), return_inverse=True)
    whole("k", k, minimum=1, maximum=len(names))
    deal = np.random.default_rng(seed).permutation(len(names)) % k
    return np.asarray(deal[subject], dtype=np.intp)


def split_rows(
    X: NDArray[np.floating], y: NDArray[np.generic], owner: NDArray[np.intp], k: int
) -> dict[str, tuple[NDArray[np.floating], NDArray[np.generic]]]:
    """Rows by domain, ``{"dom1": (X, y), ...}``.

    Examples
    --------
    >>> X, y = np.arange(6.0).reshape(3, 2), np.array([7, 8, 9])
    >>> split_rows(X, y, np.array([0, 1, 0]), 2)["dom1"][1]
    array([7, 9])
    """
    return {f"dom{d + 1}": (np.asarray(X[owner == d]), np.asarray(y[owner == d])) for d in range(k)}
