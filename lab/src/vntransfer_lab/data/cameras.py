"""Which pictures belong together: cameras by the overlap of masks, domains by mean masks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import whole

THRESHOLD = 0.3


def overlap_distances(masks: NDArray[np.bool_]) -> NDArray[np.float64]:
    """1 - (intersection / union) of all pairs of masks (n, pixels), shape (n, n)."""
    flat = masks.reshape(len(masks), -1).astype(np.float32)
    both = (flat @ flat.T).astype(np.float64)  # counts below 2^24: exact
    area = np.diag(both)
    union = area[:, None] + area - both
    return np.asarray(1 - np.divide(both, union, out=np.ones_like(both), where=union > 0))


def group_cameras(masks: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Group (0, 1, ...) of every picture by average linkage on the overlap of the masks.

    Groups are joined as long as their pictures share, on average over the pairs, at least
    1 - `THRESHOLD` of the union of their masks. A camera that is turned gives several groups.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(masks) < 2:
        return np.zeros(len(masks), dtype=np.intp)
    tree = linkage(squareform(overlap_distances(masks), checks=False), "average")
    return _by_first(fcluster(tree, THRESHOLD, "distance"))


def _by_first(labels: NDArray[np.integer]) -> NDArray[np.intp]:
    """Renumber groups 0, 1, ... in the order of their first member."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


@dataclass(frozen=True)
class CameraTree:
    """Hierarchical clustering of cameras."""

    names: tuple[str, ...]
    sizes: NDArray[np.intp]  # pictures of each camera
    distances: NDArray[np.float64]  # root mean square difference of the mean masks of two cameras
    linkage: NDArray[np.float64]  # Ward's tree in the form of scipy
    domain: NDArray[np.intp]  # of each camera, 0 to k - 1, the one with most pictures first


def weighted_ward(
    distances: NDArray[np.float64], weights: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Ward's clustering of points that weigh differently, in the form of scipy's ``linkage``.

    ``distances`` (n, n) are Euclidean. Equal to scipy's for weights of 1, and to repeating every
    point as often as it weighs.
    """
    n = len(weights)
    weight = np.asarray(weights, dtype=np.float64).copy()
    # squared increase of the spread within clusters by joining, times 2 as in scipy
    cost = 2 * np.outer(weight, weight) / np.add.outer(weight, weight) * distances**2
    np.fill_diagonal(cost, np.inf)
    label, members, tree = np.arange(n), np.ones(n), np.empty((n - 1, 4))
    for step in range(n - 1):
        i, j = sorted(np.unravel_index(np.argmin(cost), cost.shape))
        low, high = sorted((label[i], label[j]))
        tree[step] = low, high, np.sqrt(cost[i, j]), members[i] + members[j]
        joint = weight + weight[i] + weight[j]
        row = (weight + weight[i]) * cost[i] + (weight + weight[j]) * cost[j] - weight * cost[i, j]
        cost[i] = cost[:, i] = row / joint
        cost[j] = cost[:, j] = cost[i, i] = np.inf
        weight[i] += weight[j]
        members[i] += members[j]
        label[i] = n + step
    return tree


def camera_domains(masks: NDArray[np.bool_], camera: NDArray[np.generic], k: int = 5) -> CameraTree:
    """Domains of cameras: Ward's clustering of their mean masks, cut at k.

    A camera weighs as much as it has pictures: groups of a few odd pictures do not make domains.
    ``masks`` (n, height, width) and ``camera``, a name or number, are those of all pictures.
    """
    from scipy.cluster.hierarchy import fcluster
    from scipy.spatial.distance import pdist, squareform

    names, index, sizes = np.unique(camera, return_inverse=True, return_counts=True)
    whole("n_domains", k, minimum=2, maximum=len(names))
    means = np.stack([masks[index == c].mean(axis=0) for c in range(len(names))])
    distances = squareform(pdist(means.reshape(len(names), -1))) / np.sqrt(means[0].size)
    tree = weighted_ward(distances, sizes / sizes.mean())
    cut = fcluster(tree, k, "maxclust") - 1
    pictures = np.bincount(cut, weights=sizes, minlength=k)
    rank = np.empty(k, dtype=np.intp)
    rank[np.argsort(-pictures, kind="stable")] = np.arange(k)
    return CameraTree(
        names=tuple(map(str, names)),
        sizes=sizes,
        distances=distances,
        linkage=tree,
        domain=rank[cut],
    )
