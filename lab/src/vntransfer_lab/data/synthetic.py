"""The paper's six synthetic domains: Friedman's response under a gradual covariate shift."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import whole
from vntransfer_lab.data.base import Domains, Provenance

N_DOMAINS = 6
N_FEATURES = 12
OWN_PAIR, NEIGHBOR_PAIR, FAR_PAIR = 0.1, 0.07, 0.5


def covariance_matrix(domain: int) -> NDArray[np.float64]:
    """Covariance of the features of synthetic domain 1 to 6, shape (12, 12).

    The paper sets Σ[2i-1, 2i] = .1 for domain i, .07 between that pair and the neighboring
    columns, .5 inside the pairs of the neighboring domains and zero elsewhere, *including the
    diagonal*: the printed matrix is indefinite. Here the diagonal is 1.
    """
    sigma = np.eye(N_FEATURES)

    def couple(row: int, column: int, value: float) -> None:  # 1-based, as printed
        sigma[row - 1, column - 1] = sigma[column - 1, row - 1] = value

    first, second = 2 * domain - 1, 2 * domain
    couple(first, second, OWN_PAIR)
    if domain < N_DOMAINS:
        couple(second, second + 1, NEIGHBOR_PAIR)
        couple(second + 1, second + 2, FAR_PAIR)
    if domain > 1:
        couple(first, first - 1, NEIGHBOR_PAIR)
        couple(first - 2, first - 1, FAR_PAIR)
    return sigma


def friedman_response(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Noise-free response 10 sin(π x1 x3) + 20 (x5 - .5)² + 10 x7 + 5 x9 of rows of features."""
    waves = 10 * np.sin(np.pi * x[:, 0] * x[:, 2])
    return np.asarray(waves + 20 * (x[:, 4] - 0.5) ** 2 + 10 * x[:, 6] + 5 * x[:, 8])


def load_synthetic(files: Mapping[str, Path], *, n_samples: int = 1000, seed: int = 0) -> Domains:
    """Six domains s1 to s6 whose features drift along the diagonal of the cube; reads no files.

    Domain i has features N(c_i 1, Σ_i), c_i = -1 + (2i - 2)/5, and the Friedman response plus
    standard normal noise. Each domain has its own random stream: its rows do not depend on the
    others.

    Parameters
    ----------
    files
        Not used.
    n_samples
        Rows per domain.
    seed
        Seed of all domains.

    Examples
    --------
    >>> load_synthetic({}, n_samples=50)
    <Domains synthetic: 6 domains, 300 rows x 12 features>
    """
    whole("n_samples", n_samples, minimum=2)
    domains = {}
    for i in range(1, N_DOMAINS + 1):
        rng = np.random.default_rng((seed, i))
        mean = np.full(N_FEATURES, -1 + (2 * i - 2) / 5)
        sigma = covariance_matrix(i)
        x = rng.multivariate_normal(mean, sigma, size=n_samples, method="cholesky")
        domains[f"s{i}"] = (x, friedman_response(x) + rng.standard_normal(n_samples))
    how = f"Friedman response, noise 1.0, diagonal 1.0, far pair {FAR_PAIR}, seed {seed}"
    return Domains(
        "synthetic",
        domains,
        feature_names=tuple(f"x{i}" for i in range(1, N_FEATURES + 1)),
        provenance=Provenance(built=(how,)),
    )
