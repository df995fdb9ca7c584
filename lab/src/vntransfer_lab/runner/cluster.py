"""The engine "dask": cells on the workers of a dask.distributed cluster.

The store stays with the client; workers get cells and give outcomes. What goes between them is
pickled by dask, so whoever can speak to the scheduler can run code: use clusters that you trust.
"""

import json
import logging
import os
import signal
import time
import uuid
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import Any, Self

from vntransfer_lab.errors import ClusterError
from vntransfer_lab.runner.cells import Cell, canonical_json
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.provenance import versions
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.running_cells import BEAT_SECONDS
from vntransfer_lab.runner.workers import compute, variables

Data = tuple[str, str, str, str]
"""Kind of experiment, data set, settings as JSON, hash of what cells read of it."""

CONNECT_SECONDS = 20
INSPECT_SECONDS = 600
CLOSE_SECONDS = 30
NO_WORKER_SECONDS = 60
"""How long a run waits for a new worker when all are gone."""

_KEPT = "finished cells are kept: the same command goes on"


def data_of(cell: Cell) -> Data:
    """Name the data that a cell reads."""
    return cell.experiment, cell.data, canonical_json(cell.settings), cell.data_hash


class Cluster:
    """Workers of a dask cluster.

    Parameters
    ----------
    cells
        What is to be computed: every worker must have the data and the versions for it.
    checkpoints
        Folder for the checkpoints of cells, used by the workers that see it.
    jobs
        Cells at once; None: as many as there are workers (of an own cluster: cores).
    scheduler
        Its address; None: a cluster of processes on this machine, gone with the run.
    """

    def __init__(
        self, cells: Sequence[Cell], checkpoints: Path, *, jobs: int | None, scheduler: str | None
    ) -> None:
        self._data = sorted({data_of(cell) for cell in cells})
        self._limit, self._most = jobs, len(cells)
        self._address = scheduler
        self._checkpoints = checkpoints
        self._token = f"seen-{uuid.uuid4().hex}"
        self._numbers = count()
        self._tasks: dict[Future[CellOutcome], Any] = {}
        self._own: Any = None
        self._workers = 0
        self._alive = self._asked = time.monotonic()

    def __enter__(self) -> Self:
        try:
            from distributed import Client
        except ImportError as error:
            raise ClusterError(
                f"engine: dask cannot be imported ({error}); pip install './lab[cluster]'"
            ) from None
        address = self._address
        if address is None:
            self._own = self._start(min(self._limit or os.cpu_count() or 1, self._most))
            address = self._own.scheduler_address
        try:
            self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            self._stop()
            raise ClusterError(
                f"scheduler: cannot reach {address} ({error}); start one with: dask scheduler"
            ) from None
        try:
            self._inspect()
        except BaseException as reason:
            self.__exit__(type(reason))
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        with suppress(OSError):
            (self._checkpoints / self._token).rmdir()
        if kind is not None:
            with suppress(Exception):  # a scheduler that is lost cannot be told
                self._client.cancel(list(self._tasks.values()), force=True)
            self._kill()
        with suppress(Exception):
            self._client.close(timeout=2)
        self._stop()

    @property
    def jobs(self) -> int:
        """Number of workers, at most as many as were asked for."""
        if time.monotonic() - self._asked > BEAT_SECONDS:  # some may have come or gone
            self.check()
        return max(1, min(self._limit or self._workers, self._workers))

    def submit(self, cell: Cell) -> "Future[CellOutcome]":
        """Start a cell."""
        outcome: Future[CellOutcome] = Future()
        task = self._client.submit(
            compute_there,
            cell,
            versions(),
            self._checkpoints,
            self._token,
            key=f"{cell.key}-{next(self._numbers)}",
            pure=False,
        )
        self._tasks[outcome] = task  # dask forgets a task that nobody holds
        task.add_done_callback(partial(self._pass_on, outcome))
        return outcome

    def check(self) -> None:
        """Raise when the scheduler or all workers are gone."""
        now = self._asked = time.monotonic()
        try:
            self._workers = len(self._client.nthreads())
        except Exception as error:
            raise self._lost(error) from None
        if self._workers:
            self._alive = now
        elif now - self._alive > NO_WORKER_SECONDS:
            raise ClusterError(
                f"scheduler {self._client.scheduler.address}: no worker for "
                f"{NO_WORKER_SECONDS} s; start some; {_KEPT}"
            )

    def _start(self, jobs: int) -> Any:
        """Start a cluster on this machine; a dead worker is judged by the runner, as locally."""
        import dask
        from distributed import LocalCluster

        with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
            return LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                memory_limit=0,
                silence_logs=logging.CRITICAL,
                env=variables(),
            )

    def _inspect(self) -> None:
        """Refuse workers that would give other results than this machine."""
        try:
            self._client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise ClusterError(
                f"scheduler {self._client.scheduler.address}: has no workers; start some with: "
                f"dask worker {self._client.scheduler.address} --nthreads 1"
            ) from None
        (self._checkpoints / self._token).mkdir(parents=True)
        threads = self._client.nthreads()
        self._workers = len(threads)
        self._alive = self._asked = time.monotonic()
        tasks = {
            address: self._client.submit(
                inspect_worker,
                self._data,
                versions(),
                self._checkpoints / self._token,
                workers=[address],
                allow_other_workers=False,
                key=f"inspect-{address}-{self._token}",
                pure=False,
            )
            for address in threads
        }
        amiss, blind = [], []
        for address, task in tasks.items():
            try:
                lacks, sees = task.result(timeout=INSPECT_SECONDS)
            except Exception as error:
                lacks, sees = [f"{type(error).__name__}: {error}"], True
            if threads[address] > 1:
                lacks = [*lacks, f"has {threads[address]} threads: start it with --nthreads 1"]
            if lacks:
                amiss.append(f"worker {address}: {'; '.join(lacks)}")
            elif not sees:
                blind.append(address)
        if amiss:
            raise ClusterError("\n".join(amiss))
        if blind:
            warnings.warn(
                f"{len(blind)} of {len(threads)} workers do not see {self._checkpoints} (first: "
                f"{blind[0]}): cells that are interrupted there begin anew",
                stacklevel=2,
            )

    def _pass_on(self, outcome: "Future[CellOutcome]", task: Any) -> None:
        """Turn what became of a task into a future of the standard library."""
        from distributed import KilledWorker

        try:
            if task.status == "cancelled":
                raise self._lost("its tasks were cancelled")
            outcome.set_result(task.result())
        except KilledWorker as error:
            outcome.set_exception(BrokenProcessPool(str(error)))
        except ClusterError as error:
            outcome.set_exception(error)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            outcome.set_exception(
                ClusterError(f"a worker could not begin a cell ({reason}); {_KEPT}")
            )
        finally:
            self._tasks.pop(outcome, None)

    def _lost(self, reason: object) -> ClusterError:
        address = self._client.scheduler.address if self._client.scheduler else self._address
        return ClusterError(
            f"scheduler {address}: the connection is lost ({reason}); start it again; {_KEPT}"
        )

    def _kill(self) -> None:
        """End the workers of an own cluster at once, whatever they do."""
        if self._own is not None:
            for nanny in self._own.workers.values():
                with suppress(Exception):
                    os.kill(nanny.pid, signal.SIGKILL)

    def _stop(self) -> None:
        """End an own cluster; all outcomes are here, so that a slow end is no error."""
        if self._own is not None:
            try:
                self._own.close(timeout=CLOSE_SECONDS)
            except TimeoutError:  # such as a worker that was about to be started again
                self._kill()
            self._own = None


