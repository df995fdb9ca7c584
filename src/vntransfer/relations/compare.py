"""From summaries of places to a `Relation`: divergences, intervals and tests of all pairs."""

from collections.abc import Sequence
from functools import reduce
from math import comb
from typing import Any

import numpy as np

from vntransfer.display import counted, listed
from vntransfer.errors import DataError
from vntransfer.progress import Progress
from vntransfer.relations._bootstrap import bootstrap, interval
from vntransfer.relations._domains import LEAST, MOST, read_domains
from vntransfer.relations._matrices import Totals, divergences, of_features
from vntransfer.relations._pairwise_tests import relation_test
from vntransfer.relations._smoother import Matrix
from vntransfer.relations.reduction import summarized
from vntransfer.relations.result import Interval, Relation
from vntransfer.relations.settings import RelateSettings
from vntransfer.relations.summaries import MomentBlocks, Summaries

FEWEST, MANY, CAP = 999, 19_999, 24_999

ALL_PAIRS, PAIRS = 1250, 200
"""Largest number of pairs that are all tested (limit of `CAP` resamples), and number otherwise."""


def compare(
    made: Summaries,
    settings: RelateSettings,
    *,
    notes: Sequence[str] = (),
    treatment: Sequence[tuple[str, str, str]] = (),
    progress: Progress | None = None,
) -> Relation:
    """Divergences, intervals and tests of all pairs of summarized places.

    ``notes`` and ``treatment`` are what is known of the table already.
    """
    names, response = list(made.domains), settings.response or "y"
    known = _check(made, settings.domain or "domain", response)
    inputs = [own.features() for own in made.domains.values()]
    joint = [made.domains[name].joint for name in known]
    unit, varies = _units(inputs, joint, response)
    features = [own.columns(varies[:-1]) for own in inputs]
    columns, unit = [own.columns(varies) for own in joint], unit[varies]
    divergence = settings.divergence
    bare = _measure(features, unit[:-1], of_features(divergence), settings.ridge)
    whole = _measure(columns, unit, divergence, settings.ridge)
    drawn = bootstrap(
        columns,
        unit,
        divergence,
        ridge=settings.ridge,
        n_resamples=settings.n_bootstrap,
        rng=np.random.default_rng([settings.random_state, 1]),
    )
    ends = interval(whole, drawn, settings.level)
    at, K = [names.index(name) for name in known], len(names)
    tested = [name for name in known if made.domains[name].labeled >= LEAST]
    pairs = comb(len(tested), 2)
    planned = planned_pairs(pairs, settings.n_resamples)
    n_resamples = settings.n_resamples or resamples_for(planned)
    raw = corrected = statistics = np.full((K, K), np.nan)
    if pairs:
        samples = {name: made.domains[name].reservoir.rows for name in tested}
        result = relation_test(
            {name: (Z[:, :-1], Z[:, -1]) for name, Z in samples.items()},
            n_resamples=n_resamples,
            n_pairs=planned,
            divergence=divergence,
            ridge=settings.ridge,
            random_state=settings.random_state,
            progress=progress,
        )
        places = [names.index(name) for name in tested]
        raw, corrected, statistics = (
            _spread(own, places, K)
            for own in (result.raw_p_values, result.p_values, result.statistics)
        )
    reduction = made.reduction
    constant = int((~varies).sum()) + (reduction.constant if reduction else 0)
    said = [*([reduction.note()] if reduction else ()), *notes, *_notes_on_responses(made, known)]
    if constant:
        said.append(f"{counted(constant, 'constant column')} ignored")
    said += _notes_on_tests(made, known, tested, planned, n_resamples)
    if not divergence.startswith("conditional_"):
        said.append(
            f"{divergence} compares the joint distribution of features and response; use "
            f"conditional_von_neumann to compare the response given the features"
        )
    return Relation(
        tuple(names),
        {name: (own.labeled, own.unlabeled) for name, own in made.domains.items()},
        _spread(whole, at, K),
        Interval(*(_spread(end, at, K) for end in ends)),
        bare,
        corrected,
        raw,
        statistics,
        settings.record(made.n_features, n_resamples)
        | ({"columns": len(reduction.mean), "components": reduction.kept} if reduction else {}),
        tuple(said),
        tuple(treatment),
    )


def summarize_domains(domains: Any, random_state: int) -> Summaries:
    """Summaries of domains given as (X, y)."""
    pairs = read_domains("data", domains)
    d = next(iter(pairs.values()))[0].shape[1]

    def fill(made: Summaries) -> Summaries:
        rng = np.random.default_rng(random_state)
        for name, (X, y) in pairs.items():
            made.add(np.zeros(len(y), dtype=np.intp), [name], np.vstack((X.T, y)), rng)
        return made

    return summarized(d, fill)


