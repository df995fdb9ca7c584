"""Before a run: what is left of it, and how long that will take."""

from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vntransfer_lab.runner.cell_times import Steps, Times
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.plan import remaining
from vntransfer_lab.runner.preset import Preset
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.remaining_time import Forecast, forecast
from vntransfer_lab.runner.reuse import Elsewhere, with_first
from vntransfer_lab.runner.store import Store
from vntransfer_lab.runner.store_file import STORE_NAME, UnplannedError
from vntransfer_lab.runner.workers import Pool

WORTH = 2
"""Cells of a group that are run without timing one first."""


@dataclass(frozen=True)
class Foresight:
    """What is known of the time of cells, and what follows for the rest of a run."""

    times: Times
    forecast: Forecast


def foresee(
    preset: Preset,
    folder: str | Path,
    workers: int,
    *,
    progress: Callable[[int, int, Cell], None] = lambda done, total, cell: None,
    limit: float | None = None,
    steps: Steps | None = None,
    reuse: Sequence[str | Path] = (),
) -> Foresight:
    """Estimate the time of what is left of a preset in a folder, which is only read.

    Times of finished cells of the folder are taken where there are some; otherwise short steps are
    timed in a worker process. An experiment that only knows whole cells (see `Kind.probe`) is timed
    where it has more than `WORTH` of them. For ``limit`` and ``progress`` see `Times.measure`;
    ``steps``, handed from preset to preset, lets short steps that these share be timed once. Cells
    that other folders have finished (``reuse``) are not counted.

    Examples
    --------
    >>> from vntransfer_lab.runner.preset import check, read_preset
    >>> raw = read_preset("smoke")[1] | {"methods": {"constant": {}}, "seeds": 1}
    >>> foresee(check(raw, "smoke"), "absent", 1).forecast.cells
    6
    """
    cells, times = expand(preset), Times(steps=Steps() if steps is None else steps)
    there = Elsewhere(reuse).outcomes(with_first(cells)) if reuse else {}
    elsewhere = {key: outcome for found in there.values() for key, outcome in found.items()}
    left = None
    if (Path(folder) / STORE_NAME).is_file():
        with suppress(UnplannedError), Store(folder) as store:
            for record in store.records():
                if record.status == "done":
                    times.add(record, record.seconds)
            left = remaining(preset, cells, lambda key: elsewhere.get(key) or store.outcome(key))
    if left is None:
        left = remaining(preset, cells, elsewhere.get)

    def compute(cell: Cell) -> CellOutcome:
        try:
            return pool.submit(cell).result()
        except BrokenProcessPool as error:
            return CellOutcome(error=f"the worker process died: {error}")

    least = WORTH if load_kind(preset.experiment).probe is None else 0
    measured = {name: cell for name, (cell, n) in left.items() if n > least}
    with Pool(1) as pool:
        times.measure(measured, compute, progress, limit=limit)
    return Foresight(times, forecast(times, left, workers))
