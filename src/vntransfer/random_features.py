"""Fixed random features of standardized columns, the same on every machine."""

from dataclasses import dataclass

import numpy as np

from vntransfer.checks import Floats


def normal_numbers(seed: int, count: int) -> Floats:
    """Independent N(0, 1) numbers that are the same on every machine and for every version.

    The counter-based generator Philox is specified bit by bit; its integers become uniform numbers
    and those normal ones by the inverse of the distribution function. (numpy's own normal numbers
    may change between its versions.)
    """
    from scipy.special import ndtri  # slow to import

    raw = np.random.Philox(key=seed).random_raw(count)
    uniform = ((raw >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(ndtri(uniform))


@dataclass(frozen=True)
class RandomFeatures:
    """z = [s, relu(W s/√p + b)] with s = (x - center)/scale and W, b ~ N(0, 1) fixed by a seed.

    Columns of scale 0 are constant: their s is 0, whatever comes later. The scale of W is fixed:
    choosing it by held-out sources gained nothing (`benchmarks/random_features.py`).

    Examples
    --------
    >>> features = RandomFeatures(center=np.zeros(2), scale=np.ones(2), count=3, seed=0)
    >>> features(np.array([[1.0, 2.0]])).shape
    (1, 5)
    """

    center: Floats  # (p,)
    scale: Floats  # (p,)
    count: int  # of random ones
    seed: int

    def __post_init__(self) -> None:
        p = len(self.center)
        drawn = normal_numbers(self.seed, (p + 1) * self.count).reshape(p + 1, self.count)
        object.__setattr__(self, "_weights", drawn[:-1] / max(p, 1) ** 0.5)
        object.__setattr__(self, "_bias", drawn[-1])
        inverse = np.divide(1.0, self.scale, where=self.scale > 0, out=np.zeros(p))
        object.__setattr__(self, "_inverse", inverse)

    @classmethod
    def standardizing(
        cls, x: Floats, count: int, seed: int, weights: Floats | None = None
    ) -> "RandomFeatures":
        """Take center and scale from rows (n, p)."""
        center = np.average(x, axis=0, weights=weights)
        scale = np.sqrt(np.average((x - center) ** 2, axis=0, weights=weights))
        scale[scale <= 1e-12 * np.abs(x).max(0, initial=0.0)] = 0.0
        return cls(center, scale, count, seed)

    def __call__(self, x: Floats) -> Floats:
        """Features (n, p + count) of rows (n, p)."""
        return self.into(np.empty((len(x), len(self.center) + self.count)), x)

    def into(self, z: Floats, x: Floats) -> Floats:
        """Write the features of rows (n, p) into z (n, p + count), and give it."""
        p = len(self.center)
        s, hidden = z[:, :p], z[:, p:]
        np.subtract(x, self.center, out=s)
        s *= self._inverse  # type: ignore[attr-defined]
        np.matmul(s, self._weights, out=hidden)  # type: ignore[attr-defined]
        hidden += self._bias  # type: ignore[attr-defined]
        np.maximum(hidden, 0.0, out=hidden)
        return z

    def same(self, other: "RandomFeatures") -> bool:
        """Whether both give the same features, so that moments of them can be added."""
        return (
            (self.count, self.seed) == (other.count, other.seed)
            and np.array_equal(self.center, other.center)
            and np.array_equal(self.scale, other.scale)
        )
