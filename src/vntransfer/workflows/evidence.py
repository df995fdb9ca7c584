"""One set of numbers about a target, and every sentence that follows from them.

Pages, summaries and commands show these numbers and these sentences and nothing else, so that no
warning can contradict another one, or a number beside it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from vntransfer.checks import Floats
from vntransfer.display import listed, percent, rounded, short
from vntransfer.storage.record import Score
from vntransfer.workflows.target_place import TargetPlace

REFERENCE = "source_only"
"""What every method is compared with: a plain ensemble of networks."""

CONSTANT = "constant"
"""The median of the other sources."""

SMALL = 30
"""Rows with which a held-out source, or the rest, counts half as much as a large one."""

SUPPORT = 0.5
"""Sum over sources of n/(n + 30) m/(m + 30) below which the expected error says little."""

CLEARLY = 1.2
"""Times the error of a constant above which the model is called worse."""

EXACT = 0.01
"""Times the error of a constant below which the model is too good to be true."""

WILD = 3.0
"""Errors above so many times the typical one count as this; their sources are named."""

UNUSUAL_SHARE = 0.05
"""Share of rows on which models disagree unusually by definition."""

EVEN = 0.05
"""Weights that differ by less (total variation) are shown as equal."""


class Caution(NamedTuple):
    """A sentence for the reader; ``first``: nothing may be said before it."""

    code: str
    text: str
    first: bool = False


class Comparison(NamedTuple):
    """How much higher the expected error of one method is than that of another."""

    difference: float
    standard_error: float

    @property
    def clear(self) -> bool:
        """Whether it is higher by more than a standard error."""
        return self.difference > max(self.standard_error, 0.0)


@dataclass(frozen=True)
class Evidence:
    """Errors on held-out sources, what each source counts, and where the target lies.

    Held-out source v counts in proportion to r_v n_v / (n_v + 30) m_v / (m_v + 30), with r_v its
    resemblance to the target, n_v its rows and m_v those of the other sources. The expected error
    is the mean of min(e_v, 3 m) by these weights, with e_v the errors and m their weighted median:
    one wild source cannot decide it.

    Examples
    --------
    >>> errors = {"ridge": {"a": 0.07, "b": 0.08, "c": 0.06, "d": 4.7}}
    >>> found = Evidence("ridge", errors)
    >>> round(found.expected()[0], 3), found.bounds(), found.wild()
    (0.109, (0.06, 4.7), {'d': 4.7})
    """

    method: str  # as asked for
    # method -> source -> mean absolute error on that source, predicted without its responses
    errors: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)
    source_weights: Mapping[str, float] = field(default_factory=dict)  # in the final prediction
    shares: Mapping[str, float] = field(default_factory=dict)  # of candidates, if several
    source_rows: Mapping[str, int] = field(default_factory=dict)
    resemblance: Mapping[str, float] = field(default_factory=dict)  # 1: the nearest source
    place: TargetPlace | None = None  # where the target lies; None: not measured

    @property
    def used(self) -> list[str]:
        """Methods that have a share in the final prediction."""
        return [name for name, share in self.shares.items() if share > 0] or [self.method]

    def counts(self, method: str | None = None) -> dict[str, float]:
        """How much each held-out source counts in the expected error; the sum is one."""
        return held_out_weights(
            self.errors.get(method or self.method, {}), self.resemblance, self.source_rows
        )

    def expected(self, method: str | None = None) -> tuple[float, float]:
        """Give the expected error and its standard error; NaN if no source was held out."""
        return _mean(*self._limited(method))

    def _limited(self, method: str | None) -> tuple[Floats, Floats]:
        e, w = self._errors_and_counts(method)
        if not len(e) or not np.isfinite(e).all():  # a candidate that failed stays out of reach
            return e, w
        return np.minimum(e, WILD * _median(e, w)), w

    def _errors_and_counts(self, method: str | None = None) -> tuple[Floats, Floats]:
        own, weights = self.errors.get(method or self.method, {}), self.counts(method)
        return np.array([*own.values()], dtype=np.float64), np.array(
            [weights[name] for name in own]
        )

    def bounds(self) -> tuple[float, float]:
        """Smallest and largest error on a held-out source."""
        own = self.errors.get(self.method, {})
        return (min(own.values()), max(own.values())) if own else (np.nan, np.nan)

    def wild(self) -> dict[str, float]:
        """Name sources whose error is above three times the typical one, the largest first."""
        if not (own := self.errors.get(self.method, {})):
            return {}
        limit = WILD * _median(*self._errors_and_counts())
        over = [name for name in own if own[name] > limit]
        return {name: own[name] for name in sorted(over, key=lambda name: -own[name])}

    def ranked(self) -> list[str]:
        """Methods by their expected error: the one asked for first, the constant last."""
        first = [name for name in (self.method,) if name in self.errors]
        last = [name for name in (CONSTANT,) if name in self.errors and name not in first]
        others = set(self.errors) - {*first, *last}
        return [*first, *sorted(others, key=lambda name: (self.expected(name)[0], name)), *last]

    def compared(self, other: str) -> Comparison | None:
        """Compare the expected error with that of another method on the same sources."""
        if set(self.errors.get(other, {})) != set(self.errors.get(self.method, {})):
            return None
        (own, w), (values, _) = self._limited(None), self._limited(other)
        theirs = dict(zip(self.errors[other], values, strict=True))
        gaps = own - np.array([theirs[name] for name in self.errors[self.method]])
        return Comparison(*_mean(gaps, w)) if np.isfinite(gaps).all() else None

    def better(self) -> str | None:
        """Name the method with the lowest error if it is clearly below, and below a constant's.

        Beside a blend of candidates that is the reference alone: the best of many looks better than
        it is.
        """
        names = (REFERENCE,) if self.shares else tuple(self.errors)
        found = {}
        for name in names:
            gap = None if name in (*self.used, CONSTANT) else self.compared(name)
            if gap is not None and gap.clear:
                found[name] = self.expected(name)[0]
        if CONSTANT in self.errors:
            least = self.expected(CONSTANT)[0]
            found = {name: error for name, error in found.items() if error < least}
        return min(found, key=lambda name: found[name], default=None)

    @property
    def unlike(self) -> bool:
        """Whether the target resembles no source."""
        return self.place is not None and self.place.unlike

    @property
    def few_rows(self) -> bool:
        """Whether each held-out source, or the rest that predicts it, has few rows."""
        return bool(self.source_rows) and sum(_supports(self.source_rows).values()) < SUPPORT

    def weighting(self) -> str:
        """Describe how sources count in the prediction if no weights are learned, or return ""."""
        own = np.array(list(self.source_weights.values()))
        if len(own) < 2:
            return ""
        if np.abs(own - 1 / len(own)).sum() / 2 <= EVEN:
            return "All sources count equally in the prediction: no source is preferred."
        rows = np.array([self.source_rows.get(name, 0) for name in self.source_weights], float)
        if rows.sum() > 0 and np.abs(own - rows / rows.sum()).sum() / 2 <= EVEN:
            return "The sources are pooled: each row counts the same, and no source is preferred."
        return ""

    def findings(self) -> tuple[Caution, ...]:
        """Return the cautions, the most important first."""
        return tuple(_findings(self))


def _findings(evidence: Evidence) -> Iterator[Caution]:
    """Turn numbers into sentences; the same numbers give the same sentences."""
    if not evidence.errors:
        yield Caution(
            "one source",
            "The error at the target is unknown and there are no intervals: "
            "leave-one-source-out needs at least two sources.",
            first=True,
        )
        return
    if evidence.few_rows:
        yield Caution(
            "few rows",
            "The expected error and the intervals say little: each held-out source, or the "
            "rest that predicts it, has only a few rows.",
            first=True,
        )
        yield from _unlike(evidence.place)
        return
    mean, constant = evidence.expected()[0], evidence.expected(CONSTANT)[0]
    if evidence.method != CONSTANT and mean >= constant:
        how = "better than" if mean > CLEARLY * constant else "as well as"
        yield Caution(
            "constant",
            f"A constant predicts held-out sources {how} the model does (error "
            f"{rounded(constant)} against {rounded(mean)}): by mean absolute error, the model "
            f"gains nothing at a new place.",
            first=True,
        )
    yield from _unlike(evidence.place)
    yield from _narrow(evidence.place)
    if mean < EXACT * constant:
        yield Caution(
            "exact",
            f"The model predicts held-out sources almost exactly (error {rounded(mean)}, a "
            f"constant's {rounded(constant)}). Check that no column, or sum of columns, is "
            f"computed from the response.",
        )
    if wild := evidence.wild():
        shown = [f"{short(name)} ({rounded(error)})" for name, error in wild.items()]
        several = len(wild) > 1
        yield Caution(
            "wild",
            f"The error on {listed(shown, 5, 50)} is more than {WILD:g} times that on a "
            f"typical held-out source; {'they count' if several else 'it counts'} only as "
            f"{WILD:g} times it in the expected error, and a target like "
            f"{'them' if several else 'it'} would be predicted as badly. Check the responses "
            f"there, for example their units.",
        )
    counts = evidence.counts()
    most = max(counts, key=lambda name: counts[name])
    if len(counts) > 2 and counts[most] > 0.75:
        yield Caution(
            "one counts",
            f"The expected error depends mostly on one source: {short(most)} counts for "
            f"{percent(counts[most])}, because it resembles the target most or the others "
            f"have few rows.",
        )
    if (better := evidence.better()) is not None:
        lower = rounded(evidence.expected(better)[0])
        yield Caution(
            "better",
            f"{short(better)} has a lower error on held-out sources ({lower} against "
            f"{rounded(mean)}): --method {short(better)} is the safer choice.",
        )


def _unlike(place: TargetPlace | None) -> Iterator[Caution]:
    if place is not None and place.unlike:
        yield Caution("unlike", f"The target resembles no source: {place.why()}.", first=True)
        yield Caution("optimistic", place.optimism())


def _narrow(place: TargetPlace | None) -> Iterator[Caution]:
    if place is None or not place.narrow:
        return
    low, high = min(place.covered.values()), max(place.covered.values())
    said = (
        f"Intervals of 90 % are probably too narrow and may cover only about "
        f"{percent(place.coverage)}. On held-out sources they covered {percent(low)} to "
        f"{percent(high)}"
    )
    if place.disagreement > UNUSUAL_SHARE:
        said += (
            f", and on {percent(place.disagreement)} of the target's rows models disagree "
            f"more than they did on almost all held-out rows"
        )
    yield Caution("narrow", f"{said}.")


def held_out_weights(
    sources: Mapping[str, object], resemblance: Mapping[str, float], rows: Mapping[str, int]
) -> dict[str, float]:
    """Weights of held-out sources by resemblance to the target and rows; the sum is one.

    Examples
    --------
    >>> held_out_weights({"a": 0, "b": 0, "c": 0}, {}, {"a": 50_000, "b": 3, "c": 500})["b"] < 0.1
    True
    """
    support = _supports(rows)
    known = {name: resemblance.get(name, 1.0) * support.get(name, 1.0) for name in sources}
    total = sum(known.values())
    if not total > 0:
        return dict.fromkeys(known, 1 / max(len(known), 1))
    return {name: value / total for name, value in known.items()}


def _supports(rows: Mapping[str, int]) -> dict[str, float]:
    """n/(n + 30) m/(m + 30) for the n rows of each source and the m rows of the others."""
    total = sum(rows.values())
    return {name: n / (n + SMALL) * (total - n) / (total - n + SMALL) for name, n in rows.items()}


def _median(values: Floats, weights: Floats) -> float:
    """Weighted median; the middle of both candidates if half of the weight is on either side."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    low, high = np.searchsorted(below, [0.5 - 1e-9, 0.5 + 1e-9])
    last = len(values) - 1
    return float(values[order][min(low, last)] + values[order][min(high, last)]) / 2


def _mean(values: Floats, weights: Floats) -> tuple[float, float]:
    """Weighted mean and its standard error, by the effective number of sources 1/Σw²."""
    if not len(values):
        return np.nan, np.nan
    if not np.isfinite(values).all():
        return np.inf, np.nan
    mean = float(weights @ values)
    if len(values) < 2:
        return mean, np.nan
    free = max(1 / float(weights @ weights) - 1, 0.5)
    return mean, float(np.sqrt(weights @ (values - mean) ** 2 / free))
