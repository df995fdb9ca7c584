"""The one list of divergences between SPD matrices; it is also their documentation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vntransfer.divergences import _distances, _matrix


@dataclass(frozen=True)
class Divergence:
    """What is known about a divergence d(σ, ρ).

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
    summary
        One line.
    """

    function: Callable[..., Any]
    symmetric: bool
    metric: bool
    conditional: bool
    summary: str


def _entry(function: Callable[..., Any], flags: str, summary: str) -> Divergence:
    """Make an entry from flags: s symmetric, m metric, c conditional."""
    return Divergence(function, "s" in flags, "m" in flags, "c" in flags, summary)


DIVERGENCES: dict[str, Divergence] = {
    "von_neumann": _entry(_matrix.von_neumann, "", "tr(σ log σ - σ log ρ - σ + ρ)"),
    "jeffreys": _entry(_matrix.jeffreys, "s", "½ tr((σ - ρ)(log σ - log ρ))"),
    "conditional_von_neumann": _entry(
        _matrix.conditional_von_neumann, "sc", "von_neumann, joint minus features, both ways"
    ),
    "log_det": _entry(_matrix.log_det, "", "tr(σρ⁻¹) - log det(σρ⁻¹) - n"),
    "conditional_log_det": _entry(
        _matrix.conditional_log_det, "sc", "log_det, joint minus features, both ways"
    ),
    "jensen_von_neumann": _entry(
        _distances.jensen_von_neumann, "sm", "√ of the quantum Jensen-Shannon divergence"
    ),
    "log_euclidean": _entry(_distances.log_euclidean, "sm", "‖log σ - log ρ‖_F"),
    "affine_invariant": _entry(_distances.affine_invariant, "sm", "‖log(ρ^-½ σ ρ^-½)‖_F"),
    "bures_wasserstein": _entry(
        _distances.bures_wasserstein, "sm", "optimal transport between centred Gaussians"
    ),
}
