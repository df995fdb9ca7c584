"""Parts of a table, read by the workers of a Dask cluster."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from vntransfer.errors import ArgumentError, DataError, VnError
from vntransfer.progress import Progress, silent
from vntransfer.workflows.streaming import FilePart, Into, ReadingPlan, summarize


def over_workers(
    plan: ReadingPlan[Into],
    parts: list[FilePart],
    scheduler: str | None,
    *,
    report: Progress = silent,
) -> Into:
    """Summarize parts on workers and merge them here, in their order: same numbers, any engine.

    The workers must reach the files by the same paths. A part whose worker dies is read again by
    another one. Without the address of a ``scheduler``, a cluster is started on this machine.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ArgumentError(
            "engine: 'dask' needs dask.distributed: run `pip install 'vntransfer[cluster]'`"
        ) from error
    with ExitStack() as opened:
        if scheduler is None:
            with _signals_wait():
                cluster = LocalCluster(
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                )
                client = opened.enter_context(Client(opened.enter_context(cluster)))
        else:
            try:
                client = opened.enter_context(Client(scheduler, timeout=20))
            except OSError as error:
                raise ArgumentError(
                    f"scheduler: no cluster answers at {scheduler!r} ({error}); start one with "
                    f"`dask scheduler` and `dask worker`"
                ) from error
        return _gather(client, plan, parts, report)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM while a cluster starts: half of one cannot be closed."""
    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        yield
        return
    came: list[int] = []
    stops = (signal.SIGINT, signal.SIGTERM)
    before = {stop: signal.signal(stop, lambda number, _: came.append(number)) for stop in stops}
    try:
        yield
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler)
    for number in came[:1]:
        os.kill(os.getpid(), number)


def _gather(client: Any, plan: ReadingPlan[Into], parts: list[FilePart], report: Progress) -> Into:
    made = plan.into.empty()
    # One at a time, in order: the results of all parts together may not fit into memory.
    futures = client.map(summarize, [plan] * len(parts), parts, pure=False)
    for k, future in enumerate(futures):
        report("parts", k, len(parts))
        try:
            made.merge(future.result())
        except VnError:
            raise
        except FileNotFoundError as error:
            raise DataError(
                f"{parts[k].file}: a worker cannot find it; all workers must see the files under "
                f"the same paths"
            ) from error
        future.release()
    report("parts", len(parts), len(parts))
    return made
