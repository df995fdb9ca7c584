"""Predictions of networks for each held-out source, from one batched training."""

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from vntransfer.adaptation._data import Data
from vntransfer.adaptation._member_training import FitRun, TrainingPlan, train_members
from vntransfer.adaptation._selection import EFFORT, held_out_sources, tested_rows
from vntransfer.adaptation._training_loop import EpochCounter
from vntransfer.errors import DomainError
from vntransfer.progress import Progress
from vntransfer.step_times import StepTimes

if TYPE_CHECKING:
    from vntransfer.adaptation._base import DomainRegressor


def held_out_predictions(
    model: "DomainRegressor", seed: int, members: int, progress: Progress | None = None
) -> tuple[NDArray[np.float64], StepTimes]:
    """Predict every source's rows (n,) by members that were not trained on that source.

    ``model`` is fitted without adaptation to sources alone. Each source is held out with so many
    ``members``, for half of the model's epochs, and all of these are trained as one batched
    network. Inputs of a held-out source are kept within the range of the others, as those of a
    target are. Rows are those of the sources in their order; NaN where none was predicted (of more
    than twenty sources, or of a source's more than 4000 rows, some).
    """
    state = model._state
    if state.sources is None:
        raise DomainError(
            "held_out_predictions: the rows of the sources are not saved with a model"
        )
    rows, scale = state.sources, state.y_scaler
    y = (rows.y.reshape(len(rows.y), -1) - scale.mean) / scale.scale
    data = Data(
        rows.x,
        state.x_scaler,
        torch.from_numpy(y.astype(np.float32)),
        weights=rows.weights,
        limits=state.limits,
        device=model.device,
    )
    domains, names = list(rows.groups.sources.values()), list(rows.groups.sources)
    k, n = len(domains), members
    held = [names.index(name) for name in held_out_sources(rows.groups.sources)]
    limited, places = data.limited(domains) if model.clip_inputs else (data, domains)
    order = np.array([[i for i in range(k) if i != v] for v in held]).repeat(n, 0)
    plan = TrainingPlan(
        "held-out",
        domains,
        order,
        [{}] * len(order),
        False,
        model.batch_size,
        np.full(len(order), 1 / len(order)),
        n,
        EFFORT,
    )
    run = FitRun(seed, EpochCounter(progress, math.ceil(EFFORT * model.epochs)))
    trained = train_members(model, limited, plan, run)
    out = np.full(len(rows.y), np.nan)
    for i, v in enumerate(held):
        tested = tested_rows(places[v])
        own = data.bound(trained.predict(limited, tested)[i * n : (i + 1) * n])
        scaled = own.double().mean(0).numpy()[:, 0]
        out[tested_rows(domains[v])] = scaled * scale.scale[0] + scale.mean[0]
    return out, trained.step_times
