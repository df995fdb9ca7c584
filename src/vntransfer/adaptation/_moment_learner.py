"""Estimators that keep moments of the sources, which can be added and removed."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from vntransfer.adaptation._estimator import (
    MATRIX,
    FitRows,
    TransferEstimator,
    column_name,
    read_responses,
    read_weights,
    refuse_huge_inputs,
)
from vntransfer.adaptation._records import COMMON
from vntransfer.adaptation._saving import common_record, restored_common
from vntransfer.adaptation._scaler import dense
from vntransfer.adaptation.divergence_weights import divergences_between, sharpen
from vntransfer.checks import Floats, number, one_of
from vntransfer.closed_form import RidgeFit, choose_ridge, feature_moments, fit_ridge
from vntransfer.domains import Name, Target, group
from vntransfer.errors import ArgumentError, DataError, DomainError
from vntransfer.moments import Moments
from vntransfer.progress import Progress
from vntransfer.random_features import RandomFeatures
from vntransfer.storage.folder import Savable
from vntransfer.storage.record import Name as SavedName
from vntransfer.storage.record import SavedModel, check_record

MOMENTS = ("count", "square_count", "mean", "scatter")

RECHOSEN = 10
"""Sources up to which the ridge is chosen again for each source that is held out."""


@dataclass(eq=False, repr=False)
class MomentLearner(Savable, TransferEstimator):
    """Fit, add to, merge and split ridge regression on [z, y]; y are numbers.

    A subclass for other responses says what their numbers are and what it saves besides.
    """

    n_features: int = 256
    ridge: float | Literal["auto"] = "auto"
    source_weights: Any = "uniform"
    random_state: int = 0

    def _fit_rows(self, rows: FitRows, progress: Progress | None) -> Self:
        own = rows.groups.source_rows
        weights = None if rows.weights is None else rows.weights[own]
        x = dense(rows.x[own])
        self._features = RandomFeatures.standardizing(
            x, self.n_features, self.random_state, weights
        )
        if not self._features.scale.any():
            raise ArgumentError(
                "X: all columns are constant in the rows of the sources; there is nothing to learn "
                "from. Add a column that varies"
            )
        self._start(rows.y[own], weights)
        self.moments_: dict[Name, Moments] = {}
        self._target: Moments | None = None
        self._add(rows)
        return self._solve()

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_domain: Any = None,
        target: Target = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from further rows, of known or new sources; the arguments are those of ``fit``.

        The first rows fix the scales of the columns; the result depends on the order of rows in no
        other way.
        """
        if not hasattr(self, "moments_"):
            return self.fit(X, y, sample_domain, target, sample_weight)
        X = validate_data(self, X, **MATRIX, reset=False)
        refuse_huge_inputs(X, self)
        groups = group(sample_domain, X.shape[0], target=target)
        self._refuse_awoken(dense(X[groups.source_rows]))
        labels = read_responses(type(self).__name__, y, groups, X.shape[0], numeric=self._numeric)
        weights = read_weights(sample_weight, groups, X.shape[0])
        own = groups.source_rows
        self._extend(labels[own], None if weights is None else weights[own])
        self._add(FitRows(X, labels, groups, weights))
        return self._solve()

    def merge(self, other: Self) -> Self:
        """Return the estimator of the rows of both; they must have the same features.

        Those agree if both were made from the same options and the same first rows, for example
        by copies of one estimator that was fitted to a first part.
        """
        check_is_fitted(self)
        if not isinstance(other, type(self)) or not hasattr(other, "moments_"):
            raise ArgumentError(
                f"other: expected a fitted {type(self).__name__}, got {type(other).__name__}"
            )
        if not self._features.same(other._features):
            raise ArgumentError(
                "other: its features differ (n_features, random_state or scales of columns), so "
                "its moments cannot be added"
            )
        both = copy.copy(self)
        both._join(other)
        if other._target is not None:
            both._target = added(self._target, other._target)
        return both._solve()

    def without(self, source: Name) -> Self:
        """Return the estimator without a source; only the scales still depend on it."""
        check_is_fitted(self)
        one_of("source", source, self.moments_, error=DomainError)
        if len(self.moments_) == 1:
            raise DomainError(f"source: {source!r} is the only source; none would remain")
        rest = copy.copy(self)
        rest.moments_ = {name: own for name, own in self.moments_.items() if name != source}
        if isinstance(self.source_weights, Mapping):
            rest.source_weights = {name: self.source_weights[name] for name in rest.moments_}
        return rest._solve()

    def held_out(self) -> dict[Name, Self]:
        """Return for each source the estimator without it.

        With more than ten sources all of them have the ridge of the whole.
        """
        check_is_fitted(self)
        if len(self.moments_) < 2:
            raise DomainError("sample_domain: leave-one-source-out needs at least two sources")
        model = self
        if len(self.moments_) > RECHOSEN:
            model = copy.copy(self)
            model.ridge = self.ridge_
        return {name: model.without(name) for name in self.moments_}

    def held_out_predictions(
        self, X: Any, sample_domain: Any, target: Target = None
    ) -> NDArray[Any]:
        """Predict rows of each source from the others, and rows of a target from all sources.

        No row is read again: a few small linear solves replace a fit per source. The arguments are
        those of ``fit``.
        """
        rows = self._new_rows(X)
        groups = group(sample_domain, rows.shape[0], target=target)
        for name in groups.sources:
            one_of("sample_domain", name, self.moments_, error=DomainError)
        predicted, models = self.predict(rows), self.held_out()
        for name, own in groups.sources.items():
            predicted[own] = models[name].predict(rows[own])
        return predicted

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict responses (n,) or (n, m)."""
        found = self._scores(self._new_rows(X)).numpy()
        return self._finite(np.asarray(found[:, 0] if self._one_column else found))

    def _start(self, y: NDArray[Any], weights: Floats | None) -> None:
        """Learn what responses look like from those of the sources."""
        self._one_column = y.ndim == 1

    def _extend(self, y: NDArray[Any], weights: Floats | None) -> None:
        """Check responses of further rows."""
        if (y.ndim == 1) != self._one_column or (y.ndim == 2 and y.shape[1] != self._responses):
            raise ArgumentError(f"y: expected as many responses as before, got {y.shape}")

    def _numbers(self, y: NDArray[Any]) -> Floats:
        """Responses as numbers (n, m)."""
        return y.reshape(len(y), -1)

    def _add(self, rows: FitRows) -> None:
        """Add rows to the moments of their domains."""
        self.moments_ = dict(self.moments_)  # of copies, too
        for name, own in rows.groups.sources.items():
            weights = None if rows.weights is None else rows.weights[own]
            if weights is None or weights.any():
                self._add_source(name, dense(rows.x[own]), rows.y[own], weights)
        for own in rows.groups.targets.values():
            new = feature_moments(self._features, dense(rows.x[own]))
            self._target = added(self._target, new)

    def _add_source(self, name: Name, x: Floats, y: NDArray[Any], weights: Floats | None) -> None:
        new = feature_moments(self._features, x, self._numbers(y), weights)
        self.moments_[name] = added(self.moments_.get(name), new)

    def _join(self, other: Self) -> None:
        """Add the moments of another estimator."""
        self.moments_ = dict(self.moments_)
        for name, moments in other.moments_.items():
            self.moments_[name] = added(self.moments_.get(name), moments)

    def _solve(self) -> Self:
        """Find weights, ridge and coefficients from the moments."""
        parts, m = list(self.moments_.values()), self._responses
        shares = self._shares()
        self.source_weights_ = dict(zip(self.moments_, shares.tolist(), strict=True))
        weights = (shares * sum(float(part.count) for part in parts)).tolist()
        if self.ridge == "auto":
            self.ridge_ = choose_ridge(parts, m, weights)
        else:
            self.ridge_ = number("ridge", self.ridge)
        self._solution: RidgeFit = fit_ridge(Moments.weighted(parts, weights), m, self.ridge_)
        return self

    @property
    def _responses(self) -> int:
        parts = next(iter(self.moments_.values()))
        return parts.n_features - len(self._features.center) - self._features.count

    def _scores(self, X: Any) -> Tensor:
        """Predict numbers (n, m) for checked rows."""
        z = torch.from_numpy(self._features(dense(X)))
        return z @ self._solution.coefficients + self._solution.intercept

    def _refuse_awoken(self, x: Floats) -> None:
        """Raise if a column varies that was constant when the scales were fixed."""
        center, still = self._features.center, self._features.scale == 0
        changed = still & (np.abs(x - center) > 1e-9 * np.abs(center)).any(0)  # a mean is rounded
        if changed.any():
            first = int(changed.argmax())
            column, value = column_name(self, first), center[first]
            raise ArgumentError(
                f"X: column {column} was constant ({value:g}) in the first rows, which fix the "
                f"scales, and now has other values. Fit first to rows in which it varies"
            )

    def _shares(self) -> Floats:
        mass = np.array([float(part.count) for part in self.moments_.values()])
        if isinstance(self.source_weights, Mapping):
            if set(self.source_weights) != set(self.moments_):
                raise DomainError(
                    f"source_weights: expected one share for each of {list(self.moments_)}, got "
                    f"{list(self.source_weights)}"
                )
            mass = np.array(
                [number("source_weights", self.source_weights[name]) for name in self.moments_]
            )
            if not mass.any():
                raise ArgumentError("source_weights: all are 0; give at least one source weight")
        elif one_of("source_weights", self.source_weights, ("uniform", "divergence")) != "uniform":
            if self._target is None:
                raise DomainError(
                    "source_weights: 'divergence' needs rows of the target; mark them in "
                    "sample_domain, or use 'uniform'"
                )
            return sharpen(self._divergences(self._target), 1.0, mass)
        return np.asarray(mass / mass.sum())

    def _divergences(self, target: Moments) -> Floats:
        """Jeffreys divergences of second moments of [1, s] between sources and target."""
        p = len(self._features.center)
        matrices = []
        for own in (*self.moments_.values(), target):
            mean = own.mean[:p]
            inner = own.scatter[:p, :p] / own.count + torch.outer(mean, mean)
            first = torch.cat((torch.ones(1).to(mean), mean))
            matrices.append(torch.cat((first[None], torch.cat((mean[:, None], inner), 1))))
        return divergences_between(matrices)[:-1, -1]

    def _saved(self) -> SavedModel:
        record = common_record(self)
        record |= {
            "sources": list(self.moments_),
            "seed": self._features.seed,
            "count": self._features.count,
            **self._own_record(),
        }
        every = {f"source{i}": own for i, own in enumerate(self.moments_.values())}
        if self._target is not None:
            every["target"] = self._target
        arrays = {
            f"{name}/{field}": getattr(own, field).numpy()
            for name, own in every.items()
            for field in MOMENTS
        }
        arrays |= {"center": self._features.center, "scale": self._features.scale}
        fit = self._solution  # what predicting takes; the rest is for further learning
        arrays |= {"coefficients": fit.coefficients.numpy(), "intercept": fit.intercept.numpy()}
        return SavedModel(type(self).__name__, record, arrays | self._own_arrays())

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        record, arrays = saved.record, saved.arrays
        check_record("record", record, SAVED)
        model: Self = restored_common(cls, record, given)
        p, count = record["n_features"], record["count"]
        m = arrays["source0/mean"].size - p - count

        def moments(name: str, width: int) -> Moments:
            own = {field: torch.from_numpy(arrays[f"{name}/{field}"]) for field in MOMENTS}
            shapes = {field: tuple(own[field].shape) for field in MOMENTS}
            if (shapes["mean"], shapes["scatter"]) != ((width,), (width, width)):
                raise DataError(f"record.count: {count} features do not fit the moments of {name}")
            return Moments(**own, numpy=True)

        if m < 1 or arrays["center"].shape != (p,) or arrays["scale"].shape != (p,):
            raise DataError(f"record.n_features: {p} columns do not fit the arrays")
        if not record["sources"] or len(set(record["sources"])) < len(record["sources"]):
            raise DataError(f"record.sources: expected names, got {record['sources']!r:.60}")
        model._features = RandomFeatures(
            arrays["center"], arrays["scale"], record["count"], record["seed"]
        )
        model.moments_ = {
            name: moments(f"source{i}", p + count + m) for i, name in enumerate(record["sources"])
        }
        model._target = moments("target", p + count) if "target/mean" in arrays else None
        model._restore(saved)
        try:
            return model._solve()
        except (ArgumentError, DomainError) as error:
            raise DataError(f"record.options: {error}") from error

    def _own_record(self) -> dict[str, Any]:
        """Give plain values that are saved besides moments."""
        return {"one_column": self._one_column}

    def _own_arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def _restore(self, saved: SavedModel) -> None:
        """Bring back what was saved besides moments."""
        check_record("record", saved.record, {"one_column": bool})
        self._one_column = saved.record["one_column"]
        if self._one_column and self._responses != 1:
            raise DataError(f"record.one_column: the moments have {self._responses} responses")


SAVED = {**COMMON, "sources": [SavedName], "seed": int, "count": int}


def added(known: Moments | None, new: Moments) -> Moments:
    """Moments of known and new rows."""
    return new if known is None else known.merge(new)
