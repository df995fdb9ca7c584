"""The registry of divergences between SPD matrices, which also documents them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vntransfer.divergences import _distances, _matrix


@dataclass(frozen=True)
class Divergence:
    """Properties of a divergence d(σ, ρ).

    Parameters
    ----------
    function
        The matrix function.
    symmetric
        d(σ, ρ) = d(ρ, σ) with default options.
    metric
        Symmetric, zero only at equality, and the triangle inequality holds.
    conditional
        Compares response given features: takes ``n_response``.
    degree
        d(cσ, cρ) = c^degree d(σ, ρ) for c > 0; 0 if the scale of the data does not matter.
    summary
        One line.
    """

    function: Callable[..., Any]
    symmetric: bool
    metric: bool
    conditional: bool
    degree: float
    summary: str


def _entry(function: Callable[..., Any], flags: str, degree: float, summary: str) -> Divergence:
    """Make an entry from flags: s symmetric, m metric, c conditional."""
    return Divergence(function, "s" in flags, "m" in flags, "c" in flags, degree, summary)


DIVERGENCES: dict[str, Divergence] = {
    "von_neumann": _entry(_matrix.von_neumann, "", 1, "tr(σ log σ - σ log ρ - σ + ρ)"),
    "jeffreys": _entry(_matrix.jeffreys, "s", 1, "½ tr((σ - ρ)(log σ - log ρ))"),
    "conditional_von_neumann": _entry(
        _matrix.conditional_von_neumann, "sc", 1, "von_neumann, joint minus features, both ways"
    ),
    "log_det": _entry(_matrix.log_det, "", 0, "tr(σρ⁻¹) - log det(σρ⁻¹) - n"),
    "conditional_log_det": _entry(
        _matrix.conditional_log_det, "sc", 0, "log_det, joint minus features, both ways"
    ),
    "jensen_von_neumann": _entry(
        _distances.jensen_von_neumann, "sm", 0.5, "√ of the quantum Jensen-Shannon divergence"
    ),
    "log_euclidean": _entry(_distances.log_euclidean, "sm", 0, "‖log σ - log ρ‖_F"),
    "affine_invariant": _entry(_distances.affine_invariant, "sm", 0, "‖log(ρ^-½ σ ρ^-½)‖_F"),
    "bures_wasserstein": _entry(
        _distances.bures_wasserstein, "sm", 0.5, "optimal transport between centered Gaussians"
    ),
}
