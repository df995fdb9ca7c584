"""Cost of the runner itself: per cell, to resume and to report, and the gain of a second worker.

python benchmarks/runner.py
"""

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from vntransfer_lab import report, run
from vntransfer_lab.runner.cells import expand
from vntransfer_lab.runner.preset import load_preset
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.store import Store, read_records

SEEDS = 334  # x 6 targets x 5 settings of the methods = 10,020 cells
STEPS = 15  # x 2 metrics = 30 rows per cell


def seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def own_cost(place: Path) -> float:
    """Wall time per cell that is not the cell's own, one warm worker."""
    run("smoke", methods=["constant"], seeds=1, jobs=1, out=place / "warm")
    folder = place / "cost"
    wall = seconds(lambda: run("smoke", methods=["constant"], seeds=100, jobs=1, out=folder))
    records = read_records(folder)[1]
    return (wall - sum(record.seconds or 0 for record in records)) / len(records)


def generate(folder: Path) -> tuple[int, int]:
    """Fill a store with finished cells; cells and metric rows."""
    preset = load_preset("smoke", seeds=SEEDS)
    cells = expand(preset)
    with Store(folder, write=True) as store:
        store.plan(preset, cells)
        for number, cell in enumerate(cells):
            rows = [
                (step, name, 1.0 + (number * 7919 + step * 31) % 1009 / 1009)
                for step in range(STEPS)
                for name in ("mae", "source_validation")
            ]
            store.finish(cell.key, CellOutcome(rows, 0.1))
    return len(cells), len(cells) * STEPS * 2


def workers(place: Path, rounds: int = 5) -> tuple[float, float]:
    """Shortest wall time of the smoke preset with one and with two workers that are warm.

    The shortest of several alternating rounds: whatever else the machine does only adds.
    """
    times: dict[int, list[float]] = {1: [], 2: []}
    for number in range(rounds):
        for jobs in (1, 2):
            folder = place / f"workers{jobs}-{number}"
            run("smoke", methods=["boosting"], seeds=2, jobs=jobs, out=f"{folder}-warm")
            times[jobs].append(seconds(partial(run, "smoke", jobs=jobs, out=folder)))
    return min(times[1]), min(times[2])


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        print(f"own cost per cell                {own_cost(place) * 1000:8.1f} ms    (< 50)")
        cells, rows = generate(place / "large")
        print(f"generated store                  {cells} cells, {rows} metric rows")
        resume = seconds(lambda: run("smoke", seeds=SEEDS, out=place / "large"))
        print(f"resume decision                  {resume:8.2f} s     (< 2)")
        for form in ("terminal", "csv"):
            shown = seconds(partial(report, place / "large", form))
            print(f"report, {form:<24} {shown:8.2f} s     (< 10)")
        print(f"cores, other load                {os.cpu_count()}, {os.getloadavg()[0]:.1f}")
        one, two = workers(place)
        print(f"smoke, 1 and 2 workers           {one:8.2f} s and {two:.2f} s")
        print(f"gain of the second worker        {one / two:8.2f} x     (>= 1.5)")


if __name__ == "__main__":
    main()
