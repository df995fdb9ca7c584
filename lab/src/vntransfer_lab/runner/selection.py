"""Which hyper-parameters and which epoch a table shows, and the rule that chose them.

No rule but ``oracle`` sees target labels; every table prints its rule.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vntransfer_lab.errors import PresetError

if TYPE_CHECKING:
    from vntransfer_lab.runner.records import Record

# rule -> (metric that it minimizes, or None for the last step; sentence for the tables)
RULES: Mapping[str, tuple[str | None, str]] = {
    "fixed": (None, "hyper-parameters and length fixed beforehand"),
    "last_epoch": (None, "hyper-parameters fixed beforehand, last epoch"),
    "short_stream": (None, "best on another stream of a few short tasks, held-out test rows"),
    "full_stream": (None, "best on another stream of the same length, held-out test rows"),
    "source_validation": ("source_validation", "smallest error on held-out source rows"),
    "leave_one_source_out": (
        "leave_one_source_out",
        "smallest error when each source plays the target once",
    ),
    "oracle": ("", "ORACLE: chosen with the target's labels, an upper bound and no result"),
}


def choose(
    candidates: "Sequence[Record]", rule: str, metric: str, *, higher_is_better: bool = False
) -> "tuple[Record, int]":
    """Candidate and step that a rule chooses; steps are those where ``metric`` was recorded.

    Candidates are finished cells that differ only in hyper-parameters, in the order of the plan.
    Ties go to the earlier candidate and step: a table never depends on the order in which cells
    finished.
    """
    first = candidates[0]
    if RULES[rule][0] is None:
        if len(candidates) > 1:
            raise PresetError(
                f"selection: {rule!r} cannot choose among {len(candidates)} hyper-parameter "
                f"settings of {first.method}; use another rule or one setting"
            )
        return first, max(first.metrics[metric])
    best: tuple[float, Record, int] | None = None
    for record in candidates:
        found = best_step(record.metrics, rule, metric, higher_is_better=higher_is_better)
        if found is not None and (best is None or found[0] < best[0]):
            best = found[0], record, found[1]
    if best is None:
        raise missing_metric(rule, first.method, first.metrics)
    return best[1], best[2]


def missing_metric(rule: str, method: str, recorded: Mapping[str, object]) -> PresetError:
    """Say that a method does not record what a rule needs."""
    return PresetError(
        f"selection: {rule!r} needs the metric {RULES[rule][0]!r}, which {method} did not record; "
        f"recorded: {', '.join(sorted(recorded))}"
    )


def best_step(
    metrics: Mapping[str, Mapping[int, float]],
    rule: str,
    metric: str,
    *,
    higher_is_better: bool = False,
) -> tuple[float, int] | None:
    """Smallest score of one cell by a rule, and the step where it is; None if it recorded none."""
    scores = metrics.get(RULES[rule][0] or metric, {})
    sign = -1.0 if rule == "oracle" and higher_is_better else 1.0
    steps = sorted(scores.keys() & metrics.get(metric, {}).keys())
    return min(((sign * scores[step], step) for step in steps), default=None)
