"""Which hyper-parameters and which epoch a table shows, and the rule that chose them.

No rule but ``oracle`` sees target labels; every table prints its rule.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vntransfer.errors import PresetError

if TYPE_CHECKING:
    from vntransfer.bench.store import Record

# rule -> (metric that it minimises, or None for the last step; sentence for the tables)
RULES: dict[str, tuple[str | None, str]] = {
    "fixed": (None, "hyper-parameters and length fixed beforehand"),
    "last_epoch": (None, "hyper-parameters fixed beforehand, last epoch"),
    "short_stream": (None, "best on another stream of a few short tasks, held-out test rows"),
    "full_stream": (None, "best on another stream of the same length, held-out test rows"),
    "source_validation": ("source_validation", "smallest error on held-out source rows"),
    "weighted_validation": (
        "weighted_validation",
        "smallest importance-weighted error on held-out source rows",
    ),
    "leave_one_source_out": (
        "leave_one_source_out",
        "smallest error when each source plays the target once",
    ),
    "oracle": ("", "ORACLE: chosen with the target's labels, an upper bound and no result"),
}


def choose(
    candidates: "Sequence[Record]", rule: str, metric: str, *, higher_is_better: bool = False
) -> "tuple[Record, int]":
    """Candidate (one per hyper-parameter setting) and step that a rule chooses.

    Ties go to the earlier candidate and step, so that a table never depends on the order in which
    cells finished.

    Parameters
    ----------
    candidates
        Finished cells that differ only in hyper-parameters, in the order of the plan.
    rule
        A key of `RULES`.
    metric
        The metric of the table: the steps are those where it was recorded, and ``oracle``
        optimises it.
    higher_is_better
        Direction of ``metric``.
    """
    criterion = RULES[rule][0]
    if criterion is None:
        if len(candidates) > 1:
            raise PresetError(
                f"selection: {rule!r} cannot choose among {len(candidates)} hyper-parameter "
                f"settings of {candidates[0].method}; use another rule or one setting"
            )
        return candidates[0], max(candidates[0].metrics[metric])
    sign = -1.0 if rule == "oracle" and higher_is_better else 1.0
    best: tuple[float, Record, int] | None = None
    for record in candidates:
        scores = record.metrics.get(criterion or metric, {})
        for step in sorted(scores.keys() & record.metrics[metric].keys()):
            score = sign * scores[step]
            if best is None or score < best[0]:
                best = score, record, step
    if best is None:
        raise PresetError(
            f"selection: {rule!r} needs the metric {criterion!r}, which {candidates[0].method} "
            f"did not record; recorded: {', '.join(sorted(candidates[0].metrics))}"
        )
    return best[1], best[2]
