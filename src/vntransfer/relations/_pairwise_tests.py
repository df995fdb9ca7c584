"""Whether places differ in how response depends on features: tests for every pair of domains."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np

from vntransfer.checks import number, whole
from vntransfer.display import counted, one_line, rounded, short
from vntransfer.errors import ArgumentError, DomainError, NumericalWarning
from vntransfer.holm import holm
from vntransfer.progress import report
from vntransfer.relations._pair_statistic import (
    Noise,
    RelationPair,
    Sample,
    Statistic,
    p_value,
    permuted,
    two_sided,
)
from vntransfer.relations._resampled_divergences import check_divergence
from vntransfer.relations._smoother import Basis, Matrix

Null = Literal["relation", "joint"]

LEAST = 10
"""Rows of a domain that a test needs at least."""

RIDGE = 1e-3
"""Added to the diagonals of covariances of standardized columns: the `auto` of `pairwise`."""


@dataclass(frozen=True)
class RelationTest:
    """P-values of all pairs of K domains.

    Parameters
    ----------
    names
        Of the domains.
    p_values
        Corrected for the number of pairs by Holm's method, (K, K), symmetric; 1 on the diagonal.
    raw_p_values
        Before the correction.
    statistics
        Observed statistic, (K, K).
    null, n_resamples
        What was tested, and with how many resamples.
    rows
        Rows of each domain that were used.
    """

    names: tuple[str, ...]
    p_values: Matrix
    raw_p_values: Matrix
    statistics: Matrix
    null: Null
    n_resamples: int
    rows: tuple[int, ...]

    def different(self, level: float = 0.05) -> list[tuple[str, str]]:
        """Pairs for which the null hypothesis is rejected, all together at this level."""
        return [
            (self.names[i], self.names[j])
            for i, j in combinations(range(len(self.names)), 2)
            if self.p_values[i, j] <= level
        ]

    def summary(self) -> str:
        """Say in words which pairs differ, the ones with the smallest p-values first."""
        pairs = list(combinations(range(len(self.names)), 2))
        pairs.sort(key=lambda pair: float(self.p_values[pair]))
        lines = [
            f"{len(self.different())} of {counted(len(pairs), 'pair')} of domains differ (level "
            f"5 %, corrected for their number; null hypothesis: {self.null})."
        ]
        for i, j in pairs[:10]:
            one, other = short(self.names[i]), short(self.names[j])
            lines.append(f"{one} and {other}: p = {rounded(float(self.p_values[i, j]), 2)}")
        if len(pairs) > 10:
            lines.append(f"{counted(len(pairs) - 10, 'more pair')} with larger p-values")
        return "\n".join(lines)

    def __repr__(self) -> str:
        K = len(self.names)
        differ = f"{len(self.different())} of {counted(K * (K - 1) // 2, 'pair')} differ"
        resamples = counted(self.n_resamples, "resample")
        return one_line(
            f"RelationTest of {counted(K, 'domain')}: {differ} (5 % level, {resamples})"
        )


def relation_test(
    domains: Any,
    *,
    null: Null = "relation",
    n_resamples: int = 999,
    random_state: Any = None,
    divergence: str = "conditional_von_neumann",
    statistic: Statistic = "aligned",
    noise: Noise = "wild",
    max_rows: int = 1000,
    ridge: float = RIDGE,
) -> RelationTest:
    """Test for every pair of domains whether response depends on features alike.

    The conditional divergence of two domains is not zero where y given x is the same but the inputs
    differ, so that its size alone proves nothing. Two null hypotheses are offered:

    "relation"
        E[y|x] is the same function in both, up to a constant level of each; inputs may differ, and
        so may the noise. One flexible fit to the rows of both, out-of-fold residuals, and responses
        y* = fit + residual* to each domain's own inputs, fitted again every time.
    "joint"
        Inputs and responses together are distributed alike: rows are exchanged between the two
        domains at random. Different inputs alone reject it.

    All columns are first standardized on the rows of all domains together.

    Parameters
    ----------
    domains
        A sequence or mapping of at least two (X, y), X (n, d) and y (n,), numbers.
    null
        The null hypothesis.
    n_resamples
        Per pair, at most: it stops when 50 have reached the observed statistic. The smallest
        p-value is 1/(n_resamples + 1), and Holm's correction multiplies it by the number of pairs:
        a warning says when no pair could be found different.
    random_state
        Seed or numpy Generator.
    divergence
        An id of `DIVERGENCES`; mean of both directions where it is not symmetric.
    statistic
        Of "relation": "aligned" compares each domain with the common fit on its own inputs (the
        divergence is then zero under the null hypothesis, and large values reject); "plain" is the
        divergence between the two domains, unusually large or small values reject, and some
        differences leave it as it is.
    noise
        Of "relation": "wild" gives each row its own residual with a random sign (noise may differ
        between domains and along the inputs, neither is tested); "own" draws from the residuals of
        the domain (noise may differ between domains); "common" draws from those of both, and noise
        of different size rejects, as does a relation that the fit cannot follow.
    max_rows
        Of a larger domain so many rows are taken at random.
    ridge
        Added to the diagonals of the standardized covariances.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = [scale * rng.standard_normal((200, 1)) for scale in (1.0, 1.5, 1.0)]
    >>> slopes = (2.0, 2.0, 1.0)
    >>> y = [b * v[:, 0] + rng.standard_normal(200) for b, v in zip(slopes, x)]
    >>> tested = relation_test(dict(zip("abc", zip(x, y))), random_state=0, n_resamples=199)
    >>> tested.different()
    [('a', 'c'), ('b', 'c')]
    """
    check_words(null=null, noise=noise, statistic=statistic)
    n_resamples = whole("n_resamples", n_resamples, minimum=1)
    max_rows = whole("max_rows", max_rows, minimum=LEAST)
    check_divergence(divergence)
    ridge = number("ridge", ridge, exclusive=True)
    rng = np.random.default_rng(random_state)
    names, rows = standardized(*_take(domains), max_rows, rng)
    pairs = list(combinations(range(len(names)), 2))
    if n_resamples + 1 < 20 * len(pairs):
        warnings.warn(
            f"n_resamples: with {n_resamples} the smallest corrected p-value of {len(pairs)} pairs "
            f"is {min(1.0, len(pairs) / (n_resamples + 1)):.2g}; at least {20 * len(pairs) - 1} "
            f"are needed to reject at 5 %",
            NumericalWarning,
            stacklevel=2,
        )
    options: dict[str, Any] = {"divergence": divergence, "ridge": ridge}
    samples: list[Sample] = []
    if null == "relation":
        basis = Basis.choose(np.vstack([_some(X, rng) for X, _ in rows]), rng)
        samples = [Sample.of(X, y, basis) for X, y in rows]
    K = len(names)
    observed, raw = np.zeros((K, K)), np.ones((K, K))
    for done, (i, j) in enumerate(pairs):
        report("pairs", done, len(pairs))
        judge = p_value
        if null == "joint":
            one, two = (np.column_stack(rows[k]) for k in (i, j))
            value, drawn = permuted(one, two, n_resamples, rng, **options)
        else:
            pair = RelationPair.of(
                (samples[i], samples[j]), basis, noise=noise, statistic=statistic, **options
            )
            value, drawn = pair.observed(), pair.resampled(n_resamples, rng)
            judge = two_sided if statistic == "plain" else p_value
        raw[i, j] = raw[j, i] = judge(value, drawn)
        observed[i, j] = observed[j, i] = value
    report("pairs", len(pairs), len(pairs))
    corrected = np.ones((K, K))
    upper = tuple(np.array(pairs).T)
    corrected[upper] = corrected[upper[::-1]] = holm(raw[upper])
    sizes = tuple(len(y) for _, y in rows)
    return RelationTest(tuple(names), corrected, raw, observed, null, n_resamples, sizes)


_WORDS = {"null": get_args(Null), "noise": get_args(Noise), "statistic": get_args(Statistic)}


def check_words(**given: Any) -> None:
    """Raise unless ``null``, ``noise`` and ``statistic``, those that are given, are known."""
    for name, value in given.items():
        if value not in _WORDS[name]:
            raise ArgumentError(f"{name}: expected one of {', '.join(_WORDS[name])}, got {value!r}")


def _some(X: Matrix, rng: np.random.Generator, most: int = 500) -> Matrix:
    """Rows of a domain for choosing knots and landmarks: no domain may outweigh the others."""
    return X if len(X) <= most else X[rng.choice(len(X), most, replace=False)]


def _take(domains: Any) -> tuple[list[str], list[tuple[Matrix, Matrix]]]:
    """Names and checked (X, y)."""
    if isinstance(domains, Mapping):
        names, given = [str(name) for name in domains], list(domains.values())
    elif isinstance(domains, Sequence):
        names, given = [str(k) for k in range(len(domains))], list(domains)
    else:
        raise DomainError(
            f"domains: expected a list or mapping of (X, y), got {type(domains).__name__}"
        )
    if len(given) < 2:
        raise DomainError(f"domains: expected at least two, got {len(given)}")
    if len(set(names)) < len(names):
        raise DomainError(f"domains: names must be written differently, got {names}")
    return names, [_rows(name, one) for name, one in zip(names, given, strict=True)]


def _rows(name: str, domain: Any) -> tuple[Matrix, Matrix]:
    where = f"domain {name!r}"
    if not isinstance(domain, tuple | list) or len(domain) != 2:
        raise DomainError(f"{where}: expected samples (X, y), got {type(domain).__name__}")
    try:
        X, y = (np.asarray(part, dtype=np.float64) for part in domain)
    except (TypeError, ValueError):
        raise DomainError(f"{where}: X and y must be numbers; encode texts first") from None
    if X.ndim != 2 or y.shape != X.shape[:1] or X.shape[1] == 0:
        raise DomainError(
            f"{where}: expected X (n, d) and y (n,), got shapes {X.shape} and {y.shape}"
        )
    if bad := int((~np.isfinite(X)).sum() + (~np.isfinite(y)).sum()):
        raise DomainError(f"{where}: {bad} values are not finite; drop or fill these rows")
    if len(y) < LEAST:
        raise DomainError(
            f"{where}: has {len(y)} rows, a test needs {LEAST}; leave it out or merge it"
        )
    return X, y


def standardized(
    names: list[str], rows: list[tuple[Matrix, Matrix]], max_rows: int, rng: np.random.Generator
) -> tuple[list[str], list[tuple[Matrix, Matrix]]]:
    """Rows with columns of mean 0 and variance 1 over all domains, at most so many of each."""
    if len(widths := {X.shape[1] for X, _ in rows}) > 1:
        raise DomainError(f"domains: numbers of columns differ: {sorted(widths)}")
    X, y = np.vstack([X for X, _ in rows]), np.concatenate([y for _, y in rows])
    spread = X.std(0)
    if not (np.isfinite(spread).all() and np.isfinite(y.std())):
        raise DomainError("domains: variances overflow float64; rescale the columns")
    varies = spread > 1e-12 * np.abs(X).max(0)
    if not varies.any():
        raise DomainError("domains: all columns of X are constant; give features that vary")
    if y.std() <= 1e-12 * np.abs(y).max():
        raise DomainError(f"domains: y is {y[0]:g} everywhere; a constant depends on nothing")
    middle, level, unit = X.mean(0)[varies], y.mean(), y.std()
    out = []
    for own, response in rows:
        whole = np.column_stack(
            ((own[:, varies] - middle) / spread[varies], (response - level) / unit)
        )
        kept = _some(whole, rng, max_rows)
        out.append((kept[:, :-1], kept[:, -1]))
    return names, out
