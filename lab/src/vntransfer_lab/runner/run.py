"""The runner: computes the cells of a preset that are not in the store yet."""

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vntransfer.checks import one_of, whole
from vntransfer.display import one_line
from vntransfer.errors import ArgumentError
from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.checkpoints import FOLDER_NAME, checkpoint_seconds, drop, tidy
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.packed import RUN_NAME, is_packed
from vntransfer_lab.runner.plan import RunPlan, RunState, Watcher
from vntransfer_lab.runner.preset import Preset, load_preset
from vntransfer_lab.runner.provenance import command_line, recorded
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.store import Store, read_outcomes, read_records
from vntransfer_lab.runner.store_file import STORE_NAME, only_writer
from vntransfer_lab.runner.workers import CHECK_SECONDS, Engine, Pool

_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0}


def parse_seconds(text: str) -> float:
    """Seconds of a duration such as 2h, 90m, 45s or 1h30m."""
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(min|[dhms])", text)
    rest = re.sub(r"(\d+(?:\.\d+)?)\s*(min|[dhms])", "", text)
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if rest.strip() or not total > 0:
        raise ArgumentError(
            f"budget: expected a duration such as 2h, 90m, 45s or 1h30m, got {text!r}"
        )
    return total


@dataclass(frozen=True)
class RunOptions:
    """How a run is computed; none of these changes a number.

    Parameters
    ----------
    engine, scheduler
        "local": processes of this machine; "dask": workers of the dask cluster whose scheduler has
        this address, such as "tcp://host:8786", or of one on this machine that ends with the run.
    reuse
        Other run folders, or packed results: cells that these have finished are taken from there.
    budget
        A duration such as "2h" or "1h30m" after which no further cell is started; those that run
        then are finished. Seeds are run one after another, over all data sets.
    watcher
        Called with a `vntransfer_lab.runner.plan.RunState` whenever something happens.
    """

    engine: str = "local"
    scheduler: str | None = None
    reuse: Sequence[str | Path] = ()
    budget: str | None = None
    watcher: Watcher | None = None

    def __post_init__(self) -> None:
        one_of("engine", self.engine, ("local", "dask"))
        if self.scheduler is not None and self.engine != "dask":
            raise ArgumentError("scheduler: only engine 'dask' has one; add engine='dask'")


@dataclass(frozen=True, repr=False)
class RunSummary:
    """How a run ended: the folder, the number of cells by status, those that were not started."""

    folder: Path
    done: int
    failed: int
    computed: int
    left: int | None = None

    def __repr__(self) -> str:
        left = "" if self.left is None else f", {self.left} not started"
        return one_line(f"Run in {self.folder}: {self.done} cells done, {self.failed} failed{left}")


def run(
    preset: str | Path,
    *,
    methods: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
    seeds: int | Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    jobs: int | None = None,
    options: RunOptions = RunOptions(),
) -> RunSummary:
    """Run an experiment, or the rest of it: finished cells are never computed again.

    Parameters
    ----------
    preset
        Name of a shipped preset, or a ``.toml`` file.
    methods, targets, seeds, settings
        Change the preset, see `vntransfer_lab.runner.preset.override`.
    out
        Run folder, by default ``runs/NAME``.
    jobs
        Worker processes, one thread each; by default one per core, or all of a scheduler's.
    options
        Engine, budget, other folders.

    Returns
    -------
    RunSummary
        A failing cell does not end the run: look at ``failed``. With a budget, ``left`` counts the
        cells that were not started.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = run("smoke", methods=["constant"], targets=["s1"], seeds=1, out=folder)
    ...     summary.done, summary.failed, summary.computed
    (1, 0, 1)
    """
    changes: dict[str, Any] = {
        "methods": methods,
        "targets": targets,
        "seeds": seeds,
        "settings": settings,
    }
    checked = load_preset(preset, **changes)
    for folder in options.reuse:
        if not is_packed(folder) and not Path(folder, STORE_NAME).is_file():
            raise StoreError(
                f"reuse: {folder} is neither a run folder nor packed results; name one that "
                f"holds {STORE_NAME} or {RUN_NAME}"
            )
    work = _Run(checked, Path(out or default_folder(preset)), jobs, options)
    reuse = {"reuse": [_folder_name(one) for one in options.reuse]}
    overrides = {name: value for name, value in changes.items() if value is not None}
    command = command_line("run", str(preset), changes | work.said() | reuse)
    return work.compute(expand(checked), {"command": command, "overrides": overrides})


def default_folder(preset: str | Path) -> Path:
    """Name the run folder of a preset."""
    return Path("runs", Path(preset).stem)


def retry(
    folder: str | Path, *, jobs: int | None = None, options: RunOptions = RunOptions()
) -> RunSummary:
    """Compute the failed and the missing cells of a run folder (again); see `run`.

    Only the options of the engine and the watcher are used.
    """
    preset = read_records(folder).preset
    work = _Run(preset, Path(folder), jobs, replace(options, reuse=(), budget=None), retry=True)
    command = command_line("retry", str(folder), work.said())
    return work.compute(expand(preset), {"command": command})


