"""Four regression sets of the paper's robustness figure, and the label noise of that figure."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import ArgumentError, DataError
from vntransfer_lab.data.archives import read_members
from vntransfer_lab.data.base import Domains, Provenance
from vntransfer_lab.data.grouping import file_domains, kmeans_words, split_rows

COLUMNS = {
    "2dplanes": (*(f"x{i}" for i in range(1, 11)), "y"),
    "cal_housing": (
        "longitude",
        "latitude",
        "housingMedianAge",
        "totalRooms",
        "totalBedrooms",
        "population",
        "households",
        "medianIncome",
        "medianHouseValue",
    ),
    "bank8FM": ("a1cx", "a1cy", "b2x", "b2y", "a2pop", "a3pop", "temp", "mxql", "rej"),
    "puma8NH": (
        "theta1",
        "theta2",
        "theta3",
        "thetad1",
        "thetad2",
        "thetad3",
        "tau1",
        "tau2",
        "thetadd3",
    ),
}


@dataclass(frozen=True)
class NoiseMixture:
    """Mixture of Gaussians: weights, means and the second parameters of the paper's N(., .)."""

    weights: tuple[float, ...]
    means: tuple[float, ...]
    spreads: tuple[float, ...]


NOISE = {
    "2dplanes": NoiseMixture((0.39, 0.37, 0.24), (2.62, 5.98, 4.3), (2.0, 2.1, 3.1)),
    # printed as .4 N(3.935, "4. ,"): read as 4; the weights .4, .38, .2 add up to .98 and are
    # divided by their sum when drawn
    "bank8FM": NoiseMixture((0.4, 0.38, 0.2), (3.935, 5.693, 4.7), (4.0, 0.979, 3.1)),
    "cal_housing": NoiseMixture((0.55, 0.4, 0.05), (6.2, 4.5, 3.2), (2.2, 3.9, 2.9)),
    "puma8NH": NoiseMixture((0.58, 0.2, 0.22), (4.2, 5.0, 2.1), (0.8, 2.3, 1.1)),
}


def mixture_noise(
    mixture: str | NoiseMixture,
    n_samples: int,
    scale: float = 1.0,
    *,
    seed: int = 0,
    spread: Literal["std", "variance"] = "std",
) -> NDArray[np.float64]:
    """Draw the paper's noise λ Σ w N(m, s), to be added to the training responses.

    Parameters
    ----------
    mixture
        Name of the set whose mixture the paper prints, or one of your own.
    n_samples
        Number of draws.
    scale
        The paper's λ.
    seed
        Seed.
    spread
        What the second parameter of N(., .) is: the paper does not say.

    Examples
    --------
    >>> noise = mixture_noise("puma8NH", 100_000, scale=2.0)
    >>> round(float(noise.mean()), 1)  # 2 (.58 x 4.2 + .2 x 5 + .22 x 2.1)
    7.8
    """
    if isinstance(mixture, str):
        if mixture not in NOISE:
            raise ArgumentError(f"mixture: expected one of {', '.join(NOISE)}, got {mixture!r}")
        mixture = NOISE[mixture]
    if n_samples < 1 or spread not in ("std", "variance"):
        raise ArgumentError(
            f"n_samples: expected at least 1, got {n_samples}; spread: expected 'std' or "
            f"'variance', got {spread!r}"
        )
    weights = np.array(mixture.weights) / np.sum(mixture.weights)
    deviations = np.array(mixture.spreads)
    if spread == "variance":
        deviations = np.sqrt(deviations)
    rng = np.random.default_rng(seed)
    part = rng.choice(len(weights), size=n_samples, p=weights)
    draws = np.array(mixture.means)[part] + deviations[part] * rng.standard_normal(n_samples)
    return np.asarray(scale * draws)


