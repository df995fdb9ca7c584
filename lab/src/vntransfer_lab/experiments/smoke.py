"""``smoke``: does everything work? Three everyday predictors on the six synthetic domains.

Each domain is target once; the predictors are trained on the pooled other domains. It exercises
all that a larger experiment needs: several targets and seeds, hyper-parameters and epochs chosen
on held-out source rows, and a baseline.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from vntransfer.storage.files import fingerprint
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import CellMethod, Kind
from vntransfer_lab.runner.schema import Positive, Schema, Settings, schema

_Rows = tuple[NDArray[np.float64], NDArray[np.float64]]


@lru_cache(maxsize=4)
def _domains(data: str, n_samples: int) -> Mapping[str, _Rows]:
    from vntransfer_lab.data import Domains, load
    from vntransfer_lab.errors import PresetError

    if data != "synthetic":
        raise PresetError(f"data: smoke knows only 'synthetic', got {data!r}")
    loaded = load(data, n_samples=n_samples)
    assert isinstance(loaded, Domains)
    return loaded


def _fingerprint(data: str, settings: Settings) -> str:
    domains = _domains(data, settings["n_samples"])
    return fingerprint(*(array for rows in domains.values() for array in rows))


def _run(cell: Cell, checkpoint: object) -> Iterator[tuple[int, dict[str, float]]]:
    domains = _domains(cell.data, cell.settings["n_samples"])
    x_target, y_target = domains[cell.target]
    sources = [rows for name, rows in domains.items() if name != cell.target]
    x, y = (np.concatenate(parts) for parts in zip(*sources, strict=True))
    order = np.random.default_rng(cell.seed).permutation(len(y))
    held, used = np.split(order, [int(cell.settings["validation"] * len(y))])
    for step, predict in _fit(cell, x[used], y[used]):
        errors = (y_target - predict(x_target), y[held] - predict(x[held]))
        mae, validation = (float(np.abs(error).mean()) for error in errors)
        yield step, {"mae": mae, "source_validation": validation}


def _fit(cell: Cell, x: NDArray[np.float64], y: NDArray[np.float64]) -> Iterator[tuple[int, Any]]:
    """Step and prediction function, once or every few boosting rounds."""
    if cell.method == "constant":
        middle = float(np.median(y))
        yield 1, lambda rows: np.full(len(rows), middle)
    elif cell.method == "ridge":
        from sklearn.linear_model import Ridge

        yield 1, Ridge(alpha=cell.hyper["alpha"]).fit(x, y).predict
    else:
        from sklearn.ensemble import HistGradientBoostingRegressor

        model = HistGradientBoostingRegressor(
            max_iter=0, warm_start=True, early_stopping=False, random_state=cell.seed
        )
        every = cell.hyper["every"]
        for rounds in range(every, cell.hyper["rounds"] + 1, every):
            yield rounds, model.set_params(max_iter=rounds).fit(x, y).predict


class SmokeSettings(Schema):
    """Rows per domain, and the share of source rows that is held out."""

    n_samples: int = Field(300, ge=10, le=100_000)
    validation: float = Field(0.2, ge=0.05, le=0.5)


KIND = Kind(
    name="smoke",
    summary="everyday predictors on the six synthetic domains",
    metric="mae",
    settings=SmokeSettings,
    methods={
        "constant": CellMethod(),
        "ridge": CellMethod(schema(alpha=(float, Field(1.0, ge=0)))),
        "boosting": CellMethod(schema(rounds=(Positive, 60), every=(Positive, 20))),
    },
    targets=lambda data, settings: list(_domains(data, settings["n_samples"])),
    fingerprint=_fingerprint,
    run=_run,
)
