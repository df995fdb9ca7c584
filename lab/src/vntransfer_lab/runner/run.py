"""The runner: computes the cells of a preset that are not in the store yet."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vntransfer.display import one_line
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.checkpoints import FOLDER_NAME, checkpoint_seconds, drop, tidy
from vntransfer_lab.runner.durations import parse_seconds
from vntransfer_lab.runner.engines import Engine, EngineOptions
from vntransfer_lab.runner.lock import only_writer
from vntransfer_lab.runner.plan import LeftOut, RunPlan, Watcher
from vntransfer_lab.runner.preset import Preset, load_preset
from vntransfer_lab.runner.provenance import command_line, recorded
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.reuse import check_folders, folder_name, take_over
from vntransfer_lab.runner.running import Notice
from vntransfer_lab.runner.store import Store, read_records


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


@dataclass(frozen=True, repr=False)
class RunSummary:
    """How a run ended: the folder, the number of cells by status, those that were not started."""

    folder: Path
    done: int
    failed: int
    computed: int
    left: LeftOut | None = None

    def __repr__(self) -> str:
        left = f", {self.left.cells} not started" if self.left else ""
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
    engine = EngineOptions(jobs, options.engine, options.scheduler)
    check_folders(options.reuse)
    said = {**changes, **engine.changed(), "reuse": [folder_name(one) for one in options.reuse]}
    overrides = {name: value for name, value in changes.items() if value is not None}
    return _Run(
        checked,
        Path(out or default_folder(preset)),
        engine,
        {"command": command_line("run", str(preset), said), "overrides": overrides},
        watcher=options.watcher,
        reuse=options.reuse,
        budget=None if options.budget is None else parse_seconds(options.budget),
    ).compute(expand(checked))


def default_folder(preset: str | Path) -> Path:
    """Name the run folder of a preset.

    Examples
    --------
    >>> default_folder("smoke").as_posix(), default_folder("my/own.toml").as_posix()
    ('runs/smoke', 'runs/own')
    """
    return Path("runs", Path(preset).stem)


def retry(
    folder: str | Path, *, jobs: int | None = None, options: RunOptions = RunOptions()
) -> RunSummary:
    """Compute the failed and the missing cells of a run folder (again); see `run`.

    Of the options, those of the engine and the watcher count.
    """
    preset = read_records(folder).preset
    engine = EngineOptions(jobs, options.engine, options.scheduler)
    told = {"command": command_line("retry", str(folder), engine.changed())}
    again = _Run(preset, Path(folder), engine, told, watcher=options.watcher, retry=True)
    return again.compute(expand(preset))


def compute_cells(
    preset: Preset,
    cells: Sequence[Cell],
    folder: Path,
    *,
    jobs: int | None = None,
    watcher: Watcher | None = None,
) -> dict[str, CellOutcome]:
    """Compute some cells of a preset in a folder of their own, and give what came out by key."""
    engine = EngineOptions(jobs)
    told = {"command": command_line("verify", str(folder), engine.changed())}
    _Run(preset, folder, engine, told, watcher=watcher).compute(cells)
    with Store(folder) as store:
        found = {cell.key: store.outcome(cell.key) for cell in cells}
    return {key: outcome for key, outcome in found.items() if outcome is not None}


@dataclass(frozen=True)
class _Run:
    """One command that computes cells in a folder; ``told`` is recorded with it."""

    preset: Preset
    folder: Path
    engine: EngineOptions
    told: Mapping[str, Any]
    watcher: Watcher | None = None
    reuse: Sequence[str | Path] = ()
    budget: float | None = None
    retry: bool = False

    def compute(self, cells: Sequence[Cell]) -> RunSummary:
        """Compute what is not finished yet."""
        checkpoint_seconds()  # an impossible value is refused before anything is written
        checkpoints = self.folder / FOLDER_NAME
        with only_writer(self.folder), Store(self.folder, write=True) as store:
            detail = {**self.told, "engine": self.engine.engine, "jobs": self.engine.jobs}
            if self.reuse:
                detail["reused"] = take_over(store, cells, self.reuse)
            plan = RunPlan(self.preset, cells, store, retry=self.retry, budget=self.budget)
            self._tell(plan)
            with recorded(store, detail), tidy(checkpoints, store.pending()):
                if todo := plan.ready():
                    with self.engine.make(todo, self.folder) as engine:
                        self._work(plan, engine, store)
                    store.note_running("")
            counts = store.counts()
        left = None if self.budget is None else plan.left_out()
        done, failed = (counts.get(status, 0) for status in ("done", "failed"))
        return RunSummary(self.folder, done, failed, plan.computed, left)

    def _tell(self, plan: RunPlan, *now: Any) -> None:
        if self.watcher is not None:
            self.watcher(plan.state(*now))

    def _work(self, plan: RunPlan, engine: Engine, store: Store) -> None:
        notice = Notice(store, self.engine.engine)
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
            for cell, outcome in engine.finished(notice.show(engine.running, jobs)):
                if not isinstance(outcome, CellOutcome):
                    if not alone:
                        suspects.append(cell)
                        continue
                    outcome = CellOutcome(error=f"the worker process died: {outcome}")
                store.finish(cell.key, outcome)
                drop(store.path.parent / FOLDER_NAME, cell.key)
                plan.tell(cell, outcome)
                self._tell(plan, engine.running, (cell, outcome))
