"""Candidates of ``auto``: fitted to all sources, and evaluated on each held-out source."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._estimator import FitRows as FitRows
from vntransfer.adaptation._member_training import FitRun
from vntransfer.adaptation._selection import EFFORT, SAFE, held_out_candidates, held_out_sources
from vntransfer.adaptation._training_loop import EpochCounter
from vntransfer.adaptation.alignment import MomentAlignmentRegressor
from vntransfer.adaptation.guarded_choice import guard
from vntransfer.adaptation.pooled import PooledRegressor
from vntransfer.adaptation.source_only import SourceOnlyRegressor
from vntransfer.checks import one_of
from vntransfer.domains import Groups, Rows
from vntransfer.errors import NumericalWarning
from vntransfer.progress import Progress, silent
from vntransfer.step_times import StepTimes

Floats = NDArray[np.float64]
Make = Callable[..., Any]

ALIGN = "align"
LOGISTIC = "logistic"
DEEPER = "deeper networks"

CANDIDATES: dict[str, Make] = {
    SAFE: partial(SourceOnlyRegressor, members=5),
    DEEPER: partial(
        SourceOnlyRegressor,
        members=3,
        hidden=(64, 64),
        width=32,
        weight_decay=0.3,
        input_scales=True,
        loss="huber",
    ),
    "linear_trees": partial(PooledRegressor, "linear_trees"),
    "boosting": partial(PooledRegressor, "boosting"),
    "ridge": partial(PooledRegressor, "ridge"),
    LOGISTIC: partial(PooledRegressor, LOGISTIC),
    "constant": partial(PooledRegressor, "constant"),
    ALIGN: MomentAlignmentRegressor,
}
"""Candidates of `AutoTransferRegressor` by name.

The deeper networks have a Huber loss, because an RMSE per source asks for an exact fit of sources
whose responses hardly vary, at the cost of all others.
"""

DENSE = (SAFE, DEEPER, "linear_trees", "ridge")
"""What is tried on tables; the first is the reference."""
SPARSE = (SAFE, DEEPER, ALIGN, "boosting", "ridge", LOGISTIC)
"""What is tried on sparse rows (text); the last only if the response has few values."""
ANCHORS = (SAFE, DEEPER, ALIGN)
"""Networks, whose equal average is what the weights are drawn to."""


ALL = "all models"
"""What all parts of a fit are together."""
ADAPTED = 10
"""Times an epoch of a plain ensemble that one of alignment takes, held-out sources included."""


@dataclass(frozen=True)
class Tried:
    """Candidates, fitted to all sources and evaluated on each."""

    make: Callable[[str], Any]  # fits a candidate on all sources
    # those that were not fitted yet are made by `model`
    fitted: dict[str, Any] = field(default_factory=dict)
    held_out: dict[str, Floats] = field(default_factory=dict)
    step_times: StepTimes = field(default_factory=StepTimes)  # on held-out sources

    def model(self, name: str) -> Any:
        """Give a candidate fitted on all sources."""
        if name not in self.fitted:
            self.fitted[name] = self.make(name)
        return self.fitted[name]


def maker(name: str, option: str = "candidates") -> Make:
    """Find a candidate by its name: one of `CANDIDATES` or an id of ``METHODS``."""
    from vntransfer.adaptation._registry import METHODS  # it knows auto, which knows this file

    if name in CANDIDATES:
        return CANDIDATES[name]
    others = [key for key in METHODS if key != "auto"]
    one_of(option, name, dict.fromkeys((*CANDIDATES, *others)))
    return METHODS[name].make


def attempt(
    names: Sequence[str],
    rows: FitRows,
    *,
    random_state: int,
    members: int | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Tried:
    """Evaluate candidates on each held-out source (on twenty, if there are more).

    Networks are trained with half their epochs there. Those that do not adapt are one batched
    training of so many ``members`` (None: all) for each held-out source. "align" and, beside it,
    "source_only" are judged by one member each, and "align" mixes its own candidates by what the
    other sources say. Responses of the target are never read.
    """
    y, groups = rows.y, rows.groups
    ids = _codes(groups, len(y))
    makers = {name: partial(maker(name), random_state=random_state) for name in names}
    folds = list(held_out_sources(groups.sources).values())
    parts = _Parts(progress, _sizes(names, makers, len(folds)))

    def fit(name: str) -> Any:
        return makers[name]().fit(rows.x, y, ids, None, rows.weights, parts.report(f"fit {name}"))

    tried = Tried(fit)
    if len(groups.sources) < 2:
        return tried
    times, batched = StepTimes(), [name for name in (SAFE, ALIGN) if {name, ALIGN} <= {*names}]
    if batched:
        own = _held_out_by_alignment(tried.model(ALIGN), y)
        tried.held_out.update({name: own[name] for name in batched})
    for name in names:
        if name not in batched and type(makers[name]()) is SourceOnlyRegressor:
            report = parts.report(f"hold out sources, {name}")
            try:
                found, steps = _held_out_by_networks(
                    tried.model(name), random_state, members, report
                )
            except (ArithmeticError, ValueError) as error:
                found, steps = _failed(name, error, len(y), name == names[0])
            tried.held_out[name] = np.where(ids < 0, np.nan, found)
            times += steps
    jobs = [(name, held) for name in names if name not in tried.held_out for held in folds]
    found_folds = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_predict_fold)(makers[name](), rows, ids, held, needed=name == names[0])
        for name, held in jobs
    )
    for (name, held), (predicted, steps) in zip(jobs, found_folds, strict=True):
        tried.held_out.setdefault(name, np.full(len(y), np.nan))[held] = predicted
        times += steps
        parts.advance(f"hold out sources, {name}", len(folds))
    return replace(tried, step_times=times)


class _Parts:
    """Report the part that is being done, and all parts together, by their share of the time."""

    def __init__(self, progress: Progress | None, sizes: Mapping[str, float]) -> None:
        self.progress, self.sizes = progress or silent, sizes
        self.done = dict.fromkeys(sizes, 0.0)

    def report(self, part: str) -> Progress:
        """Give the callback of a part."""

        def moved(what: str, done: int, total: int | None) -> None:
            if total:
                self.done[part] = done / total
                every = sum(share * self.sizes.get(name, 0) for name, share in self.done.items())
                self.progress(ALL, round(every), round(sum(self.sizes.values())))
            self.progress(part, done, total)

        return moved

    def advance(self, part: str, total: int) -> None:
        """Count one more of a part's pieces."""
        self.report(part)("", round(self.done.get(part, 0.0) * total) + 1, total)


