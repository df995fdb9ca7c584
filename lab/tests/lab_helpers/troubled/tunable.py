"""An experiment with a hyper-parameter: the nearer to 0.3, the better on held-out rows."""

import time
from collections.abc import Iterator

from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import CellMethod, Kind
from vntransfer_lab.runner.schema import schema

LABELS = 1000.0  # the target's error is of another size: a rule that looks at it is found out


def run(cell: Cell, checkpoint: object) -> Iterator[tuple[int, dict[str, float]]]:
    time.sleep(cell.settings["seconds"])
    x = cell.hyper["x"]
    if x == cell.hyper["bad"]:
        raise RuntimeError("a bad point")
    for step in (1, 2, 3):
        score = (x - 0.3) ** 2 + 1 / step + 0.01 * cell.seed
        yield step, {"error": LABELS - 10 * score, "source_validation": score}


KIND = Kind(
    name="troubled.tunable",
    summary="one hyper-parameter",
    version=1,
    metric="error",
    settings=schema(seconds=(float, 0.0)),
    methods={
        name: CellMethod(schema(x=(float, 0.5), bad=(float, -1.0)))
        for name in ("one", "two", "plain")
    },
    targets=lambda data, settings: ["a", "b"],
    fingerprint=lambda data, settings: data,
    run=run,
)
