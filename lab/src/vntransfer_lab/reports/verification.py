"""Numbers checked by computing them again: some cells of a run, drawn at random."""

import math
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import stdev

from vntransfer import checks
from vntransfer_lab.errors import PresetError, StoreError
from vntransfer_lab.reports.tables import SIGNED, Number, NumberPair, ReportTable, Value
from vntransfer_lab.runner.cells import IDENTITY, Cell, Identity, canonical_json, expand
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.plan import Watcher
from vntransfer_lab.runner.preset import Preset
from vntransfer_lab.runner.records import DIVERGED, CellOutcome, Record
from vntransfer_lab.runner.run import compute_cells
from vntransfer_lab.runner.store import read_records

TOLERANCE = 0.03
"""Relative difference of a metric that is attributed to rounding, which training amplifies."""

SPREADS = 3.0
"""Standard deviations over seeds that are attributed to rounding."""

_CHANGED = "settings or domains of the data have changed since; use the version that made the run"


@dataclass(frozen=True)
class Checked:
    """A cell as archived and as computed now: the experiment's metric at the last step."""

    label: str
    metric: str
    before: float
    now: float | None  # None if the cell failed
    equal: int  # of all its numbers, to the last digit
    numbers: int
    spread: float = 0.0  # standard deviation over the seeds of the run, 0 with a single one
    problem: str = ""  # why the cell failed
    remark: str = ""  # the data here have another hash than those of the run

    @property
    def gap(self) -> float:
        """Difference of the metric; infinite if the cell failed."""
        return math.inf if self.now is None else abs(self.now - self.before)

    def differs(self, tolerance: float = TOLERANCE) -> bool:
        """Whether the difference exceeds a share of the archived value and the spread of seeds."""
        return self.gap > max(tolerance * abs(self.before), SPREADS * self.spread)


def verify(
    folder: str | Path,
    *,
    cells: int = 3,
    data: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    watcher: Watcher | None = None,
) -> list[Checked]:
    """Compute some finished cells of a run folder, or of packed results, again.

    They are drawn at random, by ``seed``, among the named data sets, targets and methods, but not
    among superseded cells, whose method has another version today. Nothing is written into the
    folder. Cells with a search compute their candidates, too. Data with another hash (the same
    pictures in another archive, say) are used anyway, and the ``remark`` of a cell says so. A cell
    whose settings have changed has a ``problem``; if all have, `StoreError` is raised.
    """
    preset, records, _ = read_records(folder)
    checks.whole("cells", cells, minimum=1)
    left = [record for record in records if record.status == "done"]
    for name, values in (("data", data), ("target", targets), ("method", methods)):
        if values:
            known_names = sorted({getattr(record, name) for record in left})
            for value in values:
                checks.one_of(name, value, known_names, error=PresetError)
            left = [record for record in left if getattr(record, name) in values]
    if not left:
        raise StoreError(f"{folder}: no finished cell fits; see vnt bench report {folder}")
    kind = load_kind(preset.experiment)
    current = [record for record in left if record.version == kind.version_of(record.method)]
    if not current:
        raise StoreError(
            f"{folder}: all {len(left)} cells are superseded: the methods have other versions "
            "today; run their preset again, or use the version that made the run"
        )
    drawn = random.Random(seed).sample(current, min(cells, len(current)))
    known = _known(preset, drawn)
    if not known:
        raise StoreError(
            f"{folder}: none of the {len(drawn)} cells can be computed here; {_CHANGED}"
        )
    with tempfile.TemporaryDirectory(prefix="vnt-verify-") as place:
        found = compute_cells(preset, list(known.values()), Path(place), jobs=jobs, watcher=watcher)
    return [_compare(one, known.get(one.key), found, kind.metric, records) for one in drawn]


def as_table(checked: Sequence[Checked]) -> ReportTable:
    """Return what was compared as a table."""
    rows: list[list[Value]] = [
        [
            one.label,
            one.metric,
            one.before,
            "not computed" if one.now is None else one.now,
            None if one.now is None else Number(one.now - one.before, SIGNED),
            one.spread,
            NumberPair(one.equal, one.numbers, " of "),
        ]
        for one in checked
    ]
    header = ["cell", "metric", "before", "now", "difference", "spread over seeds", "equal numbers"]
    notes = [
        f"{one.label}: {text}" for one in checked for text in (one.problem, one.remark) if text
    ]
    return ReportTable("recomputed cells", header, rows, ["equal: to the last digit", *notes])


def _known(preset: Preset, drawn: Sequence[Record]) -> dict[str, Cell]:
    """Make the cells of records from the preset, by the records' keys, whatever data are here."""
    some = replace(
        preset,
        data=tuple(dict.fromkeys(record.data for record in drawn)),
        seeds=tuple(sorted({record.seed for record in drawn})),
        targets=tuple(sorted({record.target for record in drawn})),
    )
    cells = {_apart_from("data_hash", cell): cell for cell in expand(some)}
    methods, found = load_kind(preset.experiment).methods, {}
    for record in drawn:  # as its cell is named today: without options that were added later
        named = replace(record, hyper=methods[record.method].named(record.hyper))
        if (cell := cells.get(_apart_from("data_hash", named))) is not None:
            found[record.key] = cell
    return found


def _apart_from(name: str, one: Identity) -> str:
    """Return all that determines the result of a cell, but for one part of it."""
    return canonical_json({part: getattr(one, part) for part in IDENTITY if part != name})


def _compare(
    record: Record,
    cell: Cell | None,
    found: Mapping[str, CellOutcome],
    metric: str,
    records: Sequence[Record],
) -> Checked:
    outcome = None if cell is None else found.get(cell.key)
    if outcome is None:
        outcome = CellOutcome(error="not computed" if cell else _CHANGED)
    before, then = record.outcome(), DIVERGED in record.metrics
    metric = DIVERGED if then else metric
    kept = before.last(metric)
    assert kept is not None  # a finished cell has its metric, or diverged
    own = _apart_from("seed", record)
    alike = [one.outcome().last(metric) for one in records if _apart_from("seed", one) == own]
    values = [value for value in alike if value is not None]
    remark = ""
    if cell is not None and record.data_hash != cell.data_hash:
        remark = (
            f"the data here have the hash {cell.data_hash[:40]}..., those of the run "
            f"{record.data_hash[:40]}...: packed or read differently, or other data"
        )
    problem = outcome.error
    if outcome.rows and then != any(name == DIVERGED for _, name, _ in outcome.rows):
        problem = f"training diverged only {'then' if then else 'now'}"
    label = f"{record.data} {record.target} {record.method} seed {record.seed}"
    return Checked(
        label if cell is None else cell.label,
        metric,
        kept,
        outcome.last(metric),
        len(set(before.rows) & set(outcome.rows)),
        len(before.rows),
        stdev(values) if len(values) > 1 else 0.0,
        problem,
        remark,
    )
