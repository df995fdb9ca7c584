"""Estimators side by side: fitted on all sources, and judged with each source as the target."""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._estimator import FitRows
from vntransfer.adaptation._selection import EFFORT, SAFE, virtual_targets
from vntransfer.adaptation.alignment import MomentAlignmentRegressor
from vntransfer.adaptation.guarded_choice import guard
from vntransfer.adaptation.pooled import PooledRegressor
from vntransfer.adaptation.source_only import SourceOnlyRegressor
from vntransfer.adaptation.weighted import WeightedSourceRegressor
from vntransfer.checks import one_of
from vntransfer.domains import Groups, Rows
from vntransfer.errors import NumericalWarning
from vntransfer.progress import Progress, silent
from vntransfer.step_times import StepTimes

Floats = NDArray[np.float64]
Make = Callable[..., Any]

ALIGN = "align"
SHARP = (1.0, 3.0)
MEMBERS = 5

CANDIDATES: dict[str, Make] = {
    "boosting": partial(PooledRegressor, "boosting"),
    "ridge": partial(PooledRegressor, "ridge"),
    "constant": partial(PooledRegressor, "constant"),
    **{
        f"{learner}, sharpness {a:g}": partial(WeightedSourceRegressor, learner, sharpness=a)
        for learner in ("ridge", "boosting")
        for a in SHARP
    },
    SAFE: partial(SourceOnlyRegressor, members=MEMBERS),
    ALIGN: MomentAlignmentRegressor,
}
"""What `AutoTransferRegressor` tries; the first is the safe one."""


def adapts(name: str) -> bool:
    """Whether a candidate weights or aligns sources: with one source it is like the plain one.

    Examples
    --------
    >>> [name for name in CANDIDATES if not adapts(name)]
    ['boosting', 'ridge', 'constant', 'source_only']
    """
    return name == ALIGN or "sharpness" in name


@dataclass(frozen=True)
class Tried:
    """Candidates, fitted on all sources and judged on each."""

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
    X: Any,
    y: Floats,
    groups: Groups,
    weights: Floats | None = None,
    *,
    random_state: int,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Tried:
    """Judge candidates with each source as the target once (twenty of them, if there are more).

    Networks are trained with half their epochs there; those of "align" and "source_only" are one
    batched training, in which "align" mixes its own candidates by what the other sources say.
    Responses of the target are never read.
    """
    rows, ids = FitRows(X, y, groups, weights), _codes(groups, len(y))
    makers = {name: partial(maker(name), random_state=random_state) for name in names}

    def fit(name: str) -> Any:
        def report(what: str, done: int, total: int | None) -> None:
            (progress or silent)(f"{name}: {what}", done, total)

        return makers[name]().fit(X, y, ids, None, weights, report)

    tried = Tried(fit)
    if len(groups.sources) < 2:
        return tried
    folds = list(virtual_targets(groups.sources).values())
    batched = [name for name in (SAFE, ALIGN) if ALIGN in names and name in names]
    if batched:
        own = _held_out_by_alignment(tried.model(ALIGN), y)
        tried.held_out.update({name: own[name] for name in batched})
    jobs = [(name, held) for name in names if name not in batched for held in folds]
    found = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_predict_fold)(makers[name](), rows, ids, held, needed=name == names[0])
        for name, held in jobs
    )
    times = StepTimes()
    for (name, held), (predicted, steps) in zip(_counted(jobs, progress), found, strict=True):
        tried.held_out.setdefault(name, np.full(len(y), np.nan))[held] = predicted
        times += steps
    return replace(tried, step_times=times)


def _counted(jobs: Sequence[Any], progress: Progress | None) -> Iterator[Any]:
    report = progress or silent
    for i, job in enumerate(jobs):
        report("leave-one-source-out", i, len(jobs))
        yield job
    report("leave-one-source-out", len(jobs), len(jobs))


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
        if needed:
            raise
        warnings.warn(
            f"auto: {type(model).__name__} failed on a virtual target and is not used ({error})",
            NumericalWarning,
            stacklevel=2,
        )
        return np.full(len(held), np.inf), StepTimes()
    if not needed:
        predicted = np.where(np.isfinite(predicted), predicted, np.inf)
    return predicted, getattr(model, "step_times_", StepTimes())


def _held_out_by_alignment(model: Any, y: Floats) -> dict[str, Floats]:
    """Collect what source-only and alignment predicted on held-out sources."""
    virtual, scaler = model._state.virtual, model._state.y_scaler
    raw = [own[:, :, 0] * scaler.scale[0] + scaler.mean[0] for own in virtual.predictions]
    pairs = list(zip(virtual.rows, raw, strict=True))
    errors = np.array([np.abs(own - y[rows]).mean(1) for rows, own in pairs])
    out = {SAFE: np.full(len(y), np.nan), ALIGN: np.full(len(y), np.nan)}
    for v, (rows, own) in enumerate(pairs):
        shares = guard(np.delete(errors, v, axis=0)).shares
        shares = np.where(np.isfinite(own).all(1), shares, 0.0)
        out[SAFE][rows] = own[0]
        out[ALIGN][rows] = shares / shares.sum() @ np.nan_to_num(own)
    return out
