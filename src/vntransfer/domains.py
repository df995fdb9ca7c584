"""Sources and targets: the rules of ``sample_domain``, stacking, balanced batches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from vntransfer.errors import ArgumentError, DomainError

TARGET = "target"
"""Name that `stack` gives to the target, and the default name of the target."""

Name = int | str
Rows = NDArray[np.intp]
Target = str | Sequence[str] | None
"""Which domain is the target, or which ones; None: the one named "target", if there is one."""


@dataclass(frozen=True)
class Groups:
    """Rows of every domain by its name, in the order of the names."""

    sources: dict[Name, Rows]
    targets: dict[Name, Rows] = field(default_factory=dict)

    @property
    def target(self) -> Rows | None:
        """Rows of the target; None if there is none."""
        return next(iter(self.targets.values()), None)

    @property
    def source_rows(self) -> Rows:
        """Rows of all sources, in their order in the table."""
        return np.sort(np.concatenate(list(self.sources.values())))

    def merged(self) -> "Groups":
        """Make all sources one, named 0."""
        return Groups({0: self.source_rows}, self.targets)


def group(
    sample_domain: Any,
    n_rows: int,
    *,
    target: Target = None,
    several: bool = False,
) -> Groups:
    """Sort rows by domain.

    ``sample_domain`` has one integer per row (0 and above: sources, below 0: targets), or one name
    per row; None makes all rows one source. With names ``target`` says which are targets (of
    ``several``, if that is allowed): an empty list none, None the one called "target".
    """
    wanted = target_names(target)
    if sample_domain is None:
        if wanted is not None:
            raise DomainError(f"target: {target!r:.80} needs sample_domain with one name per row")
        return Groups({0: np.arange(n_rows)})
    none = wanted == []
    ids = np.asarray(sample_domain)
    if ids.shape != (n_rows,):
        raise DomainError(
            f"sample_domain: expected one entry per row of X, shape {(n_rows,)}, got {ids.shape}"
        )
    if n_rows == 0:
        raise DomainError("sample_domain: empty; give at least one row of a source")
    if ids.dtype == object and all(type(i) is int for i in ids):  # pandas' integers with a mask
        ids = ids.astype(np.int64)
    if ids.dtype.kind in "iu":
        if wanted:
            raise DomainError(
                f"target: {target!r:.80} needs names; integers below 0 already mark the target"
            )
        targets = [int(i) for i in np.unique(ids)[::-1] if i < 0]  # -1, -2, ...
    else:
        ids = _names(ids)
        names = sorted(set(ids))
        if missing := [name for name in wanted or [] if name not in names]:
            raise DomainError(f"target: no domain {missing[0]!r}; sample_domain has {names}")
        targets = [name for name in names if name in (wanted or [TARGET])]
    if none and targets:
        raise DomainError(
            f"target: none was requested, but {targets} are among the domains; drop their rows"
        )
    if len(targets) > 1 and not several:
        raise DomainError(f"sample_domain: several targets {targets}; fit one model per target")
    return _split(ids, targets)


def target_names(target: Any) -> list[str] | None:
    """Return the names of the targets as a list, for one name or several."""
    if target is None:
        return None
    if isinstance(target, np.ndarray):
        target = target.tolist()
    several = not isinstance(target, str | bytes) and isinstance(target, Iterable)
    found = list(target) if several else [target]
    if bad := [name for name in found if not isinstance(name, str)]:
        raise DomainError(f"target: expected a name or a list of names, got {bad[0]!r:.80}")
    return found


def _names(ids: NDArray[Any]) -> NDArray[Any]:
    """Return names as objects; anything else raises an error."""
    if not all(isinstance(name, str) for name in ids.tolist()):
        seen = sorted({type(name).__name__ for name in ids.tolist()})
        raise DomainError(
            f"sample_domain: expected integers or names, got {', '.join(seen)}; convert them with "
            f".astype(int) or .astype(str)"
        )
    return ids.astype(object)


def _split(ids: NDArray[Any], targets: Sequence[Name]) -> Groups:
    rows = {name: np.flatnonzero(ids == name) for name in sorted(set(ids.tolist()))}
    own = {name: rows.pop(name) for name in targets}
    if not rows:
        raise DomainError(
            f"sample_domain: all {len(ids)} rows are the target's, {targets[0]!r}; give at least "
            f"one labeled source"
        )
    return Groups(rows, own)


def stack(
    sources: Mapping[str, tuple[Any, Any]], *, target: Any
) -> tuple[Any, NDArray[Any], NDArray[np.str_]]:
    """Stack named domains into the three arrays that ``fit`` takes.

    Parameters
    ----------
    sources
        Name -> (X, y), X (n, p) dense or sparse, y (n,) or (n, m).
    target
        X of the target; its rows are named "target".

    Returns
    -------
    X
        All rows; a CSR matrix if any of the domains is sparse.
    y
        Responses, NaN in the rows of the target; classes that are not numbers have None there.
    sample_domain
        Names.

    Examples
    --------
    >>> a, b = np.zeros((2, 3)), np.ones((1, 3))
    >>> X, y, domain = stack({"a": (a, [1, 2])}, target=b)
    >>> X.shape, y, domain
    ((3, 3), array([ 1.,  2., nan]), array(['a', 'a', 'target'], dtype='<U6'))
    """
    if not sources:
        raise DomainError("sources: empty; give at least one source {name: (X, y)}")
    if bad := [name for name in sources if not isinstance(name, str)]:
        raise DomainError(f"sources: names must be strings, got {bad[0]!r}; use str(name)")
    _check_columns({**{name: x for name, (x, _) in sources.items()}, TARGET: target})
    if TARGET in sources:
        raise DomainError(
            f"sources: the name {TARGET!r} is reserved for the target; rename this source"
        )
    blocks = {name: _matrix(name, x) for name, (x, _) in sources.items()}
    blocks[TARGET] = _matrix(TARGET, target)
    widths = {name: x.shape[1] for name, x in blocks.items()}
    if len(set(widths.values())) > 1:
        raise DomainError(f"sources, target: numbers of columns differ: {widths}")
    labels = [_labels(name, y, blocks[name].shape[0]) for name, (_, y) in sources.items()]
    if len({y.shape[1:] for y in labels}) > 1:
        raise DomainError(f"sources: shapes of y differ: {[y.shape for y in labels]}")
    classes = any(y.dtype == object for y in labels)
    unknown = np.full((blocks[TARGET].shape[0], *labels[0].shape[1:]), None if classes else np.nan)
    labels.append(unknown)
    names = np.repeat(list(blocks), [x.shape[0] for x in blocks.values()])
    matrices = list(blocks.values())
    if any(scipy.sparse.issparse(x) for x in matrices):
        return scipy.sparse.vstack(matrices, format="csr"), np.concatenate(labels), names
    return np.concatenate(matrices), np.concatenate(labels), names


def _check_columns(tables: Mapping[str, Any]) -> None:
    """Raise if tables with named columns do not have the same ones in the same order."""
    named = {name: list(x.columns) for name, x in tables.items() if hasattr(x, "columns")}
    for name, columns in named.items():
        first = next(iter(named))
        if columns != named[first]:
            raise DomainError(
                f"domain {name!r}: columns {columns} are not those of {first!r}, {named[first]}, "
                f"in the same order; select them, X[columns]"
            )


def _matrix(name: str, x: Any) -> Any:
    matrix = x if scipy.sparse.issparse(x) else np.asarray(x)
    if matrix.ndim != 2 or matrix.shape[0] == 0:
        raise DomainError(
            f"domain {name!r}: expected X with rows and columns, got shape {matrix.shape}"
        )
    return matrix


def _labels(name: str, y: Any, n_rows: int) -> NDArray[Any]:
    """Responses as numbers, or classes as they are."""
    labels = np.asarray(y)
    if labels.shape[:1] != (n_rows,):
        raise DomainError(f"domain {name!r}: X has {n_rows} rows but y has shape {labels.shape}")
    if labels.dtype.kind not in "biuf":
        return labels.astype(object)
    labels = labels.astype(np.float64)
    if bad := int((~np.isfinite(labels)).sum()):
        raise DomainError(
            f"domain {name!r}: y has {bad} values that are not finite; sources must be labeled, "
            f"drop these rows"
        )
    return labels


def balanced(
    rows: Sequence[Rows],
    size: int,
    *,
    random_state: int,
    weights: NDArray[np.float64] | None = None,
) -> Iterator[Rows]:
    """Endless batches (number of domains, size) to which every domain gives equally many rows.

    Each domain runs through its own rows in random order, again and again; a small
    one repeats more often. All domains start from the same seed: draws depend on a domain's own
    rows, not on its name or position, so permuting domains permutes the batches, and a domain
    given twice is drawn alike.
    With weights, one per row of the table, rows are drawn in proportion to them, with replacement.
    """
    if size < 1:
        raise ArgumentError(f"size: expected at least 1 row per domain, got {size}")
    if 0 in (counts := [len(own) for own in rows]):
        raise DomainError(f"rows: expected at least one of every domain, got {counts}")
    streams = [_cycle(own, size, np.random.default_rng(random_state), weights) for own in rows]
    while True:
        yield np.stack([next(stream) for stream in streams])


def _cycle(
    rows: Rows, size: int, rng: np.random.Generator, weights: NDArray[np.float64] | None
) -> Iterator[Rows]:
    """Endless pieces of one random order after another, or of draws in proportion to weights."""
    while weights is not None:
        yield rng.choice(rows, size, p=weights[rows] / weights[rows].sum())
    left = rows[:0]
    while True:
        while len(left) < size:
            left = np.concatenate((left, rng.permutation(rows)))
        yield left[:size]
        left = left[size:]
