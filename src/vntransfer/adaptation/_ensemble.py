"""A fitted ensemble: which member serves which target with which share, and how it is trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from vntransfer.adaptation._data import Data
from vntransfer.adaptation._member_training import FitRun, TrainingPlan, train_members
from vntransfer.adaptation._objective import FEW
from vntransfer.adaptation._selection import SAFE, HeldOutCandidates, Selection
from vntransfer.adaptation._training_loop import Record
from vntransfer.domains import Groups, Name
from vntransfer.networks import Net, join_members
from vntransfer.step_times import StepTimes

if TYPE_CHECKING:
    from vntransfer.adaptation._base import DomainRegressor


@dataclass(frozen=True)
class Ensemble:
    """Members, side by side in one network."""

    net: Net
    offset: NDArray[np.float32]  # mean residuals (M, 1, m), added to scaled predictions
    shares: Mapping[Name | None, NDArray[np.float64]]  # target -> shares (M,); None: any target
    source_weights: dict[Any, Any]  # by source; with several targets by target and source
    history: list[Record]
    step_times: StepTimes


@dataclass(frozen=True)
class Fitted:
    """What a fit saw, for predictions of held-out sources; not saved."""

    data: Data
    groups: Groups
    held_out: HeldOutCandidates | None  # what the selection saw


def fit_ensemble(
    model: "DomainRegressor",
    data: Data,
    groups: Groups,
    run: FitRun,
    selection: Selection | None,
) -> Ensemble:
    """Train the members of every candidate that has a share, for every target.

    Members of the source-only candidate serve all targets alike.
    """
    adapts = model._needs_target and bool(groups.targets)
    merged = groups.merged() if model._merges() else groups
    size = model.batch_size * (len(groups.sources) if model._merges() else 1)
    domains = [*merged.sources.values(), *(merged.targets.values() if adapts else ())]
    k, n = len(merged.sources), model.members
    plans: list[TrainingPlan] = []
    chosen = [({}, 1.0)] if selection is None else _chosen(selection)
    safe = float(not adapts) if selection is None else selection.shares[SAFE]
    if safe > 0:
        plans.append(
            TrainingPlan(
                "source",
                domains[:k],
                order=np.tile(np.arange(k), (n, 1)),
                options=[{}] * n,
                adapts=False,
                batch_size=size,
                shares=np.full(n, safe / n),
                starts=n,
                counted=not (adapts and chosen),
            )
        )
    if adapts and chosen:
        t = len(groups.targets)
        every = [(j, *own) for j in range(t) for own in chosen for _ in range(n)]
        plans.append(
            TrainingPlan(
                "adapted",
                domains,
                order=np.array([[*range(k), k + j] for j, _, _ in every]),
                options=[own for _, own, _ in every],
                adapts=True,
                batch_size=size,
                shares=np.array([share / (n * t) for _, _, share in every]),
                starts=len(chosen) * n,
            )
        )
    members = [train_members(model, data, plan, run) for plan in plans]
    targets: list[Name | None] = list(groups.targets) or [None]
    shares = {
        target: np.concatenate([plan.shares_for(j, len(targets)) for plan in plans])
        for j, target in enumerate(targets)
    }
    return Ensemble(
        join_members([one.net for one in members]),
        torch.cat([one.offset for one in members]).numpy(),
        shares,
        named_weights(model, groups, plans[-1], members[-1].weights.numpy()),
        [_named(record, model, groups, plans[-1]) for record in members[-1].history],
        sum((one.step_times for one in members), StepTimes()),
    )


def _chosen(selection: Selection) -> list[tuple[Mapping[str, Any], float]]:
    """Options and shares of the candidates besides source-only."""
    every = zip(selection.candidates, selection.options, strict=True)
    return [
        (own, selection.shares[name])
        for name, own in every
        if name != SAFE and selection.shares[name] > 0
    ]


def named_weights(
    model: "DomainRegressor", groups: Groups, plan: TrainingPlan, weights: NDArray[Any]
) -> dict[Any, Any]:
    """Weights of the sources by name, the mean over members by their shares.

    Members of the source-only candidate give all sources with twenty rows or more the same weight;
    a method that merges the sources weights them by their rows.
    """
    sizes = np.array([len(rows) for rows in groups.sources.values()], dtype=float)
    enough = np.minimum(sizes, FEW)
    parts = enough.sum() / enough  # the number of sources, if all have twenty rows
    targets: list[Name | None] = list(groups.targets) or [None]
    out: dict[Any, dict[Name, float]] = {}
    for j, target in enumerate(targets):
        if model._merges():
            w = sizes / sizes.sum()
        elif not plan.adapts:
            w = 1 / parts
        else:
            own = plan.shares_for(j, len(targets))
            w = own @ weights + (1 - own.sum()) / parts
        out[target] = dict(zip(groups.sources, w.tolist(), strict=True))
    return out if len(out) > 1 else out[targets[0]]


def _named(record: Record, model: "DomainRegressor", groups: Groups, plan: TrainingPlan) -> Record:
    """Give a record with weights by name instead of by member."""
    weights = named_weights(model, groups, plan, np.array(record["weights"]))
    return {"stage": "training", **record, "weights": weights}
