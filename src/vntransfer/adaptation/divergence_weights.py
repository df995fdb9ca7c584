"""Source weights from matrix divergences between each source and the target."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_array

from vntransfer.adaptation._estimator import need_target, one_per_row, refuse_huge_inputs
from vntransfer.adaptation._scaler import Scaler
from vntransfer.checks import number, one_of
from vntransfer.divergences import DIVERGENCES, pairwise
from vntransfer.domains import Groups, Name, Rows, Target, group
from vntransfer.errors import ArgumentError, DomainError
from vntransfer.moments import Moments

Matrix = Literal["second", "covariance"]
Prior = Literal["rows", "equal"]
Table = NDArray[np.float64]

RIDGE = 0.01
"""Added to the diagonals of all matrices, relative to their mean diagonal entry."""

NOISE = 1e-7
"""Differences between divergences below this (absolute or relative) are rounding."""

COMPONENTS = 20
"""Leading principal components that are compared by default."""

WIDE = 2000
"""Columns up to which components are found from the full covariance of the inputs."""


def source_weights(
    X: Any,
    y: Any = None,
    sample_domain: Any = None,
    *,
    target: Target = None,
    sharpness: float = 1.0,
    divergence: str = "jeffreys",
    prior: Prior = "rows",
    labeled: Any = None,
) -> dict[Name, float]:
    """Weight sources by their closeness to the target, without any labels.

    With z the 20 leading principal components of the standardized inputs, on one common scale, M_i
    the mean of v v' over source i, v = [1, z], and ε 1 % of the mean diagonal entry of all M::

        D_i = J(M_i + εI : M_t + εI),   w_i ∝ n_i exp(-a (D_i - min D) / median(D - min D))

    so a = 0 is plain pooling. The unit of D is its own median: the weights show which source is
    *nearer* than the others, not whether it is near. The sharpness is a choice
    (`WeightedSourceRegressor` makes it by leave-one-source-out). Differences within rounding count
    as equal; if the median is 0 (most sources are equally near) the mean of the positive
    differences takes its place.

    Parameters
    ----------
    X
        Rows of all domains (n, p), dense or sparse; sparse rows stay sparse.
    y
        Responses; only read for a conditional divergence, and then for the sources and the rows
        in ``labeled``.
    sample_domain
        Domain of each row: integers (0 and above are sources, below 0 targets) or names.
    target
        With names: the target; "target" if not given.
    sharpness
        a.
    divergence
        An id of `DIVERGENCES`; of an asymmetric one the source is the first argument.
    prior
        "rows": n_i as above. "equal": without n_i, a = 0 gives all sources the same weight.
    labeled
        For a conditional divergence: the few rows of the target whose y is known, as indices or a
        mask. A handful is too few; docs/weights.md has numbers.

    Returns
    -------
    dict
        Source -> weight; they sum to one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(np.repeat([0.0, 1.0, 5.0, 1.2], 50)[:, None], 1.0, size=(200, 3))
    >>> weights = source_weights(X, sample_domain=np.repeat([0, 1, 2, -1], 50), sharpness=3.0)
    >>> {name: round(weight, 2) for name, weight in weights.items()}
    {0: 0.05, 1: 0.95, 2: 0.0}
    """
    X = check_array(X, accept_sparse="csr", dtype=np.float64)
    refuse_huge_inputs(X)
    groups = group(sample_domain, X.shape[0], target=target)
    if len(groups.sources) == 1:
        return dict.fromkeys(groups.sources, 1.0)
    a = number("sharpness", sharpness)
    table = divergence_table(X, need_target(groups), y, divergence=divergence, labeled=labeled)
    weights = sharpen(table[:-1, -1], a, masses(groups, prior))
    return dict(zip(groups.sources, weights.tolist(), strict=True))


def masses(groups: Groups, prior: Prior, weights: NDArray[np.float64] | None = None) -> Table:
    """Weights of the sources before any divergence is seen: their rows' total weight, or one."""
    one_of("prior", prior, Prior)
    own = [
        float(len(rows) if weights is None else weights[rows].sum())
        for rows in groups.sources.values()
    ]
    return np.array(own) if prior == "rows" else (np.array(own) > 0).astype(float)


def sharpen(D: Table, a: float, mass: Table) -> Table:
    """Turn divergences (K,) into weights (K,) of sum one."""
    if len(D) == 1:
        return np.ones(1)
    seen = mass > 0
    gap = D - D[seen].min()
    gap[gap <= NOISE * np.maximum(1.0, D)] = 0.0
    own = gap[seen]
    unit = float(np.median(own)) or (float(own[own > 0].mean()) if own.any() else 1.0)
    w = mass * np.exp(-a * gap / unit)
    return np.asarray(w / w.sum())


