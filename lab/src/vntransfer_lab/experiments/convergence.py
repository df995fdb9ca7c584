"""``convergence``: how fast the divergence of sample covariances approaches the true one.

Two covariances Σ, Θ of a family are fixed; from each, n samples are drawn and the divergence of
the sample covariances is compared with the true one, for growing n (the steps of the store). For
the von Neumann divergence the terms of the paper's Proposition 1 are recorded beside.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from vntransfer.storage.files import fingerprint
from vntransfer_lab.errors import PresetError
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import CellMethod, Kind
from vntransfer_lab.runner.schema import Schema, Settings

_Array = NDArray[np.float64]

FAMILIES = {
    "equal": "Σ = Θ, eigenvalues 1 to 2: the true divergence is zero",
    "moderate": "random eigenvectors, eigenvalues 1 to 2",
    "decaying": "random eigenvectors, eigenvalues 1, 1/2, ..., 1/d",
    "toeplitz": "entries .5^|i-j| and .8^|i-j|",
    "heavy-tailed": "as moderate, samples from Student's t with 5 degrees of freedom",
}
_DEGREES = 5


def _rotated(eigenvalues: _Array, rng: np.random.Generator) -> _Array:
    q, r = np.linalg.qr(rng.standard_normal((len(eigenvalues), len(eigenvalues))))
    q = q * np.sign(np.diag(r))
    return np.asarray((q * eigenvalues) @ q.T)


def _pair(family: str, d: int) -> tuple[_Array, _Array]:
    """Σ and Θ; they depend on family and dimension alone."""
    rng = np.random.default_rng((list(FAMILIES).index(family), d))
    if family == "toeplitz":
        gaps = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
        return 0.5**gaps, 0.8**gaps
    values = 1.0 / np.arange(1, d + 1) if family == "decaying" else np.linspace(1.0, 2.0, d)
    sigma = _rotated(values, rng)
    return sigma, sigma if family == "equal" else _rotated(values, rng)


def _covariance(matrix: _Array, n: int, heavy: bool, rng: np.random.Generator) -> Any:
    """Sample covariance of n draws whose true covariance is ``matrix``."""
    from vntransfer.moments import covariance

    x = rng.standard_normal((n, len(matrix))) @ np.linalg.cholesky(matrix).T
    if heavy:
        chi = rng.chisquare(_DEGREES, size=(n, 1)) / _DEGREES
        x = x / np.sqrt(chi) * np.sqrt((_DEGREES - 2) / _DEGREES)
    return covariance(x)


def _run(cell: Cell, checkpoint: object) -> Iterator[tuple[int, dict[str, float]]]:
    from vntransfer import divergences
    from vntransfer.theory import convergence_terms

    measure = getattr(divergences, cell.method)
    sigma, theta = _pair(cell.target, cell.settings["dimension"])
    true = float(measure(sigma, theta))
    for n in cell.settings["sizes"]:
        rng = np.random.default_rng((cell.seed, n))
        heavy = cell.target == "heavy-tailed"
        samples = [_covariance(matrix, n, heavy, rng) for matrix in (sigma, theta)]
        estimate = float(measure(*samples))
        row = {"error": abs(estimate - true), "estimate": estimate, "true": true}
        if cell.method == "von_neumann":
            terms = convergence_terms(sigma, theta, *samples)
            row |= {
                "epsilon": terms.epsilon,
                "printed_bound": terms.printed_bound,
                "squared_bound": terms.squared_bound,
                "first_order": terms.first_order,
                "log_step_holds": float(terms.log_step_holds),
            }
        yield n, row


def _canonical(data: str, settings: Settings) -> Settings:
    if min(settings["sizes"]) <= settings["dimension"]:
        raise PresetError(
            f"settings.sizes: {min(settings['sizes'])} samples in {settings['dimension']} "
            "dimensions give a singular covariance; use more"
        )
    return {**settings, "sizes": sorted(set(settings["sizes"]))}


def _fingerprint(data: str, settings: Settings) -> str:
    if data != "gaussian":
        raise PresetError(f"data: convergence generates its samples: 'gaussian', got {data!r}")
    pairs = (_pair(family, settings["dimension"]) for family in FAMILIES)
    # Eigenvectors may differ in the last digits between machines; the families do not.
    return fingerprint(*(np.round(matrix, 9) for pair in pairs for matrix in pair))


class ConvergenceSettings(Schema):
    """Dimension of the matrices and numbers of samples."""

    dimension: int = Field(5, ge=2, le=500)
    sizes: list[Annotated[int, Field(ge=3)]] = Field([100, 300, 1000, 3000, 10_000], min_length=1)


KIND = Kind(
    name="convergence",
    summary="sample divergence to true divergence as n grows",
    version=1,
    metric="error",
    settings=ConvergenceSettings,
    methods=dict.fromkeys(("von_neumann", "jeffreys", "conditional_von_neumann"), CellMethod()),
    targets=lambda data, settings: list(FAMILIES),
    fingerprint=_fingerprint,
    run=_run,
    canonical=_canonical,
    tables="vntransfer_lab.experiments.convergence_report:tables",
    figures="vntransfer_lab.experiments.convergence_report:figures",
)
