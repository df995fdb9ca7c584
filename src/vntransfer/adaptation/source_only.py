"""No adaptation: the baseline of all networks."""

from dataclasses import dataclass

from vntransfer.adaptation._base import DomainRegressor


@dataclass(eq=False, repr=False, kw_only=True)
class SourceOnlyRegressor(DomainRegressor):
    """Regression on the labeled sources; the target only takes part in scaling the inputs.

    All options are those of `DomainRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from vntransfer import SourceOnlyRegressor
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = SourceOnlyRegressor(random_state=0).fit(X, X[:, 0] + X[:, 1] ** 2)
    >>> bool(model.score(X, X[:, 0] + X[:, 1] ** 2) > 0.95)
    True
    """

    _needs_target = False