def divergence_table(
    X: Any,
    groups: Groups,
    y: Any = None,
    *,
    divergence: str = "jeffreys",
    moments: Matrix = "second",
    components: int = COMPONENTS,
    labeled: Any = None,
) -> Table:
    """Divergences between all sources and, in the last row and column, the target if any.

    They compare second moments of [1, z], which see means and covariances, or covariances of z, the
    leading principal components. Other arguments are those of `source_weights`.
    """
    one_of("divergence", divergence, DIVERGENCES)
    one_of("moments", moments, Matrix)
    v = embed(X, components)
    domains = [*groups.sources.values(), *([] if groups.target is None else [groups.target])]
    n_response = 1
    if DIVERGENCES[divergence].conditional:
        domains[-1] = known = _labeled(labeled, groups, divergence, len(v))
        responses = _responses(y, groups, known, len(v))
        v, n_response = np.hstack((v, responses)), responses.shape[1]
    elif labeled is not None:
        raise ArgumentError(
            f"labeled: {divergence!r} does not use labels; choose a conditional divergence"
        )
    if moments == "covariance" and min(map(len, domains)) < 2:
        raise DomainError(
            f"sample_domain: a covariance needs two rows of every domain, got "
            f"{[len(rows) for rows in domains]}; use moments='second'"
        )
    return divergences_between(_matrices(v, domains, moments), divergence, n_response)


def divergences_between(
    matrices: Sequence[torch.Tensor], divergence: str = "jeffreys", n_response: int = 1
) -> Table:
    """Divergences between all matrices, with a ridge relative to their mean diagonal entry."""
    return np.asarray(pairwise(_ridged(matrices), divergence=divergence, n_response=n_response))


def input_moments(X: Any, groups: Groups) -> Table:
    """Give the matrices that `divergence_table` compares by default, (domains, d, d)."""
    domains = [*groups.sources.values(), *groups.targets.values()]
    return _ridged(_matrices(embed(X, COMPONENTS), domains, "second")).numpy()


def _ridged(matrices: Sequence[torch.Tensor]) -> torch.Tensor:
    M = torch.stack(tuple(matrices))
    return M + RIDGE * float(M.diagonal(dim1=1, dim2=2).mean()) * torch.eye(M.shape[-1]).to(M)


def _matrices(
    v: NDArray[np.float64], domains: Sequence[Rows], moments: Matrix
) -> list[torch.Tensor]:
    if moments == "second":
        v = np.hstack((np.ones((len(v), 1)), v))
    made = [Moments.from_samples(v[rows]) for rows in domains]
    if moments == "covariance":
        return [own.covariance_tensor() for own in made]
    return [own.scatter / own.count + torch.outer(own.mean, own.mean) for own in made]


def embed(X: Any, components: int) -> NDArray[np.float64]:
    """Leading principal components (n, d) of standardized columns, of mean variance one.

    A common factor, not whitening: directions in which the inputs hardly vary count little.
    """
    n, p = X.shape
    scaler = Scaler.fit(X)
    if scipy.sparse.issparse(X):
        scaled = X @ scipy.sparse.diags_array(1 / scaler.scale)  # PCA centers on the fly
    else:
        scaled = (X - scaler.mean) / scaler.scale
        if p <= components:
            return np.asarray(scaled)
    d = min(components, n - 1, p)
    if d < 1:
        return np.zeros((n, 1))
    solver = "covariance_eigh" if p <= WIDE else "arpack"
    z = PCA(d, svd_solver=solver, random_state=0).fit_transform(scaled)
    spread = float(np.sqrt(z.var(0).mean()))
    return np.asarray(z / spread if spread > 0 else z)


def _labeled(labeled: Any, groups: Groups, divergence: str, n: int) -> Rows:
    if labeled is None or groups.target is None:
        raise ArgumentError(
            f"divergence: {divergence!r} compares responses and needs rows of the target whose y "
            f"is known: labeled=..., as indices or a mask"
        )
    given = np.asarray(labeled)
    if given.dtype == bool and given.shape != (n,):
        raise DomainError(f"labeled: expected a mask of {n} rows, got shape {given.shape}")
    rows = np.flatnonzero(given) if given.dtype == bool else given.astype(np.intp).ravel()
    if len(rows) == 0 or not np.isin(rows, groups.target).all():
        raise DomainError(
            f"labeled: expected at least one row, all of them the target's; got {len(rows)}, of "
            f"which {int((~np.isin(rows, groups.target)).sum())} are not"
        )
    return np.asarray(rows)


def _responses(y: Any, groups: Groups, known: Rows, n: int) -> NDArray[np.float64]:
    """Standardized responses (n, m); zero where they must not be read."""
    if y is None:
        raise ArgumentError("y: a conditional divergence needs it, got None")
    rows = np.concatenate((groups.source_rows, known))
    given = one_per_row(y, n)[rows]
    own = check_array(given, ensure_2d=False, dtype=np.float64, input_name="y")
    own = own.reshape(len(rows), -1)
    scaler = Scaler.fit(own[: -len(known)])
    out = np.zeros((n, own.shape[1]))
    out[rows] = (own - scaler.mean) / scaler.scale
    return out
