"""Rows of all domains in a plane."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def embed(
    domains: Mapping[str, tuple[Any, NDArray[Any]]], n_points: int, *, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """t-SNE of a random sample of all rows, shape (n, 2), and the number of each row's domain."""
    from scipy.sparse import issparse, vstack
    from sklearn.decomposition import TruncatedSVD
    from sklearn.manifold import TSNE
    from sklearn.preprocessing import StandardScaler

    rows = [x for x, _ in domains.values()]
    owner = np.repeat(np.arange(len(rows)), [x.shape[0] for x in rows])
    keep = np.sort(np.random.default_rng(seed).permutation(len(owner))[:n_points])
    if issparse(rows[0]):
        X = vstack(rows, format="csr")[keep]
        X = TruncatedSVD(min(50, X.shape[1] - 1), random_state=seed).fit_transform(X)
    else:
        X = StandardScaler().fit_transform(np.concatenate(rows)[keep])
    perplexity = min(30.0, (len(X) - 1) / 3)
    init = "pca" if X.shape[1] > 1 else "random"  # one feature has one principal component
    points = TSNE(perplexity=perplexity, init=init, random_state=seed).fit_transform(X)
    return np.asarray(points, dtype=np.float64), owner[keep]
