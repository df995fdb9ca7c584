"""A weighted average of learners, with weights from held-out sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state, column_or_1d

from vntransfer.adaptation._auto_reason import caution_text, counted_models, reason_of
from vntransfer.adaptation._estimator import FitRows, TransferEstimator
from vntransfer.adaptation._records import COMMON, bounds_of, check_parts, checked_choice
from vntransfer.adaptation._saving import common_record, restored_common
from vntransfer.adaptation._selection import LEAST, Choice, held_out_sources, tested_rows
from vntransfer.adaptation.blend import (
    Bounds,
    Stretch,
    blend,
    caution,
    cautious_average,
    errors_of,
    find_stretch,
)
from vntransfer.adaptation.candidates import ALIGN, ANCHORS, DENSE, LOGISTIC, SPARSE, Tried, attempt
from vntransfer.adaptation.linear_learners import MOST_VALUES
from vntransfer.domains import Groups, Name, Rows
from vntransfer.errors import ArgumentError
from vntransfer.progress import Progress
from vntransfer.step_times import StepTimes
from vntransfer.storage.folder import Savable
from vntransfer.storage.record import SavedModel, check_record

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, repr=False)
class AutoSelection(Choice):
    """What `AutoTransferRegressor` chose, and why; the first candidate is the reference.

    ``scores`` are mean log ratios of the candidates' errors on held-out sources to the reference's.
    """

    # mean absolute ones: held-out source -> candidate -> value
    errors: dict[Name, dict[str, float]] = field(default_factory=dict)


class Folds(NamedTuple):
    """Predictions (C, n) and responses (n,) of each held-out source."""

    predictions: list[Floats]
    truth: list[Floats]


class _Chosen(NamedTuple):
    """A selection, and for each held-out source the weights (V, C) and caution (V,) there."""

    selection: AutoSelection
    held_out: Floats
    cautions: Floats


@dataclass(eq=False, repr=False)
class AutoTransferRegressor(Savable, RegressorMixin, TransferEstimator):  # type: ignore[misc]
    """A weighted average of networks, linear trees and ridge regression: the default of `adapt`.

    Each source is held out once, and every candidate predicts it from the others; no labels from
    the target are used. Networks are trained with half their epochs for this, and on dense rows
    with one member. With e_v(w) the mean absolute error on held-out source v of the average with
    weights w, b_v the smallest error of a candidate there, and s_v the mean absolute deviation of
    the responses of v from their median::

        r_v     = min(1, s_v / mean of s over all held-out sources)
        w       = argmin over the simplex of Σ_v r_v e_v(w) / b_v
        weights = .4 (equal weights of the networks) + .6 w

    A part of the weight is fixed, because held-out sources cannot show how a candidate behaves at a
    target unlike all of them; without evidence, an average of different networks is the best guess.
    Sources whose responses hardly vary hardly count. Predictions of each candidate stay within the
    range of its training responses. The predictions of a row are combined by a trimmed mean: they
    are sorted, a quarter of the weight is cut at either end, and the rest is averaged, so that a
    single candidate that fails does little harm. The difference of the average from the first
    candidate, the reference, is no larger at the target than its lower quartile over held-out
    sources: only a part of a larger one is used (see `caution`), because it is a sign that the
    candidates disagree.

    On dense rows the candidates are two ensembles of networks, plain and deeper ones, boosted trees
    with linear leaves and ridge regression; on sparse rows (text) both ensembles, "align", boosted
    trees and ridge regression, which then share the fixed part of the weight equally, and, if the
    response has at most twenty values, logistic regression with half of that part. Predictions on
    sparse rows are stretched away from their center if that lowers the error on held-out sources,
    because an average of models avoids both ends of a scale, where most star ratings lie. With two
    sources, alignment cannot be evaluated and is not tried; with one source, the networks have
    equal weights. If there are more than twenty sources, twenty are held out.

    Parameters
    ----------
    candidates
        Names of `CANDIDATES` or ids of ``METHODS``, the reference first; None: those above. The
        fixed part of the weight goes to the networks "source_only", "deeper networks" and "align"
        among them, or else to the first one; on sparse rows to all, half of it to "logistic".
    n_jobs
        Held-out sources predicted at once (joblib).
    random_state
        Seed.

    Attributes
    ----------
    selection_ : AutoSelection
        Weights (``shares``) and errors of the candidates, and the reason.
    source_weights_ : dict
        Weight of each source by its name, the average over candidates by their weights.
    models_ : dict
        Name -> fitted estimator of every candidate that has a weight.
    bounds_ : Bounds
        ``limits``: lowest and highest prediction; ``caution``: part of the difference from the
        reference that is used; ``stretch``: its factor and center (1 changes nothing).
    held_out_ : array
        (n,): prediction of each source's rows by candidates that have not seen its responses, with
        the weights that the other sources give; NaN in rows of the target and where none was made.
        Not fully nested: the candidates whose errors on the other sources determine the weights did
        learn from this source, so errors are slightly too small. Not saved.
    candidates_held_out_ : dict
        The same of each candidate.

    Examples
    --------
    >>> from vntransfer import stack
    >>> rng = np.random.default_rng(0)
    >>> a, b, c, new = (rng.normal(m, 1, size=(60, 2)) for m in (0, 1, 2, 1))
    >>> X, y, domain = stack({n: (x, x @ [1, 2]) for n, x in zip("abc", (a, b, c))}, target=new)
    >>> model = AutoTransferRegressor(["ridge", "boosting"], random_state=0).fit(X, y, domain)
    >>> model.selection_.chosen, bool(abs(model.predict(new) - new @ [1, 2]).mean() < 0.1)
    ('ridge', True)
    """

    candidates: Sequence[str] | None = None
    n_jobs: int | None = None
    random_state: Any = None

    def _check_options(self) -> None:
        super()._check_options()
        if isinstance(self.candidates, str):
            raise ArgumentError(f"candidates: expected a list of names, got {self.candidates!r}")
        if self.candidates is not None and (
            not len(self.candidates) or len(set(self.candidates)) < len(self.candidates)
        ):
            raise ArgumentError(
                f"candidates: expected different names, got {list(self.candidates)}"
            )

    def _fit_rows(self, rows: FitRows, progress: Progress | None) -> Self:
        """Try the candidates on held-out sources and fit those that have a weight."""
        y, groups = rows.y, rows.groups
        if y.ndim > 1 and y.shape[1] != 1:
            raise ArgumentError(f"y: expected one response per row, got shape {y.shape}")
        y = column_or_1d(y, warn=True)
        names = self._names(rows)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rows = replace(rows, y=y)
        tried = attempt(
            names,
            rows,
            random_state=seed,
            members=None if scipy.sparse.issparse(rows.x) else 1,
            n_jobs=self.n_jobs,
            progress=progress,
        )
        _bound(tried.held_out, y, groups.sources)
        self.candidates_held_out_ = tried.held_out
        chosen = self._select(names, tried, rows)
        self.selection_ = chosen.selection
        self.held_out_ = _held_out(names, tried, groups, chosen, len(y))
        stretch = self._stretched(rows, y) if len(chosen.held_out) else Stretch()
        kept = [name for name in names if self.selection_.shares[name] > 0]
        self.models_ = {name: tried.model(name) for name in kept}
        own = y[groups.source_rows]
        limits = float(own.min()), float(own.max())
        self.bounds_ = Bounds(limits, self._caution(names, tried, rows, limits), stretch)
        reason = self.selection_.reason + caution_text(names, self.bounds_.caution)
        self.selection_ = replace(self.selection_, reason=reason)
        self.source_weights_ = self._weights(groups)
        steps = (getattr(own, "step_times_", StepTimes()) for own in tried.fitted.values())
        self.step_times_ = sum(steps, tried.step_times)
        return self

    def _stretched(self, rows: FitRows, y: Floats) -> Stretch:
        """Stretch predictions of held-out sparse rows, each source as the others say."""
        if not scipy.sparse.issparse(rows.x):
            return Stretch()
        made = [
            own[~np.isnan(self.held_out_[own])]
            for own in held_out_sources(rows.groups.sources).values()
        ]
        best, *others = find_stretch(
            [self.held_out_[own] for own in made], [y[own] for own in made]
        )
        for stretch, own in zip(others, made, strict=True):
            rest = np.setdiff1d(rows.groups.source_rows, own)
            limits = float(y[rest].min()), float(y[rest].max())
            self.held_out_[own] = stretch(self.held_out_[own], limits)
        return best

    def _caution(
        self, names: Sequence[str], tried: Tried, rows: FitRows, limits: tuple[float, float]
    ) -> float:
        """Compare the step from the reference to the average with that on held-out sources."""
        target, kept = rows.groups.target, list(self.models_)
        if target is None or len(rows.groups.sources) < 2 or kept[0] != names[0]:
            return 1.0
        held = held_out_sources(rows.groups.sources)
        folds = _folds(kept, tried.held_out, rows.y, held)
        x = rows.x[tested_rows(target)]
        here = np.clip([model.predict(x) for model in self.models_.values()], *limits)
        return caution(folds.predictions, here, self._shares())

    def _shares(self) -> Floats:
        return np.array([self.selection_.shares[name] for name in self.models_])

    def _names(self, rows: FitRows) -> tuple[str, ...]:
        if self.candidates is not None:
            return tuple(self.candidates)
        few = len(rows.groups.sources) < 3 or rows.groups.target is None
        every = SPARSE if scipy.sparse.issparse(rows.x) else DENSE
        values = len(np.unique(rows.y[rows.groups.source_rows]))
        return tuple(
            name
            for name in every
            if not (few and name == ALIGN) and (name != LOGISTIC or values <= MOST_VALUES)
        )

    def _select(self, names: tuple[str, ...], tried: Tried, rows: FitRows) -> _Chosen:
        """Weights of the candidates, those that the other held-out sources give each, and why."""
        every = scipy.sparse.issparse(rows.x) and len(rows.groups.sources) > 1
        anchor = np.array([every or name in ANCHORS for name in names], dtype=np.float64)
        anchor = anchor if anchor.any() else np.eye(len(names))[0]
        if every and LOGISTIC in names and len(names) > 1:
            anchor[names.index(LOGISTIC)] = len(names) - 1  # half of it
        anchor /= anchor.sum()
        if len(rows.groups.sources) < 2:
            reason = (
                f"{counted_models(anchor)}, because leave-one-source-out needs at least two "
                f"sources."
            )
            shares = dict(zip(names, anchor.tolist(), strict=True))
            alone = AutoSelection(candidates=names, shares=shares, reason=reason)
            return _Chosen(alone, np.zeros((0, len(names))), np.ones(0))
        held = held_out_sources(rows.groups.sources)
        folds = _folds(names, tried.held_out, rows.y, held)
        errors = errors_of(*folds)
        works = np.isfinite(errors).all(0)
        anchor = np.where(works, anchor, 0.0)  # the first candidate must work, the others may fail
        anchor = anchor / anchor.sum() if anchor.any() else np.eye(len(names))[0]
        found = blend([p[works] for p in folds.predictions], folds.truth, anchor[works])
        weights, others = np.zeros(len(names)), np.zeros((len(errors), len(names)))
        weights[works], others[:, works] = found.weights, found.held_out
        weights, others = _without_least(weights), _without_least(others)
        least = np.finfo(np.float64).tiny
        scores = np.log(np.maximum(errors, least) / np.maximum(errors[:, :1], least)).mean(0)
        chosen = AutoSelection(
            candidates=names,
            shares=dict(zip(names, weights.tolist(), strict=True)),
            scores=dict(zip(names, scores.tolist(), strict=True)),
            errors={
                source: dict(zip(names, own.tolist(), strict=True))
                for source, own in zip(held, errors, strict=True)
            },
            reason=reason_of(names, weights, found),
        )
        return _Chosen(chosen, others, found.cautions)

    def _weights(self, groups: Groups) -> dict[Name, float]:
        own = np.array([[*model.source_weights_.values()] for model in self.models_.values()])
        taken = self.bounds_.caution
        total = taken * (self._shares() @ own) + (1 - taken) * own[0]
        return dict(zip(groups.sources, total.tolist(), strict=True))

    def predict(self, X: Any) -> Floats:
        """Predict responses (n,)."""
        X = self._new_rows(X)
        every = np.array([model.predict(X) for model in self.models_.values()])
        for own in every:
            self._finite(own)
        return self.bounds_.average(every, self._shares())

    def _saved(self) -> SavedModel:
        record = {
            **common_record(self),
            "selection": vars(self.selection_),
            **self.bounds_._asdict(),
        }
        parts = {name: model._saved() for name, model in self.models_.items()}
        return SavedModel(type(self).__name__, record, parts=parts)

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        record = saved.record
        check_record("record", record, COMMON)
        model: Self = restored_common(cls, record, {})
        chosen = checked_choice(record["selection"])
        check_parts(parts, model.n_features_in_, chosen["shares"])
        known = {each.name for each in fields(AutoSelection)}
        chosen = {key: value for key, value in chosen.items() if key in known}
        model.selection_ = AutoSelection(**{**chosen, "candidates": tuple(chosen["candidates"])})
        model.bounds_ = bounds_of(record)
        model.models_ = dict(parts)
        return model


def _without_least(weights: Floats) -> Floats:
    """Weights (..., C) without negligible ones."""
    kept = np.where(weights < LEAST, 0.0, weights)
    return np.asarray(kept / kept.sum(-1, keepdims=True))


def _bound(held_out: Mapping[str, Floats], y: Floats, sources: Mapping[Name, Rows]) -> None:
    """Keep predictions of each held-out source within the range of the others' responses.

    Infinite ones, of candidates that failed, stay.
    """
    for held in sources:
        others = [y[rows] for name, rows in sources.items() if name != held]
        if others:
            low, high = min(own.min() for own in others), max(own.max() for own in others)
            for own in held_out.values():
                rows = sources[held]
                own[rows] = np.where(np.isinf(own[rows]), np.inf, np.clip(own[rows], low, high))


def _held_out(
    names: Sequence[str], tried: Tried, groups: Groups, chosen: _Chosen, n: int
) -> Floats:
    """Predictions (n,) of each held-out source with its own weights and caution."""
    out = np.full(n, np.nan)
    every = np.array([tried.held_out.get(name, out) for name in names])
    held = held_out_sources(groups.sources).values() if len(chosen.held_out) else ()
    for own, part, rows in zip(chosen.held_out, chosen.cautions, held, strict=True):
        used = own > 0
        used[0] |= part < 1
        out[rows] = cautious_average(every[np.ix_(used, rows)], own[used], part)
    return out


def _folds(
    names: Sequence[str], held_out: Mapping[str, Floats], y: Floats, held: Mapping[Name, Rows]
) -> Folds:
    """Predictions (C, n) and responses (n,) of the rows that all candidates predicted."""
    every = np.array([held_out[name] for name in names])
    made = ~np.isnan(every)  # networks predict a part of a large source's rows
    common = made[made.any(1)].all(0)
    rows = [own[common[own]] for own in held.values()]
    return Folds([every[:, own] for own in rows], [y[own] for own in rows])