def two_d_planes(
    n_samples: int = 40_768, *, noise: float = 1.0, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Generate 2dplanes from its published formula (Breiman et al. 1984; Torgo).

    x1 is -1 or 1, x2 to x10 are -1, 0 or 1, all equally likely and independent;
    y = 3 + 3 x2 + 2 x3 + x4 + ε if x1 = 1, else y = -3 + 3 x5 + 2 x6 + x7 + ε, ε ~ N(0, 1).

    Examples
    --------
    >>> X, y = two_d_planes(4, noise=0, seed=0)
    >>> y
    array([-3.,  6.,  4., -7.])
    """
    if n_samples < 1:
        raise ArgumentError(f"n_samples: expected at least 1, got {n_samples}")
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, n_samples) * 2.0 - 1
    X = np.column_stack([first, rng.integers(-1, 2, (n_samples, 9)).astype(np.float64)])
    up = 3 + 3 * X[:, 1] + 2 * X[:, 2] + X[:, 3]
    down = -3 + 3 * X[:, 4] + 2 * X[:, 5] + X[:, 6]
    return X, np.where(first == 1, up, down) + noise * rng.standard_normal(n_samples)


def load_planes(
    files: Mapping[str, Path],
    *,
    generated: bool | None = None,
    n_samples: int = 40_768,
    noise: float = 1.0,
    seed: int = 0,
) -> Domains:
    """2dplanes from the file, or generated where there is none or ``generated`` says so.

    Parameters
    ----------
    files
        Found files; may be empty.
    generated
        None: generate only where there is no file. The others are for generation only.
    n_samples, noise, seed
        See `two_d_planes`.
    """
    if generated is False and not files:
        raise DataError(
            "2dplanes: cart_delve.tgz is absent; run `vnt data fetch 2dplanes`, or load it with "
            "generated=True"
        )
    if files and not generated:
        return load_regression(files, name="2dplanes")
    X, y = two_d_planes(n_samples, noise=noise, seed=seed)
    built = f"generated from the published formula, {n_samples} rows, seed {seed}"
    return _table("2dplanes", X, y, built)


def load_regression(
    files: Mapping[str, Path],
    *,
    name: str,
    k: int = 1,
    seed: int = 0,
    columns: int | Sequence[int] | None = None,
) -> Domains:
    """One table in raw units, as a single domain or in k domains.

    Parameters
    ----------
    files
        Found files.
    name
        Which table; fixed by the registry.
    k
        Number of domains, by k-means; 1: the whole table.
    seed
        Of k-means.
    columns
        Columns to cluster on: a number means that many first ones, None all.
    """
    (path,) = files.values()
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as box:
            X, y, built = box["X"], box["y"], "whole, raw units"
    else:
        rows = read_data_files(path, len(COLUMNS[name]))
        X, y, built = rows[:, :-1], rows[:, -1], "whole (.data and .test), raw units"
    if k == 1:
        return _table(name, X, y, built)
    owner = file_domains(path, X, k, columns, seed=seed)
    return _domains(name, split_rows(X, y, owner, k), built, kmeans_words(k, columns, seed))


def _table(name: str, X: NDArray[np.float64], y: NDArray[np.float64], built: str) -> Domains:
    return _domains(name, {name: (X, y)}, built)


def _domains(
    name: str, domains: Mapping[str, tuple[NDArray[Any], NDArray[Any]]], *built: str
) -> Domains:
    *features, response = COLUMNS[name]
    return Domains(
        name,
        domains,
        feature_names=tuple(features),
        response_name=response,
        provenance=Provenance(built),
    )


def read_data_files(path: Path, n_columns: int) -> NDArray[np.float64]:
    """Rows of the .data and .test files of an official archive (or folder, or of one such file).

    Numbers are separated by commas or blanks; the last column is the response.
    """
    if path.suffix in (".data", ".test"):
        parts = [(path.name, path.read_bytes())]
    else:
        members = read_members(path, lambda name: name.endswith((".data", ".test")))
        parts = sorted(members)
    tables = []
    for name, content in parts:
        try:
            text = content.decode("ascii").replace(",", " ")
            tables.append(np.loadtxt(io.StringIO(text), ndmin=2))
        except ValueError as error:
            raise DataError(f"{path}: {name} is not a table of numbers ({error})") from error
    if not tables or any(table.shape[1] != n_columns for table in tables):
        seen = ", ".join(f"{n} {t.shape}" for (n, _), t in zip(parts, tables, strict=True))
        raise DataError(
            f"{path}: expected .data files with {n_columns} columns, found {seen or 'none'}; "
            "fetch it again"
        )
    return np.concatenate(tables)
