"""A store with many finished cells whose numbers are drawn at random, but plausible."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from vntransfer_lab.reports.report import Report
from vntransfer_lab.runner.cells import IDENTITY, Cell
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.preset import Preset, check
from vntransfer_lab.runner.records import CellOutcome, Cost, Record
from vntransfer_lab.runner.store import Store

DATA = ("bike", "pol", "protein", "parkinsons", "wine", "houses", "energy", "traffic")
TARGETS = ("north", "south", "east", "west", "center")
METHODS = (
    *(
        "source_only",
        "source_only_5",
        "align",
        "mdd_paper",
        "dann",
        "mdan_max",
        "mdan_dyn",
        "ahd_1s",
    ),
    *("ahd_msda", "darn", "coral", "dare_gram", "weighted", "ridge", "boosting", "constant"),
    "oracle",
)
SEEDS = 15


def large_preset() -> Preset:
    """8 data sets, 17 methods, 15 seeds."""
    raw = {
        "title": "A large run",
        "experiment": "adaptation",
        "data": list(DATA),
        "methods": {method: {} for method in METHODS},
        "seeds": SEEDS,
        "baseline": "source_only",
        "paper": {"claim": "mdd is best", "source": "Table 9"},
    }
    return check(raw, "large")


def large_cells(preset: Preset) -> Iterator[tuple[Cell, CellOutcome]]:
    """Give the cells and their outcomes."""
    rng = np.random.default_rng(0)
    levels = dict(zip(METHODS, rng.uniform(0.4, 1.2, len(METHODS)), strict=True))
    for data, target in product(DATA, TARGETS):
        base = rng.uniform(0.5, 2.0)
        sources = [name for name in TARGETS if name != target]
        for method in METHODS:
            w = rng.dirichlet(np.ones(len(sources)))
            for seed in preset.seeds:
                cell = Cell(
                    experiment="adaptation",
                    version="1.1",
                    data=data,
                    data_hash=f"hash of {data}",
                    target=target,
                    method=method,
                    hyper=preset.methods[method],
                    seed=seed,
                    selection=preset.selection,
                    settings=preset.settings,
                )
                mae = base * levels[method] * rng.lognormal(0, 0.05)
                own = (w + rng.dirichlet(np.ones(len(w)))) / 2
                rows = [(40, "mae", mae), (40, "rmse", 1.3 * mae), (40, "mae_raw", 9 * mae)]
                rows += [(40, "learned_weights", 1.0), (40, "rmse_raw", 12 * mae)]
                rows += [(40, f"weight/{s}", float(v)) for s, v in zip(sources, own, strict=True)]
                yield cell, CellOutcome(rows, float(rng.lognormal(2, 0.3)))


def large_store(folder: Path) -> int:
    """Write the store and return the number of its cells."""
    preset = large_preset()
    found = list(large_cells(preset))
    with Store(folder, write=True) as store:
        store.plan(preset, [cell for cell, _ in found])
        for cell, outcome in found:
            store.finish(cell.key, outcome)
    return len(found)


def large_report() -> Report:
    """Give what `load_report` reads from that store, and costs of what trains networks."""
    preset = large_preset()
    rng = np.random.default_rng(1)
    records = []
    for cell, outcome in large_cells(preset):
        metrics: dict[str, dict[int, float]] = {}
        for step, name, value in outcome.rows:
            metrics.setdefault(name, {})[step] = value
        own = {name: getattr(cell, name) for name in IDENTITY}
        done = Record(**own, key=cell.key, status="done", seconds=outcome.seconds, metrics=metrics)
        if cell.method not in ("weighted", "ridge", "boosting", "constant"):
            done = replace(done, cost=Cost(499, *rng.lognormal((-5, 16), 0.3).tolist()))
        records.append(done)
    return Report(preset, load_kind("adaptation"), records)
