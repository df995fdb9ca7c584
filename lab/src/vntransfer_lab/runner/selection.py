"""Which hyper-parameters and which epoch a table shows, and the rule that chose them.

No rule but ``oracle`` sees target labels; every table prints its rule.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vntransfer_lab.errors import PresetError

if TYPE_CHECKING:
    from vntransfer_lab.runner.records import Record

PRUNED = "pruned"
"""Metric of a cell that a search stopped early: finished, shown and never chosen."""

PARTIAL = "/partial"
"""After the name of a rule's metric: what is known of it before the cell has ended."""

# rule -> (metric that it minimizes, or None for the last step; sentence for the tables)
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
        Finished cells that differ only in hyper-parameters, in the order of the plan; those that
        were stopped early (`PRUNED`) are passed over.
    rule
        A key of `RULES`.
    metric
        The metric of the table: the steps are those where it was recorded, and ``oracle``
        optimizes it.
    higher_is_better
        Direction of ``metric``.
    """
    criterion = RULES[rule][0]
    finished = [record for record in candidates if PRUNED not in record.metrics]
    if not finished:
        raise PresetError(f"selection: all trials of {candidates[0].method} were stopped early")
    if criterion is None:
        if len(finished) > 1:
            raise PresetError(
                f"selection: {rule!r} cannot choose among {len(finished)} hyper-parameter "
                f"settings of {finished[0].method}; use another rule or one setting"
            )
        return finished[0], max(finished[0].metrics[metric])
    best: tuple[float, Record, int] | None = None
    for record in finished:
        found = best_step(record.metrics, rule, metric, higher_is_better=higher_is_better)
        if found is not None and (best is None or found[0] < best[0]):
            best = found[0], record, found[1]
    if best is None:
        raise PresetError(
            f"selection: {rule!r} needs the metric {criterion!r}, which {finished[0].method} "
            f"did not record; recorded: {', '.join(sorted(finished[0].metrics))}"
        )
    return best[1], best[2]


def best_step(
    metrics: Mapping[str, Mapping[int, float]],
    rule: str,
    metric: str,
    *,
    higher_is_better: bool = False,
) -> tuple[float, int] | None:
    """Smallest score of one cell by a rule, and the step where it is; None if it recorded none.

    Examples
    --------
    >>> metrics = {"mae": {1: 3.0, 2: 4.0}, "source_validation": {1: 0.5, 2: 0.4}}
    >>> best_step(metrics, "source_validation", "mae")
    (0.4, 2)
    """
    scores = metrics.get(RULES[rule][0] or metric, {})
    sign = -1.0 if rule == "oracle" and higher_is_better else 1.0
    steps = sorted(scores.keys() & metrics.get(metric, {}).keys())
    return min(((sign * scores[step], step) for step in steps), default=None)
