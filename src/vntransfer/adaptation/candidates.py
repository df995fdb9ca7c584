"""Estimators side by side: fitted on all sources, and judged with each source as the target."""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._selection import EFFORT, SAFE, virtual_targets
from vntransfer.adaptation.alignment import MomentAlignmentRegressor
from vntransfer.adaptation.guarded_choice import guard
from vntransfer.adaptation.pooled import PooledRegressor
from vntransfer.adaptation.source_only import SourceOnlyRegressor
from vntransfer.adaptation.weighted import WeightedSourceRegressor
from vntransfer.domains import Groups, Rows
from vntransfer.errors import ArgumentError, NumericalWarning
from vntransfer.progress import report

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
    """Candidates, fitted on all sources and judged on each.

    Parameters
    ----------
    fitted
        Name -> fitted estimator; those that were not fitted are made by `model`.
    held_out
        Name -> predictions (n,) of each source's rows by a model that did not learn from its
        responses; NaN in rows that were not predicted, infinite where a candidate failed.
    make
        Fits a candidate on all sources.
    """

    fitted: dict[str, Any]
    held_out: dict[str, Floats]
    make: Callable[[str], Any]

    def model(self, name: str) -> Any:
        """Give a candidate fitted on all sources."""
        if name not in self.fitted:
            self.fitted[name] = self.make(name)
        return self.fitted[name]


def maker(name: str) -> Make:
    """Find a candidate by its name: one of `CANDIDATES` or an id of ``METHODS``."""
    from vntransfer.adaptation._registry import METHODS  # it knows auto, which knows this file

    if name in CANDIDATES:
        return CANDIDATES[name]
    if name in METHODS and name != "auto":
        return METHODS[name].make
    known = [*CANDIDATES, *(key for key in METHODS if key not in CANDIDATES and key != "auto")]
    raise ArgumentError(f"candidates: {name!r} is not known; expected some of {known}")


def attempt(
    names: Sequence[str],
    X: Any,
    y: Floats,
    groups: Groups,
    weights: Floats | None = None,
    *,
    random_state: int,
    n_jobs: int | None = None,
) -> Tried:
    """Judge candidates with each source as the target once (twenty of them, if there are more).

    Networks are trained with half their epochs there; those of "align" and "source_only" are one
    batched training, in which "align" mixes its own candidates by what the other sources say.

    Parameters
    ----------
    names
        Candidates.
    X, y, groups, weights
        Rows, responses (those of the target are never read), who is who, weights of rows.
    random_state
        Of everything.
    n_jobs
        Virtual targets tried at once (joblib).
    """
    makers = {name: maker(name) for name in names}
    ids = _codes(groups, len(y))
    fit = partial(_fit, makers, X, y, ids, weights, random_state)
    tried = Tried({}, {}, fit)
    if len(groups.sources) < 2:
        return tried
    folds = list(virtual_targets(groups.sources).values())
    batched = [name for name in (SAFE, ALIGN) if ALIGN in names and name in names]
    if batched:
        tried.fitted[ALIGN] = fit(ALIGN)
        own = _held_out_by_alignment(tried.fitted[ALIGN], y)
        tried.held_out.update({name: own[name] for name in batched})
    rest = [name for name in names if name not in batched]
    jobs = [(name, rows) for name in rest for rows in folds]
    found = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_predict_fold)(
            makers[name], X, y, groups, ids, rows, weights, random_state, needed=name == names[0]
        )
        for name, rows in jobs
    )
    for (name, rows), predicted in zip(_counted(jobs, "leave-one-source-out"), found, strict=True):
        tried.held_out.setdefault(name, np.full(len(y), np.nan))[rows] = predicted
    return tried


def _counted(jobs: Sequence[Any], what: str) -> Iterator[Any]:
    for i, job in enumerate(jobs):
        report(what, i, len(jobs))
        yield job
    report(what, len(jobs), len(jobs))


def _codes(groups: Groups, n: int) -> NDArray[np.intp]:
    """Domains as integers: sources from 0 on in their order, the target -1."""
    ids = np.full(n, -1, dtype=np.intp)
    for i, rows in enumerate(groups.sources.values()):
        ids[rows] = i
    return ids


def _fit(
    makers: dict[str, Make], X: Any, y: Floats, ids: Any, weights: Any, seed: int, name: str
) -> Any:
    model = makers[name](random_state=seed)
    if isinstance(model, DomainRegressor):
        told = _Epochs(name, model)
        model.set_params(callback=told)
        model.fit(X, y, ids, None, weights)
        return model.set_params(callback=None)
    return model.fit(X, y, ids, None, weights)


class _Epochs:
    """Tells how far the training of a network is."""

    def __init__(self, name: str, model: DomainRegressor) -> None:
        chosen = getattr(model, "trade_off", None) == "auto"
        self.name, self.done = name, 0
        self.total = model.epochs + (2 * math.ceil(EFFORT * model.epochs) if chosen else 0)

    def __call__(self, record: Any) -> None:
        self.done += 1
        report(f"{self.name}: epochs", min(self.done, self.total), self.total)


def _predict_fold(
    make: Make,
    X: Any,
    y: Floats,
    groups: Groups,
    ids: NDArray[np.intp],
    rows: Rows,
    weights: Floats | None,
    seed: int,
    *,
    needed: bool,
) -> Floats:
    """Predict a source by the others, its rows being the target's.

    A candidate that cannot predicts infinity, unless it is needed.
    """
    model = make(random_state=seed)
    if isinstance(model, DomainRegressor):
        model.set_params(epochs=math.ceil(EFFORT * model.epochs))
    used = groups.source_rows
    relabeled = ids.copy()
    relabeled[rows] = -1
    own = None if weights is None else weights[used]
    try:
        model.fit(X[used], y[used], relabeled[used], None, own)
        predicted = np.asarray(model.predict(X[rows]), dtype=np.float64).ravel()
    except (ArithmeticError, ValueError) as error:
        if needed:
            raise
        warnings.warn(
            f"auto: {type(model).__name__} failed on a virtual target and is not used ({error})",
            NumericalWarning,
            stacklevel=2,
        )
        return np.full(len(rows), np.inf)
    return predicted if needed else np.where(np.isfinite(predicted), predicted, np.inf)


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
