"""Holm's correction of several p-values."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down correction of p-values (m,); compare the result with the level itself.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    given = np.asarray(p, dtype=np.float64)
    order = np.argsort(given)
    stepped = np.maximum.accumulate((len(given) - np.arange(len(given))) * given[order])
    out = np.empty_like(given)
    out[order] = np.minimum(stepped, 1.0)
    return out
