"""Tests for every pair of domains of whether the response depends on the features alike."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from vntransfer.checks import number, whole
from vntransfer.display import counted, one_line, rounded, short
from vntransfer.errors import NumericalWarning
from vntransfer.holm import holm
from vntransfer.progress import Progress, silent
from vntransfer.relations._domains import read_tested, some, standardized
from vntransfer.relations._matrices import check_divergence, divergences, of_features
from vntransfer.relations._pair_statistic import (
    RelationPair,
    Sample,
    all_statistics,
    common_penalty,
    p_value,
)
from vntransfer.relations._smoother import Basis, Matrix
from vntransfer.relations.result import PairTests
from vntransfer.relations.settings import RIDGE


@dataclass(frozen=True)
class RelationTest(PairTests):
    """P-values of all pairs of K domains.

    Parameters
    ----------
    names
        Names of the domains.
    p_values
        P-values (K, K), symmetric, corrected for the number of tested pairs by Holm's method; 1 on
        the diagonal, NaN if a pair was not tested.
    raw_p_values
        P-values before the correction.
    statistics
        Observed statistics of all pairs, (K, K).
    n_resamples
        Number of resamples.
    rows
        Number of rows used of each domain.
    """

    names: tuple[str, ...]
    p_values: Matrix
    raw_p_values: Matrix
    statistics: Matrix
    n_resamples: int
    rows: tuple[int, ...]

    def summary(self) -> str:
        """Describe which pairs differ, smallest p-values first."""
        pairs = sorted(self.tested, key=lambda pair: float(self.p_values[pair]))
        lines = [
            f"{len(self.different())} of {counted(len(pairs), 'tested pair')} of domains differ "
            f"(level 5 %, corrected for their number)."
        ]
        for i, j in pairs[:10]:
            one, other = short(self.names[i]), short(self.names[j])
            lines.append(f"{one} and {other}: p = {rounded(float(self.p_values[i, j]), 2)}")
        if len(pairs) > 10:
            lines.append(f"{counted(len(pairs) - 10, 'more pair')} with larger p-values")
        return "\n".join(lines)

    def __repr__(self) -> str:
        K = len(self.names)
        differ = f"{len(self.different())} of {counted(len(self.tested), 'tested pair')} differ"
        resamples = counted(self.n_resamples, "resample")
        return one_line(
            f"RelationTest of {counted(K, 'domain')}: {differ} (5 % level, {resamples})"
        )


def relation_test(
    domains: Any,
    *,
    n_resamples: int = 999,
    n_pairs: int | None = None,
    random_state: Any = None,
    divergence: str = "conditional_von_neumann",
    ridge: float = RIDGE,
    progress: Progress | None = None,
) -> RelationTest:
    """Test for every pair of domains whether they share the relation of response and features.

    The conditional divergence of two domains is not zero if y given x is the same but the inputs
    differ, so its size alone proves nothing. The null hypothesis is that E[y|x] is the same
    function in both domains, up to a constant level of each. Inputs may differ, and so may the
    noise, between domains and along the inputs. The test fits one flexible model to the rows of
    both, adds leave-one-out residuals with random signs to the fit at each domain's own inputs, and
    fits again. The statistic is the divergence between each domain and the common fit on its own
    inputs.

    All columns are first standardized over the rows of all domains. At most 1000 random rows of
    each domain are used.

    Parameters
    ----------
    domains
        A sequence or mapping of at least two (X, y), X (n, d) and y (n,), numbers.
    n_resamples
        Largest number of resamples per pair; the test stops when 50 have reached the observed
        statistic. The smallest p-value is 1/(n_resamples + 1), and Holm's correction multiplies it
        by the number of pairs. A warning is given if no pair could reach significance.
    n_pairs
        Number of pairs to test: first each domain with the one whose features are most like its
        own, then with the second, and so on. The choice uses no responses, so the p-values of these
        pairs are valid, and Holm's method counts only them. All fits then share one penalty. None
        tests all pairs.
    random_state
        Seed or numpy Generator.
    divergence
        An id of `DIVERGENCES`; the mean of both directions if it is not symmetric.
    ridge
        Number added to the diagonals of the standardized covariances.
    progress
        Function called with "pairs", the number done and the total.

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
    check_divergence(divergence)
    n_resamples = whole("n_resamples", n_resamples, minimum=1)
    ridge = number("ridge", ridge, exclusive=True)
    rng = np.random.default_rng(random_state)
    domains = read_tested(domains)
    names, rows = list(domains), standardized(list(domains.values()), rng)
    K = len(names)
    pairs = list(combinations(range(K), 2))
    some_pairs = n_pairs is not None and whole("n_pairs", n_pairs, minimum=1) < len(pairs)
    if some_pairs:
        pairs = _most_alike(rows, of_features(divergence), ridge)[:n_pairs]
    if n_resamples + 1 < 20 * len(pairs):
        warnings.warn(
            f"n_resamples: with {n_resamples} the smallest corrected p-value of {len(pairs)} pairs "
            f"is {min(1.0, len(pairs) / (n_resamples + 1)):.2g}; at least {20 * len(pairs) - 1} "
            f"are needed to reject at 5 %",
            NumericalWarning,
            stacklevel=2,
        )
    options: dict[str, Any] = {"divergence": divergence, "ridge": ridge}
    # no domain may outweigh the others in the choice of knots and landmarks
    pooled = np.vstack([some(X, rng, 500) for X, _ in rows])
    # a pair follows no more functions than it has rows, and many pairs must be quick
    radial = min(200, 2 * len(pooled) // K) if some_pairs else 200
    basis = Basis.choose(pooled, rng, radial=radial)
    samples = [Sample.of(X, y, basis) for X, y in rows]
    observed = np.zeros((K, K))
    if some_pairs:
        options["penalty"] = common_penalty(samples, basis)
        observed = all_statistics(samples, basis, **options)
    raw = np.where(np.eye(K, dtype=bool), 1.0, np.nan)
    report = progress or silent
    for done, (i, j) in enumerate(pairs):
        report("pairs", done, len(pairs))
        pair = RelationPair.of(samples[i], samples[j], basis, **options)
        value = pair.observed()
        raw[i, j] = raw[j, i] = p_value(value, pair.resampled(n_resamples, rng))
        observed[i, j] = observed[j, i] = value
    report("pairs", len(pairs), len(pairs))
    corrected = raw.copy()
    upper = tuple(np.array(pairs).T)
    corrected[upper] = corrected[upper[::-1]] = holm(raw[upper])
    sizes = tuple(len(y) for _, y in rows)
    return RelationTest(tuple(names), corrected, raw, observed, n_resamples, sizes)


def _most_alike(
    rows: Sequence[tuple[Matrix, Matrix]], divergence: str, ridge: float
) -> list[tuple[int, int]]:
    """All pairs: each domain with the one of most similar features first, then with the second.

    Moments about the common middle are compared: features of another level are less alike.
    """
    eye = ridge * np.eye(rows[0][0].shape[1])
    stack = np.stack([X.T @ X / len(X) + eye for X, _ in rows])
    apart = divergences(stack, divergence)
    np.fill_diagonal(apart, -1.0)
    rank = apart.argsort(1, kind="stable").argsort(1, kind="stable")
    pairs = combinations(range(len(rows)), 2)
    return sorted(pairs, key=lambda pair: (min(rank[pair], rank[pair[::-1]]), apart[pair]))