def compute_cells(
    preset: Preset,
    cells: Sequence[Cell],
    folder: Path,
    *,
    jobs: int | None = None,
    watcher: Watcher | None = None,
) -> dict[str, CellOutcome]:
    """Compute some cells of a preset in a separate folder; return the results by key."""
    work = _Run(preset, folder, jobs, RunOptions(watcher=watcher))
    work.compute(cells, {"command": command_line("verify", str(folder), work.said())})
    with Store(folder) as store:
        return {cell.key: own for cell in cells if (own := store.outcome(cell.key)) is not None}


@dataclass(frozen=True)
class _Run:
    """One command that computes cells in a folder."""

    preset: Preset
    folder: Path
    jobs: int | None
    options: RunOptions
    retry: bool = False

    def said(self) -> dict[str, Any]:
        """Return the options of the command that choose the engine: those that are not defaults."""
        engine, scheduler = self.options.engine, self.options.scheduler
        changed = None if engine == "local" else engine
        return {"jobs": self.jobs, "engine": changed, "scheduler": scheduler}

    def compute(self, cells: Sequence[Cell], told: Mapping[str, Any]) -> RunSummary:
        """Compute what is not finished yet; ``told`` is recorded with it."""
        # impossible values are refused before anything is written
        if self.jobs is not None:
            whole("jobs", self.jobs, minimum=1)
        checkpoint_seconds()
        budget = None if self.options.budget is None else parse_seconds(self.options.budget)
        with only_writer(self.folder), Store(self.folder, write=True) as store:
            detail = {**told, "engine": self.options.engine, "jobs": self.jobs}
            if self.options.reuse:
                detail["reused"] = _take_over(store, cells, self.options.reuse)
            plan = RunPlan(self.preset, cells, store, retry=self.retry, budget=budget)
            self._tell(plan)
            with recorded(store, detail), tidy(self.folder / FOLDER_NAME, store.pending()):
                if plan.left:
                    with self._engine(plan.left) as engine:
                        self._work(plan, engine, store)
            counts = store.counts()
        left = None if budget is None else plan.left
        done, failed = (counts.get(status, 0) for status in ("done", "failed"))
        return RunSummary(self.folder, done, failed, plan.computed, left)

    def _engine(self, cells: int) -> Engine:
        checkpoints = self.folder.absolute() / FOLDER_NAME
        if self.options.engine == "dask":
            from vntransfer_lab.runner.cluster import Cluster

            return Cluster(cells, checkpoints, jobs=self.jobs, scheduler=self.options.scheduler)
        return Pool(self.jobs, cells, checkpoints)

    def _tell(self, plan: RunPlan, *now: Any) -> None:
        if self.options.watcher is not None:
            self.options.watcher(RunState(plan.total, plan.finished + plan.computed, *now))

    def _work(self, plan: RunPlan, engine: Engine, store: Store) -> None:
        suspects = deque[Cell]()
        alone = False
        while True:
            jobs = engine.jobs
            if not engine.running:
                # Suspects ran while a worker died. Each now runs alone: if a worker dies again,
                # the cell is to blame.
                alone = bool(suspects) or jobs == 1
            while len(engine.running) < (1 if alone or suspects else jobs):
                next_cell = suspects.popleft() if suspects else plan.next()
                if next_cell is None:
                    break
                engine.submit(next_cell)
            if not engine.running:
                return
            self._tell(plan, engine.running)
            for cell, outcome in engine.finished(CHECK_SECONDS):
                if not isinstance(outcome, CellOutcome):
                    if not alone:
                        suspects.append(cell)
                        continue
                    outcome = CellOutcome(error=f"the worker process died: {outcome}")
                store.finish(cell.key, outcome)
                drop(store.path.parent / FOLDER_NAME, cell.key)
                plan.tell(cell, outcome)
                self._tell(plan, engine.running, (cell, outcome))


def _folder_name(folder: str | Path) -> str:
    """Return a folder as records name it: of an absolute path the last two parts."""
    path = Path(folder)
    return Path(*path.parts[-2:]).as_posix() if path.is_absolute() else path.as_posix()


def _take_over(
    store: Store, cells: Sequence[Cell], folders: Sequence[str | Path]
) -> dict[str, int]:
    """Write what other folders know of unfinished cells, and of those before them, into a store.

    The first folder that knows a cell counts; returns name of a folder -> number of its cells.
    """
    wanted = {cell.key: cell for cell in cells}
    for cell in cells:
        for other in load_kind(cell.experiment).first(cell):
            wanted.setdefault(other.key, other)
    wanted = {key: cell for key, cell in wanted.items() if store.outcome(key) is None}
    taken = {}
    for folder in folders:
        found = read_outcomes(folder, wanted)
        store.adopt([wanted.pop(key) for key in found], found)
        taken[_folder_name(folder)] = len(found)
    return taken
