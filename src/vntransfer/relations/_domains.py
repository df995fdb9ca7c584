"""Domains that are given as arrays: named, checked, standardized."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vntransfer.errors import DomainError
from vntransfer.relations._smoother import Matrix

LEAST = 10
"""Smallest number of rows of a domain for a test."""

MOST = 1000
"""Largest number of rows of a domain that a test uses; more rows only reveal tiny misfits."""


def read_domains(option: str, domains: Any) -> dict[str, tuple[Matrix, Matrix]]:
    """Check domains, by name in their order; those of a sequence are named by their places."""
    if not isinstance(domains, Mapping | Sequence) or isinstance(domains, str | bytes):
        raise DomainError(
            f"{option}: expected a mapping or list of domains (X, y), got "
            f"{type(domains).__name__}; `relate` takes tables with domain= and response="
        )
    pairs = domains if isinstance(domains, Mapping) else dict(enumerate(domains))
    found = {str(name): pair for name, pair in pairs.items()}
    if len(found) < len(pairs):
        raise DomainError(f"{option}: two names are the same as text in {list(pairs)}; rename one")
    if len(found) < 2:
        raise DomainError(f"{option}: expected at least two domains (X, y), got {len(found)}")
    read = {name: _read_pair(name, pair) for name, pair in found.items()}
    if len(widths := {X.shape[1] for X, _ in read.values()}) > 1:
        raise DomainError(f"{option}: numbers of columns differ: {sorted(widths)}")
    return read


def _read_pair(name: str, pair: Any) -> tuple[Matrix, Matrix]:
    """Check samples X (n, d) and y (n,), all NaN if y is None; single values of y may be NaN."""
    where = f"domain {name!r}"
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise DomainError(
            f"{where}: expected samples (X, y), got {type(pair).__name__}; a table needs domain= "
            f"and response="
        )
    X, y = pair
    try:
        x = np.asarray(X, dtype=np.float64)
        response = np.full(len(x), np.nan) if y is None else np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise DomainError(f"{where}: X and y must be numbers; encode text first") from None
    if x.ndim != 2 or 0 in x.shape or response.shape != x.shape[:1]:
        raise DomainError(
            f"{where}: expected X (n, d) and y (n,), got shapes {x.shape} and {response.shape}"
        )
    _refuse_values(where, int((~np.isfinite(x)).sum() + np.isinf(response).sum()))
    return x, response


def _refuse_values(where: str, bad: int) -> None:
    """Raise if so many values of a domain are not finite."""
    if bad:
        raise DomainError(f"{where}: {bad} values are not finite; drop or fill these rows")


def read_tested(domains: Any) -> dict[str, tuple[Matrix, Matrix]]:
    """Check domains for a test: all responses are known, and there are enough rows."""
    found = read_domains("domains", domains)
    for name, (_, y) in found.items():
        _refuse_values(f"domain {name!r}", int(np.isnan(y).sum()))
        if len(y) < LEAST:
            raise DomainError(
                f"domain {name!r}: has {len(y)} rows, a test needs {LEAST}; leave it out or merge "
                f"it with another"
            )
    return found


def some(X: Matrix, rng: np.random.Generator, most: int) -> Matrix:
    """At most so many rows, chosen at random."""
    return X if len(X) <= most else X[rng.choice(len(X), most, replace=False)]


def standardized(
    rows: Sequence[tuple[Matrix, Matrix]], rng: np.random.Generator
) -> list[tuple[Matrix, Matrix]]:
    """Rows with columns of mean 0 and variance 1 over all domains, at most `MOST` of each."""
    X, y = np.vstack([X for X, _ in rows]), np.concatenate([y for _, y in rows])
    spread = X.std(0)
    if not (np.isfinite(spread).all() and np.isfinite(y.std())):
        raise DomainError("domains: variances overflow float64; rescale the columns")
    varies = spread > 1e-12 * np.abs(X).max(0)
    if not varies.any():
        raise DomainError("domains: all columns of X are constant; give features that vary")
    if y.std() <= 1e-12 * np.abs(y).max():
        raise DomainError(f"domains: y is {y[0]:g} everywhere; give a response that varies")
    middle, level, unit = X.mean(0)[varies], y.mean(), y.std()
    out = []
    for own, response in rows:
        whole = np.column_stack(
            ((own[:, varies] - middle) / spread[varies], (response - level) / unit)
        )
        kept = some(whole, rng, MOST)
        out.append((kept[:, :-1], kept[:, -1]))
    return out
