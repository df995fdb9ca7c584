"""Which learner, and which weights of the sources? Leave-one-source-out decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state, column_or_1d

from vntransfer.adaptation._estimator import FitRows, TransferEstimator
from vntransfer.adaptation._saving import (
    CHOICE,
    COMMON,
    bad_options,
    checked_choice,
    common_record,
    restore_common,
)
from vntransfer.adaptation._selection import LEAST, Choice, virtual_targets
from vntransfer.adaptation.candidates import CANDIDATES, Tried, adapts, attempt
from vntransfer.adaptation.guarded_choice import guard, stack
from vntransfer.display import listed
from vntransfer.domains import Groups, Name, Rows
from vntransfer.errors import ArgumentError, DataError
from vntransfer.progress import Progress
from vntransfer.step_times import StepTimes
from vntransfer.storage.folder import Savable
from vntransfer.storage.record import SavedModel, check_record

Floats = NDArray[np.float64]
Combine = Literal["stack", "mean", "best"]


@dataclass(frozen=True, kw_only=True, repr=False)
class AutoSelection(Choice):
    """What `AutoTransferRegressor` chose, and why; the first candidate is the safe one."""

    # mean absolute ones: virtual target -> candidate -> value
    errors: dict[Name, dict[str, float]] = field(default_factory=dict)
    # name -> distance from the safe one on the target over the largest on any source
    left_out: dict[str, float] = field(default_factory=dict)

    def summary(self) -> str:
        """Say in words what was chosen and why."""
        if not self.left_out:
            return super().summary()
        excluded = f"Excluded: {listed(self.left_out, 9)} (unlike any held-out source)."
        return f"{super().summary()}\n{excluded}"


class Folds(NamedTuple):
    """Predictions (C, n) and responses (n,) of each virtual target."""

    predictions: list[Floats]
    truth: list[Floats]

    def errors(self) -> Floats:
        """Mean absolute errors (V, C)."""
        return np.array([np.abs(p - own).mean(1) for p, own in zip(*self, strict=True)])


class _Chosen(NamedTuple):
    """A selection, and for each virtual target the shares (V, C) that predict it."""

    selection: AutoSelection
    held_out: Floats


@dataclass(eq=False, repr=False)
class AutoTransferRegressor(Savable, RegressorMixin, TransferEstimator):  # type: ignore[misc]
    """Ridge, boosting and networks, with or without weights and alignment, by what sources say.

    Each source plays the target once, and every candidate predicts it from the others; no label of
    the target is used. The shares of the candidates in the mean of predictions are those of the
    least error there; they are judged by leaving each virtual target out of their own fit, too.
    With r the logarithm of the ratio of that error to boosting's on a virtual target, boosting
    alone is taken if the mean of r is not below its standard error: a mean of several is a hedge by
    itself, and judged by fewer virtual targets and by networks of half the training.

    Virtual targets tell nothing about a target unlike all of them. A candidate whose predictions
    are farther from boosting's there (mean absolute difference) than on any virtual target is left
    out: a line that runs away where no source was, for instance. If its error was below a third of
    boosting's on every virtual target, say, boosting is the one to doubt, and it may be three times
    as far.

    With two sources a virtual target leaves one to learn from, which tells nothing about weights
    or alignment: such candidates are not tried then. Of more than twenty sources, twenty play the
    target.

    Parameters
    ----------
    candidates
        Names of `CANDIDATES` or ids of ``METHODS``, the safe one first; None: boosting and ridge
        regression, each pooled and with sources weighted at sharpness 1 and 3, the median of the
        responses, a source-only ensemble of networks, and "align".
    combine
        "stack" as above; "mean": every candidate has a score of its own, and shares are
        softmax(-score / temperature); "best": the candidate of the lowest score alone.
    temperature
        Of the softmax.
    n_jobs
        Virtual targets tried at once (joblib).
    random_state
        Seed.

    Attributes
    ----------
    selection_ : AutoSelection
        Shares, scores and errors.
    source_weights_ : dict
        Weight of each source by its name, the mean over candidates by their shares.
    models_ : dict
        Name -> fitted estimator of every candidate that has a share.
    held_out_ : array
        (n,): prediction of each source's rows by candidates that have not seen its responses,
        with the shares that the other sources give ("stack") or with those of `selection_`; NaN in
        rows of the target and where none was made. Not fully nested: candidates whose errors on
        the other sources give the shares did learn from this one, and whether to combine at all
        was decided by all, so that errors lean towards the optimistic side. Not saved.
    candidates_held_out_ : dict
        The same of each candidate.

    Examples
    --------
    >>> from vntransfer import stack
    >>> rng = np.random.default_rng(0)
    >>> a, b, c, new = (rng.normal(m, 1, size=(60, 2)) for m in (0, 1, 2, 1.5))
    >>> X, y, domain = stack({n: (x, x @ [1, 2]) for n, x in zip("abc", (a, b, c))}, target=new)
    >>> model = AutoTransferRegressor(["boosting", "ridge"], random_state=0).fit(X, y, domain)
    >>> model.selection_.chosen, bool(abs(model.predict(new) - new @ [1, 2]).max() < 0.1)
    ('ridge', True)
    """

    candidates: Sequence[str] | None = None
    combine: Combine = "stack"
    temperature: float = 0.02
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
        """Try the candidates on virtual targets and fit those that have a share."""
        y, groups = rows.y, rows.groups
        if y.ndim > 1 and y.shape[1] != 1:
            raise ArgumentError(f"y: expected one response per row, got shape {y.shape}")
        y = column_or_1d(y, warn=True)
        names = self._names(groups)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        tried = attempt(
            names,
            rows.x,
            y,
            groups,
            rows.weights,
            random_state=seed,
            n_jobs=self.n_jobs,
            progress=progress,
        )
        self.candidates_held_out_ = tried.held_out
        self.selection_, shares = self._within_evidence(names, tried, replace(rows, y=y))
        self.held_out_ = _held_out(names, tried, groups, shares, len(y))
        kept = [name for name in names if self.selection_.shares[name] > 0]
        self.models_ = {name: tried.model(name) for name in kept}
        self.source_weights_ = self._weights(groups)
        steps = (getattr(own, "step_times_", StepTimes()) for own in tried.fitted.values())
        self.step_times_ = sum(steps, tried.step_times)
        return self

    def _names(self, groups: Groups) -> tuple[str, ...]:
        if self.candidates is not None:
            return tuple(self.candidates)
        return tuple(n for n in CANDIDATES if len(groups.sources) != 2 or not adapts(n))

    def _within_evidence(self, names: tuple[str, ...], tried: Tried, rows: FitRows) -> _Chosen:
        """Select, leaving out candidates that do on the target what they never did before."""
        sources, target = rows.groups.sources, rows.groups.target
        if len(sources) < 2:
            safe = {name: float(name == names[0]) for name in names}
            reason = f"{names[0]}: with one source there is none to leave out"
            alone = AutoSelection(candidates=names, shares=safe, reason=reason)
            return _Chosen(alone, np.zeros((0, len(names))))
        folds = _folds(names, tried.held_out, rows.y, virtual_targets(sources))
        far: dict[str, float] = {}
        while True:
            found = self._select(names, folds, rows.groups, far)
            kept = [name for name in names if found.selection.shares[name] > 0]
            new = {} if target is None else _far(names, kept, tried, rows.x[target], folds)
            if not new:
                return found._replace(selection=replace(found.selection, left_out=far))
            far |= new

    def _select(
        self, names: tuple[str, ...], folds: Folds, groups: Groups, far: Mapping[str, float]
    ) -> _Chosen:
        errors = folds.errors()
        judged = np.where([name in far for name in names], np.inf, errors)
        found = guard(judged, temperature=self.temperature)
        failed = ~np.isfinite(found.scores)
        reason, others = _reason(names, found.scores, len(errors)), None
        if self.combine == "stack":
            shares, others, reason = _stacked(names, folds, failed)
        elif self.combine == "best":
            shares = np.eye(len(names))[found.best]
        else:
            shares = found.shares
        shares = np.where(shares < LEAST, 0.0, shares)
        shares /= shares.sum()
        if self.candidates is None and len(groups.sources) == 2:
            reason += "; weights and alignment cannot be judged with two sources"
        if far:
            reason += f"; left out, too far from {names[0]} on the target: {', '.join(far)}"
        chosen = AutoSelection(
            candidates=names,
            shares=dict(zip(names, shares.tolist(), strict=True)),
            scores=dict(zip(names, found.scores.tolist(), strict=True)),
            errors={
                source: dict(zip(names, own.tolist(), strict=True))
                for source, own in zip(virtual_targets(groups.sources), errors, strict=True)
            },
            reason=reason,
        )
        return _Chosen(chosen, np.tile(shares, (len(errors), 1)) if others is None else others)

    def _weights(self, groups: Groups) -> dict[Name, float]:
        total = np.zeros(len(groups.sources))
        for name, model in self.models_.items():
            total += self.selection_.shares[name] * np.array(list(model.source_weights_.values()))
        return dict(zip(groups.sources, total.tolist(), strict=True))

    def predict(self, X: Any) -> Floats:
        """Predict responses (n,)."""
        X = self._new_rows(X)
        shares: Mapping[str, float] = self.selection_.shares
        parts = (shares[name] * np.asarray(own.predict(X)) for name, own in self.models_.items())
        return self._finite(sum(parts, start=np.zeros(X.shape[0])))

    def _saved(self) -> SavedModel:
        record = {**common_record(self), "selection": vars(self.selection_)}
        parts = {name: model._saved() for name, model in self.models_.items()}
        return SavedModel(type(self).__name__, record, parts=parts)

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        check_record("record", saved.record, {**COMMON, "selection": CHOICE})
        with bad_options({}):
            model = cls(**saved.record["options"])
            model._check_options()
        restore_common(model, saved.record)
        chosen = checked_choice(saved.record["selection"])
        own = {name: part.n_features_in_ for name, part in parts.items()}
        if {*own.values()} != {model.n_features_in_} or not {*own} <= {*chosen["shares"]}:
            raise DataError(f"parts: {own} do not fit record.n_features or record.selection.shares")
        model.selection_ = AutoSelection(**{**chosen, "candidates": tuple(chosen["candidates"])})
        model.models_ = dict(parts)
        return model


def _stacked(
    names: tuple[str, ...], folds: Folds, failed: NDArray[np.bool_]
) -> tuple[Floats, Floats, str]:
    """Shares (C,) of a stack, those (V, C) that other virtual targets give each, and why.

    The safe candidate alone if the stack is worse.
    """
    stacked = stack([p[~failed] for p in folds.predictions], folds.truth)
    n = len(folds.truth)
    others = np.tile(np.eye(len(names))[0], (n, 1))
    apart, spread = (100 * np.expm1(x) for x in (stacked.ratio, stacked.standard_error))
    if stacked.worse:
        reason = (
            f"{names[0]}: means of candidates have errors {apart:.1f} % higher over {n} "
            f"virtual targets, with a standard error of {spread:.1f} %"
        )
        return others[0], others, reason
    others[:, ~failed] = stacked.held_out
    shares = np.zeros(len(names))
    shares[~failed] = stacked.weights
    reason = (
        f"a mean of candidates, {names[int(shares.argmax())]} first: error {abs(apart):.1f} % "
        f"{'below' if apart < 0 else 'above'} that of {names[0]} over {n} virtual targets, "
        f"with a standard error of {spread:.1f} %"
    )
    return shares, others, reason


def _held_out(names: Sequence[str], tried: Tried, groups: Groups, shares: Floats, n: int) -> Floats:
    """Predictions (n,) of each virtual target with its own shares."""
    out = np.full(n, np.nan)
    every = np.array([tried.held_out.get(name, out) for name in names])
    played = list(virtual_targets(groups.sources).values()) if len(shares) else []
    for own, rows in zip(shares, played, strict=True):
        own = np.where(own < LEAST, 0.0, own)
        used = own > 0
        out[rows] = own[used] / own.sum() @ every[np.ix_(used, rows)]
    return out


def _folds(
    names: Sequence[str], held_out: Mapping[str, Floats], y: Floats, targets: Mapping[Name, Rows]
) -> Folds:
    """Predictions (C, n) and responses (n,) of the rows that all candidates predicted."""
    every = np.array([held_out[name] for name in names])
    made = ~np.isnan(every)  # networks predict a part of a large source's rows
    common = made[made.any(1)].all(0)
    rows = [own[common[own]] for own in targets.values()]
    return Folds([every[:, own] for own in rows], [y[own] for own in rows])


def _far(
    names: Sequence[str], kept: Sequence[str], tried: Tried, X: Any, folds: Folds
) -> dict[str, float]:
    """Name candidates whose distance from the safe one is without example among the sources.

    If a candidate's error was at most 1/t of the safe one's on all of them, t times that distance.
    """
    if X.shape[0] == 0:
        return {}
    safe = np.asarray(tried.model(names[0]).predict(X))
    found = {}
    for i, name in ((names.index(name), name) for name in kept):
        errors = [np.abs(p[[0, i]] - y).mean(1) for p, y in zip(*folds, strict=True)]
        better = min(base / own if own > 0 else np.inf for base, own in errors)
        there = max(1.0, better) * max(float(np.abs(p[i] - p[0]).mean()) for p in folds.predictions)
        here = float(np.abs(np.asarray(tried.model(name).predict(X)) - safe).mean())
        if here > there:
            found[name] = here / there if there > 0 else float("inf")
    return found


def _reason(names: Sequence[str], scores: Floats, n: int) -> str:
    best = int(scores.argmin())
    if best == 0:
        return f"{names[0]}: no candidate was better by a standard error on {n} virtual targets"
    gain = 100 * (1 - np.exp(scores[best]))
    return (
        f"{names[best]} leads: error at least {gain:.1f} % below that of {names[0]} on the mean of "
        f"{n} virtual targets, less one standard error"
    )
