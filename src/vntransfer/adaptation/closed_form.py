"""Ridge regression on columns and random features, from the moments of the sources alone."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from vntransfer.adaptation._estimator import (
    MATRIX,
    FitRows,
    TransferEstimator,
    read_responses,
    read_weights,
)
from vntransfer.adaptation._saving import common_record, restore_common
from vntransfer.adaptation.divergence_weights import sharpen
from vntransfer.checks import number, one_of
from vntransfer.closed_form import RandomFeatures, RidgeFit, choose_ridge, fit_ridge
from vntransfer.divergences import pairwise
from vntransfer.domains import Name, Target, group
from vntransfer.errors import ArgumentError, DomainError
from vntransfer.moments import Moments
from vntransfer.progress import Progress
from vntransfer.storage.folder import Savable
from vntransfer.storage.record import SavedModel

MOMENTS = ("count", "square_count", "mean", "scatter")


@dataclass(eq=False, repr=False)
class ClosedFormRegressor(RegressorMixin, Savable, TransferEstimator):  # type: ignore[misc]
    """Ridge regression on the columns and fixed random features, from moments of the sources.

    z = [s, relu(W s/√p + b)] with s the standardized columns and W, b ~ N(0, 1) drawn once from
    ``random_state``; B = (S_zz + λ t I)⁻¹ S_zy from the moments of [z, y] (see
    `vntransfer.closed_form`). Equivalent to ridge regression on z over all rows at once, but rows
    can come in parts (`partial_fit`), from several machines (`merge`), and a source can be taken
    out again (`without`). Prefer it for rows that do not fit into memory or keep coming, and as a
    fast first answer; networks are more accurate on small smooth tables.

    Parameters
    ----------
    n_features
        Number of random features beside the columns; 0 is ridge regression on the columns.
    ridge
        λ, relative to the mean diagonal entry of S_zz. "auto" takes the one of nine powers of ten
        with the smallest error on sources that are left out in turn or, with one source, by
        generalized cross-validation; both are exact from moments.
    source_weights
        "uniform": all rows count alike. "divergence": sources whose inputs are closer to the
        target's by Jeffreys divergence count more (as in `source_weights`). Or a mapping from
        source to its share.
    random_state
        Seed of the random features, a whole number: the same on every machine.

    Attributes
    ----------
    moments_ : dict
        Source -> `Moments` of [z, y].
    ridge_ : float
        The λ used.
    source_weights_ : dict
        Source -> its share.

    Examples
    --------
    >>> from vntransfer import stack
    >>> rng = np.random.default_rng(0)
    >>> a, b, new = (rng.normal(m, 1, size=(200, 2)) for m in (0, 1, 2))
    >>> X, y, domain = stack({"a": (a, np.sin(a[:, 0])), "b": (b, np.sin(b[:, 0]))}, target=new)
    >>> model = ClosedFormRegressor().fit(X, y, domain)
    >>> bool(abs(model.predict(new) - np.sin(new[:, 0])).mean() < 0.1)
    True
    >>> sorted(model.without("b").moments_)
    ['a']
    """

    n_features: int = 256
    ridge: float | Literal["auto"] = "auto"
    source_weights: Any = "uniform"
    random_state: int = 0

    def _fit_rows(self, rows: FitRows, progress: Progress | None) -> Self:
        own = rows.groups.source_rows
        weights = None if rows.weights is None else rows.weights[own]
        self._features = RandomFeatures.standardizing(
            _dense(rows.x[own]), self.n_features, self.random_state, weights
        )
        self._one_column = rows.y.ndim == 1
        self.moments_: dict[Name, Moments] = {}
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
        groups = group(sample_domain, X.shape[0], target=target)
        labels = read_responses(type(self).__name__, y, groups, X.shape[0], numeric=True)
        if (labels.ndim == 1) != self._one_column or (
            labels.ndim == 2 and labels.shape[1] != len(self._solution.intercept)
        ):
            raise ArgumentError(f"y: expected as many responses as before, got {labels.shape}")
        self._add(FitRows(X, labels, groups, read_weights(sample_weight, groups, X.shape[0])))
        return self._solve()

    def merge(self, other: "ClosedFormRegressor") -> Self:
        """Give the estimator of the rows of both; they must have the same features.

        Those agree if both were made from the same options and the same first rows, for example
        by copies of one estimator that was fitted to a first part.
        """
        check_is_fitted(self)
        if not isinstance(other, ClosedFormRegressor) or not hasattr(other, "moments_"):
            raise ArgumentError(
                f"other: expected a fitted ClosedFormRegressor, got {type(other).__name__}"
            )
        if not self._features.same(other._features):
            raise ArgumentError(
                "other: has other features (n_features, random_state or scales of columns), whose "
                "moments cannot be added"
            )
        both = copy.copy(self)
        both.moments_ = dict(self.moments_)
        for name, moments in other.moments_.items():
            both.moments_[name] = _added(both.moments_.get(name), moments)
        if self._target is not None and other._target is not None:
            both._target = self._target.merge(other._target)
        else:
            both._target = self._target or other._target
        return both._solve()

    def without(self, source: Name) -> Self:
        """Give the estimator as if a source had never been seen, its part in the scales aside."""
        check_is_fitted(self)
        one_of("source", source, self.moments_, error=DomainError)
        if len(self.moments_) == 1:
            raise DomainError(f"source: {source!r} is the only one; nothing would be left")
        rest = copy.copy(self)
        rest.moments_ = {name: own for name, own in self.moments_.items() if name != source}
        return rest._solve()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict responses (n,) or (n, m)."""
        rows = self._new_rows(X)
        z = torch.from_numpy(self._features(_dense(rows)))
        found = (z @ self._solution.coefficients + self._solution.intercept).numpy()
        return np.asarray(found[:, 0] if self._one_column else found)

    def _add(self, rows: FitRows) -> None:
        """Add rows to the moments of their domains."""
        z, y = self._features(_dense(rows.x)), rows.y.reshape(len(rows.y), -1)
        for name, own in rows.groups.sources.items():
            weights = None if rows.weights is None else rows.weights[own]
            if weights is None or weights.any():
                new = Moments.from_samples(z[own], y[own], weights=weights)
                self.moments_[name] = _added(self.moments_.get(name), new)
        self._target: Moments | None = getattr(self, "_target", None)
        for own in rows.groups.targets.values():
            self._target = _added(self._target, Moments.from_samples(z[own]))

    def _solve(self) -> Self:
        """Find weights, ridge and coefficients from the moments."""
        parts = list(self.moments_.values())
        rows = sum(float(part.count) for part in parts)
        shares = self._shares()
        self.source_weights_ = dict(zip(self.moments_, shares.tolist(), strict=True))
        weights = (shares * rows).tolist()
        m = parts[0].n_features - len(self._features.center) - self._features.count
        if self.ridge == "auto":
            self.ridge_ = choose_ridge(parts, m, weights)
        else:
            self.ridge_ = number("ridge", self.ridge)
        self._solution: RidgeFit = fit_ridge(Moments.weighted(parts, weights), m, self.ridge_)
        return self

    def _shares(self) -> NDArray[np.float64]:
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

    def _divergences(self, target: Moments) -> NDArray[np.float64]:
        """Jeffreys divergences of second moments of [1, s] between sources and target."""
        p = len(self._features.center)
        matrices = []
        for own in (*self.moments_.values(), target):
            mean = own.mean[:p]
            inner = own.scatter[:p, :p] / own.count + torch.outer(mean, mean)
            first = torch.cat((torch.ones(1).to(mean), mean))
            matrices.append(torch.cat((first[None], torch.cat((mean[:, None], inner), 1))))
        M = torch.stack(matrices)
        epsilon = 0.01 * float(M.diagonal(dim1=1, dim2=2).mean())
        table = pairwise(M + epsilon * torch.eye(p + 1).to(M), divergence="jeffreys")
        return np.asarray(table)[:-1, -1]

    def _saved(self) -> SavedModel:
        record = common_record(self)
        record |= {
            "ridge": self.ridge_,
            "one_column": self._one_column,
            "sources": list(self.moments_),
            "seed": self._features.seed,
            "count": self._features.count,
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
        return SavedModel(type(self).__name__, record, arrays)

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        record, arrays = saved.record, saved.arrays
        model = cls(**record["options"])

        def moments(name: str) -> Moments:
            own = {field: torch.from_numpy(arrays[f"{name}/{field}"]) for field in MOMENTS}
            return Moments(**own, numpy=True)

        model._features = RandomFeatures(
            arrays["center"], arrays["scale"], record["count"], record["seed"]
        )
        model._one_column = record["one_column"]
        model.moments_ = {name: moments(f"source{i}") for i, name in enumerate(record["sources"])}
        model._target = moments("target") if "target/mean" in arrays else None
        restore_common(model, record)
        return model._solve()


def _dense(x: Any) -> NDArray[np.float64]:
    return np.asarray(x.toarray() if scipy.sparse.issparse(x) else x, dtype=np.float64)


def _added(known: Moments | None, new: Moments) -> Moments:
    return new if known is None else known.merge(new)