def _check(made: Summaries, domain: str, response: str) -> list[str]:
    """Places with responses; raise if there is nothing to compare."""
    if len(made.domains) < 2:
        found = next(iter(made.domains), "none")
        raise DataError(f"column {domain!r}: has one place, {found!r}; at least two are needed")
    small = [name for name, own in made.domains.items() if own.labeled + own.unlabeled < 2]
    if small:
        raise DataError(f"place {small[0]!r}: has one row; drop it or merge it with another")
    known = [name for name, own in made.domains.items() if own.labeled >= 2]
    if len(known) < 2:
        raise DataError(
            f"column {response!r}: is known in {len(known) or 'no'} place; at least two with "
            f"responses are needed to compare how it depends on the features"
        )
    return known


def _notes_on_responses(made: Summaries, known: list[str]) -> list[str]:
    """Return notes on places that lack responses."""
    some = {n: own for n, own in made.domains.items() if own.unlabeled}
    partly, bare = ([n for n in some if (n in known) == is_known] for is_known in (True, False))
    rows = sum(some[name].unlabeled for name in partly)
    kinds = {
        f"{rows:,} rows have no response; only their features are used": partly,
        "only one response, so compared by features alone": [n for n in bare if some[n].labeled],
        "without responses, so compared by features alone": [
            n for n in bare if not some[n].labeled
        ],
    }
    return [_about(names, said) for said, names in kinds.items() if names]


def _about(names: Sequence[str], said: str) -> str:
    """Name places in a note: "'a': said", "12 places (a, b, c and 9 more): said"."""
    if len(names) == 1:
        return f"{names[0]!r}: {said}"
    return f"{len(names)} places ({listed(names)}): {said}"


def _units(
    inputs: list[MomentBlocks], joint: list[MomentBlocks], response: str
) -> tuple[Matrix, Any]:
    """Return standard deviations over all rows, response last, and which columns vary."""
    features, whole = (
        reduce(Totals.merge, (own.total() for own in blocks if len(own)))
        for blocks in (inputs, joint)
    )
    variances = [np.diagonal(m.covariance()) for m in (features, whole)]
    sizes = [np.abs(m.mean) for m in (features, whole)]
    varies = variances[0] > (1e-12 * sizes[0]) ** 2
    if not varies.any():
        raise DataError("features: all columns are constant; give columns that vary")
    if variances[1][-1] <= (1e-12 * sizes[1][-1]) ** 2:
        raise DataError(
            f"column {response!r}: is {whole.mean[-1]:g} in all rows; give a response that varies"
        )
    return np.sqrt(np.append(variances[0], variances[1][-1])), np.append(varies, True)


def _spread(values: Matrix, kept: list[int], size: int) -> Matrix:
    """Put the matrix of some places into the matrix of all, with NaN elsewhere."""
    full = np.full((size, size), np.nan)
    full[np.ix_(kept, kept)] = values
    return full


def _measure(domains: list[MomentBlocks], unit: Matrix, divergence: str, ridge: float) -> Matrix:
    """Divergences of the covariances, in units of the columns."""
    eye = ridge * np.eye(len(unit))
    covariances = [own.total().covariance() / unit[:, None] / unit + eye for own in domains]
    return divergences(np.stack(covariances), divergence)


def planned_pairs(pairs: int, n_resamples: int | None) -> int:
    """Return how many pairs are tested: all, or as many as is quick or the resamples allow.

    Examples
    --------
    >>> [planned_pairs(*given) for given in ((1225, None), (19_900, None), (19_900, 9_999))]
    [1225, 200, 500]
    """
    return pairs if pairs <= ALL_PAIRS else min(pairs, max(PAIRS, ((n_resamples or 0) + 1) // 20))


def resamples_for(pairs: int) -> int:
    """Return the number of resamples with which so many pairs can be found different.

    Holm's correction is included, and some more resamples are added.

    Examples
    --------
    >>> [resamples_for(pairs) for pairs in (1, 190, 1225, 10_000)]
    [999, 7599, 24499, 24999]
    """
    least = 20 * pairs - 1  # the smallest p-value, 1/(n + 1), times the pairs is 5 %
    return min(CAP, max(FEWEST, least, min(2 * least + 1, MANY)))


def _notes_on_tests(
    made: Summaries, known: list[str], tested: list[str], planned: int, n_resamples: int
) -> list[str]:
    """Return notes on places that are tested partly or not at all, and on many pairs."""
    rows = {name: made.domains[name].labeled for name in known}
    kinds = {
        f"fewer than {LEAST} rows with a response, too few for the test; last in rankings": [
            name for name in known if name not in tested
        ],
        f"tested with {MOST:,} random rows each": [name for name in tested if rows[name] > MOST],
    }
    notes = [_about(names, said) for said, names in kinds.items() if names]
    pairs = comb(len(tested), 2)
    if planned < pairs:
        notes.append(
            f"{planned:,} of {pairs:,} pairs are tested: each place with those whose features are "
            f"most like its own. The choice uses no responses, so the p-values remain valid; they "
            f"are corrected for the {planned:,} tests. Set {20 * pairs - 1:,} resamples to test all"
        )
    if planned > 0.05 * (n_resamples + 1):
        notes.append(
            f"{n_resamples:,} resamples are too few for {planned:,} pairs: after the correction no "
            f"pair can be found different; use at least {20 * planned - 1:,} resamples, or fewer "
            f"places"
        )
    return notes
