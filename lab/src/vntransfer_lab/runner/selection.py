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
    "leave_one_source_out": ("leave_one_source_out", "smallest error on held-out sources"),
    "oracle": ("", "ORACLE: chosen with the target's labels, a bound and not a result"),
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
    sign = -1.0 if rule == "oracle" and higher_is_better else 1.0
    scored = [
        (sign * score, place, step)
        for place, record in enumerate(candidates)
        for step, score in record.metrics.get(RULES[rule][0] or metric, {}).items()
        if step in record.metrics.get(metric, {})
    ]
    if not scored:
        raise PresetError(
            f"selection: {rule!r} needs the metric {RULES[rule][0]!r}, which {first.method} did "
            f"not record; recorded: {', '.join(sorted(first.metrics))}"
        )
    _, place, step = min(scored)
    return candidates[place], step
