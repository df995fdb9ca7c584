"""Rows that are made when they are asked for: pictures too many to keep decoded."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


class LazyRows:
    """Read-only array (n, ...) whose rows are computed on access.

    Has ``shape``, ``dtype``, ``ndim``, ``len``; indexing with a number, a slice, a list of numbers
    or a mask gives a plain array, and so does ``numpy.asarray`` (all rows at once).

    Parameters
    ----------
    keys
        What ``make`` gets for each row.
    shape, dtype
        Of one row.
    make
        Key -> row.

    Examples
    --------
    >>> rows = LazyRows([3, 5, 7], (2,), np.int64, lambda key: np.array([key, key * key]))
    >>> rows.shape, rows[1].tolist(), rows[[2, 0]].tolist()
    ((3, 2), [5, 25], [[7, 49], [3, 9]])
    """

    def __init__(
        self,
        keys: Sequence[int] | NDArray[np.integer],
        shape: tuple[int, ...],
        dtype: Any,
        make: Callable[[int], NDArray[Any]],
    ) -> None:
        self._keys = np.asarray(keys, dtype=np.intp)
        self._make = make
        self.shape = (len(self._keys), *shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: int | slice | ArrayLike) -> NDArray[Any]:
        keys = self._keys[index if isinstance(index, int | slice) else np.asarray(index)]
        if keys.ndim == 0:
            return self._make(int(keys))
        rows = np.empty((len(keys), *self.shape[1:]), dtype=self.dtype)
        for i, key in enumerate(keys):
            rows[i] = self._make(int(key))
        return rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("copy: rows are made on access, a copy is needed")
        return self[:] if dtype is None else self[:].astype(dtype)

    def __repr__(self) -> str:
        return f"<LazyRows {' x '.join(map(str, self.shape))} {self.dtype}>"
