"""Choosing among candidates by virtual targets, with a guard: a doubtful gain is no gain."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import number
from vntransfer.display import one_line
from vntransfer.domains import Name
from vntransfer.errors import ArgumentError

FLOOR = 1e-6
"""Errors below this share of a virtual target's largest one count as this share of it."""


@dataclass(frozen=True)
class Guarded:
    """What `guard` found for C candidates on V virtual targets.

    Parameters
    ----------
    scores
        v_c = mean of r_c + its standard error, (C,); 0 for the safe candidate.
    ratios
        r = log(error of c / error of the safe candidate), (V, C).
    standard_errors
        Of the mean of r_c over virtual targets, (C,); infinite with fewer than two.
    shares
        softmax(-v / temperature), (C,): weights of a mean over the candidates.
    best
        The candidate of the lowest score; the first one among equals.
    """

    scores: NDArray[np.float64]
    ratios: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    shares: NDArray[np.float64]
    best: int


@dataclass(frozen=True)
class SharpnessSelection:
    """How the sharpness was chosen.

    Parameters
    ----------
    sharpness
        The one chosen.
    reason
        Why, in words.
    candidates
        Sharpnesses that were tried, (C,).
    virtual_targets
        Sources that played the target, (V,).
    errors
        Error of each candidate on each virtual target, (V, C).
    guarded
        Scores of the candidates; None if there was nothing to choose from.
    """

    sharpness: float
    reason: str
    candidates: tuple[float, ...] = ()
    virtual_targets: tuple[Name, ...] = ()
    errors: NDArray[np.float64] | None = None
    guarded: Guarded | None = None

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Make it again from its values as lists."""
        guarded, errors = record["guarded"], record["errors"]
        if guarded is not None:
            arrays = {k: np.array(v) for k, v in guarded.items() if k != "best"}
            guarded = Guarded(**arrays, best=int(guarded["best"]))
        return cls(
            float(record["sharpness"]),
            str(record["reason"]),
            tuple(record["candidates"]),
            tuple(record["virtual_targets"]),
            None if errors is None else np.array(errors),
            guarded,
        )

    def __repr__(self) -> str:
        return one_line(f"SharpnessSelection: sharpness {self.sharpness:g}, {self.reason}")


def guard(errors: Any, *, temperature: float = 0.02) -> Guarded:
    """Score candidates by their errors on virtual targets, against a safe one.

    With r_c = log(error_c / error_0) on each virtual target, the score v_c is the mean of r_c plus
    its standard error, and v_0 = 0: a candidate must be better than the safe one by more than a
    standard error to be preferred. A single virtual target gives no standard error, so that only
    the safe candidate can be chosen then.

    Parameters
    ----------
    errors
        Non-negative errors (V, C) of C candidates on V virtual targets, the safe one first. A
        candidate that failed somewhere (NaN or infinite) cannot be chosen; the safe one must not
        fail. Zero errors count as 1e-6 of their row's largest.
    temperature
        Of the softmax that gives the shares: a difference of so much in v changes the ratio of
        two shares by a factor e.

    Examples
    --------
    >>> found = guard([[1.0, 0.9, 0.5], [2.0, 1.7, 2.2], [1.0, 0.88, 1.3]])
    >>> found.best, found.scores.round(2)
    (1, array([ 0.  , -0.12,  0.18]))
    """
    e, t = _check(errors), number("temperature", temperature, exclusive=True)
    failed = ~np.isfinite(e).all(0)
    e = np.where(failed, np.inf, e)
    largest = e[:, ~failed].max(1, keepdims=True)
    relative = np.divide(e, largest, out=np.ones_like(e), where=largest > 0)
    e = np.maximum(relative, FLOOR)
    ratios = np.log(e) - np.log(e[:, :1])
    n = len(ratios)
    errs = np.full(ratios.shape[1], np.inf)
    if n > 1:
        errs[~failed] = ratios[:, ~failed].std(0, ddof=1) / np.sqrt(n)
    errs[0] = 0.0
    ratios[:, failed] = np.inf
    scores = ratios.mean(0) + errs
    shares = np.exp(-(scores - scores.min()) / t)
    return Guarded(scores, ratios, errs, shares / shares.sum(), int(scores.argmin()))


def _check(errors: Any) -> NDArray[np.float64]:
    e = np.array(errors, dtype=np.float64)
    if e.ndim != 2 or e.size == 0:
        raise ArgumentError(
            f"errors: expected one row per virtual target and one column per candidate, got shape "
            f"{e.shape}"
        )
    if (e < 0).any():
        raise ArgumentError(f"errors: expected none below 0, got {e.min():.3g}")
    if not np.isfinite(e[:, 0]).all():
        raise ArgumentError(
            f"errors: the safe candidate's (column 0) must be finite, got {e[:, 0].tolist()}"
        )
    return e
