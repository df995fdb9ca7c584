"""What a cell gives: its outcome, what it cost, and the record of it that a store keeps."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vntransfer import __version__
from vntransfer_lab.runner.cells import IDENTITY, Identity, canonical_json

JSON_COLUMNS = ("hyper", "settings")
"""Columns of a cell that hold more than one value."""


DIVERGED = "diverged"
"""Only metric of a cell whose training diverged."""


@dataclass(frozen=True)
class Cost:
    """What a cell cost; it differs from run to run, so it is kept apart from results."""

    steps: int = 0  # training steps that were timed
    step_seconds: float | None = None  # processor time of one of them
    memory: int | None = None  # bytes by which the worker grew; in results of earlier versions


@dataclass(frozen=True)
class CellOutcome:
    """Result of computing one cell: rows ``(step, metric, value)`` or an error.

    ``made_by`` is the version of vntransfer that computed it.
    """

    rows: Sequence[tuple[int, str, float]] = ()
    seconds: float = 0.0
    error: str = ""
    traceback: str = ""
    warnings: Sequence[str] = ()
    cost: Cost | None = None
    made_by: str = __version__

    def last(self, metric: str) -> float | None:
        """Return a metric at its last step; None if there is none, as in a failed cell."""
        steps = [(step, value) for step, name, value in self.rows if name == metric]
        return max(steps)[1] if steps else None


@dataclass(frozen=True, kw_only=True)
class Record(Identity):
    """One cell as it stands in the store; ``metrics[name][step]`` is a value."""

    key: str
    status: str
    seconds: float | None = None
    error: str | None = None
    traceback: str | None = None
    warnings: str | None = None
    made_by: str = ""
    cost: Cost | None = None
    metrics: dict[str, dict[int, float]] = field(default_factory=dict)

    def outcome(self) -> CellOutcome:
        """Return the result of the cell."""
        rows = [
            (step, name, v) for name, steps in self.metrics.items() for step, v in steps.items()
        ]
        return CellOutcome(
            rows,
            self.seconds or 0.0,
            self.error or "",
            warnings=(self.warnings or "").splitlines(),
            cost=self.cost,
            made_by=self.made_by,
        )


def columns(cell: Identity) -> dict[str, Any]:
    """Return the identity of a cell as columns of a table, settings as JSON."""
    row = {name: getattr(cell, name) for name in IDENTITY}
    return row | {name: canonical_json(row[name]) for name in JSON_COLUMNS}
