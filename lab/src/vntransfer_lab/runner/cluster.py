"""The engine "dask": cells on the workers of a dask.distributed cluster.

The store stays with the client; workers get cells and give outcomes. What goes between them is
pickled by dask, so whoever can speak to the scheduler can run code: use clusters that you trust.
"""

import logging
import os
import signal
import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from vntransfer_lab.errors import ClusterError
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.provenance import versions
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.store_file import STORE_NAME
from vntransfer_lab.runner.workers import CHECK_SECONDS, Engine, compute, variables

CONNECT_SECONDS = 20
CLOSE_SECONDS = 30
NO_WORKER_SECONDS = 60
"""Seconds that a run waits for a new worker when all are gone."""

_KEPT = "finished cells are kept: rerun the same command to resume"


class Cluster(Engine):
    """Workers of a dask cluster; without the address of a scheduler, of one that ends with the run.

    ``jobs`` cells run at once (None: one per worker, on an own cluster one per core); ``most`` is
    the number of all cells. Checkpoints are used by the workers that see their folder.
    """

    def __init__(
        self, most: int, checkpoints: Path, *, jobs: int | None, scheduler: str | None
    ) -> None:
        super().__init__()
        self._most, self._limit, self._address = most, jobs, scheduler
        self._checkpoints = checkpoints
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
        if self._address is None:
            self._own = _start_cluster(min(self._limit or os.cpu_count() or 1, self._most))
            self._address = self._own.scheduler_address
        try:
            self._client = Client(self._address, timeout=CONNECT_SECONDS, set_as_default=False)
            self._executor = self._client.get_executor(pure=False)
        except (OSError, ValueError) as error:
            self._stop()
            raise ClusterError(
                f"scheduler: cannot reach {self._address} ({error}); start one with: dask scheduler"
            ) from None
        try:
            self._inspect()
        except BaseException as reason:
            self.__exit__(type(reason))
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is not None:
            with suppress(Exception):  # a scheduler that is lost cannot be told
                self._executor.shutdown(wait=False)
            self._kill()
        with suppress(Exception):
            self._client.close(timeout=2)
        self._stop()

    @property
    def jobs(self) -> int:
        """Number of workers, at most as many as were asked for."""
        if time.monotonic() - self._asked > CHECK_SECONDS:  # some may have come or gone
            self._check()
        return max(1, min(self._limit or self._workers, self._workers))

    def _start(self, cell: Cell) -> "Future[CellOutcome]":
        future: Future[CellOutcome]
        future = self._executor.submit(compute_there, cell, versions(), self._checkpoints)
        return future

    def _outcome(self, future: "Future[CellOutcome]") -> CellOutcome | BrokenProcessPool:
        from distributed import KilledWorker

        if future.cancelled():
            raise self._lost("its tasks were cancelled")
        error = future.exception()
        if error is None:
            return future.result()
        if isinstance(error, KilledWorker):
            return BrokenProcessPool(str(error))
        if isinstance(error, ClusterError):
            raise error
        reason = f"{type(error).__name__}: {error}"
        raise ClusterError(f"a worker could not start a cell ({reason}); {_KEPT}") from None

    def _check(self) -> None:
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
                f"scheduler {self._address}: no worker for "
                f"{NO_WORKER_SECONDS} s; start some; {_KEPT}"
            )

    def _inspect(self) -> None:
        """Wait for the first worker, and refuse those with more than one thread."""
        try:
            self._client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise ClusterError(
                f"scheduler {self._address}: has no workers; start some with: "
                f"dask worker {self._address} --nthreads 1"
            ) from None
        for worker, threads in self._client.nthreads().items():
            if threads > 1:
                raise ClusterError(
                    f"worker {worker}: has {threads} threads: start it with --nthreads 1"
                )
        self._check()

    def _lost(self, reason: object) -> ClusterError:
        return ClusterError(
            f"scheduler {self._address}: the connection was lost ({reason}); start it again; "
            f"{_KEPT}"
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


def _start_cluster(jobs: int) -> Any:
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


def compute_there(cell: Cell, wanted: Mapping[str, str], checkpoints: Path) -> CellOutcome:
    """Compute a cell on a worker that has the versions and the data of the client."""
    import torch
    from distributed import get_worker
    from threadpoolctl import threadpool_limits

    here = versions()
    lacks = [
        f"has {name} {here.get(name)} instead of {version}"
        for name, version in wanted.items()
        if here.get(name) != version
    ]
    try:
        if load_kind(cell.experiment).fingerprint(cell.data, cell.settings) != cell.data_hash:
            lacks.append(f"has other data {cell.data!r} than the client")
    except Exception as error:
        lacks.append(f"cannot read {cell.data!r} ({type(error).__name__}: {error})")
    if lacks:
        address = get_worker().address
        raise ClusterError(f"worker {address}: {'; '.join(lacks)}; stop it; {_KEPT}")
    torch.set_num_threads(1)
    seen = (checkpoints.parent / STORE_NAME).is_file()  # the run folder, on a shared disk
    with threadpool_limits(1):
        return compute(cell, checkpoints if seen else None)
