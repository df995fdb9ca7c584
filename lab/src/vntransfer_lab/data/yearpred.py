"""YearPredictionMSD: the release year of songs from timbre, domains by k-means."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vntransfer_lab.data.base import Domains, Provenance
from vntransfer_lab.data.grouping import file_domains, split_rows
from vntransfer_lab.data.numeric_csv import read_numbers

N_TRAIN = 463_715  # official rule: the first rows train, the last 51630 test, no artist in both
N_ROWS = 515_345
NAMES = tuple(f"timbre_mean{i}" for i in range(12)) + tuple(f"timbre_cov{i}" for i in range(78))
CLUSTERED = 30


def load_yearpred(
    files: Mapping[str, Path],
    *,
    k: int = 5,
    columns: int | Sequence[int] = CLUSTERED,
    seed: int = 0,
) -> Domains:
    """All songs: domains from the official training part, test rows apart.

    Parameters
    ----------
    files
        Found files.
    k, columns, seed
        See `vntransfer_lab.data.kmeans_domains`; the centers are found on the training part alone,
        then training and test rows are assigned.

    Returns
    -------
    Domains
        Training rows; ``extras["test"]`` maps domain -> (X, y) of the test rows. A file of
        another length (a sample) keeps the official share of training rows, 90 %.
    """
    (path,) = files.values()
    rows = read_numbers(path, columns=1 + len(NAMES), dtype=np.float32)
    n_train = N_TRAIN if len(rows) == N_ROWS else int(len(rows) * N_TRAIN / N_ROWS)
    X, y = rows[:, 1:], np.asarray(rows[:, 0], dtype=np.float64)
    owner = file_domains(path, X, k, columns, seed=seed, n_fit=n_train)
    train, test = slice(None, n_train), slice(n_train, None)
    built = (
        _how(k, columns, seed),
        f"first {n_train} of {len(rows)} rows are training (the official rule), the rest test",
    )
    return _domains(
        "yearpredictionmsd",
        split_rows(X[train], y[train], owner[train], k),
        built,
        {"test": split_rows(X[test], y[test], owner[test], k)},
    )


def load_yearpred_small(
    files: Mapping[str, Path],
    *,
    k: int = 5,
    columns: int | Sequence[int] = CLUSTERED,
    seed: int = 0,
) -> Domains:
    """Domains of 7000 songs drawn from the official training part."""
    (path,) = files.values()
    with np.load(path, allow_pickle=False) as box:
        drawn = box["source"] < 2  # the others are the first rows of the file, not a random sample
        X, y = box["X"][drawn].astype(np.float32), box["y"][drawn].astype(np.float64)
    owner = file_domains(path, X, k, columns, seed=seed)
    built = (_how(k, columns, seed), f"{len(X)} random rows of the official training part")
    return _domains("yearpred-small", split_rows(X, y, owner, k), built, {})


def _how(k: int, columns: int | Sequence[int], seed: int) -> str:
    which = f"first {columns}" if isinstance(columns, int) else f"{list(columns)}"
    return (
        f"{k} domains by k-means on the {which} columns, standardized, seed {seed}; "
        "dom1 is the largest"
    )


def _domains(
    name: str,
    domains: dict[str, tuple[NDArray[np.floating], NDArray[np.generic]]],
    built: tuple[str, ...],
    extras: dict[str, object],
) -> Domains:
    return Domains(
        name,
        domains,
        feature_names=NAMES,
        response_name="year",
        provenance=Provenance(built),
        extras=extras,
    )
