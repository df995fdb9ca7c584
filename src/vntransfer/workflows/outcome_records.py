"""Outcomes of targets as plain values, as a saved model holds them."""

from collections.abc import Mapping
from typing import Any

from vntransfer.errors import DataError
from vntransfer.storage.record import Score, check_record
from vntransfer.workflows.evidence import Evidence
from vntransfer.workflows.response_transform import ResponseTransform
from vntransfer.workflows.target_outcome import TargetOutcome
from vntransfer.workflows.target_place import TargetPlace

EVIDENCE = {
    "method": str,
    "errors": dict[str, dict[str, Score]],
    "source_weights": dict[str, float],
    "shares": dict[str, float],
    "source_rows": dict[str, int],
    "resemblance": dict[str, float],
    "place": dict[str, Any] | None,
}
PLACE = {
    **dict.fromkeys(("distance", "noise", "outside", "typical_cover", "disagreement"), float),
    **dict.fromkeys(("distances", "ratios", "covered"), dict[str, float]),
}
TRANSFORM = {"kind": str, "low": float, "high": float, "reason": str}
OUTCOME = {
    "target": str,
    "rows": int,
    "reason": str,
    "evidence": EVIDENCE,
    "transform": TRANSFORM,
}
"""Types of what is saved."""


def outcome_from_record(own: Mapping[str, Any]) -> TargetOutcome:
    """Make an outcome of its plain values, whose types were checked."""
    evidence, transform = own["evidence"], own["transform"]
    at = f"record.outcomes: {own['target']!r:.40}"
    if transform["kind"] not in ("none", "log") or transform["low"] > transform["high"]:
        raise DataError(f"{at}: expected a transform 'none' or 'log', got {transform!r:.60}")
    if evidence["errors"] and evidence["method"] not in evidence["errors"]:
        raise DataError(f"{at}: expected errors of {evidence['method']!r:.40} among those held out")
    for what in ("source_rows", "resemblance"):
        if min(evidence[what].values(), default=0) < 0:
            raise DataError(f"{at}: {what}: expected numbers of at least 0")
    place = evidence["place"]
    if place is not None:
        check_record(f"{at}: place", place, PLACE)
        place = TargetPlace(**{key: place[key] for key in PLACE})
    numbers = Evidence(**{**{key: evidence[key] for key in EVIDENCE}, "place": place})
    scale = ResponseTransform(**{key: transform[key] for key in TRANSFORM})
    return TargetOutcome(own["target"], own["rows"], own["reason"], numbers, scale)
