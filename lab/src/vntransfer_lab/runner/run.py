"""The runner: computes the cells of a preset that are not in the store yet."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vntransfer.display import one_line
from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.checkpoints import FOLDER_NAME, checkpoint_seconds, drop, tidy
from vntransfer_lab.runner.display import Silent, Watcher
from vntransfer_lab.runner.durations import parse_seconds
from vntransfer_lab.runner.engines import Engine, check_engine, make_engine
from vntransfer_lab.runner.plan import LeftOut, RunPlan
from vntransfer_lab.runner.preset import Preset, check, override, read_preset
from vntransfer_lab.runner.provenance import command_line, recorded
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.reuse import Elsewhere, take_over
from vntransfer_lab.runner.running_cells import Noticeboard
from vntransfer_lab.runner.store import Store, read_records
from vntransfer_lab.runner.store_file import make_folder

LOCK_NAME = "lock"
_LOCK_SECONDS = 0.5  # whoever only looks whether it is held does so for a moment


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
    jobs: int | None = None,
    engine: str = "local",
    scheduler: str | None = None,
    out: str | Path | None = None,
    reuse: Sequence[str | Path] = (),
    watcher: Watcher | None = None,
    budget: str | None = None,
) -> RunSummary:
    """Run an experiment, or the rest of it: finished cells are never computed again.

    Parameters
    ----------
    preset
        Name of a shipped preset, or a ``.toml`` file.
    methods, targets, seeds, settings
        Change the preset, see `vntransfer_lab.runner.preset.override`.
    jobs
        Worker processes, one thread each; by default one per core, or all of a scheduler's.
    engine, scheduler
        "local": processes of this machine; "dask": workers of the dask cluster whose scheduler has
        this address, such as "tcp://host:8786", or of one on this machine that ends with the run.
    out
        Run folder, by default ``runs/NAME``.
    reuse
        Other run folders, or packed results: cells that these have finished are taken from there.
    watcher
        Is told what happens.
    budget
        A duration such as "2h" or "1h30m" after which no further cell is started; those that run
        then are finished. Seeds are run one after another, over all data sets. ``left`` of the
        summary counts the cells that were not started.

    Returns
    -------
    RunSummary
        A failing cell does not end the run: look at ``failed``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = run("smoke", methods=["constant"], targets=["s1"], seeds=1, out=folder)
    ...     summary.done, summary.failed, summary.computed
    (1, 0, 1)
    """
    seconds = None if budget is None else parse_seconds(budget)
    name, raw = read_preset(preset)
    changes: dict[str, Any] = {
        "methods": methods,
        "targets": targets,
        "seeds": seeds,
        "settings": settings,
    }
    checked = check(override(raw, **changes), name)
    means = _Means(engine, scheduler, jobs)
    folder = Path(out or Path("runs", name))
    others = Elsewhere(reuse)
    options = {**changes, **means.options(), "reuse": others.names}
    command = command_line("run", str(preset), options)
    told = {"command": command, "overrides": {k: v for k, v in changes.items() if v is not None}}
    return _run(checked, folder, means, watcher, told, reuse=others, budget=seconds)


def retry(
    folder: str | Path,
    *,
    jobs: int | None = None,
    engine: str = "local",
    scheduler: str | None = None,
    watcher: Watcher | None = None,
) -> RunSummary:
    """Compute the failed and the missing cells of a run folder (again); see `run`."""
    preset, _, _ = read_records(folder)
    means = _Means(engine, scheduler, jobs)
    command = command_line("retry", str(folder), means.options())
    return _run(preset, Path(folder), means, watcher, {"command": command}, retry=True)


def compute_cells(
    preset: Preset,
    cells: Sequence[Cell],
    folder: Path,
    *,
    jobs: int | None = None,
    watcher: Watcher | None = None,
) -> dict[str, CellOutcome]:
    """Compute some cells of a preset in a folder of their own, and give what came out by key."""
    means = _Means("local", None, jobs)
    told = {"command": command_line("verify", str(folder), means.options())}
    _run(preset, folder, means, watcher, told, cells=cells)
    with Store(folder) as store:
        found = {cell.key: store.outcome(cell.key) for cell in cells}
    return {key: outcome for key, outcome in found.items() if outcome is not None}


@dataclass(frozen=True)
class _Means:
    """What cells are computed with."""

    engine: str
    scheduler: str | None
    jobs: int | None

    def __post_init__(self) -> None:
        check_engine(self.engine, self.scheduler, self.jobs)
        checkpoint_seconds()

    def options(self) -> dict[str, Any]:
        """Give the options of a command: those that are not the defaults."""
        engine = None if self.engine == "local" else self.engine
        return {"jobs": self.jobs, "engine": engine, "scheduler": self.scheduler}

    def make(self, cells: Sequence[Cell], folder: Path) -> Engine:
        """Make the engine."""
        return make_engine(self.engine, cells, folder, jobs=self.jobs, scheduler=self.scheduler)


def _run(
    preset: Preset,
    folder: Path,
    means: _Means,
    watcher: Watcher | None,
    told: Mapping[str, Any],
    *,
    cells: Sequence[Cell] | None = None,
    retry: bool = False,
    reuse: Elsewhere | None = None,
    budget: float | None = None,
) -> RunSummary:
    cells = expand(preset) if cells is None else cells
    watcher = watcher or Silent()
    checkpoints = folder / FOLDER_NAME
    with _only_writer(folder), Store(folder, write=True) as store:
        detail = {**told, "engine": means.engine, "jobs": means.jobs}
        if reuse is not None and reuse.folders:
            detail["reused"] = take_over(store, cells, reuse)
        plan = RunPlan(preset, cells, store, retry=retry, budget=budget)
        watcher.begin(plan.total, plan.finished)
        with recorded(store, detail), tidy(checkpoints, store.pending()):
            if todo := plan.ready():
                engine = means.make(todo, folder)
                with Noticeboard(folder, means.engine) as board, engine:
                    _compute_all(plan, engine, store, watcher, board)
        counts = store.counts()
    left = None if budget is None else plan.left_out()
    return RunSummary(folder, counts.get("done", 0), counts.get("failed", 0), plan.computed, left)


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the system releases it when this process dies in any way."""
    from filelock import FileLock, Timeout

    make_folder(folder)
    lock = FileLock(folder / LOCK_NAME)
    try:
        lock.acquire(timeout=_LOCK_SECONDS)
    except Timeout:
        raise StoreError(
            f"{folder}: another run works in this folder; wait for it or choose another --out"
        ) from None
    except OSError as error:
        raise StoreError(
            f"{folder}: cannot be locked ({error.strerror}); choose another --out"
        ) from None
    try:
        yield
    finally:
        lock.release()


