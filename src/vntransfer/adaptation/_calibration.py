"""Platt scaling: probabilities from the scores of classes on held-out rows."""

from typing import NamedTuple

import numpy as np
import scipy.optimize
import scipy.special
from numpy.typing import NDArray

from vntransfer.checks import Floats

SLOPES = (0.01, 100.0)
"""Bounds of the slope: held-out rows may be misleading, or separable."""

PULL = 1e-4
"""Shrinks the offsets toward 0, which makes them unique."""


class PlattScaling(NamedTuple):
    """p = softmax(a f + b) of scores f (n, K), one slope a for all and an offset per class."""

    slope: float
    offsets: Floats  # (K,)

    def logits(self, scores: Floats) -> Floats:
        """Logarithms of probabilities (n, K), up to a constant per row."""
        return np.asarray(self.slope * scores + self.offsets)

    @classmethod
    def fit(cls, scores: Floats, classes: NDArray[np.intp], weights: Floats) -> "PlattScaling":
        """Minimize the mean cross-entropy of held-out rows (n,), labels being smoothed.

        A label counts 1 - ε and all classes share ε = K/(n + K), as in Platt (1999): classes that
        the scores separate do not get probabilities of 0 and 1. Newton steps, so that the result
        does not depend on rounding.

        Examples
        --------
        >>> scores = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
        >>> scaling = PlattScaling.fit(scores, np.array([0, 0, 1, 1]), np.ones(4))
        >>> bool(scaling.slope > 0)
        True
        """
        n, K = scores.shape
        w = weights / weights.sum()
        smooth = K / (n + K)
        wanted = np.full((n, K), smooth / K)
        wanted[np.arange(n), classes] += 1 - smooth

        def loss(given: Floats) -> float:
            logits = given[0] * scores + given[1:]
            gaps = (scipy.special.logsumexp(logits, axis=1) - (wanted * logits).sum(1)) @ w
            return float(gaps + PULL / 2 * given[1:] @ given[1:])

        def gradient(given: Floats) -> Floats:
            gap = (_softmax(given, scores) - wanted) * w[:, None]
            return np.concatenate(([(gap * scores).sum()], gap.sum(0) + PULL * given[1:]))

        def hessian(given: Floats) -> Floats:
            p = _softmax(given, scores)
            centered = scores - (p * scores).sum(1, keepdims=True)
            H = np.empty((K + 1, K + 1))
            H[0, 0] = w @ (p * centered**2).sum(1) + 1e-12
            H[0, 1:] = H[1:, 0] = w @ (p * centered)
            H[1:, 1:] = np.diag(w @ p + PULL) - (p * w[:, None]).T @ p
            return H

        start = np.concatenate(([1.0], np.zeros(K)))
        found = scipy.optimize.minimize(
            loss, start, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-10}
        ).x
        return cls(float(np.clip(found[0], *SLOPES)), found[1:])


def _softmax(given: Floats, scores: Floats) -> Floats:
    return np.asarray(scipy.special.softmax(given[0] * scores + given[1:], axis=1))