def _sizes(names: Sequence[str], makers: Mapping[str, Make], folds: int) -> dict[str, float]:
    """Time that parts take, in epochs of a plain ensemble: rough, for the time that is left."""
    sizes: dict[str, float] = {}
    for name in names:
        model = makers[name]()
        if isinstance(model, DomainRegressor):
            sizes[f"fit {name}"] = model.epochs * (ADAPTED if name == ALIGN else 1)
        if folds > 1 and not (name == ALIGN or (name == SAFE and ALIGN in names)):
            network = isinstance(model, SourceOnlyRegressor)
            sizes[f"hold out sources, {name}"] = 0.5 * model.epochs if network else folds
    return sizes


def _codes(groups: Groups, n: int) -> NDArray[np.intp]:
    """Domains as integers: sources from 0 on in their order, the target -1."""
    ids = np.full(n, -1, dtype=np.intp)
    for i, rows in enumerate(groups.sources.values()):
        ids[rows] = i
    return ids


def _predict_fold(
    model: Any, rows: FitRows, ids: NDArray[np.intp], held: Rows, *, needed: bool
) -> tuple[Floats, StepTimes]:
    """Predict a source by the others, its rows being the target's; and the steps that it took.

    A candidate that cannot predicts infinity, unless it is needed.
    """
    if isinstance(model, DomainRegressor):
        model.set_params(epochs=math.ceil(EFFORT * model.epochs))
    used, weights = rows.groups.source_rows, rows.weights
    relabeled = ids.copy()
    relabeled[held] = -1
    own = None if weights is None else weights[used]
    try:
        model.fit(rows.x[used], rows.y[used], relabeled[used], None, own)
        predicted = np.asarray(model.predict(rows.x[held]), dtype=np.float64).ravel()
    except (ArithmeticError, ValueError) as error:
        return _failed(type(model).__name__, error, len(held), needed)
    if not needed:
        predicted = np.where(np.isfinite(predicted), predicted, np.inf)
    return predicted, getattr(model, "step_times_", StepTimes())


def _failed(name: str, error: Exception, n: int, needed: bool) -> tuple[Floats, StepTimes]:
    """Predict infinity for a candidate that cannot predict; raise its error if it is needed."""
    if needed:
        raise error
    warnings.warn(
        f"auto: {name} failed on a held-out source and is not used ({error})",
        NumericalWarning,
        stacklevel=3,
    )
    return np.full(n, np.inf), StepTimes()


def _held_out_by_networks(
    model: Any, seed: int, members: int | None, progress: Progress
) -> tuple[Floats, StepTimes]:
    """Predict rows of each source (n,) by networks that have not seen it; and their steps."""
    fitted, scaler = model._fitted, model._values.y_scaler
    run = FitRun(seed, EpochCounter(progress, math.ceil(EFFORT * model.epochs)))
    seen = held_out_candidates(
        model, fitted.data, fitted.groups, run, members=members or model.members
    )
    out = np.full(len(fitted.data.y), np.nan)
    for rows, own in zip(seen.rows, seen.predictions, strict=True):
        scaled = own[:, :, 0].astype(np.float64).mean(0)
        out[rows] = scaled * scaler.scale[0] + scaler.mean[0]
    return out, seen.step_times


def _held_out_by_alignment(model: Any, y: Floats) -> dict[str, Floats]:
    """Collect what source-only and alignment predicted on held-out sources."""
    seen, scaler = model._fitted.held_out, model._values.y_scaler
    raw = [own[:, :, 0] * scaler.scale[0] + scaler.mean[0] for own in seen.predictions]
    pairs = list(zip(seen.rows, raw, strict=True))
    errors = np.array([np.abs(own - y[rows]).mean(1) for rows, own in pairs])
    out = {SAFE: np.full(len(y), np.nan), ALIGN: np.full(len(y), np.nan)}
    for v, (rows, own) in enumerate(pairs):
        shares = guard(np.delete(errors, v, axis=0)).shares
        shares = np.where(np.isfinite(own).all(1), shares, 0.0)
        out[SAFE][rows] = own[0]
        out[ALIGN][rows] = shares / shares.sum() @ np.nan_to_num(own)
    return out
