"""The same summaries, made by the workers of a Dask cluster."""

from typing import TYPE_CHECKING, Any

from vntransfer.errors import ArgumentError, DataError, VnError
from vntransfer.relations.summaries import Summaries

if TYPE_CHECKING:
    from vntransfer.workflows.relate_tables import FilePart, ReadingPlan


def over_workers(plan: "ReadingPlan", parts: "list[FilePart]", scheduler: str | None) -> Summaries:
    """Summarize parts on workers and merge them here, in their order: same numbers, any engine.

    Parameters
    ----------
    plan, parts
        What to read, and where; the workers must reach the files by the same paths.
    scheduler
        Address of the cluster; None starts one on this machine.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ArgumentError(
            "engine: 'dask' needs dask.distributed: run `pip install 'vntransfer[cluster]'`"
        ) from error
    if scheduler is None:
        with (
            LocalCluster(threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            return _gather(client, plan, parts)
    try:
        client = Client(scheduler, timeout=20)
    except OSError as error:
        raise ArgumentError(
            f"scheduler: no cluster answers at {scheduler!r} ({error}); start one with "
            f"`dask scheduler` and `dask worker`"
        ) from error
    with client:
        return _gather(client, plan, parts)


def _gather(client: Any, plan: "ReadingPlan", parts: "list[FilePart]") -> Summaries:
    from vntransfer.workflows.relate_tables import summarize

    made = plan.into.empty()
    # One at a time, in order: the results of all parts together may not fit into memory.
    futures = client.map(summarize, [plan] * len(parts), parts, pure=False)
    for k, future in enumerate(futures):
        try:
            made.merge(future.result())
        except VnError:
            raise
        except FileNotFoundError as error:
            raise DataError(
                f"{parts[k].file}: a worker does not find it; all workers must reach the files by "
                f"the same paths"
            ) from error
        future.release()
    return made