def inspect_worker(
    data: Sequence[Data], wanted: Mapping[str, str], token: Path
) -> tuple[list[str], bool]:
    """Say what this worker lacks, and whether it sees the folder of the run."""
    return [fault for own in data if (fault := amiss(own))] + differing(wanted), token.is_dir()


def differing(wanted: Mapping[str, str]) -> list[str]:
    """Name the versions that are not those of the client.

    Examples
    --------
    >>> differing(versions())
    []
    >>> differing({**versions(), "vntransfer": "0"})[0].startswith("has vntransfer ")
    True
    """
    here = versions()
    return [
        f"has {name} {here.get(name)} instead of {version}"
        for name, version in wanted.items()
        if here.get(name) != version
    ]


@lru_cache(maxsize=256)
def amiss(data: Data) -> str:
    """Say what is wrong with a data set here, or nothing."""
    experiment, name, settings, expected = data
    try:
        found = load_kind(experiment).fingerprint(name, json.loads(settings))
    except Exception as error:
        return f"cannot read {name!r} ({type(error).__name__}: {error})"
    return "" if found == expected else f"has other data {name!r} than the client"


def compute_there(
    cell: Cell, wanted: Mapping[str, str], checkpoints: Path, token: str
) -> CellOutcome:
    """Compute a cell on a worker, which may have come later than the inspection."""
    import torch
    from distributed import get_worker
    from threadpoolctl import threadpool_limits

    lacks = differing(wanted) or [fault for fault in [amiss(data_of(cell))] if fault]
    if lacks:
        address = get_worker().address
        raise ClusterError(f"worker {address}: {'; '.join(lacks)}; stop it; {_KEPT}")
    torch.set_num_threads(1)
    with threadpool_limits(1):
        return compute(cell, checkpoints if (checkpoints / token).is_dir() else None)
