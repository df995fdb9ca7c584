"""Choose the scale of skewed responses: the logarithm where it predicts held-out sources better."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vntransfer.display import short
from vntransfer.domains import Groups
from vntransfer.workflows.probe import Probe, run_probe
from vntransfer.workflows.response_transform import Asked, Kind, ResponseTransform, shape_hint

Floats = NDArray[np.float64]


class ChosenScale(NamedTuple):
    """The scale, and what fast learners predict on it."""

    transform: ResponseTransform
    probe: Probe | None

    def because(self, reason: str) -> "ChosenScale":
        """Give the same with a reason."""
        return self._replace(transform=replace(self.transform, reason=reason))

    def errors(self, y: Floats) -> Floats:
        """Give errors of the first fast learner on held-out sources, in the user's units."""
        assert self.probe is not None
        gaps = [
            np.abs(self.transform.undo(self.probe.held_out[name][0]) - y[rows]).mean()
            for name, rows in self.probe.rows.items()
        ]
        return np.maximum(gaps, 1e-300)


def choose_transform(
    asked: Asked,
    X: Any,
    y: Floats,
    groups: Groups,
    *,
    response: str,
    method: str = "",
    random_state: int = 0,
) -> ChosenScale:
    """Choose the scale on which responses are learned.

    "auto" tries the logarithm only if all responses of sources are positive and skewed: a fast
    learner predicts each source from the others on both scales, and the logarithm is taken if the
    mean of log(error ratio) over held-out sources, in the user's units, is below minus its standard
    error.
    """
    known = y[groups.source_rows]

    def on(kind: Kind, reason: str = "") -> ChosenScale:
        scale = ResponseTransform.fitted(kind, known, reason)
        probe = run_probe(X, scale.apply(y), groups, method=method, random_state=random_state)
        return ChosenScale(scale, probe)

    if asked != "auto":
        said = "The response is learned on a log scale, as requested."
        return on(asked, said if asked == "log" else "")
    plain, hint = on("none"), shape_hint(known, response)
    if not hint:
        return plain
    if not (known > 0).all():
        return plain.because(f"{hint}. A log scale needs positive values.")
    if len(groups.sources) < 3:
        return plain.because(
            f"{hint}. Whether a log scale is better cannot be judged with fewer than three "
            f"sources; see --transform log."
        )
    logs = on("log")
    if plain.probe is None or logs.probe is None:
        return plain.because(f"{hint}.")
    ratio = np.log(logs.errors(y) / plain.errors(y))
    spread = ratio.std(ddof=1) / np.sqrt(len(ratio))
    change = 100 * np.expm1(ratio.mean())
    said = f"{abs(change):.1f} % {'lower' if change < 0 else 'higher'}"
    if ratio.mean() < -spread:
        return logs.because(
            f"{hint}. It is learned on a log scale: with a fast learner the error on held-out "
            f"sources is {said} so. Errors and intervals are in units of {short(response)}."
        )
    return plain.because(
        f"{hint}. A log scale was tried and is not clearly better: with a fast learner the error "
        f"on held-out sources is {said} so."
    )
