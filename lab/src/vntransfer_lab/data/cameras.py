"""Which pictures belong together: cameras by the overlap of masks, domains by mean masks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import whole

THRESHOLD = 0.3


def group_cameras(masks: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Group (0, 1, ...) of every picture by average linkage on the overlap of the masks.

    Groups are joined as long as their pictures share, on average over the pairs, at least
    1 - `THRESHOLD` of the union of their masks. A camera that is turned gives several groups.
    """
    import pandas as pd
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    if len(masks) < 2:
        return np.zeros(len(masks), dtype=np.intp)
    tree = linkage(pdist(masks.reshape(len(masks), -1), "jaccard"), "average")
    return pd.factorize(fcluster(tree, THRESHOLD, "distance"))[0]  # by their first pictures


@dataclass(frozen=True)
class Cameras:
    """Cameras, and the domains that they make."""

    names: tuple[str, ...]
    sizes: NDArray[np.intp]  # pictures of each camera
    distances: NDArray[np.float64]  # root mean square difference of the mean masks of two cameras
    domain: NDArray[np.intp]  # of each camera, 0 to k - 1, the one with most pictures first


def camera_domains(masks: NDArray[np.bool_], camera: NDArray[np.generic], k: int = 5) -> Cameras:
    """Domains of cameras: Ward's clustering of their mean masks, cut at k.

    Every picture counts with its camera's mean mask: a few odd pictures do not make a domain.
    ``masks`` (n, height, width) and ``camera``, a name or number, are those of all pictures.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist, squareform

    names, first, index, sizes = np.unique(
        camera, return_index=True, return_inverse=True, return_counts=True
    )
    whole("n_domains", k, minimum=2, maximum=len(names))
    means = np.stack([masks[index == c].mean(axis=0) for c in range(len(names))])
    distances = squareform(pdist(means.reshape(len(names), -1))) / np.sqrt(means[0].size)
    tree = linkage(squareform(distances[np.ix_(index, index)], checks=False), "ward")
    cut = fcluster(tree, k, "maxclust")[first] - 1
    pictures = np.bincount(cut, weights=sizes, minlength=k)
    rank = np.argsort(np.argsort(-pictures, kind="stable"))
    return Cameras(tuple(map(str, names)), sizes, distances, domain=rank[cut])
