"""Families of random worlds: domains that differ in inputs, in the relation, or in both."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import one_of, whole
from vntransfer_lab.data.base import Domains, Provenance

_Array = NDArray[np.float64]

Shift = Literal["covariate", "relation", "both"]

N_DOMAINS = 6
N_FEATURES = 8
N_WAVES = 6
GROUPS = 2
NOISE = 0.3  # standard deviation of what is added to the responses
NEAR, FAR = 0.2, 0.9  # standard deviations of a domain's mean, in each column, about its group's
APART = 0.7  # standard deviation of the mean of a group
ANGLE = np.pi / 3  # how far the relations of the groups turn away from what they have in common


def load_families(
    files: Mapping[str, Path], *, shift: Shift = "covariate", n_samples: int = 400, seed: int = 0
) -> Domains:
    """Domains w1, w2, ... of a world drawn at random; reads no files.

    A relation is a sum of random waves, f(x) = Σ a tanh(w'x + b) + c'x, with variance 1 under
    standard normal inputs. Domain i has inputs m_i + S_i z, z standard normal, and belongs to
    group i mod 2:

    - "covariate": all domains share the relation, and the means m_i lie far apart;
    - "relation": each group has its own relation, cos θ f + sin θ f_g with θ = 60°; the means are
      near the one of the group, so that the inputs reveal the group;
    - "both": each group has its own relation, and the means lie far apart within a group too.

    Parameters
    ----------
    files
        Not used.
    shift
        Difference between domains: "covariate", "relation" or "both".
    n_samples
        Rows per domain.
    seed
        Seed of the world.

    Examples
    --------
    >>> load_families({}, shift="both", n_samples=50, seed=1)
    <Domains families: 6 domains, 300 rows x 8 features>
    """
    one_of("shift", shift, Shift)
    whole("n_samples", n_samples, minimum=2)
    rng = np.random.default_rng((seed, get_args(Shift).index(shift)))
    common = _relation(rng)
    own = [_relation(rng) for _ in range(GROUPS)]
    centers = APART * rng.standard_normal((GROUPS, N_FEATURES))
    worlds = {}
    for i in range(N_DOMAINS):
        g = i % GROUPS
        spread = NEAR if shift == "relation" else FAR
        mean = spread * rng.standard_normal(N_FEATURES)
        if shift != "covariate":
            mean += centers[g]
        mixing = np.linalg.qr(rng.standard_normal((N_FEATURES, N_FEATURES)))[0]
        scales = np.exp(0.3 * rng.standard_normal(N_FEATURES))
        x = mean + (rng.standard_normal((n_samples, N_FEATURES)) * scales) @ mixing
        y = common(x)
        if shift != "covariate":
            y = np.cos(ANGLE) * y + np.sin(ANGLE) * own[g](x)
        worlds[f"w{i + 1}"] = x, y + NOISE * rng.standard_normal(n_samples)
    return Domains(
        "families",
        worlds,
        feature_names=tuple(f"x{i + 1}" for i in range(N_FEATURES)),
        provenance=Provenance(built=(f"random world, shift {shift}, noise {NOISE}, seed {seed}",)),
    )


def _relation(rng: np.random.Generator) -> Callable[[_Array], _Array]:
    """Draw a function of rows, scaled on a sample of standard normal ones."""
    p = N_FEATURES
    w = rng.standard_normal((p, N_WAVES)) / np.sqrt(p) * 2
    a, b, c = rng.standard_normal(N_WAVES), rng.standard_normal(N_WAVES), rng.standard_normal(p)
    c *= 0.5 / np.sqrt(p)

    def raw(x: _Array) -> _Array:
        return np.asarray(np.tanh(x @ w + b) @ a + x @ c)

    sample = raw(rng.standard_normal((2000, p)))
    mean, deviation = sample.mean(), sample.std()
    return lambda x: np.asarray((raw(x) - mean) / deviation)
