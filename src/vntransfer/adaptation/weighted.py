"""Source weights for any learner: rows of near sources count more, features are unchanged."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from vntransfer.adaptation._estimator import FitRows
from vntransfer.adaptation._learners import DenseScaler, fit_weighted, learner
from vntransfer.adaptation.divergence_weights import (
    Matrix,
    Prior,
    divergence_table,
    masses,
    sharpen,
)
from vntransfer.adaptation.guarded_choice import SharpnessSelection, guard
from vntransfer.adaptation.pooled import SourceLearner
from vntransfer.adaptation.source_only import SourceOnlyRegressor
from vntransfer.checks import Floats
from vntransfer.display import percent
from vntransfer.divergences import DIVERGENCES
from vntransfer.domains import Rows
from vntransfer.errors import ArgumentError
from vntransfer.progress import Progress
from vntransfer.storage.record import Name, SavedModel, Score, check_record

CANDIDATES = (0.0, 1.0, 3.0)
"""Sharpness values that "auto" tries; the first one, pooling, is the fallback."""

CHOSEN = {
    "sharpness": float,
    "reason": str,
    "candidates": list[float],
    "held_out": list[Name],
    "errors": list[list[Score]],
}
"""Types of what is saved of a selection."""


@dataclass(eq=False, repr=False)
class _WeightedSource(SourceLearner):
    """Shared by regressor and classifier."""

    sharpness: float | Literal["auto"] = "auto"
    divergence: str = "jeffreys"
    moments: Matrix = "second"
    prior: Prior = "rows"
    n_jobs: int | None = None
    random_state: Any = None

    _needs_target = True

    def _error(self, model: Any, X: Any, y: NDArray[Any]) -> float:
        """Error of a model on a held-out source; NaN if it is undefined there."""
        raise NotImplementedError

    def _fit_rows(self, rows: FitRows, progress: Progress | None) -> Self:
        groups, own = rows.groups, rows.weights
        self._check_labels(rows.y[groups.source_rows])
        table = np.full((2, 2), np.nan)  # one source and nothing to compare it with
        if groups.target is not None:
            if self.divergence in DIVERGENCES and DIVERGENCES[self.divergence].conditional:
                raise ArgumentError(
                    f"divergence: {self.divergence!r} compares responses, but fit uses no labels "
                    f"from the target; choose another, or call source_weights with labeled="
                )
            table = divergence_table(
                rows.x, groups, divergence=self.divergence, moments=self.moments
            )
        mass = masses(groups, self.prior, own)
        self.selection_ = self._select(rows, table, mass)
        w = sharpen(table[:-1, -1], self.selection_.sharpness, mass)
        self.divergences_ = dict(zip(groups.sources, table[:-1, -1].tolist(), strict=True))
        self.source_weights_ = dict(zip(groups.sources, w.tolist(), strict=True))
        self.estimator_ = self._fit_one(rows, list(groups.sources.values()), w)
        return self

    def _check_labels(self, y: NDArray[Any]) -> None:
        """Check the labels of the sources before anything is fitted."""

    def _fit_one(self, rows: FitRows, sources: list[Rows], w: Floats) -> Any:
        """Fit a new learner to sources that share the weights w."""
        order = np.sort(np.concatenate(sources))
        given = np.ones(len(rows.y)) if rows.weights is None else rows.weights
        weights = np.zeros(len(rows.y))
        for r, share in zip(sources, w, strict=True):
            if share > 0:
                weights[r] = share * given[r] / given[r].sum()
        weights = weights[order] * (given[order].sum() / weights.sum())
        plain = rows.weights is None and np.ptp(weights) <= 1e-12
        x, y = rows.x[order], rows.y[order]
        return fit_weighted(self._learner(), x, y, None if plain else weights)

    def _select(self, rows: FitRows, table: Floats, mass: Floats) -> SharpnessSelection:
        if self.sharpness != "auto":
            return SharpnessSelection(float(self.sharpness), "given")
        names = list(rows.groups.sources)
        if len(names) < 3:
            return SharpnessSelection(
                CANDIDATES[0], "leave-one-source-out needs at least three sources here"
            )
        sources = list(rows.groups.sources.values())

        def errors_on(v: int) -> list[float]:
            others = [i for i in range(len(sources)) if i != v]
            used = [sources[i] for i in others]
            if not self._can_train(rows.y[np.concatenate(used)]):
                return [np.nan] * len(CANDIDATES)
            weights = (sharpen(table[others, v], a, mass[others]) for a in CANDIDATES)
            models = (self._fit_one(rows, used, w) for w in weights)
            x, y = rows.x[sources[v]], rows.y[sources[v]]
            return [self._error(model, x, y) for model in models]

        heavy = [v for v in range(len(sources)) if 0 < mass[v] < mass.sum()]
        found = np.array(Parallel(n_jobs=self.n_jobs)(delayed(errors_on)(v) for v in heavy))
        scored = np.isfinite(found[:, 0])
        if not scored.any():
            return SharpnessSelection(CANDIDATES[0], "no held-out source could be scored")
        guarded = guard(found[scored])
        v, best = guarded.scores[guarded.best], CANDIDATES[guarded.best]
        reason = (
            f"On held-out sources the error with sharpness {best:g} is {percent(-np.expm1(v))} "
            "below that of pooling, with a margin of one standard error."
            if guarded.best
            else "Sources are pooled: on held-out sources no sharpness beats pooling by a standard "
            "error."
        )
        held_out = tuple(names[i] for i, good in zip(heavy, scored, strict=True) if good)
        errors = tuple(map(tuple, found[scored].tolist()))
        return SharpnessSelection(best, reason, CANDIDATES, held_out, errors)

    def _can_train(self, y: NDArray[Any]) -> bool:
        return len(y) > 1

    def fitted_record(self) -> dict[str, Any]:
        """Give the plain values of the fitted model, apart from the estimator inside it."""
        chosen = {"divergences": self.divergences_, "selection": asdict(self.selection_)}
        return {**super().fitted_record(), **chosen}

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        model = super()._restored(saved, parts, given)
        check_record(
            "record", saved.record, {"divergences": dict[Name, float], "selection": CHOSEN}
        )
        model.divergences_ = saved.record["divergences"]
        chosen = {key: saved.record["selection"][key] for key in CHOSEN}
        for key in ("candidates", "held_out", "errors"):
            chosen[key] = tuple(tuple(v) if isinstance(v, list) else v for v in chosen[key])
        model.selection_ = SharpnessSelection(**chosen)
        return model


@dataclass(eq=False, repr=False)
class WeightedSourceRegressor(RegressorMixin, _WeightedSource):  # type: ignore[misc]
    """Any regressor that takes sample weights, on sources weighted by closeness to the target.

    The weights w_i of `source_weights` become sample weights: the rows of source i share w_i, and
    the mean of all is one. Prefer it for simple models, which cannot fit all sources at once, and
    for sources that form groups. A flexible model needs it less, and if the domains have no
    structure, weighting only discards data; the default sharpness then falls back to pooling.

    Parameters
    ----------
    estimator
        Any scikit-learn regressor whose ``fit`` takes ``sample_weight`` (also as the last step of a
        pipeline or inside a search), "ridge" or "boosting" (see `PooledRegressor`); None:
        `SourceOnlyRegressor`, a network.
    sharpness
        a of `source_weights`, or "auto": 0 (pooling), 1 or 3, whichever has the smallest mean
        absolute error on held-out sources, if it beats pooling by more than a standard error. No
        labels from the target are used; costs 3 fits per source.
    divergence, prior
        See `source_weights`.
    moments
        "second": second moments of [1, z], which include means and covariances, or "covariance"
        of z.
    n_jobs
        Held-out sources tried at once (joblib).
    random_state
        Seed of the named estimators.

    Attributes
    ----------
    source_weights_ : dict
        Weight of each source by its name.
    divergences_ : dict
        D of each source.
    selection_ : SharpnessSelection
        How the sharpness was chosen, with all errors and scores.
    estimator_ : estimator
        The fitted regressor.

    Examples
    --------
    >>> from vntransfer import stack
    >>> rng = np.random.default_rng(0)
    >>> a, b, new = (rng.normal(m, 1, size=(100, 1)) for m in (0, 4, 0.2))
    >>> X, y, domain = stack({"a": (a, a[:, 0] ** 2), "b": (b, b[:, 0] ** 2)}, target=new)
    >>> weighted = WeightedSourceRegressor("ridge", sharpness=3.0).fit(X, y, domain)
    >>> pooled = WeightedSourceRegressor("ridge", sharpness=0.0).fit(X, y, domain)
    >>> weighted.source_weights_["a"] > 0.95
    True
    >>> weighted.score(new, new[:, 0] ** 2) > pooled.score(new, new[:, 0] ** 2)
    True
    """

    def _learner(self) -> Any:
        if self.estimator is None:
            return SourceOnlyRegressor(random_state=self.random_state)
        return learner(self.estimator, self.random_state)

    def _error(self, model: Any, X: Any, y: NDArray[Any]) -> float:
        return float(np.abs(model.predict(X).reshape(y.shape) - y).mean())


def _has_probabilities(model: "WeightedSourceClassifier") -> bool:
    fitted = getattr(model, "estimator_", None)
    return hasattr(model._learner() if fitted is None else fitted, "predict_proba")


@dataclass(eq=False, repr=False)
class WeightedSourceClassifier(ClassifierMixin, _WeightedSource):  # type: ignore[misc]
    """Any classifier that takes sample weights, on sources weighted by closeness to the target.

    See `WeightedSourceRegressor`.

    Parameters
    ----------
    estimator
        Any scikit-learn classifier whose ``fit`` takes ``sample_weight`` (also as the last step of
        a pipeline or inside a search); None: logistic regression on scaled columns.
    sharpness, divergence, moments, prior, n_jobs
        See `WeightedSourceRegressor`.
    random_state
        Not used by the default estimator.
    scoring
        What "auto" compares: "log_loss", or "auc" (1 - AUC; two classes; held-out sources with
        one class are skipped).

    Attributes
    ----------
    classes_ : array
        Labels of the sources.
    source_weights_, divergences_, selection_, estimator_
        As of `WeightedSourceRegressor`.

    Examples
    --------
    >>> from vntransfer import stack
    >>> rng = np.random.default_rng(0)
    >>> a, b, new = (rng.normal(m, 1, size=(100, 1)) for m in (0, 4, 0.2))
    >>> X, y, domain = stack({"a": (a, a[:, 0] > 0), "b": (b, b[:, 0] > 4)}, target=new)
    >>> model = WeightedSourceClassifier(sharpness=3.0).fit(X, y, domain)
    >>> bool(model.score(new, new[:, 0] > 0) > 0.9), model.predict_proba(new).shape
    (True, (100, 2))
    """

    scoring: Literal["log_loss", "auc"] = "log_loss"

    _numeric = False

    def _learner(self) -> Any:
        if self.estimator is None:
            return make_pipeline(DenseScaler(), LogisticRegression(max_iter=1000))
        return learner(self.estimator)

    def _check_labels(self, y: NDArray[Any]) -> None:
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if self.sharpness == "auto" and not hasattr(self._learner(), "predict_proba"):
            raise ArgumentError(
                f"sharpness: 'auto' compares probabilities, but {type(self.estimator).__name__} "
                f"has no predict_proba; pass a number, or calibrate the estimator"
            )
        if self.sharpness == "auto" and self.scoring == "auc" and len(self.classes_) > 2:
            raise ArgumentError(
                f"scoring: 'auc' is for two classes, got {len(self.classes_)}; use 'log_loss'"
            )

    def _can_train(self, y: NDArray[Any]) -> bool:
        return len(np.unique(y)) > 1

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        model = super()._restored(saved, parts, given)
        model.classes_ = model.estimator_.classes_  # fitted to the rows of all sources
        return model

    def _error(self, model: Any, X: Any, y: NDArray[Any]) -> float:
        p = np.zeros((X.shape[0], len(self.classes_)))
        p[:, np.searchsorted(self.classes_, model.classes_)] = model.predict_proba(X)
        if self.scoring == "log_loss":
            return float(log_loss(y, p, labels=self.classes_))
        positive = y == self.classes_[-1]
        return float(1 - roc_auc_score(positive, p[:, -1])) if 0 < positive.mean() < 1 else np.nan

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n, number of classes), in the order of ``classes_``."""
        rows = self._new_rows(X)
        return self._finite(np.asarray(self.estimator_.predict_proba(rows)))
