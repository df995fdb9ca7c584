"""Hashes of whole data sets, for tests that they stay what they are."""

import hashlib

import numpy as np

from vntransfer_lab.data import Domains, TaskStream


def parts(loaded: Domains | TaskStream) -> list[np.ndarray]:
    """All arrays of a set, sparse ones as their three parts."""
    if isinstance(loaded, TaskStream):
        return [a for task in loaded for a in (task.x, task.y, task.x_test, task.y_test)]
    arrays = []
    for x, y in loaded.values():
        arrays += [x.data, x.indices, x.indptr] if hasattr(x, "tocsr") else [np.asarray(x[:20])]
        arrays.append(y)
    return arrays


def digest(loaded: Domains | TaskStream) -> str:
    whole = hashlib.sha256()
    for array in parts(loaded):
        whole.update(repr((array.shape, array.dtype.str)).encode())
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()
