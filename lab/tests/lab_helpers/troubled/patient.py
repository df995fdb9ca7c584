"""An experiment whose cells keep checkpoints and wait in the middle until a file is there.

A checkpoint holds the next step and the process that computes the cell.
"""

import os
import time
from collections.abc import Iterator

from vntransfer.storage.files import atomic_write
from vntransfer.storage.pacing import Paced
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import CellMethod, Kind
from vntransfer_lab.runner.schema import Schema


def run(cell: Cell, checkpoint: Paced | None) -> Iterator[tuple[int, dict[str, float]]]:
    file = None if checkpoint is None else checkpoint / "step"
    known = file is not None and file.path.exists()
    first = int(file.path.read_text().split()[0]) if file is not None and known else 1
    for step in range(first, 6):
        if step == 4:
            while not os.path.exists(os.environ["VNT_TEST_GO"]):
                time.sleep(0.01)
        if file is not None and file.pace.due():
            with atomic_write(file.path, "w") as text:
                text.write(f"{step + 1} {os.getpid()}")
    yield 5, {"error": 1.0, "first": first}


KIND = Kind(
    name="troubled.patient",
    summary="cells that wait",
    version=1,
    metric="error",
    settings=Schema,
    methods={"waits": CellMethod()},
    targets=lambda data, settings: ["a"],
    fingerprint=lambda data, settings: data,
    run=run,
)
