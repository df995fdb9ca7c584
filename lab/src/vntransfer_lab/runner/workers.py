"""Engines, and the local one: processes that compute one cell at a time, with one thread each."""

import math
import os
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Self

from vntransfer.errors import DataError, DivergedError
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.checkpoints import CellCheckpoint
from vntransfer_lab.runner.kinds import TimedRun, load_kind
from vntransfer_lab.runner.records import DIVERGED, CellOutcome, Cost

# More workers use more cores; more threads per worker only get into each other's way, and the
# order of sums (so the last digits) would depend on their number.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
# Sums of wider vectors are added up in another order, and training carries the last digit far.
_NARROW = {"ATEN_CPU_CAPABILITY": "avx2", "OPENBLAS_CORETYPE": "Haswell"}
_WIDE = {"avx512f", "avx512vl", "avx512bw", "avx512dq", "fma"}
CHECK_SECONDS = 5.0
"""Longest time between two looks at whether workers are there."""

_WATCH_SECONDS = 0.5
_STOPS = (signal.SIGINT, signal.SIGTERM)


class Engine(ABC):
    """Takes cells and gives outcomes; a context manager that ends all work when its block fails."""

    def __init__(self) -> None:
        self._running: dict[Future[CellOutcome], Cell] = {}

    @property
    @abstractmethod
    def jobs(self) -> int:
        """How many cells it computes at once, at present."""

    @property
    def running(self) -> list[Cell]:
        """Cells that were submitted and not yielded yet."""
        return list(self._running.values())

    def submit(self, cell: Cell) -> None:
        """Start a cell."""
        self._running[self._start(cell)] = cell

    def finished(self, seconds: float) -> Iterator[tuple[Cell, CellOutcome | BrokenProcessPool]]:
        """Wait for cells to end, but no longer than this; an error: the cell's worker died."""
        ended, _ = wait(self._running, timeout=seconds, return_when=FIRST_COMPLETED)
        if not ended:
            self._check()
        for future in ended:
            yield self._running.pop(future), self._outcome(future)

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, kind: type[BaseException] | None, /, *exception: object) -> None:
        """Let the workers go, at once if the block failed."""

    @abstractmethod
    def _start(self, cell: Cell) -> "Future[CellOutcome]":
        """Hand a cell to a worker; `BrokenProcessPool` in the future: the worker died."""

    def _outcome(self, future: "Future[CellOutcome]") -> CellOutcome | BrokenProcessPool:
        """Give what a cell came to, or that its worker died."""
        died = future.exception()
        return died if isinstance(died, BrokenProcessPool) else future.result()

    def _check(self) -> None:  # noqa: B027 - most engines have nothing to check
        """Raise when no cell can be computed any more; asked every few seconds."""


class Pool(Engine):
    """At most ``most`` processes that compute cells, on joblib's loky executor.

    They stay for the next run of this program, unless what they took over from it when they started
    (search path, folder, ``VNT_`` variables) has changed: then new ones take their place.
    """

    def __init__(self, jobs: int | None, most: int, checkpoints: Path | None = None) -> None:
        super().__init__()
        self._jobs, self._checkpoints = min(jobs or os.cpu_count() or 1, most), checkpoints
        ours = tuple(sorted(item for item in os.environ.items() if item[0].startswith("VNT_")))
        self._surroundings = tuple(sys.path), os.getcwd(), ours
        # loky replaces a worker that has grown, between two cells; nothing is lost by that
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is not None:
            self._executor().shutdown(wait=True, kill_workers=True)

    @property
    def jobs(self) -> int:
        """Number of processes."""
        return self._jobs

    def _start(self, cell: Cell) -> "Future[CellOutcome]":
        """Start a cell; a pool whose worker died is replaced."""
        future: Future[CellOutcome]
        with _signals_wait():
            try:
                future = self._executor().submit(compute, cell, self._checkpoints)
            except BrokenProcessPool:  # a worker died just now, between two cells
                future = self._executor().submit(compute, cell, self._checkpoints)
        return future

    def _executor(self) -> Any:
        # joblib's own: its `Parallel` breaks in a process where loky's was asked for directly
        from joblib.executor import get_memmapping_executor

        return get_memmapping_executor(
            self._jobs,
            timeout=60,
            initializer=_start_worker,
            initargs=(os.getpid(), self._surroundings),
            env=variables(),
        )


def variables() -> dict[str, str]:
    """Return the variables of a worker: one thread, and no wider vectors than most machines have.

    So a cell has the same digits on machines with AVX2 and with AVX-512.
    """
    return _ONE_THREAD | (_NARROW if has_wide_vectors() else {})


@cache
def has_wide_vectors() -> bool:
    """Whether torch would use AVX-512 here; Linux says so without an import of torch."""
    with suppress(OSError):
        info = Path("/proc/cpuinfo").read_text()
        if flags := re.search(r"^flags\s*:(.*)$", info, re.MULTILINE):
            return set(flags[1].split()) >= _WIDE
    import torch

    return bool(torch.backends.cpu.get_cpu_capability() == "AVX512")


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Hold back signals while workers may be started.

    They inherit that, so that Ctrl-C finds none that cannot ignore it yet. The first worker would
    start Python's resource tracker, which lets signals through again, so it is started before.
    """
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(runner: int, surroundings: object) -> None:
    """Prepare a worker; it inherits the surroundings, here they only tell old pools from new."""
    for stop in _STOPS:  # sent to all processes, but the runner's business
        signal.signal(stop, signal.SIG_IGN)

    def leave_with_runner() -> None:
        while os.getppid() == runner:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=leave_with_runner, daemon=True).start()


def compute(cell: Cell, checkpoints: Path | None = None) -> CellOutcome:
    """Compute one cell; whatever goes wrong in it is part of the outcome.

    With a folder of checkpoints, an interrupted cell resumes from there. That training diverged is
    a result: the metric `DIVERGED`, at the last step that was recorded, takes the place of all
    others.
    """
    rows: list[tuple[int, str, float]] = []
    error, trace, cost = "", "", None
    kept = CellCheckpoint(checkpoints, cell.key)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            kind = load_kind(cell.experiment)
            run = TimedRun(kind.run(cell, kept.place))
            for step, values in run:
                rows += [(int(step), name, float(value)) for name, value in values.items()]
            _check_rows(rows, kind.metric)
            times = run.step_times
            cost = Cost(times.timed, times.seconds / times.timed if times.timed else None)
        except DivergedError:
            rows = [(max((step for step, _, _ in rows), default=0), DIVERGED, 1.0)]
        except Exception as reason:
            rows, error = [], f"{type(reason).__name__}: {reason}"
            trace = traceback.format_exc()
    messages = sorted({f"{item.category.__name__}: {item.message}" for item in caught})
    return CellOutcome(rows, kept.seconds(), error, trace, messages, cost)


def _check_rows(rows: list[tuple[int, str, float]], metric: str) -> None:
    seen = set()
    for step, name, value in rows:
        if not math.isfinite(value):
            raise DataError(f"{name} is {value} at step {step}")
        if (step, name) in seen:
            raise DataError(f"{name} was recorded twice at step {step}")
        seen.add((step, name))
    if not any(name == metric for _, name, _ in rows):
        raise DataError(f"the cell recorded no {metric!r}")
