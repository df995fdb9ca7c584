"""The runner: computes the cells of a preset that are not in the store yet."""

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vntransfer.bench.cells import Cell, expand
from vntransfer.bench.display import Silent, Watcher
from vntransfer.bench.estimate import parse_seconds
from vntransfer.bench.plan import Budget, LeftOut, Plan
from vntransfer.bench.preset import Preset, check, override, read_preset
from vntransfer.bench.store import Outcome, Store, make_folder, read_records
from vntransfer.bench.workers import Pool
from vntransfer.errors import ArgumentError, StoreError

LOCK_NAME = "lock"


@dataclass(frozen=True)
class Summary:
    """How a run ended: the folder, the number of cells by status, what a budget left out."""

    folder: Path
    done: int
    failed: int
    computed: int
    left: LeftOut | None = None


def run(
    preset: str | Path,
    *,
    methods: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
    seeds: int | Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    watcher: Watcher | None = None,
    budget: str | Budget | None = None,
) -> Summary:
    """Run an experiment, or the rest of it: finished cells are never computed again.

    Parameters
    ----------
    preset
        Name of a shipped preset, or a ``.toml`` file.
    methods, targets, seeds, settings
        Change the preset, see `vntransfer.bench.preset.override`.
    jobs
        Worker processes, one thread each; by default one per core.
    out
        Run folder, by default ``runs/NAME``.
    watcher
        Is told what happens.
    budget
        A duration such as "2h" or "1h30m": seeds are run one after another, and no cell is started
        that would not end in time; ``left`` of the summary says what was left out. Times come from
        finished cells, or short steps are measured first.

    Returns
    -------
    Summary
        A failing cell does not end the run: look at ``failed``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = run("smoke", methods=["constant"], targets=["s1"], seeds=1, out=folder)
    ...     summary.done, summary.failed, summary.computed
    (1, 0, 1)
    """
    name, raw = read_preset(preset)
    changed = override(raw, methods=methods, targets=targets, seeds=seeds, settings=settings)
    checked = check(changed, name)
    folder = Path(out or Path("runs", name))
    if isinstance(budget, str):
        from vntransfer.bench.foresee import foresee

        seconds = parse_seconds(budget)
        budget = Budget(seconds, foresee(checked, folder, jobs or 1).times)
    return _run(checked, folder, jobs, watcher, budget=budget)


def retry(
    folder: str | Path, *, jobs: int | None = None, watcher: Watcher | None = None
) -> Summary:
    """Compute the failed and the missing cells of a run folder (again)."""
    preset, _, _ = read_records(folder)
    return _run(preset, Path(folder), jobs, watcher, retry=True)


def _run(
    preset: Preset,
    folder: Path,
    jobs: int | None,
    watcher: Watcher | None,
    *,
    retry: bool = False,
    budget: Budget | None = None,
) -> Summary:
    if jobs is not None and jobs < 1:
        raise ArgumentError(f"jobs: expected at least 1, got {jobs}")
    cells = expand(preset)
    watcher = watcher or Silent()
    with _only_writer(folder), Store(folder, write=True) as store:
        plan = Plan(preset, cells, store, retry=retry, budget=budget)
        watcher.begin(plan.total, plan.finished)
        _compute_all(plan, jobs or os.cpu_count() or 1, store, watcher)
        counts = store.counts()
    left = None if budget is None else plan.left_out()
    return Summary(folder, counts.get("done", 0), counts.get("failed", 0), plan.computed, left)


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the system releases it when this process dies in any way."""
    from filelock import FileLock, Timeout

    make_folder(folder)
    lock = FileLock(folder / LOCK_NAME)
    try:
        lock.acquire(timeout=0)
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


def _compute_all(plan: Plan, jobs: int, store: Store, watcher: Watcher) -> None:
    if plan.finished == plan.total:
        return
    pool = Pool(min(jobs, plan.total - plan.finished))
    suspects = deque[Cell]()
    running: dict[Future[Outcome], Cell] = {}
    alone = False
    try:
        while True:
            if not running:
                # Suspects ran while a worker died. Each now runs alone: if a worker dies again,
                # the cell is to blame.
                alone = bool(suspects) or pool.jobs == 1
            while len(running) < (1 if alone or suspects else pool.jobs):
                next_cell = suspects.popleft() if suspects else plan.next()
                if next_cell is None:
                    break
                running[pool.submit(next_cell)] = next_cell
            if not running:
                return
            watcher.running(running.values())
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                cell = running.pop(future)
                try:
                    outcome = future.result()
                except BrokenProcessPool as error:
                    if not alone:
                        suspects.append(cell)
                        continue
                    outcome = Outcome(error=f"the worker process died: {error}")
                store.finish(cell.key, outcome)
                plan.tell(cell, outcome)
                watcher.end(cell, outcome)
    except BaseException:
        pool.kill()
        raise
