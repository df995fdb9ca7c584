"""Least squares on one-hot classes, from moments, with probabilities from held-out sources."""

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.special
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from vntransfer.adaptation._calibration import PlattScaling
from vntransfer.adaptation._moment_learner import MomentLearner
from vntransfer.checks import Floats
from vntransfer.closed_form import fit_ridge, leave_one_out, without
from vntransfer.domains import Name, Target
from vntransfer.errors import ArgumentError, DataError
from vntransfer.moments import Moments
from vntransfer.row_sample import RowSample
from vntransfer.storage.record import Name as SavedName
from vntransfer.storage.record import SavedModel, check_record

KEPT = 250
"""Rows that are kept of each class of each source, to calibrate probabilities by."""

SAVED = {
    "classes": list[str | int | float | bool],
    "classes_type": str,
    "kept": list[tuple[SavedName, int]],
}
"""Types of what is saved besides moments."""


@dataclass(eq=False, repr=False)
class ClosedFormClassifier(ClassifierMixin, MomentLearner):  # type: ignore[misc]
    """Least squares on one-hot classes, on the columns and fixed random features, from moments.

    f = c + B'z as of `ClosedFormRegressor` with y the indicators of the classes, and p = softmax(a
    f + b), where a and b (Platt scaling) have the smallest cross-entropy on rows of each source
    scored by the other sources; with one source, on its rows scored without themselves. Because
    these scores need rows, at most 250 different ones of each class of each source are kept and
    saved with the model. Rows can come in parts, from several machines and with new classes, and a
    source can be removed. Prefer it for rows that do not fit into memory or keep coming; boosting
    and networks are usually more accurate.

    Parameters
    ----------
    n_features, source_weights, random_state
        See `ClosedFormRegressor`.
    ridge
        See `ClosedFormRegressor`; the error is that of the indicators, which is the Brier score of
        f.

    Attributes
    ----------
    classes_ : array
        Labels of the sources.
    moments_ : dict
        Source -> `Moments` of [z, indicators].
    ridge_ : float
        The λ used.
    source_weights_ : dict
        Source -> its share.

    Examples
    --------
    >>> from vntransfer import stack
    >>> rng = np.random.default_rng(0)
    >>> a, b, new = (rng.normal(m, 1, size=(200, 2)) for m in (0, 1, 0.5))
    >>> X, y, domain = stack({"a": (a, a[:, 0] > 0.5), "b": (b, b[:, 0] > 0.5)}, target=new)
    >>> model = ClosedFormClassifier().fit(X, y, domain)
    >>> bool(model.score(new, new[:, 0] > 0.5) > 0.9), model.predict_proba(new).shape
    (True, (200, 2))
    """

    _numeric = False

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_domain: Any = None,
        target: Target = None,
        sample_weight: Any = None,
        classes: Any = None,
    ) -> Self:
        """Learn from further rows, of known or new sources and classes.

        The first rows fix the scales of the columns; the result depends on the order of rows in no
        other way. ``classes`` names all of them where the first rows may have only one; the other
        arguments are those of ``fit``.
        """
        self._named = classes
        try:
            super().partial_fit(X, y, sample_domain, target, sample_weight)
        finally:
            del self._named
        return self

    def decision_function(self, X: Any) -> Floats:
        """Logarithms of probabilities up to a constant (n, classes); of two, the log odds (n,)."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n, number of classes), in the order of ``classes_``."""
        return np.asarray(scipy.special.softmax(self._logits(X), axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class (n,)."""
        logits = self._logits(X)
        return np.asarray(self.classes_[logits.argmax(1)])

    def _logits(self, X: Any) -> Floats:
        rows = self._new_rows(X)
        return np.asarray(self._finite(self._scaling.logits(self._scores(rows).numpy())))

    def _start(self, y: NDArray[Any], weights: Floats | None) -> None:
        self._samples: dict[tuple[Name, int], RowSample] = {}
        self.classes_ = self._seen(y, weights)
        if len(self.classes_) < 2:
            raise ArgumentError(
                f"y: expected at least two classes, got one ({self.classes_[0]!r}). Give rows of "
                f"another class, or name all classes in partial_fit(..., classes=...)"
            )

    def _extend(self, y: NDArray[Any], weights: Floats | None) -> None:
        self._widen(np.union1d(self.classes_, self._seen(y, weights)))

    def _seen(self, y: NDArray[Any], weights: Floats | None) -> NDArray[Any]:
        """Classes of rows that count, and those that were named."""
        check_classification_targets(y)
        own = np.unique(y if weights is None else y[weights > 0])
        if own.dtype.kind == "U":
            own = np.array(own.tolist())  # of the length of these labels, not of the target's
        named = getattr(self, "_named", None)
        return own if named is None else np.union1d(own, np.asarray(named))

    def _widen(self, classes: NDArray[Any]) -> None:
        """Make room for classes: their indicators were 0 in all rows so far."""
        if len(classes) == len(self.classes_):
            return
        at = np.searchsorted(classes, self.classes_)
        q = len(self._features.center) + self._features.count
        columns = torch.from_numpy(np.concatenate((np.arange(q), q + at)))
        self.moments_ = {
            name: _spread(own, columns, q + len(classes)) for name, own in self.moments_.items()
        }
        self._samples = {(name, int(at[k])): own for (name, k), own in self._samples.items()}
        self.classes_ = classes

    def _numbers(self, y: NDArray[Any]) -> Floats:
        return (y[:, None] == self.classes_).astype(np.float64)

    def _add_source(self, name: Name, x: Floats, y: NDArray[Any], weights: Floats | None) -> None:
        super()._add_source(name, x, y, weights)
        new: dict[tuple[Name, int], RowSample] = {}
        w = np.ones(len(y)) if weights is None else weights
        for k, label in enumerate(self.classes_):
            if (own := (y == label) & (w > 0)).any():
                new[name, k] = RowSample(KEPT)
                new[name, k].add(x[own], counts=w[own])
        self._samples = _merged(self._samples, new)

    def _join(self, other: Self) -> None:
        classes = np.union1d(self.classes_, other.classes_)
        other = copy.copy(other)
        for model in (self, other):
            model._widen(classes)
        super()._join(other)
        self._samples = _merged(self._samples, other._samples)

    def _solve(self) -> Self:
        super()._solve()
        scores, codes, weights = zip(*self._held_out_scores(), strict=True)
        self._scaling = PlattScaling.fit(
            np.concatenate(scores), np.concatenate(codes), np.concatenate(weights)
        )
        return self

    def _held_out_scores(self) -> list[tuple[Floats, NDArray[np.intp], Floats]]:
        """Scores of the rows that were kept, their classes and weights, for each source.

        The weights of a class add up to its share of the source, however many rows were kept.
        """
        names, parts = list(self.moments_), list(self.moments_.values())
        m, rows = self._responses, sum(float(part.count) for part in parts)
        shares = [self.source_weights_[name] * rows for name in names]
        used = [i for i, share in enumerate(shares) if share > 0]
        found = []
        for i in used:
            own = self._kept(names[i])
            rows_of, counts = zip(*((s.rows, s.counts) for s in own.values()), strict=True)
            codes = np.repeat(list(own), list(map(len, counts))).astype(np.intp)
            z = torch.from_numpy(self._features(np.concatenate(rows_of)))
            if len(used) > 1:
                fit = fit_ridge(without(parts, shares, i), m, self.ridge_)
                scores = z @ fit.coefficients + fit.intercept
            else:
                y = torch.eye(m, dtype=torch.float64)[torch.from_numpy(codes)]
                w = torch.from_numpy(np.concatenate(counts))
                scores = leave_one_out(self._solution, parts[i], z, y, w)
            mean = parts[i].mean[-m:].numpy()
            weights = np.concatenate(
                [mean[k] * n / n.sum() for k, n in zip(own, counts, strict=True)]
            )
            found.append((scores.numpy(), codes, self.source_weights_[names[i]] * weights))
        return found

    def _kept(self, name: Name) -> dict[int, RowSample]:
        """Give the samples of a source, by class."""
        classes = (k for k in range(len(self.classes_)) if (name, k) in self._samples)
        return {k: self._samples[name, k] for k in classes}

    def _own_record(self) -> dict[str, Any]:
        kept = [[name, k] for name in self.moments_ for k in self._kept(name)]
        kind = "object" if self.classes_.dtype == object else self.classes_.dtype.str
        return {"classes": self.classes_.tolist(), "classes_type": kind, "kept": kept}

    def _own_arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {}
        every = (own for name in self.moments_ for own in self._kept(name).values())
        for i, sample in enumerate(every):
            assert sample.rows is not None
            arrays |= {f"kept{i}/rows": sample.rows, f"kept{i}/counts": sample.counts}
        return arrays

    def _restore(self, saved: SavedModel) -> None:
        record, arrays = saved.record, saved.arrays
        check_record("record", record, SAVED)
        self.classes_ = np.array(record["classes"], dtype=record["classes_type"])
        if len(self.classes_) != self._responses or len(np.unique(self.classes_)) < self._responses:
            raise DataError(f"record.classes: expected {self._responses} different ones")
        self._samples = {}
        for i, (name, k) in enumerate(record["kept"]):
            if name not in self.moments_ or not 0 <= k < self._responses:
                raise DataError(f"record.kept[{i}]: there is no class {k} of source {name!r}")
            sample = RowSample(KEPT)
            sample.add(arrays[f"kept{i}/rows"], counts=arrays[f"kept{i}/counts"])
            self._samples[name, k] = sample


def _merged(one: dict[Any, RowSample], other: dict[Any, RowSample]) -> dict[Any, RowSample]:
    """Give samples of the rows of both, by source and class; neither is changed."""
    found = dict(one)
    for key, new in other.items():
        found[key] = RowSample(KEPT)
        for own in (one.get(key), new):
            if own is not None:
                found[key].merge(own)
    return found


def _spread(moments: Moments, columns: torch.Tensor, width: int) -> Moments:
    """Moments with columns of zeros between those there are, which move to ``columns``."""
    mean = moments.mean.new_zeros(width)
    scatter = moments.scatter.new_zeros(width, width)
    mean[columns] = moments.mean
    scatter[columns[:, None], columns] = moments.scatter
    return Moments(moments.count, moments.square_count, mean, scatter, moments.numpy)
