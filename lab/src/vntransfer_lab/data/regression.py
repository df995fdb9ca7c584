"""2dplanes, which can be generated, and the label noise of the paper's robustness figure."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import one_of, whole
from vntransfer_lab.data.base import Domains, Provenance
from vntransfer_lab.data.tabular import TABLES, load_table


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
        Name of the set whose mixture the paper prints, or your own.
    n_samples
        Number of draws.
    scale
        The paper's λ.
    seed
        Seed.
    spread
        Meaning of the second parameter of N(., .), which the paper does not state.

    Examples
    --------
    >>> noise = mixture_noise("puma8NH", 100_000, scale=2.0)
    >>> round(float(noise.mean()), 1)  # 2 (.58 x 4.2 + .2 x 5 + .22 x 2.1)
    7.8
    """
    if isinstance(mixture, str):
        mixture = NOISE[one_of("mixture", mixture, NOISE)]
    whole("n_samples", n_samples, minimum=1)
    one_of("spread", spread, ("std", "variance"))
    weights = np.array(mixture.weights) / np.sum(mixture.weights)
    deviations = np.array(mixture.spreads)
    if spread == "variance":
        deviations = np.sqrt(deviations)
    rng = np.random.default_rng(seed)
    part = rng.choice(len(weights), size=n_samples, p=weights)
    draws = np.array(mixture.means)[part] + deviations[part] * rng.standard_normal(n_samples)
    return np.asarray(scale * draws)


def two_d_planes(
    n_samples: int = 40_768, *, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Features and response of 2dplanes by its published formula (Breiman et al. 1984; Torgo).

    x1 is -1 or 1, x2 to x10 are -1, 0 or 1, all equally likely and independent;
    y = 3 + 3 x2 + 2 x3 + x4 + ε if x1 = 1, else y = -3 + 3 x5 + 2 x6 + x7 + ε, ε ~ N(0, 1).
    """
    whole("n_samples", n_samples, minimum=1)
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, n_samples) * 2.0 - 1
    X = np.column_stack([first, rng.integers(-1, 2, (n_samples, 9)).astype(np.float64)])
    up = 3 + 3 * X[:, 1] + 2 * X[:, 2] + X[:, 3]
    down = -3 + 3 * X[:, 4] + 2 * X[:, 5] + X[:, 6]
    return X, np.where(first == 1, up, down) + rng.standard_normal(n_samples)


def load_planes(
    files: Mapping[str, Path], *, generated: bool = False, n_samples: int = 40_768, seed: int = 0
) -> Domains:
    """2dplanes from the file, or generated if there is none or ``generated`` is set.

    Parameters
    ----------
    files
        Found files; may be empty.
    generated
        Generate it from the published formula even if the file exists.
    n_samples
        Rows to generate.
    seed
        Seed of the generation.
    """
    if files and not generated:
        return load_table(files, name="2dplanes")
    X, y = two_d_planes(n_samples, seed=seed)
    built = f"generated from the published formula, {n_samples} rows, seed {seed}"
    return Domains(
        "2dplanes",
        {"2dplanes": (X, y)},
        feature_names=TABLES["2dplanes"].features,
        provenance=Provenance((built,)),
    )
