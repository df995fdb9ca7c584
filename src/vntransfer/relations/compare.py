"""From summaries of places to a `Relation`: divergences, intervals and tests of all pairs."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import torch

from vntransfer.errors import DataError, DomainError
from vntransfer.relations._bootstrap import (
    bootstrap,
    divergences,
    interval,
    is_conditional,
    of_features,
)
from vntransfer.relations._pairwise_tests import LEAST, relation_test
from vntransfer.relations._smoother import Matrix
from vntransfer.relations.result import Interval, Relation, spread
from vntransfer.relations.summaries import RESERVOIR, MomentBlocks, Summaries, pooled

FEWEST, MANY, CAP = 999, 19_999, 24_999


def compare(
    made: Summaries,
    settings: dict[str, Any],
    n_resamples: int | None,
    notes: list[str],
    treatment: list[tuple[str, str, str]],
) -> Relation:
    """Divergences, intervals and tests of all pairs of summarized places.

    Parameters
    ----------
    made
        The places.
    settings
        Checked options of `vntransfer.relate`, by name.
    n_resamples
        For the tests; None: what the number of pairs asks for.
    notes, treatment
        What is known already; more notes are added.
    """
    names = list(made.domains)
    known = _check(made, settings["domain"], settings["response"], notes)
    inputs = [own.features() for _, own in made.items()]
    joint = [made.domains[name].joint for name in known]
    unit, varies = _units(inputs, joint, settings["response"])
    if not varies.all():
        notes.append(f"{int((~varies).sum())} columns of numbers are constant: left out")
    both = np.append(varies, True)
    conditional = settings["divergence"]
    rng = np.random.default_rng([settings["random_state"], 1])
    options = {k: settings[k] for k in ("ridge", "level", "n_bootstrap")} | {"rng": rng}
    bare, bare_ends = _measure(
        [own.columns(varies) for own in inputs],
        unit[:-1][varies],
        of_features(conditional),
        **options,
    )
    whole, ends = _measure([own.columns(both) for own in joint], unit[both], conditional, **options)
    at, K = [names.index(name) for name in known], len(names)
    raw, corrected = _test(made, known, settings, n_resamples, notes)
    if not is_conditional(conditional):
        notes.append(
            f"{conditional} compares features and response together, not the response given the "
            f"features; conditional_von_neumann does"
        )
    return Relation(
        tuple(names),
        {name: (own.labeled, own.unlabeled) for name, own in made.items()},
        spread(whole, at, K),
        Interval(*(spread(end, at, K) for end in ends)),
        bare,
        Interval(*bare_ends),
        corrected,
        raw,
        settings,
        tuple(notes),
        tuple(treatment),
    )


def summarize_domains(domains: Any, random_state: int) -> Summaries:
    """Summaries of domains given as (X, y)."""
    if not isinstance(domains, Mapping | Sequence) or isinstance(domains, str):
        raise DomainError(
            f"data: expected domains (X, y), or a table with domain= and response=, got "
            f"{type(domains).__name__}"
        )
    named = domains if isinstance(domains, Mapping) else dict(enumerate(domains))
    made: Summaries | None = None
    rng = np.random.default_rng(random_state)
    for name, pair in named.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise DomainError(
                f"domain {name!r}: expected (X, y), y None if unknown, got {type(pair).__name__}; "
                f"a table needs domain= and response="
            )
        if made is not None and str(name) in made.domains:
            raise DomainError(f"domain {name!r}: another one is written like it; rename it")
        Z = _rows(str(name), *pair)
        made = made or Summaries(len(Z) - 1)
        if len(Z) - 1 != made.n_features:
            raise DomainError(
                f"domain {name!r}: has {len(Z) - 1} columns, the first one {made.n_features}"
            )
        made.add(np.zeros(Z.shape[1], dtype=np.intp), [str(name)], Z, rng)
    if made is None:
        raise DomainError("data: empty; give at least two domains (X, y)")
    return made


def _rows(name: str, X: Any, y: Any) -> Matrix:
    try:
        x = np.asarray(X, dtype=np.float64)
        response = np.full(len(x), np.nan) if y is None else np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise DomainError(f"domain {name!r}: X and y must be numbers; encode texts first") from None
    if x.ndim != 2 or 0 in x.shape or response.shape != x.shape[:1]:
        raise DomainError(
            f"domain {name!r}: expected X (n, d) and y (n,), got {x.shape} and {response.shape}"
        )
    if bad := int((~np.isfinite(x)).sum() + np.isinf(response).sum()):
        raise DomainError(f"domain {name!r}: {bad} values are not finite; drop or fill these rows")
    return np.vstack((x.T, response))


def _check(made: Summaries, domain: str, response: str, notes: list[str]) -> list[str]:
    """Places with responses; raise if there is nothing to compare."""
    if len(made.domains) < 2:
        found = next(iter(made.domains), "none")
        raise DataError(f"column {domain!r}: has one place, {found!r}; at least two are needed")
    small = [name for name, own in made.items() if own.labeled + own.unlabeled < 2]
    if small:
        raise DataError(f"place {small[0]!r}: has one row; drop it or merge it with another")
    known = [name for name, own in made.items() if own.labeled >= 2]
    if len(known) < 2:
        raise DataError(
            f"column {response!r}: is known in {len(known) or 'no'} place; at least two with "
            f"responses are needed to compare how it depends on the features"
        )
    for name, own in made.items():
        if own.unlabeled and name in known:
            notes.append(
                f"{own.unlabeled:,} of {own.labeled + own.unlabeled:,} rows of {name!r} have no "
                f"response: they count for the features alone"
            )
        elif own.unlabeled:
            has = "has one response, which is too few" if own.labeled else "has no responses"
            notes.append(
                f"{name!r} {has}: how they depend on the features is not known there, "
                f"and it is placed by its features alone"
            )
    return known


def _units(
    inputs: list[MomentBlocks], joint: list[MomentBlocks], response: str
) -> tuple[Matrix, Any]:
    """Give standard deviations over all rows, response last, and which features vary."""
    features, whole = pooled(inputs), pooled(joint)
    variances = [np.diagonal(m.covariance()) for m in (features, whole)]
    sizes = [np.abs(m.mean.numpy()) for m in (features, whole)]
    varies = variances[0] > (1e-12 * sizes[0]) ** 2
    if not varies.any():
        raise DataError("features: all columns are constant; give some that vary")
    if variances[1][-1] <= (1e-12 * sizes[1][-1]) ** 2:
        raise DataError(
            f"column {response!r}: is {whole.mean[-1]:g} in all rows; a constant depends on nothing"
        )
    return np.sqrt(np.append(variances[0], variances[1][-1])), varies


def _measure(
    domains: list[MomentBlocks],
    unit: Matrix,
    divergence: str,
    *,
    ridge: float,
    level: float,
    n_bootstrap: int,
    rng: np.random.Generator,
) -> tuple[Matrix, tuple[Matrix, Matrix]]:
    """Divergences and the ends of their intervals."""
    eye = ridge * np.eye(len(unit))
    covariances = [own.total().covariance() / unit[:, None] / unit + eye for own in domains]
    observed = divergences(torch.from_numpy(np.stack(covariances)), divergence)
    drawn = bootstrap(domains, unit, divergence, ridge=ridge, n_resamples=n_bootstrap, rng=rng)
    return observed, interval(observed, drawn, level)


def resamples_for(pairs: int) -> int:
    """Resamples with which so many pairs can be told apart after Holm's correction, and some more.

    Examples
    --------
    >>> [resamples_for(pairs) for pairs in (1, 190, 1225, 10_000)]
    [999, 7599, 24499, 24999]
    """
    least = 20 * pairs - 1  # the smallest p-value, 1/(n + 1), times the pairs is 5 %
    return min(CAP, max(FEWEST, least, min(2 * least + 1, MANY)))


def _test(
    made: Summaries,
    known: list[str],
    settings: dict[str, Any],
    n_resamples: int | None,
    notes: list[str],
) -> tuple[Matrix, Matrix]:
    """Raw and corrected p-values of the places with enough rows."""
    names = list(made.domains)
    tested = [name for name in known if made.domains[name].labeled >= LEAST]
    empty = np.full((len(names), len(names)), np.nan)
    for name in known:
        if name not in tested:
            few = made.domains[name].labeled
            notes.append(f"{name!r} has {few} rows with a response: too few to be tested")
    pairs = len(list(combinations(tested, 2)))
    settings["n_resamples"] = resamples_for(pairs) if n_resamples is None else n_resamples
    if not pairs:
        return empty, empty
    rows = {name: made.domains[name].reservoir.rows for name in tested}
    for name in tested:
        if made.domains[name].labeled > RESERVOIR:
            notes.append(f"{name!r} is tested by {RESERVOIR:,} random rows")
    if pairs > 0.05 * (settings["n_resamples"] + 1):
        notes.append(
            f"{pairs:,} pairs and {settings['n_resamples']:,} resamples: after the correction for "
            f"so many pairs none can be found different; take at least {20 * pairs - 1:,} "
            f"resamples, or fewer places"
        )
    keys = ("null", "noise", "divergence", "ridge", "random_state")
    result = relation_test(
        {name: (own[:, :-1], own[:, -1]) for name, own in rows.items()},
        n_resamples=settings["n_resamples"],
        max_rows=RESERVOIR,
        **{key: settings[key] for key in keys},
    )
    at = [names.index(name) for name in tested]
    return tuple(spread(p, at, len(names)) for p in (result.raw_p_values, result.p_values))  # type: ignore[return-value]
