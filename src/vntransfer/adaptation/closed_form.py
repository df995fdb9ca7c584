"""Ridge regression on columns and random features, from the moments of the sources alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from sklearn.base import RegressorMixin

from vntransfer.adaptation._moment_learner import MomentLearner
from vntransfer.domains import Name
from vntransfer.errors import ArgumentError
from vntransfer.moments import Moments
from vntransfer.random_features import RandomFeatures


@dataclass(eq=False, repr=False)
class ClosedFormRegressor(RegressorMixin, MomentLearner):  # type: ignore[misc]
    """Ridge regression on the columns and fixed random features, from moments of the sources.

    z = [s, relu(W s/√p + b)] with s the standardized columns and W, b ~ N(0, 1) drawn once from
    ``random_state``; B = (S_zz + λ t I)⁻¹ S_zy from the moments of [z, y] (see
    `vntransfer.closed_form`). Equivalent to ridge regression on z over all rows at once, but rows
    can come in parts (`partial_fit`) and from several machines (`merge`), and a source can be
    removed (`without`). Columns that are constant in the first rows are ignored. Prefer it for rows
    that do not fit into memory or keep coming, and as a fast first answer; networks are more
    accurate on small smooth tables.

    Parameters
    ----------
    n_features
        Number of random features in addition to the columns; 0 is ridge regression on the columns.
    ridge
        λ, relative to the mean diagonal entry of S_zz. "auto" chooses among nine powers of ten by
        the error on held-out sources or, with one source, by generalized cross-validation; both are
        exact from moments.
    source_weights
        "uniform": all rows count equally. "divergence": sources whose inputs are closer to the
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
    >>> import numpy as np
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

    _multi_output = True

    @classmethod
    def from_moments(
        cls,
        features: RandomFeatures,
        moments: Mapping[Name, Moments],
        target: Moments | None = None,
        **options: Any,
    ) -> Self:
        """Return an estimator fitted to given moments of [z, y], with one response.

        Parameters
        ----------
        features
            The map from rows to z; its count and seed are those of the estimator.
        moments
            Source -> moments of [z, y].
        target
            Moments of z of the target's rows, which ``source_weights="divergence"`` needs.
        options
            Further options of the estimator.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(50, 2))
        >>> features = RandomFeatures.standardizing(x, 8, seed=0)
        >>> own = Moments.from_samples(features(x), 3 * x[:, :1])
        >>> model = ClosedFormRegressor.from_moments(features, {"a": own})
        >>> bool(np.abs(model.predict(x) - 3 * x[:, 0]).max() < 0.01)
        True
        """
        model = cls(n_features=features.count, random_state=features.seed, **options)
        q = len(features.center) + features.count
        for name, own in moments.items():
            if own.n_features != q + 1:
                raise ArgumentError(
                    f"moments: those of {name!r} have {own.n_features} columns, expected {q + 1} "
                    f"({q} features and one response); use moments of the same features"
                )
        model._features, model._one_column, model._target = features, True, target
        model.n_features_in_, model.moments_ = len(features.center), dict(moments)
        return model._solve()