def _compute_all(
    plan: RunPlan, engine: Engine, store: Store, watcher: Watcher, board: Noticeboard
) -> None:
    suspects = deque[Cell]()
    running: dict[Future[CellOutcome], Cell] = {}
    alone = False
    while True:
        jobs = engine.jobs
        if not running:
            # Suspects ran while a worker died. Each now runs alone: if a worker dies again,
            # the cell is to blame.
            alone = bool(suspects) or jobs == 1
        while len(running) < (1 if alone or suspects else jobs):
            next_cell = suspects.popleft() if suspects else plan.next()
            if next_cell is None:
                break
            running[engine.submit(next_cell)] = next_cell
        if not running:
            return
        watcher.running(running.values())
        beat = board.show(running.values(), jobs)
        finished, _ = wait(running, timeout=beat, return_when=FIRST_COMPLETED)
        if not finished:
            engine.check()
        for future in finished:
            cell = running.pop(future)
            try:
                outcome = future.result()
            except BrokenProcessPool as error:
                if not alone:
                    suspects.append(cell)
                    continue
                outcome = CellOutcome(error=f"the worker process died: {error}")
            store.finish(cell.key, outcome)
            drop(store.path.parent / FOLDER_NAME, cell.key)
            plan.tell(cell, outcome)
            watcher.end(cell, outcome)
