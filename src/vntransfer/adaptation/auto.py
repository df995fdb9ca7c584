"""Which learner, and which weights of the sources? Leave-one-source-out decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from vntransfer.adaptation._learners import read
from vntransfer.adaptation._saving import common_record, restore_common
from vntransfer.adaptation._selection import LEAST, sentence, shares_text, virtual_targets
from vntransfer.adaptation._stacking import stack
from vntransfer.adaptation.candidates import CANDIDATES, Tried, adapts, attempt
from vntransfer.adaptation.guarded_choice import guard
from vntransfer.display import listed, one_line
from vntransfer.domains import Groups, Name, Rows, Target
from vntransfer.errors import ArgumentError
from vntransfer.storage.folder import Savable
from vntransfer.storage.record import SavedModel

Floats = NDArray[np.float64]
Folds = tuple[list[Floats], list[Floats]]
Combine = Literal["stack", "mean", "best"]


@dataclass(frozen=True)
class AutoSelection:
    """What was chosen, and why.

    Parameters
    ----------
    candidates
        Names, the safe one first.
    shares
        Share of each in the mean of predictions.
    scores
        Mean log ratio of its error to that of the safe candidate over virtual targets, plus one
        standard error: below 0 is better. Empty if there was nothing to compare on.
    errors
        Mean absolute errors: virtual target -> candidate -> value.
    reason
        One sentence.
    left_out
        Candidates of which no virtual target is an example: how many times as far from the safe one
        they are on the target as on the virtual target where they are farthest.
    """

    candidates: tuple[str, ...]
    shares: dict[str, float]
    scores: dict[str, float] = field(default_factory=dict)
    errors: dict[Name, dict[str, float]] = field(default_factory=dict)
    reason: str = ""
    left_out: dict[str, float] = field(default_factory=dict)

    @property
    def chosen(self) -> str:
        """The candidate with the largest share."""
        return max(self.shares, key=self.shares.__getitem__)

    def summary(self) -> str:
        """Say in words what was chosen and why."""
        lines = [sentence(self.reason), f"Weights: {shares_text(self.shares, 9)}."]
        if self.left_out:
            lines.append(f"Excluded: {listed(self.left_out, 9)} (unlike any held-out source).")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return one_line(
            f"AutoSelection among {len(self.candidates)} candidates: {shares_text(self.shares)}"
        )


@dataclass(eq=False, repr=False)
class AutoTransferRegressor(Savable, RegressorMixin, BaseEstimator):  # type: ignore[misc]
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

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}

    candidates: Sequence[str] | None = None
    combine: Combine = "stack"
    temperature: float = 0.02
    n_jobs: int | None = None
    random_state: Any = None

    def fit(
        self,
        X: Any,
        y: Any,
        sample_domain: Any = None,
        target: Target = None,
        sample_weight: Any = None,
    ) -> Self:
        """Try the candidates on virtual targets and fit those that have a share.

        Parameters
        ----------
        X
            Rows of all domains (n, p), dense or sparse; see `stack`.
        y
            Responses (n,); those of the target are never read and can be NaN.
        sample_domain
            Domain of each row: integers (0 and above are sources, below 0 is the target) or names.
            None: all rows are one source, and the safe candidate is fitted.
        target
            With names: which one is the target (a list of one will do), "target" if not given.
        sample_weight
            Weights (n,) of the rows.
        """
        if isinstance(self.candidates, str):
            raise ArgumentError(f"candidates: expected a list of names, got {self.candidates!r}")
        if self.candidates is not None and (
            not len(self.candidates) or len(set(self.candidates)) < len(self.candidates)
        ):
            raise ArgumentError(
                f"candidates: expected different names, got {list(self.candidates)}"
            )
        if self.combine not in get_args(Combine):
            raise ArgumentError(
                f"combine: expected one of {get_args(Combine)}, got {self.combine!r}"
            )
        X, y, groups, weights = read(self, X, y, sample_domain, target, sample_weight, numeric=True)
        if y.ndim > 1 and y.shape[1] != 1:
            raise ArgumentError(f"y: expected one response per row, got shape {y.shape}")
        y = column_or_1d(y, warn=True)
        names = self._names(groups)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        tried = attempt(names, X, y, groups, weights, random_state=seed, n_jobs=self.n_jobs)
        self.candidates_held_out_ = tried.held_out
        self.selection_ = self._within_evidence(names, tried, X, y, groups)
        self.held_out_ = self._held_out(names, tried, y, groups)
        kept = [name for name in names if self.selection_.shares[name] > 0]
        self.models_ = {name: tried.model(name) for name in kept}
        self.source_weights_ = self._weights(groups)
        return self

    def _names(self, groups: Groups) -> tuple[str, ...]:
        if self.candidates is not None:
            return tuple(self.candidates)
        return tuple(n for n in CANDIDATES if len(groups.sources) != 2 or not adapts(n))

    def _within_evidence(
        self, names: tuple[str, ...], tried: Tried, X: Any, y: Floats, groups: Groups
    ) -> AutoSelection:
        """Select, leaving out candidates that do on the target what they never did before."""
        if len(groups.sources) < 2:
            safe = {name: float(name == names[0]) for name in names}
            reason = f"{names[0]}: with one source there is none to leave out"
            return AutoSelection(names, safe, reason=reason)
        folds = _folds(names, tried.held_out, y, virtual_targets(groups.sources))
        far: dict[str, float] = {}
        while True:
            chosen = self._select(names, folds, groups, far)
            kept = [name for name in names if chosen.shares[name] > 0]
            new = {} if groups.target is None else _far(names, kept, tried, X[groups.target], folds)
            if not new:
                return replace(chosen, left_out=far)
            far |= new

    def _select(
        self, names: tuple[str, ...], folds: Folds, groups: Groups, far: Mapping[str, float]
    ) -> AutoSelection:
        errors = np.array([np.abs(p - own).mean(1) for p, own in zip(*folds, strict=True)])
        judged = np.where([name in far for name in names], np.inf, errors)
        found = guard(judged, temperature=self.temperature)
        failed = ~np.isfinite(found.scores)
        reason = _reason(names, found.scores, len(errors))
        if self.combine == "stack":
            shares, reason = self._stacked(names, folds, failed)
        elif self.combine == "best":
            shares = np.eye(len(names))[found.best]
        else:
            shares = found.shares
        shares = np.where(shares < LEAST, 0.0, shares)
        if self.candidates is None and len(groups.sources) == 2:
            reason += "; weights and alignment cannot be judged with two sources"
        if far:
            reason += f"; left out, too far from {names[0]} on the target: {', '.join(far)}"
        return AutoSelection(
            names,
            dict(zip(names, (shares / shares.sum()).tolist(), strict=True)),
            dict(zip(names, found.scores.tolist(), strict=True)),
            {
                source: dict(zip(names, own.tolist(), strict=True))
                for source, own in zip(virtual_targets(groups.sources), errors, strict=True)
            },
            reason,
        )

    def _stacked(
        self, names: tuple[str, ...], folds: Folds, failed: NDArray[np.bool_]
    ) -> tuple[Floats, str]:
        """Shares (C,) of a stack, or boosting alone if that is worse, and why."""
        stacked = stack([p[~failed] for p in folds[0]], folds[1])
        n = len(folds[1])
        self._others = np.tile(np.eye(len(names))[0], (n, 1))
        apart, spread = (100 * np.expm1(x) for x in (stacked.ratio, stacked.standard_error))
        if stacked.worse:
            return self._others[0], (
                f"{names[0]}: means of candidates have errors {apart:.1f} % higher over {n} "
                f"virtual targets, with a standard error of {spread:.1f} %"
            )
        self._others[:, ~failed] = stacked.held_out
        shares = np.zeros(len(names))
        shares[~failed] = stacked.weights
        return shares, (
            f"a mean of candidates, {names[int(shares.argmax())]} first: error {abs(apart):.1f} % "
            f"{'below' if apart < 0 else 'above'} that of {names[0]} over {n} virtual targets, "
            f"with a standard error of {spread:.1f} %"
        )

    def _held_out(self, names: tuple[str, ...], tried: Tried, y: Floats, groups: Groups) -> Floats:
        """Predictions of each source with shares that the other sources give."""
        out = np.full(len(y), np.nan)
        if len(groups.sources) < 2:
            return out
        every = np.array([tried.held_out[name] for name in names])
        shares = np.array(list(self.selection_.shares.values()))
        for v, rows in enumerate(virtual_targets(groups.sources).values()):
            own = self._others[v] if self.combine == "stack" else shares
            own = np.where(own < LEAST, 0.0, own)
            used = own > 0
            out[rows] = own[used] / own.sum() @ every[np.ix_(used, rows)]
        return out

    def _weights(self, groups: Groups) -> dict[Name, float]:
        total = np.zeros(len(groups.sources))
        for name, model in self.models_.items():
            total += self.selection_.shares[name] * np.array(list(model.source_weights_.values()))
        return dict(zip(groups.sources, total.tolist(), strict=True))

    def predict(self, X: Any) -> Floats:
        """Predict responses (n,)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        shares: Mapping[str, float] = self.selection_.shares
        return sum(
            (shares[name] * np.asarray(model.predict(X)) for name, model in self.models_.items()),
            start=np.zeros(X.shape[0]),
        )

    def _saved(self) -> SavedModel:
        record = {**common_record(self), "selection": vars(self.selection_)}
        parts = {name: model._saved() for name, model in self.models_.items()}
        return SavedModel(type(self).__name__, record, parts=parts)

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        model = cls(**saved.record["options"])
        restore_common(model, saved.record)
        chosen = saved.record["selection"]
        model.selection_ = AutoSelection(**{**chosen, "candidates": tuple(chosen["candidates"])})
        model.models_ = dict(parts)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _folds(
    names: Sequence[str], held_out: Mapping[str, Floats], y: Floats, targets: Mapping[Name, Rows]
) -> Folds:
    """Predictions (C, n) and responses (n,) of the rows that all candidates predicted."""
    every = np.array([held_out[name] for name in names])
    made = ~np.isnan(every)  # networks predict a part of a large source's rows
    common = made[made.any(1)].all(0)
    rows = [own[common[own]] for own in targets.values()]
    return [every[:, own] for own in rows], [y[own] for own in rows]


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
        there = max(1.0, better) * max(float(np.abs(p[i] - p[0]).mean()) for p in folds[0])
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
