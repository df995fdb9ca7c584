"""An experiment whose cells go wrong in every way that the runner must survive."""

import os
import signal
import time
import warnings
from collections.abc import Iterator

from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import CellMethod, Kind
from vntransfer_lab.runner.schema import schema


def run(cell: Cell, checkpoint: object) -> Iterator[tuple[int, dict[str, float]]]:
    yield 1, {"error": 1.0 + cell.seed}
    if cell.method == "raises":
        raise RuntimeError("this cell always fails")
    if cell.method == "nan":
        yield 2, {"error": float("nan")}
    if cell.method == "memory":
        raise MemoryError("cannot allocate 1 PiB")
    if cell.method == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if cell.method == "warns":
        warnings.warn("rather small", stacklevel=1)
    if cell.method == "twice":
        yield 1, {"error": 2.0}
    if cell.method == "fixed" and not os.path.exists(os.environ["VNT_TEST_FIXED"]):
        raise RuntimeError("not fixed yet")
    time.sleep(cell.settings["seconds"])
    yield 2, {"error": 0.5 + cell.seed, "validation": 1.0}


KIND = Kind(
    name="troubled.kind",
    summary="cells that fail",
    version=1,
    metric="error",
    settings=schema(seconds=(float, 0.0)),
    methods={
        name: CellMethod()
        for name in ("fine", "raises", "nan", "memory", "dies", "warns", "twice", "fixed")
    },
    targets=lambda data, settings: ["a", "b"],
    fingerprint=lambda data, settings: data + os.environ.get("VNT_TEST_DATA", ""),
    run=run,
)
